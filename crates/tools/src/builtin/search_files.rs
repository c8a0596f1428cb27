//! `search_files`: lines that match a regular expression.

use std::{
    io::{BufRead, BufReader},
    num::NonZeroUsize,
    ops::ControlFlow,
};

use cap_std::fs::File;
use duologue_core::{Effect, Reach, Tool, ToolError, tool};
use regex::bytes::{Regex, RegexBuilder};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use super::{
    blocking::blocking,
    glob,
    text::{count, looks_binary},
};
use crate::workspace::{FoundKind, Ignored, Walk, WalkEnd, Workspace, WorkspacePath};

/// How many lines a call gives unless it asks for another number.
const USUAL_MATCHES: usize = 100;
/// How many it gives at most.
const MOST_MATCHES: usize = 1000;
/// How much of a long line is looked at.
const LONGEST_LINE: usize = 1 << 20;
/// How many bytes of a matching line are shown.
const SHOWN_BYTES: usize = 300;
/// The memory that a compiled pattern may take.
const PATTERN_BYTES: usize = 4 << 20;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// A regular expression, such as `fn \w+_test` or `TODO`. It is matched line by line.
    pattern: String,
    /// The folder or file, from the workspace folder on; everything if left out.
    #[serde(default = "WorkspacePath::root")]
    path: WorkspacePath,
    /// Only files that match, such as `*.rs`.
    #[serde(default)]
    glob: Option<String>,
    /// Take upper and lower case as the same.
    #[serde(default)]
    ignore_case: bool,
    /// Also search what .gitignore leaves out.
    #[serde(default)]
    include_ignored: bool,
    /// How many lines to give; 100 if left out.
    #[serde(default)]
    limit: Option<NonZeroUsize>,
}

/// Searches text inside the workspace.
pub(crate) fn search_files(workspace: &Workspace) -> impl Tool + use<> {
    let workspace = workspace.clone();
    tool(
        "search_files",
        "Finds the lines of the workspace's text files that match a regular expression. Each is \
         given as path:line: text. Binary files, .git and what .gitignore names are left out.",
        Effect::Pure,
        move |arguments: Arguments, context| {
            let workspace = workspace.clone();
            blocking(context.cancel, move |cancel| {
                Search::new(&arguments, cancel)?.run(&workspace, &arguments)
            })
        },
    )
    .reach(Reach::Workspace)
}

struct Search<'a> {
    pattern: Regex,
    limit: usize,
    cancel: &'a CancellationToken,
    lines: Vec<String>,
    searched: usize,
    binary: usize,
    unreadable: usize,
    long_lines: usize,
    more: bool,
}

impl<'a> Search<'a> {
    fn new(arguments: &Arguments, cancel: &'a CancellationToken) -> Result<Self, ToolError> {
        let pattern = RegexBuilder::new(&arguments.pattern)
            .case_insensitive(arguments.ignore_case)
            .size_limit(PATTERN_BYTES)
            .build()
            .map_err(|error| ToolError(format!("pattern: {error}")))?;
        Ok(Self {
            pattern,
            limit: arguments.limit.map_or(USUAL_MATCHES, NonZeroUsize::get).min(MOST_MATCHES),
            cancel,
            lines: Vec::new(),
            searched: 0,
            binary: 0,
            unreadable: 0,
            long_lines: 0,
            more: false,
        })
    }

    fn run(mut self, workspace: &Workspace, arguments: &Arguments) -> Result<String, ToolError> {
        if !workspace.metadata(&arguments.path)?.is_dir() {
            let file = workspace.open_file(&arguments.path)?;
            // Whether it had enough or saw all is in `more`.
            let _ = self.search(file, &arguments.path.to_string())?;
            return Ok(self.report(WalkEnd::Done));
        }
        let names = arguments.glob.as_deref().map(glob::matcher).transpose()?;
        let walk = Walk {
            workspace,
            folder: &arguments.path,
            ignored: match arguments.include_ignored {
                true => Ignored::Included,
                false => Ignored::LeftOut,
            },
            depth: usize::MAX,
            cancel: self.cancel,
        };
        let mut failure = None;
        let end = walk.run(|found| {
            let wanted = found.kind == FoundKind::File
                && names.as_ref().is_none_or(|names| names.is_match(found.below));
            if !wanted {
                return ControlFlow::Continue(());
            }
            let path = found.path.display().to_string();
            let opened = WorkspacePath::try_from(path.clone())
                .ok()
                .and_then(|path| workspace.open_file(&path).ok());
            let Some(file) = opened else {
                self.unreadable += 1;
                return ControlFlow::Continue(());
            };
            match self.search(file, &path) {
                Ok(flow) => flow,
                Err(error) => {
                    failure = Some(error);
                    ControlFlow::Break(())
                }
            }
        })?;
        match failure {
            Some(error) => Err(error),
            None => Ok(self.report(end)),
        }
    }

