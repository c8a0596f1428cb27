//! What is known of a browser at a moment.

use std::{
    collections::{HashMap, HashSet},
    fmt,
};

use super::Requests;
use crate::{
    cdp::CdpSession,
    error::{BrowserError, Result},
    sites::origin_of,
    snapshot::refs::Refs,
};

/// A tab's name: `t1`, `t2`, …
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct TabId(pub(crate) u32);

impl fmt::Display for TabId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "t{}", self.0)
    }
}

/// Everything that is known.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) tabs: Vec<Tab>,
    pub(crate) current: TabId,
    /// Which tab a session belongs to.
    pub(crate) sessions: HashMap<CdpSession, TabId>,
    pub(crate) last_document: u32,
    pub(crate) last_tab: u32,
    pub(crate) downloads: Vec<Download>,
    pub(crate) permits: Permits,
    /// Tabs that we are about to open ourselves; in somebody else's browser no others are ours.
    pub(crate) expecting: u32,
    /// Things that happened by themselves and that the next result tells.
    pub(crate) notices: Vec<String>,
}

/// A tab.
#[derive(Debug)]
pub(crate) struct Tab {
    pub(crate) id: TabId,
    pub(crate) target: String,
    pub(crate) session: CdpSession,
    /// Whether it has been set up.
    pub(crate) ready: bool,
    pub(crate) frames: HashMap<String, Frame>,
    pub(crate) dialog: Option<Dialog>,
    pub(crate) chooser: Option<i64>,
    pub(crate) crashed: bool,
    pub(crate) requests: Requests,
    /// Frames that are loading a document.
    pub(crate) loading: HashSet<String>,
    /// Navigations that were asked for and have not begun.
    pub(crate) asked: HashSet<String>,
    /// How many documents its main frame has had.
    pub(crate) visits: u32,
    /// What the browser says a drag carries, while one is under way.
    pub(crate) drag: Option<serde_json::Value>,
}

/// A frame with the document that it shows.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) id: String,
    pub(crate) parent: Option<String>,
    pub(crate) session: CdpSession,
    /// The number of its document.
    pub(crate) number: u32,
    pub(crate) loader: String,
    pub(crate) url: String,
    pub(crate) world: Option<i64>,
    pub(crate) refs: Refs,
    /// The element that it is in, in the document around it.
    pub(crate) owner: Option<i64>,
}

/// A dialog that holds a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Dialog {
    pub(crate) kind: String,
    pub(crate) message: String,
}

impl fmt::Display for Dialog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a dialog ({}) with the text {:?}", self.kind, self.message)
    }
}

/// A file that a page gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Download {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) url: String,
    pub(crate) bytes: u64,
    pub(crate) state: DownloadState,
    /// Whether somebody kept it.
    pub(crate) taken: bool,
}

/// How far a download is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DownloadState {
    Running,
    Done,
    Broken,
}

/// What was permitted in this session besides the list of sites. A call that runs has been
/// permitted: by a rule, by a person, or because it goes no further than this.
#[derive(Debug, Default)]
pub(crate) struct Permits {
    /// Addresses that were gone to.
    visited: HashSet<String>,
    /// Origins that were gone to.
    origins: HashSet<String>,
    /// Origins into whose pages something may be written.
    typed: HashSet<String>,
    /// Origins that forms may be sent to.
    submitted: HashSet<String>,
    /// Addresses that pages themselves name as links. They carry nothing of ours.
    links: HashSet<String>,
}

/// How many addresses of links are remembered.
const MOST_LINKS: usize = 50_000;

impl Permits {
    pub(crate) fn visit(&mut self, address: &str) {
        self.visited.insert(address.to_owned());
        self.origins.extend(origin_of(address));
    }

    pub(crate) fn has_visited(&self, address: &str) -> bool {
        self.visited.contains(address)
    }

    pub(crate) fn knows_origin(&self, address: &str) -> bool {
        origin_of(address).is_some_and(|origin| self.origins.contains(&origin))
    }

    pub(crate) fn type_into(&mut self, address: &str) {
        self.typed.extend(origin_of(address));
    }

    pub(crate) fn may_type(&self, address: &str) -> bool {
        origin_of(address).is_some_and(|origin| self.typed.contains(&origin))
    }

    pub(crate) fn submit_to(&mut self, address: &str) {
        self.submitted.extend(origin_of(address));
    }

    pub(crate) fn may_submit(&self, address: &str) -> bool {
        origin_of(address).is_some_and(|origin| self.submitted.contains(&origin))
    }

    /// A page names an address.
    pub(crate) fn offer(&mut self, address: String) {
        if self.links.len() < MOST_LINKS {
            self.links.insert(address);
        }
    }

    pub(crate) fn is_offered(&self, address: &str) -> bool {
        self.links.contains(address)
    }
}

impl State {
    pub(crate) fn current_tab(&self) -> Result<&Tab> {
        self.tab(self.current)
            .ok_or_else(|| BrowserError::cannot("no tab is open; open one with tab_new"))
    }

    pub(crate) fn tab(&self, id: TabId) -> Option<&Tab> {
        self.tabs.iter().find(|tab| tab.id == id)
    }

    pub(crate) fn tab_mut(&mut self, id: TabId) -> Option<&mut Tab> {
        self.tabs.iter_mut().find(|tab| tab.id == id)
    }

    pub(crate) fn tab_of(&mut self, session: &CdpSession) -> Option<&mut Tab> {
        let id = *self.sessions.get(session)?;
        self.tab_mut(id)
    }

    pub(crate) fn frame(&self, id: &str) -> Option<&Frame> {
        self.tabs.iter().find_map(|tab| tab.frames.get(id))
    }

    pub(crate) fn frame_mut(&mut self, id: &str) -> Option<&mut Frame> {
        self.tabs.iter_mut().find_map(|tab| tab.frames.get_mut(id))
    }

    /// The number for a new document.
    pub(crate) fn next_document(&mut self) -> u32 {
        self.last_document += 1;
        self.last_document
    }
}

impl Tab {
    /// The frame that fills it.
    pub(crate) fn main(&self) -> Option<&Frame> {
        self.frames.get(&self.target)
    }

    pub(crate) fn url(&self) -> &str {
        self.main().map_or("about:blank", |frame| frame.url.as_str())
    }
}
