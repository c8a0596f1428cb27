//! Agents: a behaviour with everything it needs, written once and used anywhere.

use std::{
    collections::BTreeMap,
    fmt,
    future::Future,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures::future::BoxFuture;
use serde_json::Value;

use tokio_util::sync::CancellationToken;

use crate::{
    Behavior, Budget, Hooks, Memory, Model, Options, Policy, Profile, RunId, SessionId, Store,
    StoreError, Toolbox, Usage, behavior::Pattern,
};

/// An agent: who talks. What is said is a [`Session`](crate::Session).
///
/// It is a description, immutable and cheap to clone; one agent can hold any number of sessions
/// at once.
#[derive(Clone)]
pub struct Agent(Arc<Parts>);

pub(crate) struct Parts {
    pub(crate) name: Arc<str>,
    pub(crate) description: String,
    pub(crate) pattern: Arc<dyn Pattern>,
    pub(crate) system: Option<Arc<str>>,
    pub(crate) model: Option<Arc<dyn Model>>,
    pub(crate) options: Options,
    pub(crate) tools: Toolbox,
    pub(crate) policy: Policy,
    pub(crate) memory: Memory,
    pub(crate) budget: Budget,
    pub(crate) hooks: Hooks,
    pub(crate) retry: Retry,
    pub(crate) max_send_backs: u32,
    pub(crate) functions: BTreeMap<String, Called>,
    pub(crate) children: BTreeMap<String, Agent>,
    pub(crate) children_from: Option<Kindergarten>,
    pub(crate) children_memory: ChildrenMemory,
}

/// Whether the children of an agent know of each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChildrenMemory {
    /// Each remembers its own conversation.
    #[default]
    Separate,
    /// Each also reads what the others say and what their tools gave.
    Shared,
}

/// A user-supplied function that a behaviour can have called.
pub type Function =
    Arc<dyn Fn(Value) -> BoxFuture<'static, Result<Value, String>> + Send + Sync + 'static>;

/// What a function that a behaviour has called knows besides its input.
#[derive(Clone)]
pub struct FunctionContext {
    /// The session that it is called in.
    pub session: SessionId,
    /// The run that called it.
    pub run: RunId,
    /// Cancelled when the turn is. A function whose future is dropped while this is not cancelled
    /// was only suspended: it is called again when the session is taken up.
    pub cancel: CancellationToken,
    /// What the run may still use, by its own budget and those above it.
    pub left: Budget,
    pub(crate) store: Arc<dyn Store>,
    /// What was used elsewhere for this call.
    pub(crate) elsewhere: Arc<Mutex<Usage>>,
}

impl FunctionContext {
    /// Count against the run's budget what was used elsewhere for it, such as by another agent. It
    /// is written down with the function's answer.
    pub fn spend(&self, usage: Usage) {
        *self.elsewhere.lock().unwrap_or_else(PoisonError::into_inner) += usage;
    }

    /// Wait until all that led to this call survives a crash. A function that does something
    /// elsewhere must be called again for the same reason afterwards, under the same ids.
    pub async fn on_record(&self) -> Result<(), StoreError> {
        self.store.flush(&self.session).await
    }
}

impl fmt::Debug for FunctionContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FunctionContext")
            .field("session", &self.session)
            .field("run", &self.run)
            .field("left", &self.left)
            .finish_non_exhaustive()
    }
}

/// A function as the driver calls it.
pub(crate) type Called = Arc<
    dyn Fn(Value, FunctionContext) -> BoxFuture<'static, Result<Value, String>>
        + Send
        + Sync
        + 'static,
>;

/// Makes children by what their parent calls them.
type Kindergarten = Arc<dyn Fn(&str) -> Option<Agent> + Send + Sync + 'static>;

/// How often and how patiently a model that fails for the moment is asked again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// How often a request is tried in all.
    pub attempts: u32,
    /// The wait after the first failure; it doubles with each, with some chance in it.
    pub first_wait: Duration,
    /// The longest wait. A provider that asks for more than this ends the turn.
    pub longest_wait: Duration,
}

