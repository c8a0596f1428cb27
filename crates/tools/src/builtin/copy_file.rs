//! `copy_file`: a second file with the content of the first.

use std::io::Read as _;

use duologue_core::{Effect, Reach, Tool, ToolError, tool};
use schemars::JsonSchema;
use serde::Deserialize;

use super::blocking::blocking;
use crate::workspace::{Workspace, WorkspacePath, Written};

/// Larger files are not copied: they would have to be in memory whole.
const LARGEST: u64 = 64 << 20;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    // First, because permission rules look at the first argument, and this is what changes.
    /// Where the copy goes, from the workspace folder on.
    to: WorkspacePath,
    /// The file to copy, from the workspace folder on.
    from: WorkspacePath,
}

/// Copies a file inside the workspace, whatever is in it, without the content passing through the
/// model.
///
/// Copying the same file again changes nothing, so after a crash the call may run again.
pub(crate) fn copy_file(workspace: &Workspace) -> impl Tool + use<> {
    let workspace = workspace.clone();
    tool(
        "copy_file",
        "Copies a file of the workspace to another name or folder. An existing file there is \
         replaced, missing folders are made. To change the copy use edit_file on it.",
        Effect::Idempotent,
        move |arguments: Arguments, context| {
            let workspace = workspace.clone();
            blocking(context.cancel, move |_| {
                let Arguments { to, from } = arguments;
                let mut content = Vec::new();
                let file = workspace.open_file(&from)?;
                file.take(LARGEST + 1).read_to_end(&mut content)?;
                if content.len() as u64 > LARGEST {
                    return Err(ToolError(format!(
                        "\"{from}\" is larger than {} MiB, too large to copy",
                        LARGEST >> 20
                    )));
                }
                let done = match workspace.write(&to, &content)? {
                    Written::Created => "created",
                    Written::Replaced => "replaced",
                };
                Ok(format!("{done} {to} ({} bytes, as in {from})", content.len()))
            })
        },
    )
    .reach(Reach::Workspace)
}
