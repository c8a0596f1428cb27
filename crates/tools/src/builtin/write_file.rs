//! `write_file`: puts a whole text into a file.

use duologue_core::{Effect, Reach, Tool, tool};
use schemars::JsonSchema;
use serde::Deserialize;

use super::blocking::blocking;
use crate::workspace::{Workspace, WorkspacePath, Written};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The file, from the workspace folder on, such as `docs/plan.md`.
    path: WorkspacePath,
    /// The whole new content.
    content: String,
}

/// Creates or replaces a file inside the workspace, at once or not at all.
///
/// Writing the same content again changes nothing, so after a crash the call may run again.
pub(crate) fn write_file(workspace: &Workspace) -> impl Tool + use<> {
    let workspace = workspace.clone();
    tool(
        "write_file",
        "Writes a file of the workspace: creates it, or replaces its whole content. Missing \
         folders are made. To change a part of a file use edit_file.",
        Effect::Idempotent,
        move |arguments: Arguments, context| {
            let workspace = workspace.clone();
            blocking(context.cancel, move |_| {
                let Arguments { path, content } = arguments;
                let done = match workspace.write(&path, content.as_bytes())? {
                    Written::Created => "created",
                    Written::Replaced => "replaced",
                };
                Ok(format!("{done} {path} ({} bytes)", content.len()))
            })
        },
    )
    .reach(Reach::Workspace)
}
