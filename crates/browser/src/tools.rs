//! The tools, by name. Each is a type: its arguments, what it says about itself, what a call of it
//! would do, and how it is done.

use std::{marker::PhantomData, sync::Arc, time::Duration};

use duologue_core::{
    Authors, Content, Effect, Part, Reach, Risk, SessionId, Tool, ToolContext, ToolError,
    ToolOutput, ToolSpec, parameters_of,
};
use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{
    browser::{Browser, Pictures, Scripts},
    desk::{Desk, Rest},
    error::{BrowserError, Result},
};

mod dialogs;
mod files;
mod going;
mod pointing;
mod reading;
mod risk;
mod tabs;
mod waiting;
mod writing;

/// A tool as a type.
pub(crate) trait Action: DeserializeOwned + JsonSchema + Send + Sync + 'static {
    /// Its name.
    const NAME: &'static str;
    /// What it does and when to use it.
    const ABOUT: &'static str;
    /// What running it does.
    const EFFECT: Effect;
    /// How long a call may take.
    const TIMEOUT: Duration = Duration::from_secs(60);

    /// What a call would do. `None` stands for a browser that is not open.
    fn risk(&self, _browser: &Browser, _desk: Option<&Desk>) -> Risk {
        Risk::Harmless
    }

    /// Do it; what the model is told.
    fn run(self, scene: Scene) -> impl Future<Output = Result<Said>> + Send;
}

/// Where a call takes place.
#[derive(Clone, Debug)]
pub(crate) struct Scene {
    pub(crate) browser: Browser,
    pub(crate) desk: Arc<Desk>,
}

/// What a call has to say.
#[derive(Debug, Default)]
pub(crate) struct Said {
    pub(crate) text: String,
    pub(crate) parts: Vec<Part>,
    /// Whether it acted, so that what happened by itself is told with it.
    acted: Option<Acted>,
}

#[derive(Debug)]
struct Acted {
    rest: Option<Rest>,
    url: String,
    visits: u32,
}

impl From<String> for Said {
    fn from(text: String) -> Self {
        Self { text, ..Self::default() }
    }
}

/// What a deed is known to have set off on the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stir {
    /// Nothing changed.
    None,
    /// Something changed, or nobody looked.
    Unknown,
}

impl Scene {
    /// Do something to the page, wait until it has settled, and tell what came of it.
    pub(crate) async fn act<T>(
        &self,
        deed: impl Future<Output = Result<T>> + Send,
        tell: impl FnOnce(T) -> String + Send,
    ) -> Result<Said> {
        let deed = async { Ok((deed.await?, Stir::Unknown)) };
        self.act_and_watch(deed, tell).await
    }

    /// The same for a deed that knows whether the page took notice of it: one that did not and
    /// asks for nothing has settled already.
    pub(crate) async fn act_and_watch<T>(
        &self,
        deed: impl Future<Output = Result<(T, Stir)>> + Send,
        tell: impl FnOnce(T) -> String + Send,
    ) -> Result<Said> {
        let (url, visits) = self.whereabouts();
        let (done, stir) = deed.await?;
        let rest = match stir {
            Stir::None if self.desk.is_quiet() => Rest::Settled,
            _ => self.desk.rest().await,
        };
        let acted = Acted { rest: Some(rest), url, visits };
        Ok(Said { text: tell(done), parts: Vec::new(), acted: Some(acted) })
    }

    fn whereabouts(&self) -> (String, u32) {
        let state = self.desk.state();
        let tab = state.current_tab();
        tab.map_or_else(|_| Default::default(), |tab| (tab.url().to_owned(), tab.visits))
    }

    /// What happened besides, in words.
    fn aftermath(&self, acted: &Acted) -> String {
        let mut lines = Vec::new();
        let mut state = self.desk.state();
        let notices = std::mem::take(&mut state.notices);
        if let Ok(tab) = state.current_tab() {
            if let Some(dialog) = &tab.dialog {
                lines.push(format!("{dialog} opened; answer it with handle_dialog"));
            }
            if tab.crashed {
                lines.push("the page crashed".to_owned());
            }
            if tab.chooser.is_some() {
                lines.push("the page asks for a file; upload gives it one".to_owned());
            }
            if tab.visits != acted.visits || tab.url() != acted.url {
                let url = crate::snapshot::clip(&crate::snapshot::tidy(tab.url()), 300);
                lines.push(format!("the page is now {url}; older references are stale"));
            }
        }
        if let Some(Rest::Restless { requests }) = acted.rest {
            lines.push(match requests {
                0 => "the page goes on changing by itself".to_owned(),
                open => format!("the page is still loading ({open} requests open)"),
            });
        }
        for download in state.downloads.iter().filter(|download| !download.taken) {
            lines.push(format!("the page gives a file: {}; download keeps it", download.name));
        }
        lines.extend(notices);
        lines.join("\n")
    }
}

