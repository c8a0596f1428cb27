//! `navigate` and `back`.

use duologue_core::{Effect, Risk};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{Action, Said, Scene, risk};
use crate::{
    browser::Browser,
    desk::Desk,
    error::{BrowserError, Result},
    sites::Standing,
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Navigate {
    /// The address, whole: https://example.com/page.
    url: String,
}

impl Action for Navigate {
    const NAME: &'static str = "navigate";
    const ABOUT: &'static str = "Opens an address in the current tab and waits until the page has \
        settled. Look at the page with snapshot afterwards. A site that is not on the list of \
        allowed ones needs a person's yes.";
    const EFFECT: Effect = Effect::Idempotent;

    fn risk(&self, browser: &Browser, desk: Option<&Desk>) -> Risk {
        risk::of_going(browser, desk, &complete(&self.url))
    }

    async fn run(self, scene: Scene) -> Result<Said> {
        let url = complete(&self.url);
        permit(&scene, &url)?;
        scene.act(scene.desk.navigate(&url), |_| format!("opened {}", shown(&url))).await
    }
}

/// Note that going to an address was permitted, unless it can never be.
pub(super) fn permit(scene: &Scene, url: &str) -> Result<()> {
    if let Standing::Refused(reason) = scene.desk.sites.judge(url) {
        return Err(BrowserError::cannot(reason));
    }
    scene.desk.state().permits.visit(url);
    Ok(())
}

/// An address without its scheme is meant to be one of the web.
pub(super) fn complete(address: &str) -> String {
    let address = address.trim();
    let is_whole = address.split_once(':').is_some_and(|(scheme, rest)| {
        rest.starts_with("//")
            || !rest.starts_with(|c: char| c.is_ascii_digit()) && !scheme.contains('.')
    });
    let whole = if is_whole { address.to_owned() } else { format!("https://{address}") };
    // As the browser itself will write it, so that it is known when it comes by.
    url::Url::parse(&whole).map_or(whole, String::from)
}

pub(super) fn shown(url: &str) -> String {
    crate::snapshot::clip(&crate::snapshot::tidy(url), 300)
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Back {}

impl Action for Back {
    const NAME: &'static str = "back";
    const ABOUT: &'static str = "Goes back to the page before, in the current tab.";
    const EFFECT: Effect = Effect::SideEffect;

    async fn run(self, scene: Scene) -> Result<Said> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct History {
            current_index: usize,
            entries: Vec<Entry>,
        }
        #[derive(Deserialize)]
        struct Entry {
            id: i64,
        }
        let history: History = scene.desk.call("Page.getNavigationHistory", json!({})).await?;
        let before = history.current_index.checked_sub(1).and_then(|at| history.entries.get(at));
        let Some(before) = before else {
            return Err(BrowserError::cannot("there is no page before this one"));
        };
        let params = json!({"entryId": before.id});
        let go = async {
            let visits = scene.whereabouts();
            scene.desk.call::<serde_json::Value>("Page.navigateToHistoryEntry", params).await?;
            // It answers before the page begins to change.
            let limit = std::time::Duration::from_secs(2);
            scene
                .desk
                .until(limit, |state| {
                    let tab = state.current_tab().ok()?;
                    let changed = tab.visits != visits.1 || tab.url() != visits.0;
                    (changed || !tab.loading.is_empty() || tab.dialog.is_some()).then_some(())
                })
                .await;
            Ok(())
        };
        scene.act(go, |()| "went back".to_owned()).await
    }
}

#[cfg(test)]
mod tests {
    use super::complete;

    #[test]
    fn an_address_is_made_whole_as_people_write_it() {
        for (written, whole) in [
            ("example.com", "https://example.com/"),
            ("example.com:8080/x", "https://example.com:8080/x"),
            ("http://example.com", "http://example.com/"),
            (" about:blank ", "about:blank"),
            ("javascript:alert(1)", "javascript:alert(1)"),
            ("file:///etc/passwd", "file:///etc/passwd"),
        ] {
            assert_eq!(complete(written), whole);
        }
    }
}
