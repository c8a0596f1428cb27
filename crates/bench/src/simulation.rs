//! Simulations and files of results, in the reference's format. Unknown fields are kept.

use std::{fs, path::Path, sync::Arc};

use serde::{Deserialize, Serialize};

use crate::{Action, Assertion, DataError, Extra, Message, RewardType, Task, Value, read_json};

/// A file of results: what was run, on which tasks, and what came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// When it was made.
    #[serde(default)]
    pub timestamp: Option<String>,
    /// What was run.
    #[serde(default)]
    pub info: Info,
    /// The tasks.
    #[serde(default)]
    pub tasks: Vec<Arc<Task>>,
    /// What came of them.
    #[serde(default)]
    pub simulations: Vec<Simulation>,
    /// The rest.
    #[serde(flatten)]
    pub extra: Extra,
}

/// What was run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Info {
    /// The version of the program.
    #[serde(default)]
    pub git_commit: String,
    /// How often each task was run.
    #[serde(default)]
    pub num_trials: u32,
    /// The bound on steps.
    #[serde(default)]
    pub max_steps: u32,
    /// The bound on errors.
    #[serde(default)]
    pub max_errors: u32,
    /// The simulated user.
    pub user_info: UserInfo,
    /// The agent.
    pub agent_info: AgentInfo,
    /// The domain.
    pub environment_info: EnvironmentInfo,
    /// The seed of all.
    #[serde(default)]
    pub seed: Option<i64>,
    /// The rest.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The agent that was run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AgentInfo {
    /// Its name.
    pub implementation: String,
    /// Its model.
    #[serde(default)]
    pub llm: Option<String>,
    /// The model's settings.
    #[serde(default)]
    pub llm_args: Option<Value>,
    /// The rest.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The simulated user that was run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct UserInfo {
    /// Its name.
    pub implementation: String,
    /// Its model.
    #[serde(default)]
    pub llm: Option<String>,
    /// The model's settings.
    #[serde(default)]
    pub llm_args: Option<Value>,
    /// What every simulated user is told.
    #[serde(default)]
    pub global_simulation_guidelines: Option<String>,
    /// The rest.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The domain that was run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EnvironmentInfo {
    /// Its name.
    pub domain_name: String,
    /// Its rules.
    #[serde(default)]
    pub policy: String,
    /// The rest.
    #[serde(flatten)]
    pub extra: Extra,
}

/// One run of one task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Simulation {
    /// Unique.
    pub id: String,
    /// The task.
    pub task_id: String,
    /// When it was written down.
    #[serde(default)]
    pub timestamp: Option<String>,
    /// When it began.
    #[serde(default)]
    pub start_time: String,
    /// When it ended.
    #[serde(default)]
    pub end_time: String,
    /// How long it took, in seconds.
    #[serde(default)]
    pub duration: f64,
    /// Why it ended.
    pub termination_reason: Termination,
    /// What the agent's model cost, in dollars.
    #[serde(default)]
    pub agent_cost: Option<f64>,
    /// What the user's model cost.
    #[serde(default)]
    pub user_cost: Option<f64>,
    /// How it was judged.
    #[serde(default)]
    pub reward_info: Option<RewardInfo>,
    /// The trajectory.
    #[serde(default)]
    pub messages: Option<Vec<Message>>,
    /// Which run of the task.
    #[serde(default)]
    pub trial: Option<u32>,
    /// Its seed.
    #[serde(default)]
    pub seed: Option<i64>,
    /// The rest.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Why a simulation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Termination {
    /// The user was done.
    UserStop,
    /// The agent was done.
    AgentStop,
    /// It took too many steps.
    MaxSteps,
    /// It took too long.
    Timeout,
    /// Too many tool calls failed.
    TooManyErrors,
    /// The agent broke the protocol or failed.
    AgentError,
    /// The user broke the protocol or failed.
    UserError,
    /// Something around it failed.
    InfrastructureError,
    /// The conversation outgrew a model.
    ContextWindowExceeded,
    /// Something nobody expected.
    UnexpectedError,
}