    fn search(&mut self, file: File, path: &str) -> Result<ControlFlow<()>, ToolError> {
        let mut reader = BufReader::with_capacity(64 * 1024, file);
        let Ok(beginning) = reader.fill_buf() else {
            self.unreadable += 1;
            return Ok(ControlFlow::Continue(()));
        };
        if looks_binary(beginning) {
            self.binary += 1;
            return Ok(ControlFlow::Continue(()));
        }
        self.searched += 1;
        let mut line = Vec::new();
        let mut number = 0;
        while self.next_line(&mut reader, &mut line)? {
            number += 1;
            let Some(place) = self.pattern.find(&line) else { continue };
            if self.lines.len() == self.limit {
                self.more = true;
                return Ok(ControlFlow::Break(()));
            }
            let text = excerpt(&line, place.start());
            self.lines.push(format!("{path}:{number}: {text}"));
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Read the next line without its end; false at the end of the file. What a line has beyond
    /// the bound is skipped.
    fn next_line(
        &mut self,
        reader: &mut impl BufRead,
        line: &mut Vec<u8>,
    ) -> Result<bool, ToolError> {
        line.clear();
        let mut any = false;
        let mut too_long = false;
        loop {
            if self.cancel.is_cancelled() {
                return Err(ToolError::new("cancelled"));
            }
            // A file that fails in the middle ends there; the others are still searched.
            let buffer = reader.fill_buf().unwrap_or_default();
            let end = buffer.iter().position(|byte| *byte == b'\n');
            let piece = buffer.get(..end.unwrap_or(buffer.len())).unwrap_or_default();
            any |= !buffer.is_empty();
            let room = LONGEST_LINE - line.len();
            too_long |= piece.len() > room;
            line.extend(piece.iter().take(room));
            let consumed = piece.len() + usize::from(end.is_some());
            reader.consume(consumed);
            if end.is_some() || consumed == 0 {
                self.long_lines += usize::from(too_long);
                if line.last() == Some(&b'\r') {
                    line.pop();
                }
                return Ok(any);
            }
        }
    }

    fn report(mut self, end: WalkEnd) -> String {
        let mut notes = Vec::new();
        if self.lines.is_empty() {
            notes.push(format!("no line matches in {}", count(self.searched, "file")));
        }
        if self.more {
            notes.push(format!(
                "more lines match than these {}: narrow the pattern, the path or the glob, or \
                 raise the limit (at most {MOST_MATCHES})",
                self.limit
            ));
        }
        if end == WalkEnd::TooMany {
            notes.push("the workspace is too large to search all of it: name a folder".to_owned());
        }
        if self.lines.is_empty() && self.binary > 0 {
            notes.push(format!("{} left out", count(self.binary, "binary file")));
        }
        if self.unreadable > 0 {
            notes.push(format!("{} could not be read", count(self.unreadable, "file")));
        }
        if self.long_lines > 0 {
            notes.push(format!(
                "of {} only the first {LONGEST_LINE} bytes were searched",
                count(self.long_lines, "very long line")
            ));
        }
        if !notes.is_empty() {
            self.lines.push(format!("[{}]", notes.join("; ")));
        }
        self.lines.join("\n")
    }
}

/// The part of a line around a match that is worth showing.
fn excerpt(line: &[u8], place: usize) -> String {
    if line.len() <= SHOWN_BYTES {
        return String::from_utf8_lossy(line).into_owned();
    }
    let from = place.saturating_sub(SHOWN_BYTES / 3);
    let to = (from + SHOWN_BYTES).min(line.len());
    let middle = String::from_utf8_lossy(line.get(from..to).unwrap_or_default());
    // The cuts may fall into characters.
    let middle = middle.trim_matches('\u{fffd}');
    let before = if from > 0 { "…" } else { "" };
    let after = if to < line.len() { "…" } else { "" };
    format!("{before}{middle}{after}")
}
