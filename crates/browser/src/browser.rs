//! The browser that tools share: one desk for each session, opened when it is first needed.

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use duologue_core::{SessionId, Tool};
use duologue_tools::Workspace;
use tokio::sync::{Mutex as Turn, OwnedMutexGuard};

use crate::{
    desk::{Desk, Setting, Source},
    error::Result,
    sites::Sites,
    snapshot::USUAL_TOKENS,
};

/// How a browser works.
#[derive(Clone, Debug)]
pub struct BrowserConfig {
    /// Where it comes from.
    pub source: Source,
    /// The sites that it may go to and act on without asking.
    pub sites: Sites,
    /// The folder that files come from and go to. Without one there are no uploads and downloads.
    pub workspace: Option<Workspace>,
    /// How long a page may take to settle after an action. One that never does is left as it is.
    pub settle: Duration,
    /// How many tokens a snapshot takes at most.
    pub snapshot_tokens: usize,
    /// Whether the tool `evaluate` is there.
    pub scripts: Scripts,
    /// Whether results carry a picture of the page.
    pub pictures: Pictures,
    /// The folder where open pages are written down, to be opened again after a crash.
    pub state: Option<PathBuf>,
}

impl Default for BrowserConfig {
    fn default() -> Self {
        Self {
            source: Source::default(),
            sites: Sites::default(),
            workspace: None,
            settle: Duration::from_secs(8),
            snapshot_tokens: USUAL_TOKENS,
            scripts: Scripts::Off,
            pictures: Pictures::OnRequest,
            state: None,
        }
    }
}

/// Whether a model may run scripts of its own in a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scripts {
    /// No.
    #[default]
    Off,
    /// Yes, by the tool `evaluate`, which asks.
    On,
}

/// When pictures of a page are taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pictures {
    /// When `screenshot` is called.
    #[default]
    OnRequest,
    /// Also after every action, so that the journal shows what happened.
    EachAction,
}

/// A browser for agents. Clones share it; when the last is dropped, every process of it ends.
///
/// ```no_run
/// use duologue_browser::{Browser, BrowserConfig, Sites};
/// use duologue_core::Toolbox;
///
/// let config = BrowserConfig { sites: Sites::new(["docs.rs"])?, ..BrowserConfig::default() };
/// let browser = Browser::new(config);
/// let tools = browser.tools().into_iter().fold(Toolbox::new(), Toolbox::with_shared);
/// # Ok::<(), duologue_browser::SiteError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Browser(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    config: BrowserConfig,
    seats: Mutex<HashMap<SessionId, Arc<Seat>>>,
}

/// The place of one session. Its calls take turns: a page can only be used by one at a time.
#[derive(Debug, Default)]
struct Seat {
    turn: Arc<Turn<()>>,
    desk: Mutex<Option<Arc<Desk>>>,
}

impl Seat {
    fn desk(&self) -> MutexGuard<'_, Option<Arc<Desk>>> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Browser {
    /// A browser that is started when it is first needed.
    pub fn new(config: BrowserConfig) -> Self {
        Self(Arc::new(Inner { config, seats: Mutex::default() }))
    }

    /// How it works.
    pub fn config(&self) -> &BrowserConfig {
        &self.0.config
    }

    /// Its tools.
    pub fn tools(&self) -> Vec<Arc<dyn Tool>> {
        crate::tools::all(self)
    }

    fn seat(&self, session: &SessionId) -> Arc<Seat> {
        let mut seats = self.0.seats.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(seats.entry(session.clone()).or_default())
    }

    /// The desk of a session if it is open.
    pub(crate) fn open_desk(&self, session: &SessionId) -> Option<Arc<Desk>> {
        self.seat(session).desk().clone()
    }

    /// Wait for the session's turn and give its desk, opened if need be.
    pub(crate) async fn take(
        &self,
        session: &SessionId,
    ) -> Result<(Arc<Desk>, OwnedMutexGuard<()>)> {
        let seat = self.seat(session);
        let turn = Arc::clone(&seat.turn).lock_owned().await;
        let before = seat.desk().clone();
        let mut last_document = 0;
        if let Some(desk) = before {
            if desk.gone().is_none() {
                return Ok((desk, turn));
            }
            last_document = desk.state().last_document;
            *seat.desk() = None;
        }
        let config = self.config();
        let desk = Desk::open(Setting {
            source: config.source.clone(),
            sites: config.sites.clone(),
            settle: config.settle,
            record: config.state.as_ref().map(|folder| folder.join(format!("{session}.json"))),
            last_document,
        })
        .await?;
        *seat.desk() = Some(Arc::clone(&desk));
        Ok((desk, turn))
    }

    /// End the browser of a session. What it had open is forgotten.
    pub async fn close(&self, session: &SessionId) {
        let seat = {
            let mut seats = self.0.seats.lock().unwrap_or_else(PoisonError::into_inner);
            seats.remove(session)
        };
        let desk = seat.and_then(|seat| seat.desk().take());
        if let Some(desk) = desk {
            desk.close().await;
        }
    }
}
