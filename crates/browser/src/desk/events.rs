//! What the browser reports, folded into the state as it comes.

use std::{sync::Weak, time::Instant};

use serde::Deserialize;
use serde_json::Value;
use tokio::sync::mpsc;

use super::{Desk, Dialog, Download, DownloadState, Frame, State, Tab};
use crate::{
    cdp::{CdpEvent, CdpSession},
    snapshot::refs::Refs,
};

/// Fold events until the browser is gone or nobody wants it any more.
pub(super) async fn fold(desk: Weak<Desk>, mut events: mpsc::UnboundedReceiver<CdpEvent>) {
    while let Some(event) = events.recv().await {
        let Some(desk) = desk.upgrade() else { return };
        take(&desk, &event);
        desk.touch();
    }
    if let Some(desk) = desk.upgrade() {
        desk.touch();
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OfSession {
    session_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OfFrame {
    frame_id: String,
    #[serde(default)]
    parent_frame_id: Option<String>,
    #[serde(default)]
    reason: Option<String>,
    #[serde(default)]
    url: Option<String>,
}

#[derive(Deserialize)]
struct Navigated {
    frame: FrameInfo,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FrameInfo {
    pub(super) id: String,
    #[serde(default)]
    parent_id: Option<String>,
    pub(super) loader_id: String,
    url: String,
    #[serde(default)]
    url_fragment: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OfRequest {
    request_id: String,
    #[serde(default)]
    r#type: Option<String>,
}

#[derive(Deserialize)]
struct DialogOpening {
    message: String,
    r#type: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Chooser {
    #[serde(default)]
    backend_node_id: Option<i64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DownloadBegins {
    guid: String,
    url: String,
    suggested_filename: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DownloadProgress {
    guid: String,
    received_bytes: f64,
    state: String,
}

fn take(desk: &std::sync::Arc<Desk>, event: &CdpEvent) {
    let mut state = desk.state();
    let session = event.session.as_ref();
    match event.method.as_str() {
        "Target.attachedToTarget" => {
            if let Some(attached) = event.read::<super::targets::Attached>() {
                super::targets::attach(desk, &mut state, session, attached);
            }
        }
        "Target.detachedFromTarget" => {
            if let Some(gone) = event.read::<OfSession>() {
                super::targets::detach(&mut state, &CdpSession::from(gone.session_id));
            }
        }
        "Inspector.targetCrashed" => {
            if let Some(tab) = session.and_then(|session| state.tab_of(session)) {
                tab.crashed = true;
                tab.requests.clear();
                tab.loading.clear();
            }
        }
        "Page.frameAttached" => {
            let (Some(session), Some(frame)) = (session, event.read::<OfFrame>()) else { return };
            let number = state.next_document();
            if let Some(tab) = state.tab_of(session) {
                tab.frames.entry(frame.frame_id.clone()).or_insert_with(|| Frame {
                    id: frame.frame_id,
                    parent: frame.parent_frame_id,
                    session: session.clone(),
                    number,
                    loader: String::new(),
                    url: String::new(),
                    world: None,
                    refs: Refs::default(),
                    owner: None,
                });
            }
        }
        "Page.frameDetached" => {
            let (Some(session), Some(frame)) = (session, event.read::<OfFrame>()) else { return };
            // A frame that is swapped goes on in another process.
            if frame.reason.as_deref() != Some("swap")
                && let Some(tab) = state.tab_of(session)
            {
                tab.frames.remove(&frame.frame_id);
                tab.loading.remove(&frame.frame_id);
                tab.asked.remove(&frame.frame_id);
            }
        }
        "Page.frameNavigated" => {
            let (Some(session), Some(navigated)) = (session, event.read::<Navigated>()) else {
                return;
            };
            navigated_to(&mut state, session, navigated.frame);
        }
        "Page.navigatedWithinDocument" => {
            if let Some(OfFrame { frame_id, url: Some(url), .. }) = event.read::<OfFrame>()
                && let Some(frame) = state.frame_mut(&frame_id)
            {
                frame.url = url;
            }
        }
        "Page.frameRequestedNavigation" => {
            let (Some(session), Some(frame)) = (session, event.read::<OfFrame>()) else { return };
            if let Some(tab) = state.tab_of(session)
                && frame.url.is_some_and(|url| !url.starts_with("javascript:"))
            {
                tab.asked.insert(frame.frame_id);
            }
        }
        "Page.frameStartedLoading" => {
            let (Some(session), Some(frame)) = (session, event.read::<OfFrame>()) else { return };
            if let Some(tab) = state.tab_of(session) {
                tab.asked.remove(&frame.frame_id);
                tab.loading.insert(frame.frame_id);
            }
        }
        "Page.frameStoppedLoading" | "Page.frameClearedScheduledNavigation" => {
            let (Some(session), Some(frame)) = (session, event.read::<OfFrame>()) else { return };
            if let Some(tab) = state.tab_of(session) {
                tab.asked.remove(&frame.frame_id);
                tab.loading.remove(&frame.frame_id);
            }
        }
        "Network.requestWillBeSent" => {
            let (Some(session), Some(request)) = (session, event.read::<OfRequest>()) else {
                return;
            };
            // These stay open by nature, and nobody waits for them.
            let lasting = matches!(
                request.r#type.as_deref(),
                Some(
                    "EventSource"
                        | "WebSocket"
                        | "Media"
                        | "Ping"
                        | "Prefetch"
                        | "Preflight"
                        | "CSPViolationReport"
                )
            );
            if !lasting && let Some(tab) = state.tab_of(session) {
                tab.requests.insert(request.request_id, Instant::now());
            }
        }
        "Network.loadingFinished" | "Network.loadingFailed" => {
            let (Some(session), Some(request)) = (session, event.read::<OfRequest>()) else {
                return;
            };
            if let Some(tab) = state.tab_of(session) {
                tab.requests.remove(&request.request_id);
            }
        }
        "Fetch.requestPaused" => {
            if let Some(session) = session {
                super::guard::judge(desk, &mut state, session, event);
            }
        }
        "Page.javascriptDialogOpening" => {
            let (Some(session), Some(dialog)) = (session, event.read::<DialogOpening>()) else {
                return;
            };
            if let Some(tab) = state.tab_of(session) {
                let message = crate::snapshot::tidy(&dialog.message);
                tab.dialog = Some(Dialog { kind: dialog.r#type, message });
            }
        }
        "Page.javascriptDialogClosed" => {
            if let Some(tab) = session.and_then(|session| state.tab_of(session)) {
                tab.dialog = None;
            }
        }
        "Page.fileChooserOpened" => {
            let (Some(session), Some(chooser)) = (session, event.read::<Chooser>()) else { return };
            if let Some(tab) = state.tab_of(session) {
                tab.chooser = chooser.backend_node_id;
            }
        }
        "Input.dragIntercepted" => {
            let data = event.read::<Value>().and_then(|value| value.get("data").cloned());
            if let Some(tab) = session.and_then(|session| state.tab_of(session)) {
                tab.drag = data;
            }
        }
        "Browser.downloadWillBegin" => {
            if let Some(begins) = event.read::<DownloadBegins>() {
                // The page chooses the name; it must not choose the folder.
                let name = begins.suggested_filename.replace(['/', '\\', '\0'], "_");
                state.downloads.push(Download {
                    id: begins.guid,
                    name: name.trim_start_matches('.').to_owned(),
                    url: begins.url,
                    bytes: 0,
                    state: DownloadState::Running,
                    taken: false,
                });
            }
        }
        "Browser.downloadProgress" => {
            if let Some(progress) = event.read::<DownloadProgress>()
                && let Some(download) =
                    state.downloads.iter_mut().find(|download| download.id == progress.guid)
            {
                download.bytes = progress.received_bytes.max(0.0) as u64;
                download.state = match progress.state.as_str() {
                    "completed" => DownloadState::Done,
                    "canceled" => DownloadState::Broken,
                    _ => DownloadState::Running,
                };
            }
        }
        _ => {}
    }
}

/// A frame shows another document.
pub(super) fn navigated_to(state: &mut State, session: &CdpSession, info: FrameInfo) {
    let number = state.next_document();
    let url = info.url + info.url_fragment.as_deref().unwrap_or_default();
    let Some(tab) = state.tab_of(session) else { return };
    let is_main = info.id == tab.target;
    if is_main {
        tab.visits += 1;
        tab.crashed = false;
        tab.chooser = None;
        // What the page before asked for is nobody's any more.
        tab.requests.clear();
        tab.frames.clear();
        tab.loading.retain(|frame| *frame == info.id);
        tab.asked.clear();
    } else {
        // The frames inside the document before are gone with it.
        let gone: Vec<String> = under(tab, &info.id);
        for frame in gone {
            tab.frames.remove(&frame);
            tab.loading.remove(&frame);
        }
    }
    tab.asked.remove(&info.id);
    let before = tab.frames.remove(&info.id);
    let same = before.as_ref().is_some_and(|frame| frame.loader == info.loader_id);
    let frame = match before {
        Some(frame) if same => Frame { url, session: session.clone(), ..frame },
        before => Frame {
            parent: info.parent_id.or_else(|| before.as_ref().and_then(|f| f.parent.clone())),
            owner: before.and_then(|frame| frame.owner),
            id: info.id.clone(),
            session: session.clone(),
            number,
            loader: info.loader_id,
            url,
            world: None,
            refs: Refs::default(),
        },
    };
    tab.frames.insert(info.id, frame);
}

/// The frames inside a frame, however deep.
fn under(tab: &Tab, frame: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut open = vec![frame.to_owned()];
    while let Some(next) = open.pop() {
        for child in tab.frames.values() {
            if child.parent.as_deref() == Some(&next) && !found.contains(&child.id) {
                found.push(child.id.clone());
                open.push(child.id.clone());
            }
        }
    }
    found
}
