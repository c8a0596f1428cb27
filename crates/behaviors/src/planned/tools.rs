//! The special tools. They are ordinary tools to the model; their results come from the behaviour,
//! which alone knows the plan and the list, so nothing of them runs.

use std::sync::Arc;

use duologue_core::{
    Content, Effect, Execution, FunctionTool, Reach, ToolContext, ToolError, Toolbox, tool,
};
use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;

use super::{config::PlannedConfig, todo::TodoRequest};

pub(crate) const PLANNER: &str = "planner";
pub(crate) const VALIDATOR: &str = "validator";
pub(crate) const TODO_MANAGER: &str = "todo_manager";
pub(crate) const REQUIRE_PLANNING: &str = "require_planning";
pub(crate) const DONE: &str = "done";
pub(crate) const ASK_HUMAN: &str = "ask_human";
pub(crate) const HUMAN_INPUT: &str = "human_input";

/// The special tools that are of use without a plan.
pub(crate) const FOR_ALL: [&str; 4] = [REQUIRE_PLANNING, ASK_HUMAN, HUMAN_INPUT, DONE];

/// A call of a special tool that the behaviour answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Special {
    Planner(String),
    Validator,
    Todo(TodoRequest),
    RequirePlanning(String),
    Done(String),
}

#[derive(Deserialize, JsonSchema)]
struct PlannerArguments {
    /// What the plan has to take into account.
    #[serde(default)]
    reason: String,
}

#[derive(Deserialize, JsonSchema)]
struct ValidatorArguments {}

#[derive(Deserialize, JsonSchema)]
struct RequirePlanningArguments {
    /// What was tried and why it does not work.
    reason: String,
}

#[derive(Deserialize, JsonSchema)]
struct DoneArguments {
    /// The answer to the user: what was done and what came of it.
    summary: String,
}

#[derive(Deserialize, JsonSchema)]
#[allow(dead_code, reason = "the driver reads the arguments as JSON")]
struct AskHumanArguments {
    /// The question, with what the person needs to know to answer it.
    question: String,
    /// Answers to choose from. Leave it out for a free answer.
    #[serde(default)]
    choices: Vec<String>,
}

impl Special {
    /// The special call of a name, or what is wrong with its arguments. `None` if the tool is none
    /// of the behaviour's.
    pub(crate) fn read(
        config: &PlannedConfig,
        name: &str,
        arguments: &Value,
    ) -> Option<Result<Self, String>> {
        Some(match name {
            PLANNER => read(arguments, |read: PlannerArguments| Self::Planner(read.reason)),
            VALIDATOR if config.validator => {
                read(arguments, |_: ValidatorArguments| Self::Validator)
            }
            TODO_MANAGER => read(arguments, Self::Todo),
            REQUIRE_PLANNING => {
                read(arguments, |read: RequirePlanningArguments| Self::RequirePlanning(read.reason))
            }
            DONE => read(arguments, |read: DoneArguments| Self::Done(read.summary)),
            _ => return None,
        })
    }
}

fn read<A: DeserializeOwned>(
    arguments: &Value,
    make: impl FnOnce(A) -> Special,
) -> Result<Special, String> {
    // A list would be read as a type's fields in order; models mean objects.
    if !arguments.is_object() {
        return Err("they must be a JSON object".to_owned());
    }
    A::deserialize(arguments).map(make).map_err(|error| error.to_string())
}

/// The box with the special tools added. A person's tool that is already there stays.
pub(crate) fn with_special_tools(config: &PlannedConfig, tools: Toolbox) -> Toolbox {
    let mut tools = tools
        .with(special::<PlannerArguments>(
            PLANNER,
            "Makes a plan of steps for the task, which becomes the TODO list. Use it at the start \
             of a task with several parts.",
        ))
        .with(special::<TodoRequest>(
            TODO_MANAGER,
            "Reads or changes the TODO list: get, set, add, complete, skip. Items that a plan step \
             names a tool for are ticked off by themselves when the tool succeeds.",
        ))
        .with(special::<RequirePlanningArguments>(
            REQUIRE_PLANNING,
            "Asks for another plan because the present approach does not work.",
        ))
        .with(special::<DoneArguments>(
            DONE,
            "Ends the task with a summary for the user. Call it alone: other calls beside it are \
             skipped.",
        ));
    if config.validator {
        tools = tools.with(special::<ValidatorArguments>(
            VALIDATOR,
            "Checks whether the task is complete and what is missing.",
        ));
    }
    if config.ask_human {
        let asks = [
            (
                ASK_HUMAN,
                "Asks the person a question and waits for the answer. Use it when only \
              they can know or decide something.",
            ),
            (HUMAN_INPUT, "The same as ask_human."),
        ];
        for (name, description) in asks {
            if tools.get(name).is_none() {
                let tool = special::<AskHumanArguments>(name, description);
                tools = tools.with_shared(Arc::new(tool.execution(Execution::Human)));
            }
        }
    }
    tools
}

/// A tool that has nothing to run.
fn special<A>(name: &'static str, description: &'static str) -> FunctionTool<A, NotRun<A>>
where
    A: DeserializeOwned + JsonSchema + Send + 'static,
{
    let not_run: NotRun<A> = |_, _| {
        Box::pin(async { Err(ToolError::new("this tool works only with the planned behaviour")) })
    };
    tool(name, description, Effect::Pure, not_run).reach(Reach::Workspace)
}

type NotRun<A> = fn(A, ToolContext) -> BoxFuture<'static, Result<Content, ToolError>>;
