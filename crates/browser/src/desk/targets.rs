//! Tabs, frames of other processes and workers as they come and go.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    Desk, State, Tab, TabId,
    events::{FrameInfo, navigated_to},
};
use crate::cdp::CdpSession;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Attached {
    session_id: String,
    target_info: TargetInfo,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TargetInfo {
    target_id: String,
    r#type: String,
    #[serde(default)]
    opener_id: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FrameTree {
    frame: FrameInfo,
    #[serde(default)]
    child_frames: Vec<FrameTree>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GotFrameTree {
    frame_tree: FrameTree,
}

/// Something new in the browser: a tab of ours or somebody else's, a frame of another process, a
/// worker.
pub(super) fn attach(
    desk: &Arc<Desk>,
    state: &mut State,
    parent: Option<&CdpSession>,
    attached: Attached,
) {
    let session = CdpSession::from(attached.session_id);
    let TargetInfo { target_id, r#type: kind, opener_id } = attached.target_info;
    match (kind.as_str(), parent) {
        ("page", None) => {
            let opened = opener_id
                .as_ref()
                .is_some_and(|opener| state.tabs.iter().any(|tab| tab.target == *opener));
            if desk.attached && !opened && state.expecting == 0 {
                // Somebody else's tab in somebody else's browser.
                let _ = desk.connection.send(
                    Some(&session),
                    "Runtime.runIfWaitingForDebugger",
                    json!({}),
                );
                let params = json!({"sessionId": &*session});
                let _ = desk.connection.send(None, "Target.detachFromTarget", params);
                return;
            }
            state.last_tab += 1;
            let id = TabId(state.last_tab);
            state.tabs.push(Tab {
                id,
                target: target_id,
                session: session.clone(),
                ready: false,
                frames: HashMap::new(),
                dialog: None,
                chooser: None,
                crashed: false,
                requests: HashMap::new(),
                loading: HashSet::new(),
                asked: HashSet::new(),
                visits: 0,
                drag: None,
            });
            state.sessions.insert(session.clone(), id);
            if state.tab(state.current).is_none() {
                state.current = id;
            } else if opened {
                state.notices.push(format!("a new tab opened: {id}; tab_switch goes to it"));
            }
            set_up(desk, session, Some(id));
        }
        ("iframe", Some(parent)) => {
            let Some(tab) = state.sessions.get(parent).copied() else { return };
            state.sessions.insert(session.clone(), tab);
            set_up(desk, session, None);
        }
        ("worker" | "shared_worker" | "service_worker", parent) => {
            if let Some(tab) = parent.and_then(|parent| state.sessions.get(parent)).copied() {
                state.sessions.insert(session.clone(), tab);
            }
            let _ = desk.connection.send(Some(&session), "Fetch.enable", all_requests());
            let _ =
                desk.connection.send(Some(&session), "Runtime.runIfWaitingForDebugger", json!({}));
        }
        _ => {
            let _ =
                desk.connection.send(Some(&session), "Runtime.runIfWaitingForDebugger", json!({}));
        }
    }
}

fn all_requests() -> Value {
    json!({"patterns": [{"urlPattern": "*", "requestStage": "Request"}]})
}

/// Prepare a page or a frame of another process before its first request. Commands of a session
/// are carried out in order, so only the last is waited for.
fn set_up(desk: &Arc<Desk>, session: CdpSession, tab: Option<TabId>) {
    let send = |method: &str, params: Value| desk.connection.send(Some(&session), method, params);
    // Tells when a page crashes.
    drop(send("Inspector.enable", json!({})));
    drop(send("Page.enable", json!({})));
    drop(send("DOM.enable", json!({})));
    drop(send("Network.enable", json!({})));
    // What a service worker fetches would pass the guard by.
    drop(send("Network.setBypassServiceWorker", json!({"bypass": true})));
    drop(send("Fetch.enable", all_requests()));
    let attach = json!({"autoAttach": true, "waitForDebuggerOnStart": true, "flatten": true});
    drop(send("Target.setAutoAttach", attach));
    if tab.is_some() {
        drop(send("Page.setInterceptFileChooserDialog", json!({"enabled": true})));
        drop(send("Emulation.setFocusEmulationEnabled", json!({"enabled": true})));
        if let Some((width, height)) = desk.view() {
            let size =
                json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
            drop(send("Emulation.setDeviceMetricsOverride", size));
        }
    }
    let tree = send("Page.getFrameTree", json!({}));
    let run = send("Runtime.runIfWaitingForDebugger", json!({}));
    let weak = desk.weak();
    tokio::spawn(async move {
        let tree = tree.wait(super::READY).await;
        let _ = run.done().await;
        let Some(desk) = weak.upgrade() else { return };
        {
            let mut state = desk.state();
            let tree =
                tree.ok().and_then(|raw| serde_json::from_str::<GotFrameTree>(raw.get()).ok());
            if let Some(tree) = tree {
                plant(&mut state, &session, tree.frame_tree);
            }
            if let Some(tab) = tab.and_then(|id| state.tab_mut(id)) {
                tab.ready = true;
            }
        }
        desk.touch();
    });
}

/// Take in the frames that were there before we listened.
fn plant(state: &mut State, session: &CdpSession, tree: FrameTree) {
    let mut open = vec![tree];
    while let Some(FrameTree { frame, child_frames }) = open.pop() {
        open.extend(child_frames);
        let known = state.frame(&frame.id);
        if known.is_none_or(|known| known.loader != frame.loader_id || known.session != *session) {
            navigated_to(state, session, frame);
        }
    }
}

/// Something in the browser is gone.
pub(super) fn detach(state: &mut State, session: &CdpSession) {
    let Some(id) = state.sessions.remove(session) else { return };
    let is_main = state.tab(id).is_some_and(|tab| tab.session == *session);
    if !is_main {
        return;
    }
    state.tabs.retain(|tab| tab.id != id);
    state.sessions.retain(|_, tab| *tab != id);
    if state.current == id {
        state.current = state.tabs.last().map(|tab| tab.id).unwrap_or_default();
        if state.current != TabId::default() {
            state.notices.push(format!("tab {id} closed; the current tab is {}", state.current));
        }
    }
}