/// A tool of an action.
struct Deed<A> {
    spec: Arc<ToolSpec>,
    browser: Browser,
    action: PhantomData<fn(A)>,
}

fn deed<A: Action>(browser: &Browser) -> Arc<dyn Tool> {
    let mut spec = ToolSpec::new(A::NAME, A::ABOUT, parameters_of::<A>());
    spec.effect = A::EFFECT;
    spec.reach = Reach::Network;
    spec.authors = Authors::Strangers;
    spec.timeout = A::TIMEOUT;
    Arc::new(Deed::<A> { spec: Arc::new(spec), browser: browser.clone(), action: PhantomData })
}

fn read<A: DeserializeOwned>(arguments: &Value) -> std::result::Result<A, String> {
    A::deserialize(arguments).map_err(|error| error.to_string())
}

impl<A: Action> Tool for Deed<A> {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn check(&self, arguments: &Value) -> std::result::Result<(), String> {
        read::<A>(arguments).map(|_| ())
    }

    fn risk(&self, arguments: &Value, session: &SessionId) -> Risk {
        let desk = self.browser.open_desk(session);
        match read::<A>(arguments) {
            Ok(action) => action.risk(&self.browser, desk.as_deref()),
            Err(_) => Risk::AsDeclared,
        }
    }

    fn call(&self, arguments: Value, context: ToolContext) -> BoxFuture<'_, ToolOutput> {
        Box::pin(async move {
            let action = read::<A>(&arguments).map_err(ToolError)?;
            let work = async {
                let (desk, _turn) = self.browser.take(&context.session).await?;
                let scene = Scene { browser: self.browser.clone(), desk };
                let done = action.run(scene.clone()).await;
                scene.desk.keep_record();
                let said = match (done, scene.desk.gone()) {
                    (Ok(said), _) => said,
                    (Err(_), Some(reason)) => return Err(BrowserError::Gone(reason)),
                    (Err(error), None) => return Err(error),
                };
                Ok(finish(&scene, said).await)
            };
            tokio::select! {
                done = work => done.map_err(ToolError::from),
                () = context.cancel.cancelled() => Err(ToolError::new("It was stopped.")),
            }
        })
    }
}

/// Put together what the model is told.
async fn finish(scene: &Scene, said: Said) -> Content {
    let Said { mut text, mut parts, acted } = said;
    if let Some(acted) = acted {
        let more = scene.aftermath(&acted);
        if !more.is_empty() {
            text.push('\n');
            text.push_str(&more);
        }
        if scene.browser.config().pictures == Pictures::EachAction
            && let Ok(picture) = files::picture(&scene.desk, files::Shot::View).await
        {
            parts.push(picture);
        }
    }
    parts.insert(0, Part::text(text));
    Content(parts)
}

/// All tools of a browser.
pub(crate) fn all(browser: &Browser) -> Vec<Arc<dyn Tool>> {
    let mut list = vec![
        deed::<going::Navigate>(browser),
        deed::<going::Back>(browser),
        deed::<tabs::TabsList>(browser),
        deed::<tabs::TabNew>(browser),
        deed::<tabs::TabSwitch>(browser),
        deed::<tabs::TabClose>(browser),
        deed::<reading::Snapshot>(browser),
        deed::<reading::Find>(browser),
        deed::<reading::GrepElements>(browser),
        deed::<reading::ReadMarkdown>(browser),
        deed::<reading::Extract>(browser),
        deed::<files::Screenshot>(browser),
        deed::<pointing::Click>(browser),
        deed::<pointing::ClickAt>(browser),
        deed::<pointing::Hover>(browser),
        deed::<pointing::Drag>(browser),
        deed::<pointing::Scroll>(browser),
        deed::<writing::Fill>(browser),
        deed::<writing::PressKey>(browser),
        deed::<writing::Select>(browser),
        deed::<writing::Check>(browser),
        deed::<waiting::WaitFor>(browser),
        deed::<dialogs::HandleDialog>(browser),
    ];
    if browser.config().workspace.is_some() {
        list.push(deed::<files::Upload>(browser));
        list.push(deed::<files::DownloadFile>(browser));
        list.push(deed::<files::SavePdf>(browser));
    }
    if browser.config().scripts == Scripts::On {
        list.push(deed::<waiting::Evaluate>(browser));
    }
    list
}

/// The names of all tools, the one that is off included.
pub const NAMES: &[&str] = &[
    "navigate",
    "back",
    "tabs_list",
    "tab_new",
    "tab_switch",
    "tab_close",
    "snapshot",
    "find",
    "grep_elements",
    "read_markdown",
    "extract",
    "screenshot",
    "click",
    "click_at",
    "hover",
    "drag",
    "scroll",
    "fill",
    "press_key",
    "select",
    "check",
    "wait_for",
    "handle_dialog",
    "upload",
    "download",
    "save_pdf",
    "evaluate",
];
