//! `wait_for`, and `evaluate`, which is off unless turned on.

use std::time::{Duration, Instant};

use duologue_core::{Effect, Risk};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Action, Said, Scene, reading::plain_text, risk};
use crate::{
    browser::Browser,
    desk::Desk,
    error::{BrowserError, Result},
    snapshot::{clip, tidy},
};

/// How often a page is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(150);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct WaitFor {
    /// A text that shall appear.
    #[serde(default)]
    text: Option<String>,
    /// A text that shall go away.
    #[serde(default)]
    text_gone: Option<String>,
    /// A part of the address that shall be reached.
    #[serde(default)]
    url: Option<String>,
    /// For how long at most, in seconds.
    #[serde(default)]
    seconds: Option<f64>,
}

impl Action for WaitFor {
    const NAME: &'static str = "wait_for";
    const ABOUT: &'static str = "Waits until a text is on the page, is gone from it, or an address \
        is reached. Without any, waits until the page has settled.";
    const EFFECT: Effect = Effect::Pure;
    const TIMEOUT: Duration = Duration::from_secs(130);

    async fn run(self, scene: Scene) -> Result<Said> {
        let limit = Duration::from_secs_f64(self.seconds.unwrap_or(10.0).clamp(0.1, 120.0));
        let deadline = Instant::now() + limit;
        scene.desk.rest().await;
        loop {
            let missing = self.missing(&scene).await;
            match missing {
                Ok(None) => break,
                Ok(Some(what)) if Instant::now() >= deadline => {
                    return Err(BrowserError::cannot(format!(
                        "{what} after {:.1} seconds",
                        limit.as_secs_f64()
                    )));
                }
                // A page on its way is looked at again.
                Err(error) if !error.is_page_gone() || Instant::now() >= deadline => {
                    return Err(error);
                }
                _ => {}
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        scene.act(async { Ok(()) }, |()| "it is so".to_owned()).await
    }
}

impl WaitFor {
    /// What is not so yet.
    async fn missing(&self, scene: &Scene) -> Result<Option<String>> {
        if let Some(part) = &self.url {
            let url = scene.desk.state().current_tab()?.url().to_owned();
            if !url.contains(part.as_str()) {
                return Ok(Some(format!("the address is still {}", clip(&tidy(&url), 200))));
            }
        }
        if self.text.is_none() && self.text_gone.is_none() {
            return Ok(None);
        }
        let lines = scene.desk.look().await?.lines();
        let holds = |text: &str| {
            let text = tidy(text).to_lowercase();
            lines.iter().any(|line| tidy(&plain_text(line)).to_lowercase().contains(&text))
        };
        if let Some(text) = self.text.as_deref().filter(|text| !holds(text)) {
            return Ok(Some(format!("{text:?} is not on the page")));
        }
        if let Some(text) = self.text_gone.as_deref().filter(|text| holds(text)) {
            return Ok(Some(format!("{text:?} is still on the page")));
        }
        Ok(None)
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Evaluate {
    /// JavaScript; its value is given back as JSON.
    script: String,
}

impl Action for Evaluate {
    const NAME: &'static str = "evaluate";
    const ABOUT: &'static str = "Runs JavaScript in the page and gives its value. For what no other \
        tool can do.";
    const EFFECT: Effect = Effect::SideEffect;

    fn risk(&self, browser: &Browser, desk: Option<&Desk>) -> Risk {
        match risk::of_view(browser, desk, risk::Deed::Submit) {
            Risk::Grave { .. } => Risk::Grave { reason: "it runs a script in the page".into() },
            other => other,
        }
    }

    async fn run(self, scene: Scene) -> Result<Said> {
        let params = json!({
            "expression": self.script,
            "returnByValue": true,
            "awaitPromise": true,
            "userGesture": true,
        });
        let answer: Value = scene.desk.call("Runtime.evaluate", params).await?;
        if let Some(thrown) = answer.pointer("/exceptionDetails/exception/description") {
            let thrown = thrown.as_str().unwrap_or_default();
            return Err(BrowserError::cannot(format!("the script failed: {}", tidy(thrown))));
        }
        let value = answer.pointer("/result/value").cloned().unwrap_or_default();
        let shown = clip(&tidy(&value.to_string()), 20_000);
        scene.act(async { Ok(()) }, |()| format!("⟦page value⟧\n{shown}\n⟦end of page⟧")).await
    }
}
