//! Hooks: a user's own code at the points where something passes through an agent.
//!
//! Hooks run in the driver. What they changed is journalled, so a replay never calls them. A hook
//! that fails before something stops it; one that fails after something is only reported. Both are
//! journal entries.

use std::{
    fmt,
    future::Future,
    sync::{Arc, PoisonError, RwLock},
};

use futures::future::BoxFuture;
use serde_json::Value;

use crate::{Message, Part, RunId, SessionId, ToolCall, ToolResult};

/// The hooks of an agent: named, called in the order they were added, removable at any time, also
/// while the agent works. Clones share one list.
///
/// ```
/// use duologue_core::{Hooks, PreTool};
///
/// let hooks = Hooks::new();
/// hooks.pre_tool("no-secrets", |_, call| async move {
///     if call.arguments.to_string().contains(".env") {
///         return Ok(PreTool::Refuse("secrets stay where they are".into()));
///     }
///     Ok(PreTool::Go)
/// });
/// assert!(hooks.remove("no-secrets"));
/// ```
#[derive(Clone, Default)]
pub struct Hooks(Arc<RwLock<Vec<Named>>>);

/// Where a hook is called.
#[derive(Clone, Debug)]
pub struct HookContext {
    /// The session.
    pub session: SessionId,
    /// The run inside it.
    pub run: RunId,
    /// The agent's name.
    pub agent: Arc<str>,
    /// The turn, from 1.
    pub turn: u32,
}

/// Why a hook failed, for whoever reads the journal.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct HookError(pub String);

/// What a hook before a tool decides.
#[derive(Clone, Debug, PartialEq)]
pub enum PreTool {
    /// The call goes on as it is.
    Go,
    /// The call goes on with these arguments.
    With(Value),
    /// The call does not run; the model is told why.
    Refuse(String),
}

type Found<T> = BoxFuture<'static, Result<T, HookError>>;
type OnMessage = Arc<dyn Fn(HookContext, Arc<Message>) -> Found<Option<Message>> + Send + Sync>;
type OnStep = Arc<dyn Fn(HookContext) -> Found<Option<Message>> + Send + Sync>;
type OnCall = Arc<dyn Fn(HookContext, ToolCall) -> Found<PreTool> + Send + Sync>;
type OnResult = Arc<dyn Fn(HookContext, Arc<ToolResult>) -> Found<Option<Vec<Part>>> + Send + Sync>;
type OnText = Arc<dyn Fn(&HookContext, &str) -> Result<Option<String>, HookError> + Send + Sync>;
type OnEnd = Arc<dyn Fn(HookContext, Option<Arc<Message>>) -> Found<Option<Message>> + Send + Sync>;

#[derive(Clone)]
struct Named {
    name: Arc<str>,
    point: Point,
}

#[derive(Clone)]
enum Point {
    PreReply(OnMessage),
    PostReply(OnMessage),
    PreStep(OnStep),
    PostStep(OnMessage),
    PreTool(OnCall),
    PostTool(OnResult),
    Text(OnText),
    BeforeEnd(OnEnd),
}

macro_rules! hook_point {
    ($(#[$doc:meta])* $add:ident, $pick:ident, $variant:ident, ($($arg:ty),*) -> $out:ty, $fun:ty) => {
        $(#[$doc])*
        pub fn $add<F, Fut>(&self, name: impl Into<Arc<str>>, hook: F)
        where
            F: Fn(HookContext $(, $arg)*) -> Fut + Send + Sync + 'static,
            Fut: Future<Output = Result<$out, HookError>> + Send + 'static,
        {
            let boxed = hook_point!(@boxed hook, ($($arg),*));
            self.add(name.into(), Point::$variant(boxed));
        }

        pub(crate) fn $pick(&self) -> Vec<(Arc<str>, $fun)> {
            self.pick(|point| match point {
                Point::$variant(hook) => Some(Arc::clone(hook)),
                _ => None,
            })
        }
    };
    (@boxed $hook:ident, ()) => { Arc::new(move |context| Box::pin($hook(context)) as _) };
    (@boxed $hook:ident, ($arg:ty)) => {
        Arc::new(move |context, value: $arg| Box::pin($hook(context, value)) as _)
    };
}

impl Hooks {
    /// No hooks.
    pub fn new() -> Self {
        Self::default()
    }

    hook_point! {
        /// Before a reply: sees the request, may put another in its place.
        pre_reply, before_reply, PreReply, (Arc<Message>) -> Option<Message>, OnMessage
    }
    hook_point! {
        /// After a reply: sees the final message, may put another in its place.
        post_reply, after_reply, PostReply, (Arc<Message>) -> Option<Message>, OnMessage
    }
    hook_point! {
        /// Before a step: may put a message into the prompt, such as something retrieved.
        pre_step, before_step, PreStep, () -> Option<Message>, OnStep
    }
    hook_point! {
        /// After a step: sees what the model said, may put a message into the prompt.
        post_step, after_step, PostStep, (Arc<Message>) -> Option<Message>, OnMessage
    }
    hook_point! {
        /// Before a tool: may change the arguments or refuse the call.
        pre_tool, before_tool, PreTool, (ToolCall) -> PreTool, OnCall
    }
    hook_point! {
        /// After a tool: sees the result, may put other content in its place.
        post_tool, after_tool, PostTool, (Arc<ToolResult>) -> Option<Vec<Part>>, OnResult
    }
    hook_point! {
        /// Before the end (`FnHandleBeforeEnd`): sees the final message, may send the agent back to
        /// work with a message of its own.
        before_end, at_end, BeforeEnd, (Option<Arc<Message>>) -> Option<Message>, OnEnd
    }

    /// On each piece of text while it streams (`FnHandleStepTextPart`): may put other text in its
    /// place. It is called for every piece, so it should be quick.
    pub fn on_text<F>(&self, name: impl Into<Arc<str>>, hook: F)
    where
        F: Fn(&HookContext, &str) -> Result<Option<String>, HookError> + Send + Sync + 'static,
    {
        self.add(name.into(), Point::Text(Arc::new(hook)));
    }

    pub(crate) fn each_text(&self) -> Vec<(Arc<str>, OnText)> {
        self.pick(|point| match point {
            Point::Text(hook) => Some(Arc::clone(hook)),
            _ => None,
        })
    }

    /// Remove all hooks of a name; whether there were any.
    pub fn remove(&self, name: &str) -> bool {
        let mut list = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let before = list.len();
        list.retain(|hook| &*hook.name != name);
        list.len() < before
    }

    /// The names, in the order the hooks are called.
    pub fn names(&self) -> Vec<Arc<str>> {
        let list = self.0.read().unwrap_or_else(PoisonError::into_inner);
        list.iter().map(|hook| Arc::clone(&hook.name)).collect()
    }

    fn add(&self, name: Arc<str>, point: Point) {
        let mut list = self.0.write().unwrap_or_else(PoisonError::into_inner);
        list.push(Named { name, point });
    }

    fn pick<T>(&self, choose: impl Fn(&Point) -> Option<T>) -> Vec<(Arc<str>, T)> {
        let list = self.0.read().unwrap_or_else(PoisonError::into_inner);
        list.iter()
            .filter_map(|hook| Some((Arc::clone(&hook.name), choose(&hook.point)?)))
            .collect()
    }
}

impl fmt::Debug for Hooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}
