//! `tabs_list`, `tab_new`, `tab_switch`, `tab_close`.

use duologue_core::{Effect, Risk};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{Action, Said, Scene, going, risk};
use crate::{
    browser::Browser,
    desk::{Desk, TabId},
    error::{BrowserError, Result},
    snapshot::{clip, tidy},
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TabsList {}

impl Action for TabsList {
    const NAME: &'static str = "tabs_list";
    const ABOUT: &'static str = "Lists the open tabs; the current one is marked.";
    const EFFECT: Effect = Effect::Pure;

    async fn run(self, scene: Scene) -> Result<Said> {
        Ok(list(&scene).into())
    }
}

fn list(scene: &Scene) -> String {
    let state = scene.desk.state();
    let lines = state.tabs.iter().map(|tab| {
        let mark = if tab.id == state.current { " (current)" } else { "" };
        format!("{}{mark} {}", tab.id, clip(&tidy(tab.url()), 200))
    });
    let text = lines.collect::<Vec<_>>().join("\n");
    if text.is_empty() { "no tab is open".to_owned() } else { text }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TabNew {
    /// The address to open in it; empty otherwise.
    #[serde(default)]
    url: Option<String>,
}

impl Action for TabNew {
    const NAME: &'static str = "tab_new";
    const ABOUT: &'static str = "Opens a new tab, makes it the current one, and goes to an address \
        if one is given.";
    const EFFECT: Effect = Effect::Idempotent;

    fn risk(&self, browser: &Browser, desk: Option<&Desk>) -> Risk {
        match &self.url {
            Some(url) => risk::of_going(browser, desk, &going::complete(url)),
            None => Risk::Harmless,
        }
    }

    async fn run(self, scene: Scene) -> Result<Said> {
        let url = self.url.as_deref().map(going::complete);
        if let Some(url) = &url {
            going::permit(&scene, url)?;
        }
        let tab = scene.desk.new_tab().await?;
        match url {
            None => Ok(format!("opened the tab {tab}").into()),
            Some(url) => {
                let told = going::shown(&url);
                scene
                    .act(scene.desk.navigate(&url), |_| format!("opened {told} in the tab {tab}"))
                    .await
            }
        }
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TabSwitch {
    /// The tab, such as t2.
    tab: String,
}

impl Action for TabSwitch {
    const NAME: &'static str = "tab_switch";
    const ABOUT: &'static str = "Makes another tab the current one.";
    const EFFECT: Effect = Effect::Idempotent;

    async fn run(self, scene: Scene) -> Result<Said> {
        let (id, target) = find(&scene, &self.tab)?;
        scene.desk.state().current = id;
        let params = json!({"targetId": target});
        scene.desk.connection.run(None, "Target.activateTarget", params).await?;
        let ready = std::time::Duration::from_secs(10);
        scene
            .desk
            .until(ready, |state| state.tab(id).is_none_or(|tab| tab.ready).then_some(()))
            .await;
        let told = list(&scene);
        scene.act(async { Ok(()) }, |()| told).await
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TabClose {
    /// The tab, such as t2; the current one otherwise.
    #[serde(default)]
    tab: Option<String>,
}

impl Action for TabClose {
    const NAME: &'static str = "tab_close";
    const ABOUT: &'static str = "Closes a tab.";
    const EFFECT: Effect = Effect::Idempotent;

    async fn run(self, scene: Scene) -> Result<Said> {
        let wanted = match &self.tab {
            Some(tab) => tab.clone(),
            None => scene.desk.state().current.to_string(),
        };
        let (id, target) = find(&scene, &wanted)?;
        let params = json!({"targetId": target});
        scene.desk.connection.run(None, "Target.closeTarget", params).await?;
        let limit = std::time::Duration::from_secs(5);
        let gone = scene.desk.until(limit, |state| state.tab(id).is_none().then_some(()));
        if gone.await.is_none() {
            return Err(BrowserError::cannot(format!("{id} does not close")));
        }
        scene.desk.state().notices.clear();
        Ok(format!("closed {id}\n{}", list(&scene)).into())
    }
}

fn find(scene: &Scene, name: &str) -> Result<(TabId, String)> {
    let state = scene.desk.state();
    let number = name.trim().trim_start_matches('t').parse().ok().map(TabId);
    let tab = number.and_then(|id| state.tab(id));
    tab.map(|tab| (tab.id, tab.target.clone())).ok_or_else(|| {
        let names: Vec<String> = state.tabs.iter().map(|tab| tab.id.to_string()).collect();
        BrowserError::cannot(format!("there is no tab {name:?}; there are {}", names.join(", ")))
    })
}