impl Default for Retry {
    fn default() -> Self {
        Self {
            attempts: 4,
            first_wait: Duration::from_millis(500),
            longest_wait: Duration::from_secs(60),
        }
    }
}

impl Retry {
    /// How long to wait after the `attempt`th failure, or `None` to give up.
    pub(crate) fn wait(&self, attempt: u32, asked: Option<Duration>) -> Option<Duration> {
        if attempt >= self.attempts {
            return None;
        }
        if let Some(asked) = asked {
            return (asked <= self.longest_wait).then_some(asked);
        }
        let factor = 2u32.saturating_pow(attempt.saturating_sub(1));
        let full = self.first_wait.saturating_mul(factor).min(self.longest_wait);
        // Half of the wait is certain and half is chance, so that many agents do not come back at
        // the same moment.
        Some(full.mul_f64(0.5 + fastrand::f64() / 2.0))
    }
}

impl Agent {
    /// Begin to describe an agent.
    pub fn builder(name: impl Into<Arc<str>>, behavior: impl Behavior) -> AgentBuilder {
        AgentBuilder {
            parts: Parts {
                name: name.into(),
                description: String::new(),
                pattern: Arc::new(behavior),
                system: None,
                model: None,
                options: Options::default(),
                tools: Toolbox::new(),
                policy: Policy::default(),
                memory: Memory::default(),
                budget: Budget::default(),
                hooks: Hooks::new(),
                retry: Retry::default(),
                max_send_backs: 3,
                functions: BTreeMap::new(),
                children: BTreeMap::new(),
                children_from: None,
                children_memory: ChildrenMemory::default(),
            },
            system: String::new(),
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// What it is for, for people and for other agents.
    pub fn description(&self) -> &str {
        &self.0.description
    }

    /// The name of its behaviour.
    pub fn behavior(&self) -> &'static str {
        self.0.pattern.name()
    }

    /// The system prompt.
    pub fn system(&self) -> Option<&str> {
        self.0.system.as_deref()
    }

    /// Its model.
    pub fn model(&self) -> Option<&Arc<dyn Model>> {
        self.0.model.as_ref()
    }

    /// Its tools.
    pub fn tools(&self) -> &Toolbox {
        &self.0.tools
    }

    /// Its permissions.
    pub fn policy(&self) -> &Policy {
        &self.0.policy
    }

    /// Its hooks, which can be added and removed while it works.
    pub fn hooks(&self) -> &Hooks {
        &self.0.hooks
    }

    /// The agents that it runs, by what it calls them.
    pub fn children(&self) -> &BTreeMap<String, Agent> {
        &self.0.children
    }

    /// An agent that it runs, by what it calls it: one that it was given, or one that is made when
    /// it is needed.
    pub fn child(&self, key: &str) -> Option<Agent> {
        let given = self.0.children.get(key).cloned();
        given.or_else(|| self.0.children_from.as_ref().and_then(|make| make(key)))
    }

    /// The same agent with another model and other tools, and without hooks: what a replay needs.
    #[must_use]
    pub fn recast(&self, model: Arc<dyn Model>, tools: Toolbox) -> Self {
        let parts = &*self.0;
        Self(Arc::new(Parts {
            name: Arc::clone(&parts.name),
            description: parts.description.clone(),
            pattern: Arc::clone(&parts.pattern),
            system: parts.system.clone(),
            model: Some(model),
            options: parts.options.clone(),
            tools,
            policy: parts.policy.clone(),
            memory: parts.memory.clone(),
            budget: parts.budget,
            hooks: Hooks::new(),
            retry: parts.retry,
            max_send_backs: parts.max_send_backs,
            functions: parts.functions.clone(),
            children: parts.children.clone(),
            children_from: parts.children_from.clone(),
            children_memory: parts.children_memory,
        }))
    }

    pub(crate) fn parts(&self) -> &Parts {
        &self.0
    }
}

impl fmt::Debug for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Agent")
            .field("name", &self.0.name)
            .field("behavior", &self.0.pattern.name())
            .field("tools", &self.0.tools)
            .finish_non_exhaustive()
    }
}

