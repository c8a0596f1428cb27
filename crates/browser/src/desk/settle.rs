//! Going somewhere, and waiting until a page has settled: its network is quiet and a frame passed
//! without a change. No fixed times; only bounds for pages that never rest.

use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::json;

use super::{Desk, State, TabId};
use crate::error::{BrowserError, Result};

/// How long a request may be open before nobody waits for it any more.
const LONG_REQUEST: Duration = Duration::from_secs(4);
/// How long a page may go on changing by itself.
const RESTLESS: Duration = Duration::from_millis(400);
/// How long the first answer of a site may take.
const ARRIVE: Duration = Duration::from_secs(30);

/// Waits for a drawn frame in which nothing in the document changed. Hidden pages draw no frames,
/// so a timer stands by.
const STILL: &str = "(limit) => new Promise(done => {
  const begin = performance.now();
  let changed = false, frames = 0;
  const observer = new MutationObserver(() => { changed = true; });
  observer.observe(document, {subtree: true, childList: true, attributes: true, characterData: true});
  const end = () => { observer.disconnect(); done(performance.now() - begin < limit); };
  const tick = () => {
    frames += 1;
    const still = !changed; changed = false;
    if ((still && frames > 0) || performance.now() - begin >= limit) return end();
    requestAnimationFrame(() => setTimeout(tick));
  };
  requestAnimationFrame(() => setTimeout(tick));
  setTimeout(end, limit + 50);
})";

/// How a page came to rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rest {
    /// It is quiet.
    Settled,
    /// The time was over first.
    Restless {
        /// How many requests are open.
        requests: usize,
    },
    /// A dialog holds it, or it is gone.
    Held,
}

impl Desk {
    /// Go to an address in the current tab and wait for the page.
    pub(crate) async fn navigate(&self, address: &str) -> Result<Rest> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Answer {
            #[serde(default)]
            error_text: Option<String>,
            #[serde(default)]
            is_download: Option<bool>,
        }
        let (tab, session) = self.current_for_navigation()?;
        let params = json!({"url": address});
        let go =
            self.connection.call_within::<Answer>(Some(&session), "Page.navigate", params, ARRIVE);
        let held = self.until(ARRIVE, |state| held(state, tab).then_some(()));
        let answer = tokio::select! {
            answer = go => answer,
            _ = held => return Ok(Rest::Held),
        };
        match answer {
            Ok(Answer { is_download: Some(true), .. }) => Ok(Rest::Settled),
            Ok(Answer { error_text: Some(error), .. }) if error == "net::ERR_ABORTED" => {
                let reasons = std::mem::take(&mut self.state().notices);
                Err(BrowserError::cannot(match reasons.is_empty() {
                    true => format!("{address} was not loaded: it gave nothing to show"),
                    false => format!("{address} was not loaded: {}", reasons.join("; ")),
                }))
            }
            Ok(Answer { error_text: Some(error), .. }) => Err(BrowserError::cannot(format!(
                "{address} cannot be loaded: {}",
                explain(&error)
            ))),
            Ok(_) => Ok(self.rest().await),
            Err(BrowserError::Silent { .. }) => Err(BrowserError::cannot(format!(
                "{address} did not answer within {} seconds",
                ARRIVE.as_secs()
            ))),
            Err(error) => Err(error),
        }
    }

    /// The current tab, also one whose page crashed.
    fn current_for_navigation(&self) -> Result<(TabId, crate::cdp::CdpSession)> {
        {
            let mut state = self.state();
            let current = state.current;
            if let Some(tab) = state.tab_mut(current) {
                tab.crashed = false;
            }
        }
        self.current()
    }

    /// Wait until the current page has settled.
    pub(crate) async fn rest(&self) -> Rest {
        let tab = self.state().current;
        let deadline = Instant::now() + self.settle;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            self.until(left, |state| (!is_busy(state, tab)).then_some(())).await;
            {
                let state = self.state();
                if held(&state, tab) {
                    return Rest::Held;
                }
                if is_busy(&state, tab) {
                    let requests = state.tab(tab).map_or(0, |tab| tab.requests.len());
                    return Rest::Restless { requests };
                }
            }
            let left = deadline.saturating_duration_since(Instant::now());
            let still = self.still(tab, left.min(RESTLESS)).await;
            let state = self.state();
            if held(&state, tab) {
                return Rest::Held;
            }
            if !is_busy(&state, tab) {
                return match still {
                    true => Rest::Settled,
                    false => Rest::Restless { requests: 0 },
                };
            }
        }
    }

    /// Whether the current page waits for nothing and nothing holds it.
    pub(crate) fn is_quiet(&self) -> bool {
        let state = self.state();
        !held(&state, state.current) && !is_busy(&state, state.current)
    }

    /// Wait for a frame without a change; whether there was one.
    async fn still(&self, tab: TabId, limit: Duration) -> bool {
        #[derive(Deserialize)]
        struct Answer {
            result: Value,
        }
        #[derive(Deserialize)]
        struct Value {
            #[serde(default)]
            value: Option<bool>,
        }
        let session = {
            let state = self.state();
            let Some(tab) = state.tab(tab) else { return true };
            tab.session.clone()
        };
        let expression = format!("({STILL})({})", limit.as_millis());
        let params = json!({"expression": expression, "awaitPromise": true, "returnByValue": true});
        let patience = limit + Duration::from_secs(1);
        let ask = self.connection.call_within::<Answer>(
            Some(&session),
            "Runtime.evaluate",
            params,
            patience,
        );
        let held = self.until(patience, |state| held(state, tab).then_some(()));
        tokio::select! {
            answer = ask => match answer {
                Ok(answer) => answer.result.value.unwrap_or(true),
                // The page went away under the question; the loop looks again.
                Err(_) => true,
            },
            _ = held => true,
        }
    }
}

/// Whether a page cannot go on by itself.
fn held(state: &State, tab: TabId) -> bool {
    state.tab(tab).is_none_or(|tab| tab.dialog.is_some() || tab.crashed)
}

fn is_busy(state: &State, tab: TabId) -> bool {
    let Some(tab) = state.tab(tab) else { return false };
    let waits = tab.requests.values().any(|since| since.elapsed() < LONG_REQUEST);
    !held(state, tab.id) && (waits || !tab.loading.is_empty() || !tab.asked.is_empty())
}

/// The browser's error in words.
fn explain(error: &str) -> String {
    let words = match error {
        "net::ERR_NAME_NOT_RESOLVED" => "there is no such site",
        "net::ERR_CONNECTION_REFUSED" => "nobody answers there",
        "net::ERR_CONNECTION_TIMED_OUT" | "net::ERR_TIMED_OUT" => "it took too long",
        "net::ERR_INTERNET_DISCONNECTED" => "there is no network",
        "net::ERR_ACCESS_DENIED" => "the address may not be reached",
        "net::ERR_FILE_NOT_FOUND" => "there is no such file",
        "net::ERR_TOO_MANY_REDIRECTS" => "it is sent on without end",
        other if other.starts_with("net::ERR_CERT") => "its certificate is not valid",
        other => return other.to_owned(),
    };
    format!("{words} ({error})")
}
