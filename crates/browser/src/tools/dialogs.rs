//! `handle_dialog`: answers what a page asks in a window of the browser's own.

use std::time::Duration;

use duologue_core::{Effect, Risk};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{
    Action, Said, Scene,
    risk::{self, Deed},
};
use crate::{
    browser::Browser,
    desk::Desk,
    error::{BrowserError, Result},
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct HandleDialog {
    /// Whether to say OK; false says Cancel.
    accept: bool,
    /// What to write where the dialog asks for text.
    #[serde(default)]
    text: Option<String>,
}

impl Action for HandleDialog {
    const NAME: &'static str = "handle_dialog";
    const ABOUT: &'static str = "Answers a dialog (alert, confirm, prompt, leave this page?) that \
        holds the page.";
    const EFFECT: Effect = Effect::SideEffect;

    fn risk(&self, browser: &Browser, desk: Option<&Desk>) -> Risk {
        let deed = if self.text.is_some() { Deed::Write } else { Deed::Point };
        risk::of_view(browser, desk, deed)
    }

    async fn run(self, scene: Scene) -> Result<Said> {
        let (tab, session, dialog) = {
            let state = scene.desk.state();
            let tab = state.current_tab()?;
            (tab.id, tab.session.clone(), tab.dialog.clone())
        };
        let Some(dialog) = dialog else {
            return Err(BrowserError::cannot("no dialog is open"));
        };
        let mut params = json!({"accept": self.accept});
        if let (Some(text), Some(fields)) = (&self.text, params.as_object_mut()) {
            fields.insert("promptText".into(), text.as_str().into());
        }
        let answer = async {
            let connection = &scene.desk.connection;
            connection.run(Some(&session), "Page.handleJavaScriptDialog", params).await?;
            let limit = Duration::from_secs(5);
            let closed = |state: &mut crate::desk::State| {
                // Another may follow at once.
                let open = state.tab(tab).and_then(|tab| tab.dialog.as_ref());
                (open != Some(&dialog)).then_some(())
            };
            scene.desk.until(limit, closed).await;
            Ok(())
        };
        let word = if self.accept { "accepted" } else { "dismissed" };
        scene.act(answer, |()| format!("{word} {dialog}")).await
    }
}