/// An [`Agent`] while it is described.
#[must_use]
pub struct AgentBuilder {
    parts: Parts,
    system: String,
}

impl AgentBuilder {
    /// What it is for.
    pub fn description(mut self, text: impl Into<String>) -> Self {
        self.parts.description = text.into();
        self
    }

    /// The system prompt; the behaviour may add to it.
    pub fn system(mut self, text: impl Into<String>) -> Self {
        self.system = text.into();
        self
    }

    /// The model that it asks.
    pub fn model(mut self, model: Arc<dyn Model>) -> Self {
        self.parts.model = Some(model);
        self
    }

    /// How the model is to answer.
    pub fn options(mut self, options: Options) -> Self {
        self.parts.options = options;
        self
    }

    /// What it can do.
    pub fn tools(mut self, tools: Toolbox) -> Self {
        self.parts.tools = tools;
        self
    }

    /// What it may do.
    pub fn policy(mut self, policy: Policy) -> Self {
        self.parts.policy = policy;
        self
    }

    /// What it remembers.
    pub fn memory(mut self, memory: Memory) -> Self {
        self.parts.memory = memory;
        self
    }

    /// What a task may use.
    pub fn budget(mut self, budget: Budget) -> Self {
        self.parts.budget = budget;
        self
    }

    /// What runs at its hook points.
    pub fn hooks(mut self, hooks: Hooks) -> Self {
        self.parts.hooks = hooks;
        self
    }

    /// How a failing model is asked again.
    pub fn retry(mut self, retry: Retry) -> Self {
        self.parts.retry = retry;
        self
    }

    /// How often hooks before the end may send it back to work in one task.
    pub fn max_send_backs(mut self, most: u32) -> Self {
        self.parts.max_send_backs = most;
        self
    }

    /// A function that its behaviour can have called.
    pub fn function<F, Fut>(self, name: impl Into<String>, function: F) -> Self
    where
        F: Fn(Value) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Value, String>> + Send + 'static,
    {
        self.function_in(name, move |input, _| function(input))
    }

    /// A function that its behaviour can have called and that wants to know where.
    pub fn function_in<F, Fut>(mut self, name: impl Into<String>, function: F) -> Self
    where
        F: Fn(Value, FunctionContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Value, String>> + Send + 'static,
    {
        let boxed: Called = Arc::new(move |input, context| Box::pin(function(input, context)));
        self.parts.functions.insert(name.into(), boxed);
        self
    }

    /// An agent that it runs, and what it calls it.
    pub fn child(mut self, key: impl Into<String>, agent: Agent) -> Self {
        self.parts.children.insert(key.into(), agent);
        self
    }

    /// Agents that it runs and that are made when they are needed, by what it calls them. The same
    /// name must always give an agent of the same behaviour: a session that is taken up again asks
    /// for its children by their names.
    pub fn children_from<F>(mut self, make: F) -> Self
    where
        F: Fn(&str) -> Option<Agent> + Send + Sync + 'static,
    {
        self.parts.children_from = Some(Arc::new(make));
        self
    }

    /// Whether the agents that it runs know of each other.
    pub fn children_memory(mut self, memory: ChildrenMemory) -> Self {
        self.parts.children_memory = memory;
        self
    }

    /// The agent.
    pub fn build(mut self) -> Agent {
        let profile = Profile {
            name: Arc::clone(&self.parts.name),
            system: self.system,
            tools: Arc::clone(self.parts.tools.specs()),
        };
        let system = self.parts.pattern.system_instruction(&profile);
        self.parts.system = (!system.is_empty()).then(|| system.into());
        Agent(Arc::new(self.parts))
    }
}
