//! `list_files`: what is in a folder, the nearest first.

use std::{num::NonZeroUsize, ops::ControlFlow};

use duologue_core::{Effect, Reach, Tool, ToolError, tool};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use super::{blocking::blocking, glob};
use crate::workspace::{FoundKind, Ignored, Walk, WalkEnd, Workspace, WorkspacePath};

/// How many paths a call gives unless it asks for another number.
const USUAL_PATHS: usize = 500;
/// How many it gives at most.
const MOST_PATHS: usize = 5000;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The folder, from the workspace folder on; the workspace folder itself if left out.
    #[serde(default = "WorkspacePath::root")]
    path: WorkspacePath,
    /// Only files that match, such as `*.rs` or `src/**/*.toml`.
    #[serde(default)]
    glob: Option<String>,
    /// How many levels of folders to go down; all if left out.
    #[serde(default)]
    depth: Option<NonZeroUsize>,
    /// Also list what .gitignore leaves out.
    #[serde(default)]
    include_ignored: bool,
    /// How many paths to list; 500 if left out.
    #[serde(default)]
    limit: Option<NonZeroUsize>,
}

/// Lists files inside the workspace.
pub(crate) fn list_files(workspace: &Workspace) -> impl Tool + use<> {
    let workspace = workspace.clone();
    tool(
        "list_files",
        "Lists the files and folders of the workspace, those nearest to the top first. Folders \
         end in a slash. What .gitignore names is left out unless asked for.",
        Effect::Pure,
        move |arguments: Arguments, context| {
            let workspace = workspace.clone();
            blocking(context.cancel, move |cancel| list(&workspace, &arguments, cancel))
        },
    )
    .reach(Reach::Workspace)
}

fn list(
    workspace: &Workspace,
    arguments: &Arguments,
    cancel: &CancellationToken,
) -> Result<String, ToolError> {
    if !workspace.metadata(&arguments.path)?.is_dir() {
        return Err(ToolError(format!(
            "\"{}\" is a file, not a folder: read it with read_file",
            arguments.path
        )));
    }
    let pattern = arguments.glob.as_deref().map(glob::matcher).transpose()?;
    let limit = arguments.limit.map_or(USUAL_PATHS, NonZeroUsize::get).min(MOST_PATHS);
    let mut lines: Vec<String> = Vec::new();
    let mut more = false;
    let walk = Walk {
        workspace,
        folder: &arguments.path,
        ignored: match arguments.include_ignored {
            true => Ignored::Included,
            false => Ignored::LeftOut,
        },
        depth: arguments.depth.map_or(usize::MAX, NonZeroUsize::get),
        cancel,
    };
    let end = walk.run(|found| {
        let wanted = match &pattern {
            // A pattern asks for files; the folders on the way are not listed.
            Some(pattern) => found.kind != FoundKind::Folder && pattern.is_match(found.below),
            None => true,
        };
        if !wanted {
            return ControlFlow::Continue(());
        }
        if lines.len() == limit {
            more = true;
            return ControlFlow::Break(());
        }
        let path = found.path.display();
        lines.push(match found.kind {
            FoundKind::Folder => format!("{path}/"),
            FoundKind::Link => format!("{path} (a link)"),
            FoundKind::File | FoundKind::Other => path.to_string(),
        });
        ControlFlow::Continue(())
    })?;
    if lines.is_empty() {
        return Ok(match arguments.glob {
            Some(_) => "[no file matches]".to_owned(),
            None => "[the folder is empty]".to_owned(),
        });
    }
    if more {
        lines.push(format!(
            "[there are more than {limit}: name a folder, a glob or a depth, or raise the limit \
             (at most {MOST_PATHS})]"
        ));
    } else if end == WalkEnd::TooMany {
        lines.push("[the workspace is too large to see all of it: name a folder]".to_owned());
    }
    Ok(lines.join("\n"))
}