/// How a simulation was judged.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RewardInfo {
    /// The reward: the product of what counts.
    pub reward: f64,
    /// Whether the databases are the expected ones.
    #[serde(default)]
    pub db_check: Option<DbCheck>,
    /// Which assertions on the environment hold.
    #[serde(default)]
    pub env_assertions: Option<Vec<AssertionCheck>>,
    /// Which expected actions were taken.
    #[serde(default)]
    pub action_checks: Option<Vec<ActionCheck>>,
    /// Which natural-language assertions hold.
    #[serde(default)]
    pub nl_assertions: Option<Vec<NlAssertionCheck>>,
    /// What was told.
    #[serde(default)]
    pub communicate_checks: Option<Vec<CommunicateCheck>>,
    /// What counts.
    #[serde(default)]
    pub reward_basis: Option<Vec<RewardType>>,
    /// The reward of each part that counts.
    #[serde(default)]
    pub reward_breakdown: Option<Breakdown>,
    /// Remarks.
    #[serde(default)]
    pub info: Option<Value>,
    /// The rest.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The reward of each part.
pub type Breakdown = std::collections::BTreeMap<RewardType, f64>;

/// Whether the databases are the expected ones.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DbCheck {
    /// Whether they are.
    pub db_match: bool,
    /// 1 or 0.
    pub db_reward: f64,
}

/// Whether an assertion on the environment holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AssertionCheck {
    /// The assertion.
    pub env_assertion: Assertion,
    /// Whether it holds.
    pub met: bool,
    /// 1 or 0.
    pub reward: f64,
}

/// Whether an expected action was taken.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ActionCheck {
    /// The action.
    pub action: Action,
    /// Whether it was taken.
    pub action_match: bool,
    /// 1 or 0.
    pub action_reward: f64,
    /// What kind of tool it is.
    #[serde(default)]
    pub tool_type: Option<String>,
}

/// Whether a natural-language assertion holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NlAssertionCheck {
    /// The assertion.
    pub nl_assertion: String,
    /// Whether it holds.
    pub met: bool,
    /// Why.
    pub justification: String,
}

/// Whether something was told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CommunicateCheck {
    /// What.
    pub info: String,
    /// Whether it was.
    pub met: bool,
    /// Where.
    pub justification: String,
}

impl Termination {
    /// Its name in the format.
    pub fn name(self) -> &'static str {
        match self {
            Self::UserStop => "user_stop",
            Self::AgentStop => "agent_stop",
            Self::MaxSteps => "max_steps",
            Self::Timeout => "timeout",
            Self::TooManyErrors => "too_many_errors",
            Self::AgentError => "agent_error",
            Self::UserError => "user_error",
            Self::InfrastructureError => "infrastructure_error",
            Self::ContextWindowExceeded => "context_window_exceeded",
            Self::UnexpectedError => "unexpected_error",
        }
    }

    /// Whether the conversation came to an end of its own; all others have the reward 0.
    pub fn is_regular(self) -> bool {
        matches!(self, Self::UserStop | Self::AgentStop)
    }
}

impl Simulation {
    /// The trajectory.
    pub fn messages(&self) -> &[Message] {
        self.messages.as_deref().unwrap_or_default()
    }
}

impl Results {
    /// Reads results: one file, or a folder with `results.json` and a file for each simulation.
    pub fn load(path: &Path) -> Result<Self, DataError> {
        let (file, simulations) = if path.is_dir() {
            (path.join("results.json"), path.join("simulations"))
        } else {
            let beside = path.parent().unwrap_or(Path::new("")).join("simulations");
            (path.to_owned(), beside)
        };
        let mut results: Self = read_json(&file)?;
        if simulations.is_dir() {
            let read_error = |source| DataError::Read { path: simulations.clone(), source };
            let entries = fs::read_dir(&simulations).map_err(read_error)?;
            let mut files = Vec::new();
            for entry in entries {
                let path = entry.map_err(read_error)?.path();
                if path.extension().is_some_and(|extension| extension == "json") {
                    files.push(path);
                }
            }
            files.sort();
            results.simulations =
                files.iter().map(|file| read_json(file)).collect::<Result<_, _>>()?;
        }
        Ok(results)
    }

    /// The domain. Files of other programs may name it outside of `info`.
    pub fn domain(&self) -> Option<&str> {
        match self.info.environment_info.domain_name.as_str() {
            "" => self.extra.get("domain").and_then(Value::as_str),
            name => Some(name),
        }
    }

    /// A task by its id.
    pub fn task(&self, id: &str) -> Option<&Arc<Task>> {
        self.tasks.iter().find(|task| task.id == id)
    }
}
