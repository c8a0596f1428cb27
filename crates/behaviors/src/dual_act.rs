//! Dual act: H decides, R works.
//!
//! ```text
//! user ──task──▶ H ──terminate──────────────────────────▶ answer
//!                ▲ │ continue, redirect
//!                │ └──instruction──▶ R (works, with its tools)
//!                └────conclusion─────┘
//! ```
//!
//! H decides first, on the task itself, and then judges every conclusion, the last one included.
//! Both are children of the agent that they make up, with conversations of their own in its
//! journal. Decisions and conclusions are notes that anybody can read along.

mod conclusion;
mod config;
mod decision;
mod hr_loop;
mod prompt;
mod state;

use std::{future::Future, sync::Arc};

use duologue_core::{
    Agent, AgentBuilder, ChildrenMemory, Content, Effect, Execution, Function, Message, Mode,
    Policy, Reach, Tool, ToolError, Toolbox, tool,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

pub use self::{
    conclusion::{Accepted, Attributed, Conclusion, ConclusionNote},
    config::{DualActConfig, DualActError},
    decision::{DecidedBy, Decision, DecisionNote, Deliberation},
};
use self::{
    config::{HUMAN, Prompts},
    hr_loop::{ASK_HUMAN, HrLoop, function},
};

/// A dual act while it is put together. [`agent`](Self::agent) makes it an agent like any other.
///
/// ```
/// use duologue_behaviors::{DualAct, DualActConfig, Generic, ReAct};
/// use duologue_core::Agent;
///
/// # fn main() -> Result<(), duologue_behaviors::DualActError> {
/// let planner = Agent::builder("planner", Generic::default()).build();
/// let executor = Agent::builder("executor", ReAct::default()).build();
/// let agent = DualAct::new(DualActConfig::new(planner, executor))?.agent();
/// assert_eq!(agent.behavior(), "dual");
/// # Ok(())
/// # }
/// ```
#[must_use]
pub struct DualAct {
    config: DualActConfig,
    prompts: Prompts,
    functions: Vec<(&'static str, Function)>,
}

/// What a function before a loop gets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoopStart {
    /// Which loop, from 1.
    #[serde(rename = "loop")]
    pub number: u32,
    /// What R is to do.
    pub instruction: String,
    /// What it looks at above all.
    pub focus_area: String,
}

/// What a function after a loop gets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoopEnd {
    /// Which loop, from 1.
    #[serde(rename = "loop")]
    pub number: u32,
    /// What R concluded, in the order it came.
    pub conclusions: Vec<Attributed>,
}

/// What R said, for a function that reads conclusions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Response {
    /// The child that said it.
    pub by: String,
    /// Its last message, where there is one.
    pub message: Option<Arc<Message>>,
}

impl DualAct {
    /// Put two agents together.
    pub fn new(config: DualActConfig) -> Result<Self, DualActError> {
        if config.max_hr_loops == 0 {
            return Err(DualActError::NoLoops);
        }
        if config.reactive.is_empty() {
            return Err(DualActError::NoReactive);
        }
        let prompts = Prompts::of(&config)?;
        Ok(Self { config, prompts, functions: Vec::new() })
    }

    /// H.
    pub fn human(&self) -> &Agent {
        &self.config.human
    }

    /// R, or all of them.
    pub fn reactive(&self) -> &[Agent] {
        &self.config.reactive
    }

    /// Decide by a function instead of H. It runs in the driver, its decisions are journalled, and a
    /// replay never calls it. An error ends the run.
    pub fn set_decision_fn<F, Fut>(&mut self, decide: F) -> &mut Self
    where
        F: Fn(Deliberation) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Decision, String>> + Send + 'static,
    {
        self.set(function::DECISION, decide)
    }

    /// Read conclusions out of what R says by a function, for agents with a format of their own.
    /// R is then not asked to conclude by a tool. An error is given to H as R's conclusion.
    pub fn set_conclusion_extractor<F, Fut>(&mut self, extract: F) -> &mut Self
    where
        F: Fn(Response) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Conclusion, String>> + Send + 'static,
    {
        self.set(function::EXTRACTOR, extract)
    }

    /// Call a function before each run of R. What it gives is put to the instruction; an error ends
    /// the run.
    pub fn before_loop<F, Fut>(&mut self, hook: F) -> &mut Self
    where
        F: Fn(LoopStart) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Option<String>, String>> + Send + 'static,
    {
        self.set(function::BEFORE_LOOP, hook)
    }

    /// Call a function after each run of R, before H judges it. What it gives is told to H; an error
    /// is only reported.
    pub fn after_loop<F, Fut>(&mut self, hook: F) -> &mut Self
    where
        F: Fn(LoopEnd) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Option<String>, String>> + Send + 'static,
    {
        self.set(function::AFTER_LOOP, hook)
    }

    fn set<I, O, F, Fut>(&mut self, name: &'static str, code: F) -> &mut Self
    where
        I: DeserializeOwned,
        O: Serialize,
        F: Fn(I) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<O, String>> + Send + 'static,
    {
        let code = Arc::new(code);
        let boxed: Function = Arc::new(move |input: Value| {
            let code = Arc::clone(&code);
            Box::pin(async move {
                let input = serde_json::from_value(input).map_err(|error| error.to_string())?;
                let output = code(input).await?;
                serde_json::to_value(output).map_err(|error| error.to_string())
            })
        });
        self.functions.retain(|(other, _)| *other != name);
        self.functions.push((name, boxed));
        self
    }

    /// The agent, to be given a budget, hooks or a description before it is built. It needs neither
    /// a model nor tools: H and R have theirs.
    pub fn builder(self) -> AgentBuilder {
        let has = |name: &str| self.functions.iter().any(|(other, _)| *other == name);
        let config = self.config;
        let workers = config.workers();
        let behavior = HrLoop {
            prompts: self.prompts,
            max_loops: config.max_hr_loops,
            workers: workers.clone(),
            shares: config.memory == ChildrenMemory::Shared,
            decision: Arc::new(Decision::expectation()),
            conclusion: Arc::new(Conclusion::expectation()),
            decides: has(function::DECISION),
            extracts: has(function::EXTRACTOR),
            calls_before: has(function::BEFORE_LOOP),
            calls_after: has(function::AFTER_LOOP),
        };
        let mut builder = Agent::builder(config.name, behavior)
            .child(HUMAN, config.human)
            .children_memory(config.memory)
            .tools(Toolbox::new().with(ask_human()))
            .policy(Policy::new(Mode::Ask));
        for (key, agent) in workers.into_iter().zip(config.reactive) {
            builder = builder.child(key, agent);
        }
        for (name, code) in self.functions {
            builder = builder.function(name, move |input| code(input));
        }
        builder
    }

    /// The agent.
    pub fn agent(self) -> Agent {
        self.builder().build()
    }
}

impl From<DualAct> for Agent {
    fn from(dual: DualAct) -> Self {
        dual.agent()
    }
}

#[derive(Deserialize, JsonSchema)]
#[allow(dead_code, reason = "the driver reads the arguments as JSON")]
struct Question {
    /// The question.
    question: String,
}

/// What H's questions go through: the driver asks the user and waits, also over a restart.
fn ask_human() -> impl Tool {
    tool(ASK_HUMAN, "Asks the user.", Effect::Pure, |_: Question, _| async move {
        Err::<Content, _>(ToolError::new("there is nobody here who could be asked"))
    })
    .execution(Execution::Human)
    .reach(Reach::Workspace)
}
