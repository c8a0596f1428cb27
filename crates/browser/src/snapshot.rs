//! What a model reads of a page: an accessibility-based list of what can be read and acted on.
//!
//! One command gives all nodes of a page with their boxes, closed shadow trees included
//! ([`capture`]); [`meaning`] says what they are by the rules of ARIA; [`lines`] puts them in
//! reading order across frames; [`render`] writes them within a budget; [`refs`] keeps the
//! references stable.

use std::collections::{HashMap, HashSet};

use futures::future::join_all;
use serde::Deserialize;
use serde_json::json;
use url::Url;

use self::{
    capture::capture,
    lines::lines,
    page::{Line, Page, Piece},
    render::{Numbers, render},
};
pub(crate) use self::{
    render::Addresses,
    text::{clip, tidy},
};
use crate::{
    cdp::CdpSession,
    desk::{Desk, State, TabId},
    error::Result,
    snapshot::refs::Refs,
};

pub(crate) mod capture;
pub(crate) mod extract;
pub(crate) mod lines;
pub(crate) mod markdown;
pub(crate) mod meaning;
pub(crate) mod page;
pub(crate) mod refs;
pub(crate) mod render;
mod states;
pub(crate) mod text;

/// How many tokens a snapshot takes unless asked otherwise.
pub(crate) const USUAL_TOKENS: usize = 6_000;

/// A page as it was at a moment.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) page: Page,
    /// The frame of each document.
    frames: Vec<String>,
    tab: TabId,
}

/// The last node with the keyboard, also inside shadow trees.
const FOCUSED: &str = "(() => { let e = document.activeElement; while (e && e.shadowRoot && \
     e.shadowRoot.activeElement) e = e.shadowRoot.activeElement; return e; })()";

impl Desk {
    /// Look at the current page with all its frames.
    pub(crate) async fn look(&self) -> Result<Seen> {
        let (tab, main) = self.current()?;
        // Frames of other origins are in processes of their own.
        let others: Vec<(String, CdpSession)> = {
            let state = self.state();
            let frames = state.tab(tab).into_iter().flat_map(|tab| tab.frames.values());
            let mut roots: HashMap<CdpSession, String> = HashMap::new();
            for frame in frames.filter(|frame| frame.session != main) {
                let parent = frame.parent.as_deref().and_then(|parent| state.frame(parent));
                if parent.is_none_or(|parent| parent.session != frame.session) {
                    roots.insert(frame.session.clone(), frame.id.clone());
                }
            }
            roots.into_iter().map(|(session, frame)| (frame, session)).collect()
        };
        let inner = join_all(others.iter().map(|(_, session)| capture(&self.connection, session)));
        let owners = join_all(others.iter().map(|(frame, _)| self.frame_owner(frame)));
        let (captured, view, focused, inner, owners) = tokio::join!(
            capture(&self.connection, &main),
            self.view_size(&main),
            self.focused(&main),
            inner,
            owners
        );
        let mut page = Page { view, ..Page::default() };
        page.documents = captured?.into_documents();
        link(&mut page, 0);
        if let Some(focused) = focused {
            page.focused.insert(0, focused);
        }
        for (((frame, _), captured), owner) in others.iter().zip(inner).zip(owners) {
            // A frame that went away meanwhile is not there to be seen.
            let Ok(captured) = captured else { continue };
            let begin = page.documents.len();
            page.documents.extend(captured.into_documents());
            link(&mut page, begin);
            if let Some(owner) = owner {
                let around = self.state().frame(frame).and_then(|frame| frame.parent.clone());
                let slot = page.documents.iter().position(|d| Some(&d.frame_id) == around.as_ref());
                page.inside.insert((slot.unwrap_or(0), owner), begin);
            }
        }
        let frames = page.documents.iter().map(|document| document.frame_id.clone()).collect();
        Ok(Seen { page, frames, tab })
    }

