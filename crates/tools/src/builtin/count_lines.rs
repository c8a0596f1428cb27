//! `count_lines`: how many lines a file has, because models count badly.

use std::io::{BufRead, BufReader};

use cap_std::fs::File;
use duologue_core::{Effect, Reach, Tool, ToolError, tool};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use super::{
    blocking::blocking,
    text::{count, looks_binary},
};
use crate::workspace::{Workspace, WorkspacePath};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The file, from the workspace folder on, such as `notes.txt`.
    path: WorkspacePath,
}

/// Counts the lines of a text inside the workspace.
pub(crate) fn count_lines(workspace: &Workspace) -> impl Tool + use<> {
    let workspace = workspace.clone();
    tool(
        "count_lines",
        "Counts the lines of a text file of the workspace.",
        Effect::Pure,
        move |arguments: Arguments, context| {
            let workspace = workspace.clone();
            blocking(context.cancel, move |cancel| {
                let path = &arguments.path;
                let lines = lines(workspace.open_file(path)?, path, cancel)?;
                Ok(format!("\"{path}\" has {}", count(lines, "line")))
            })
        },
    )
    .reach(Reach::Workspace)
}

/// The number of lines. The last one counts even if nothing ends it.
fn lines(file: File, path: &WorkspacePath, cancel: &CancellationToken) -> Result<usize, ToolError> {
    let mut reader = BufReader::with_capacity(64 * 1024, file);
    if looks_binary(reader.fill_buf()?) {
        return Err(ToolError(format!("\"{path}\" is not text, so it has no lines")));
    }
    let (mut lines, mut ended) = (0, true);
    loop {
        if cancel.is_cancelled() {
            return Err(ToolError::new("cancelled"));
        }
        let buffer = reader.fill_buf()?;
        let Some(last) = buffer.last() else {
            return Ok(lines + usize::from(!ended));
        };
        ended = *last == b'\n';
        lines += buffer.iter().filter(|byte| **byte == b'\n').count();
        let consumed = buffer.len();
        reader.consume(consumed);
    }
}
