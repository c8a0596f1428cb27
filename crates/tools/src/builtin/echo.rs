//! `echo`: says back what it is told. For trying an agent out.

use duologue_core::{Effect, Reach, Tool, tool};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The text.
    text: String,
}

/// Gives its text back.
pub(crate) fn echo() -> impl Tool {
    tool(
        "echo",
        "Gives the same text back. Use it to test that tools work.",
        Effect::Pure,
        |arguments: Arguments, _| async move { Ok(arguments.text) },
    )
    .reach(Reach::Workspace)
}