    /// The element that a frame is in.
    pub(crate) async fn frame_owner(&self, frame: &str) -> Option<i64> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Owner {
            backend_node_id: i64,
        }
        let (known, session) = {
            let state = self.state();
            let found = state.frame(frame)?;
            let around = found.parent.as_deref().and_then(|parent| state.frame(parent))?;
            (found.owner, around.session.clone())
        };
        if known.is_some() {
            return known;
        }
        let params = json!({"frameId": frame});
        let owner: Owner =
            self.connection.call(Some(&session), "DOM.getFrameOwner", params).await.ok()?;
        if let Some(found) = self.state().frame_mut(frame) {
            found.owner = Some(owner.backend_node_id);
        }
        Some(owner.backend_node_id)
    }

    /// Width and height of what is seen of a page.
    async fn view_size(&self, session: &CdpSession) -> (f64, f64) {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Metrics {
            css_visual_viewport: Size,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Size {
            client_width: f64,
            client_height: f64,
        }
        if let Some((width, height)) = self.view() {
            return (f64::from(width), f64::from(height));
        }
        let metrics = self
            .connection
            .call::<Metrics>(Some(session), "Page.getLayoutMetrics", json!({}))
            .await;
        metrics.map_or((1280.0, 800.0), |metrics| {
            (metrics.css_visual_viewport.client_width, metrics.css_visual_viewport.client_height)
        })
    }

    /// The node that has the keyboard.
    async fn focused(&self, session: &CdpSession) -> Option<i64> {
        #[derive(Deserialize)]
        struct Evaluated {
            result: Object,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Object {
            object_id: Option<String>,
        }
        #[derive(Deserialize)]
        struct Described {
            node: Node,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Node {
            backend_node_id: i64,
        }
        let params = json!({"expression": FOCUSED, "objectGroup": "focus"});
        let found: Evaluated =
            self.connection.call(Some(session), "Runtime.evaluate", params).await.ok()?;
        let params = json!({"objectId": found.result.object_id?});
        let node: Described =
            self.connection.call(Some(session), "DOM.describeNode", params).await.ok()?;
        drop(self.connection.send(
            Some(session),
            "Runtime.releaseObjectGroup",
            json!({"objectGroup": "focus"}),
        ));
        Some(node.node.backend_node_id)
    }

    /// Give references to what is shown.
    pub(crate) fn number<'a>(&self, seen: &'a Seen, state: &'a mut State) -> Numbering<'a> {
        Numbering { frames: &seen.frames, state }
    }

    /// Remember the addresses that the page names, so that going there needs no new yes.
    pub(crate) fn offer_links(&self, seen: &Seen, all: &[Line]) {
        let mut state = self.state();
        for piece in all.iter().flat_map(|line| &line.pieces) {
            let Piece::Item(item) = piece else { continue };
            let Some(href) = &item.href else { continue };
            let base = seen.page.documents.get(item.slot).map(|document| document.url.as_str());
            let address = base.and_then(|base| Url::parse(base).ok()?.join(href).ok());
            if let Some(address) = address.filter(|address| address.scheme().starts_with("http")) {
                state.permits.offer(address.into());
            }
        }
    }

    /// The current page as text.
    pub(crate) async fn snapshot(
        &self,
        under: Option<refs::Reference>,
        most_tokens: usize,
        addresses: Addresses,
    ) -> Result<String> {
        let seen = self.look().await?;
        let under = under.map(|reference| self.slot_of(&seen, reference)).transpose()?;
        let all = lines(&seen.page, under);
        self.offer_links(&seen, &all);
        let mut state = self.state();
        let text = render(&all, &mut self.number(&seen, &mut state), most_tokens, addresses);
        drop(state);
        Ok(seen.frame_text(&text))
    }

    /// The document and node that a reference means in what was seen.
    pub(crate) fn slot_of(&self, seen: &Seen, reference: refs::Reference) -> Result<(usize, i64)> {
        let target = self.look_up(reference)?;
        let slot = seen.frames.iter().position(|frame| *frame == target.frame).unwrap_or(0);
        Ok((slot, target.known.backend))
    }
}

impl Seen {
    /// All lines of it.
    pub(crate) fn lines(&self) -> Vec<Line> {
        lines(&self.page, None)
    }

    /// Text of the page between the marks that say so.
    pub(crate) fn frame_text(&self, text: &str) -> String {
        let Some(document) = self.page.documents.first() else {
            return "⟦page: empty⟧\n⟦end of page⟧".to_owned();
        };
        let (width, height) = self.page.view;
        let (_, scrolled) = document.scroll;
        let title = clip(&tidy(&document.title), 120);
        let url = clip(&tidy(&document.url), 300);
        let mut head = format!("⟦page {} {title:?} {url}", self.tab);
        if document.size.1 > height + 1.0 || scrolled > 0.0 {
            let from = scrolled;
            let to = (scrolled + height).min(document.size.1);
            head.push_str(&format!("; in view: {from:.0}–{to:.0} of {:.0} px", document.size.1));
        } else {
            head.push_str(&format!("; {width:.0}×{height:.0} px"));
        }
        let text = text.trim_end();
        let text = if text.is_empty() { "(nothing to read or act on)" } else { text };
        format!("{head}⟧\n{text}\n⟦end of page⟧")
    }
}

/// Note which documents are inside which frames of the same process.
fn link(page: &mut Page, begin: usize) {
    let mut found = Vec::new();
    for (at, document) in page.documents.iter().enumerate().skip(begin) {
        for node in 0..document.len() {
            if let Some(inner) = document.content(node) {
                found.push(((at, document.backend(node)), begin + inner));
            }
        }
    }
    // A document that holds itself would be walked for ever.
    let mut entered = HashSet::new();
    page.inside
        .extend(found.into_iter().filter(|((at, _), inner)| inner > at && entered.insert(*inner)));
}

/// References for the documents of a page.
pub(crate) struct Numbering<'a> {
    frames: &'a [String],
    state: &'a mut State,
}

impl Numbers for Numbering<'_> {
    fn refs(&mut self, slot: usize) -> Option<(u32, &mut Refs)> {
        let frame = self.state.frame_mut(self.frames.get(slot)?)?;
        Some((frame.number, &mut frame.refs))
    }
}
