//! Tasks in the reference's format. Unknown fields are kept.

use serde::{Deserialize, Serialize};

use crate::{Message, Requestor, Value, message::Extra};

/// A task: what the user wants, from where it starts, and how the outcome is judged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// Unique in its domain.
    pub id: String,
    /// What it is about, for people.
    #[serde(default)]
    pub description: Option<Description>,
    /// What the simulated user is told.
    pub user_scenario: UserScenario,
    /// The same as a ticket, for an agent that works alone.
    #[serde(default)]
    pub ticket: Option<String>,
    /// From where it starts.
    #[serde(default)]
    pub initial_state: Option<InitialState>,
    /// How it is judged.
    #[serde(default)]
    pub evaluation_criteria: Option<EvaluationCriteria>,
    /// Remarks about the task itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issues: Option<Vec<Issue>>,
    /// The documents that it takes to solve it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required_documents: Option<Vec<String>>,
    /// The user's tools that it allows; `None` allows all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_tools: Option<Vec<String>>,
    /// The rest.
    #[serde(flatten)]
    pub extra: Extra,
}

/// What a task is about.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Description {
    /// What it tests.
    #[serde(default)]
    pub purpose: Option<String>,
    /// The rules that matter.
    #[serde(default)]
    pub relevant_policies: Option<String>,
    /// Anything else.
    #[serde(default)]
    pub notes: Option<String>,
    /// The rest.
    #[serde(flatten)]
    pub extra: Extra,
}

/// What the simulated user is told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UserScenario {
    /// Who they are.
    #[serde(default)]
    pub persona: Option<String>,
    /// What they want.
    pub instructions: Instructions,
    /// The rest.
    #[serde(flatten)]
    pub extra: Extra,
}

/// What the user wants: in parts or as one text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Instructions {
    /// In parts.
    Structured(StructuredInstructions),
    /// As one text.
    Text(String),
}

/// What the user wants, in parts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StructuredInstructions {
    /// The domain.
    pub domain: String,
    /// Why they call.
    pub reason_for_call: String,
    /// What they know.
    #[serde(default)]
    pub known_info: Option<String>,
    /// What they do not know.
    #[serde(default)]
    pub unknown_info: Option<String>,
    /// How they behave.
    pub task_instructions: String,
    /// The rest.
    #[serde(flatten)]
    pub extra: Extra,
}

/// From where a task starts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct InitialState {
    /// What is merged into the databases.
    #[serde(default)]
    pub initialization_data: Option<InitializationData>,
    /// What is called on them.
    #[serde(default)]
    pub initialization_actions: Option<Vec<FunctionCall>>,
    /// What was already said.
    #[serde(default)]
    pub message_history: Option<Vec<Message>>,
    /// The rest.
    #[serde(flatten)]
    pub extra: Extra,
}

/// What is merged into the databases.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct InitializationData {
    /// Into the agent's.
    #[serde(default)]
    pub agent_data: Option<Value>,
    /// Into the user's.
    #[serde(default)]
    pub user_data: Option<Value>,
}

/// A call of any function of the environment, tool or not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FunctionCall {
    /// On whose side.
    pub env_type: Requestor,
    /// Which function.
    pub func_name: String,
    /// With what.
    pub arguments: Value,
}

/// A function of the environment and what it must say.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Assertion {
    /// On whose side.
    pub env_type: Requestor,
    /// Which function.
    pub func_name: String,
    /// With what.
    pub arguments: Value,
    /// What it must say.
    #[serde(default = "yes")]
    pub assert_value: bool,
    /// What to tell when it does not.
    #[serde(default)]
    pub message: Option<String>,
}

/// How a task is judged.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EvaluationCriteria {
    /// One way to solve it: its calls give the database that is expected.
    #[serde(default)]
    pub actions: Option<Vec<Action>>,
    /// What must hold of the environment.
    #[serde(default)]
    pub env_assertions: Option<Vec<Assertion>>,
    /// What the agent must tell the user.
    #[serde(default)]
    pub communicate_info: Option<Vec<String>>,
    /// What must be true of the conversation, judged by a model.
    #[serde(default)]
    pub nl_assertions: Option<Vec<String>>,
    /// What counts for the reward.
    #[serde(default = "default_basis")]
    pub reward_basis: Vec<RewardType>,
    /// The rest.
    #[serde(flatten)]
    pub extra: Extra,
}

/// A tool call that is expected.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Action {
    /// Unique in its task.
    pub action_id: String,
    /// Who calls.
    #[serde(default)]
    pub requestor: Requestor,
    /// The tool.
    pub name: String,
    /// Its arguments.
    pub arguments: Value,
    /// A remark.
    #[serde(default)]
    pub info: Option<String>,
    /// The arguments that are compared; `None` compares those of the call.
    #[serde(default)]
    pub compare_args: Option<Vec<String>>,
}

/// What can count for the reward.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum RewardType {
    /// The databases at the end are the expected ones.
    Db,
    /// All assertions on the environment hold.
    EnvAssertion,
    /// All natural-language assertions hold.
    NlAssertion,
    /// All expected actions were taken.
    Action,
    /// Everything that must be told was told.
    Communicate,
}

/// A remark about a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Issue {
    /// Unique in its task.
    pub id: String,
    /// In one line.
    pub title: String,
    /// At length.
    #[serde(default)]
    pub description: Option<String>,
    /// `open`, `resolved` or `wont_fix`.
    #[serde(default = "open")]
    pub status: String,
    /// How it was resolved.
    #[serde(default)]
    pub resolution: Option<String>,
    /// When it was made.
    #[serde(default)]
    pub created_at: Option<String>,
    /// When it was resolved.
    #[serde(default)]
    pub resolved_at: Option<String>,
    /// Who made it.
    #[serde(default)]
    pub author_email: Option<String>,
    /// Where it was fixed.
    #[serde(default)]
    pub pr_link: Option<String>,
    /// A simulation that shows it.
    #[serde(default)]
    pub simulation_file: Option<String>,
    /// The rest.
    #[serde(flatten)]
    pub extra: Extra,
}

fn yes() -> bool {
    true
}

fn open() -> String {
    "open".to_owned()
}

fn default_basis() -> Vec<RewardType> {
    vec![RewardType::Db, RewardType::Communicate]
}

impl RewardType {
    /// Its name in the format.
    pub fn name(self) -> &'static str {
        match self {
            Self::Db => "DB",
            Self::EnvAssertion => "ENV_ASSERTION",
            Self::NlAssertion => "NL_ASSERTION",
            Self::Action => "ACTION",
            Self::Communicate => "COMMUNICATE",
        }
    }
}

impl Assertion {
    /// The call that it makes.
    pub fn call(&self) -> FunctionCall {
        FunctionCall {
            env_type: self.env_type,
            func_name: self.func_name.clone(),
            arguments: self.arguments.clone(),
        }
    }
}

impl Task {
    /// The same task, taken up where a conversation about it stood: after these messages. A batch of
    /// calls that is not answered whole is left out.
    #[must_use]
    pub fn continued_from(&self, messages: &[Message]) -> Self {
        let mut task = self.clone();
        let history = crate::evaluate::complete_part(messages).to_vec();
        task.initial_state.get_or_insert_default().message_history = Some(history);
        task
    }

    /// The actions that are expected.
    pub fn actions(&self) -> &[Action] {
        self.evaluation_criteria
            .as_ref()
            .and_then(|criteria| criteria.actions.as_deref())
            .unwrap_or_default()
    }
}
