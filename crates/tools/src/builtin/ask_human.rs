//! `ask_human`: a question to the person.

use duologue_core::{Content, Effect, Execution, Reach, Tool, ToolError, tool};
use schemars::JsonSchema;
use serde::Deserialize;

// Whoever carries the question to the person reads the arguments by these names.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "the driver reads the arguments as JSON")]
struct Arguments {
    /// The question, with what the person needs to know to answer it.
    question: String,
    /// Answers to choose from. Leave it out for a free answer.
    #[serde(default)]
    choices: Vec<String>,
}

/// Asks the person. The driver turns the call into a question and waits, also over a restart, so
/// the function is only reached where nobody does that.
pub(crate) fn ask_human() -> impl Tool {
    tool(
        "ask_human",
        "Asks the person a question and waits for the answer. Use it when only they can know or \
         decide something, not for what another tool can find out.",
        Effect::Pure,
        |_: Arguments, _| async move {
            Err::<Content, _>(ToolError::new("there is nobody here who could be asked"))
        },
    )
    .execution(Execution::Human)
    .reach(Reach::Workspace)
}
