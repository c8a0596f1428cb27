//! The guard at the network: every request of every page passes here before it is sent.
//!
//! A page may fetch what it needs from the public internet. It may not reach into this machine or
//! its network, it may not take the tab to a site that nobody allowed, and it may not send a form
//! there: whatever a page's script or a model that believed the page tried, it ends here.

use std::{net::IpAddr, sync::Arc, time::Duration};

use serde::Deserialize;
use serde_json::json;
use url::{Host, Url};

use super::{Desk, State};
use crate::{
    cdp::{CdpEvent, CdpSession},
    sites::Standing,
};

/// How long the look-up of a name may take before the browser goes on by itself and fails.
const LOOK_UP: Duration = Duration::from_secs(5);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Paused {
    request_id: String,
    request: Request,
    frame_id: String,
    resource_type: String,
}

#[derive(Deserialize)]
struct Request {
    url: String,
    method: String,
}

/// Decide what becomes of a request. The name's address is looked up aside, so that nothing else
/// waits for it.
pub(super) fn judge(desk: &Arc<Desk>, state: &mut State, session: &CdpSession, event: &CdpEvent) {
    let Some(paused) = event.read::<Paused>() else { return };
    let tab = state.sessions.get(session).and_then(|id| state.tab(*id));
    let is_main =
        paused.resource_type == "Document" && tab.is_some_and(|tab| tab.target == paused.frame_id);
    let top = tab.map(|tab| tab.url().to_owned()).unwrap_or_default();
    let refusal = match (is_main, paused.resource_type.as_str()) {
        (true, _) => refuse_navigation(desk, state, &paused.request),
        (false, "Document") => refuse_form(desk, state, &paused.request),
        (false, _) => None,
    };
    if let Some(reason) = refusal {
        state.notices.push(reason);
        return block(desk, session, &paused.request_id, "Aborted");
    }
    let url = match Url::parse(&paused.request.url) {
        Ok(url) if matches!(url.scheme(), "http" | "https" | "ws" | "wss") => url,
        // Data and blobs leave nothing; files can only be reached by a page of files.
        Ok(url) if url.scheme() == "file" && !top.starts_with("file:") && !is_main => {
            return block(desk, session, &paused.request_id, "AccessDenied");
        }
        _ => return pass(desk, session, &paused.request_id),
    };
    if permits_literally(desk, &url) {
        return pass(desk, session, &paused.request_id);
    }
    let (desk, session) = (Arc::clone(desk), session.clone());
    tokio::spawn(async move {
        if let Some(address) = forbidden_address(&desk, &url).await {
            let host = url.host_str().unwrap_or_default();
            desk.state().notices.push(format!(
                "a request to {host} was blocked: {address} is an address of this machine or of \
                 the local network"
            ));
            block(&desk, &session, &paused.request_id, "AccessDenied");
        } else {
            pass(&desk, &session, &paused.request_id);
        }
    });
}

/// Why a tab may not go somewhere, if it may not.
fn refuse_navigation(desk: &Desk, state: &State, request: &Request) -> Option<String> {
    let url = &request.url;
    match desk.sites.judge(url) {
        Standing::Listed => None,
        Standing::Refused(reason) => Some(format!("the page tried to go to {url}: {reason}")),
        Standing::Unlisted if request.method != "GET" && !state.permits.may_submit(url) => {
            Some(form_blocked(url))
        }
        Standing::Unlisted if state.permits.knows_origin(url) || is_same_site(state, url) => None,
        Standing::Unlisted => Some(format!(
            "the page tried to go to {url}, which is not on the list of allowed sites; if the task \
             needs it, call navigate with that address, and a person will be asked"
        )),
    }
}

/// Why a frame may not send a form, if it may not.
fn refuse_form(desk: &Desk, state: &State, request: &Request) -> Option<String> {
    let url = &request.url;
    if request.method == "GET" {
        return None;
    }
    match desk.sites.judge(url) {
        Standing::Listed => None,
        Standing::Unlisted if state.permits.may_submit(url) => None,
        Standing::Unlisted | Standing::Refused(_) => Some(form_blocked(url)),
    }
}

fn form_blocked(url: &str) -> String {
    format!(
        "a form to {url} was not sent, because nobody allowed it; click its submit button by \
         reference, and a person will be asked"
    )
}

/// Whether an address is that of a site gone to but for the scheme or a leading `www.`, to which
/// sites send their visitors on.
fn is_same_site(state: &State, address: &str) -> bool {
    let Ok(url) = Url::parse(address) else { return false };
    let Some(host) = url.host_str() else { return false };
    let plain = host.strip_prefix("www.").unwrap_or(host);
    if url.port().is_some() {
        return false;
    }
    ["http", "https"].iter().any(|scheme| {
        ["", "www."]
            .iter()
            .any(|start| state.permits.knows_origin(&format!("{scheme}://{start}{plain}/")))
    })
}

/// Whether the address itself tells that it may be reached.
fn permits_literally(desk: &Desk, url: &Url) -> bool {
    let address = match url.host() {
        Some(Host::Ipv4(address)) => IpAddr::V4(address),
        Some(Host::Ipv6(address)) => IpAddr::V6(address),
        _ => return desk.sites.judge(as_http(url).as_str()) == Standing::Listed,
    };
    desk.sites.permit(&as_http(url), address)
}

/// The same address with the scheme that lists are written in.
fn as_http(url: &Url) -> Url {
    let mut url = url.clone();
    let scheme = match url.scheme() {
        "ws" => "http",
        "wss" => "https",
        _ => return url,
    };
    let _ = url.set_scheme(scheme);
    url
}

/// The address behind a name, if it is one that may not be reached.
async fn forbidden_address(desk: &Desk, url: &Url) -> Option<IpAddr> {
    let url = as_http(url);
    let port = url.port_or_known_default().unwrap_or(80);
    match url.host()? {
        Host::Ipv4(address) => Some(IpAddr::V4(address)),
        Host::Ipv6(address) => Some(IpAddr::V6(address)),
        Host::Domain(name) => {
            let found = tokio::time::timeout(LOOK_UP, tokio::net::lookup_host((name, port))).await;
            let mut addresses = found.ok()?.ok()?.map(|address| address.ip());
            addresses.find(|address| !desk.sites.permit(&url, *address))
        }
    }
}

fn pass(desk: &Desk, session: &CdpSession, request: &str) {
    let params = json!({"requestId": request});
    drop(desk.connection.send(Some(session), "Fetch.continueRequest", params));
}

fn block(desk: &Desk, session: &CdpSession, request: &str, reason: &str) {
    let params = json!({"requestId": request, "errorReason": reason});
    drop(desk.connection.send(Some(session), "Fetch.failRequest", params));
}
