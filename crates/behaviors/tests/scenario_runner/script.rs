//! What a scenario file says. `README.md` beside the files explains it to people.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

/// A scenario: an agent with scripted models and canned tools, what people do, what must come of it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    pub title: String,
    pub agent: AgentScript,
    #[serde(default)]
    pub tools: BTreeMap<String, ToolScript>,
    pub steps: Vec<StepScript>,
    /// Somebody is there when a budget is used up.
    #[serde(default)]
    pub attended: bool,
    #[serde(default)]
    pub expect: Expect,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentScript {
    /// `generic`, `react`, `planned` or `dual`.
    pub kind: String,
    #[serde(default)]
    pub turns: Vec<TurnScript>,
    /// The names of its tools; all of them when it is left out, none for a `human`.
    #[serde(default)]
    pub tools: Option<Vec<String>>,
    #[serde(default)]
    pub max_steps: Option<u64>,
    /// The permission mode; everything may run when it is left out.
    #[serde(default)]
    pub mode: Option<String>,
    #[serde(default)]
    pub budget: BudgetScript,
    /// The two sides of a dual act.
    #[serde(default)]
    pub human: Option<Box<AgentScript>>,
    #[serde(default)]
    pub reactive: Option<Box<AgentScript>>,
    /// Several R, instead of one.
    #[serde(default)]
    pub reactives: Vec<AgentScript>,
    /// What else this kind of agent can be told.
    #[serde(default)]
    pub options: BTreeMap<String, Value>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BudgetScript {
    #[serde(default)]
    pub steps: Option<u64>,
    #[serde(default)]
    pub tokens: Option<u64>,
}

/// One answer of a model.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TurnScript {
    #[serde(default)]
    pub says: Option<String>,
    #[serde(default)]
    pub thinks: Option<String>,
    /// Each is one pair of a tool's name and its arguments. A text instead of arguments is sent as
    /// it is, whether it is JSON or not.
    #[serde(default)]
    pub calls: Vec<BTreeMap<String, Value>>,
    #[serde(default)]
    pub fails: Option<FailScript>,
    /// It says what it says and never goes on.
    #[serde(default)]
    pub hangs: bool,
    /// How long it thinks before it answers.
    #[serde(default)]
    pub takes_ms: u64,
    #[serde(default)]
    pub tokens: Option<u64>,
    /// Texts that the prompt must hold.
    #[serde(default)]
    pub sees: Texts,
    /// Texts that the prompt must not hold.
    #[serde(default)]
    pub sees_not: Texts,
    /// The tool that the request forces.
    #[serde(default)]
    pub must_call: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FailScript {
    pub class: duologue_core::ErrorClass,
    #[serde(default)]
    pub message: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(untagged)]
pub enum Texts {
    #[default]
    None,
    One(String),
    Many(Vec<String>),
}

impl Texts {
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        match self {
            Self::None => [].iter(),
            Self::One(text) => std::slice::from_ref(text).iter(),
            Self::Many(texts) => texts.iter(),
        }
        .map(String::as_str)
    }
}

/// What a tool does.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolScript {
    /// `pure` (when it is left out), `idempotent` or `side_effect`.
    #[serde(default)]
    pub effect: Option<duologue_core::Effect>,
    /// What it gives, call by call; the last is given again and again. `{n}` is the number of the
    /// call.
    #[serde(default)]
    pub gives: Texts,
    /// The numbers of the calls that fail, from 1, and all of them when it is empty.
    #[serde(default)]
    pub fails: Option<Vec<usize>>,
    #[serde(default)]
    pub error: Option<String>,
    /// It runs until it is cancelled.
    #[serde(default)]
    pub hangs: bool,
    /// How long a call takes.
    #[serde(default)]
    pub takes_ms: u64,
    /// Arguments that a call must have.
    #[serde(default)]
    pub requires: Vec<String>,
    /// A person answers it.
    #[serde(default)]
    pub human: bool,
}

/// What people do. Exactly one of the first five.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepScript {
    #[serde(default)]
    pub say: Option<String>,
    /// By the inquiry's id; `any` is the only one there is. The agent goes on afterwards.
    #[serde(default)]
    pub answer: Option<BTreeMap<String, AnswerScript>>,
    #[serde(default)]
    pub observe: Option<String>,
    /// The process ends and another takes the session up; it does not go on by itself.
    #[serde(default)]
    pub restart: bool,
    #[serde(default)]
    pub resume: bool,

    /// The process is killed right after such an entry is written, and another goes on. Several:
    /// one after the other.
    #[serde(default)]
    pub kill_after: Vec<Value>,
    /// The turn is cancelled right after such an entry is written.
    #[serde(default)]
    pub cancel_after: Option<Value>,
    /// The turn is cancelled while a model hangs.
    #[serde(default)]
    pub cancel_while_hanging: bool,
    /// Somebody says this as soon as such an entry is written, while the agent works.
    #[serde(default)]
    pub steer_after: Option<SteerScript>,

    /// What must come of the step.
    #[serde(default)]
    pub outcome: Option<Value>,
    #[serde(default)]
    pub reply: Option<String>,
    /// What must wait for an answer then.
    #[serde(default)]
    pub asks: Option<Vec<Value>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SteerScript {
    pub entry: Value,
    pub say: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerScript {
    Approve,
    ApproveAlways,
    Deny(String),
    Text(String),
    Edit(Value),
}

/// What must be true in the end.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expect {
    #[serde(default)]
    pub outcome: Option<Value>,
    #[serde(default)]
    pub reply: Option<String>,
    /// The whole journal after `session_started`, entry by entry.
    #[serde(default)]
    pub journal: Option<Vec<Value>>,
    /// Entries that come in this order, with others between them.
    #[serde(default)]
    pub shows: Vec<Value>,
    /// Entries that do not come.
    #[serde(default)]
    pub never: Vec<Value>,
    /// How often each tool ran.
    #[serde(default)]
    pub ran: BTreeMap<String, usize>,
    /// How often each agent's model was asked; the agent itself is `main`.
    #[serde(default)]
    pub asked: BTreeMap<String, usize>,
    /// The journal is cut after each entry in turn, and each time the rest must come to the same
    /// outcome and reply. For scenarios of one `say`.
    #[serde(default)]
    pub survives_any_cut: bool,
}
