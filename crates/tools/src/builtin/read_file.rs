//! `read_file`: the text of a file, in pages.

use std::{
    io::{BufRead, BufReader},
    num::NonZeroUsize,
};

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

/// How many lines a call gives unless it asks for another number.
const USUAL_LINES: usize = 2000;
/// How many bytes a call gives at most, whatever it asks for. A page with its note fits into what
/// a prompt carries of one result, so that the note is seen.
const MOST_BYTES: usize = 19_000;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The file, from the workspace folder on, such as `src/main.rs`.
    path: WorkspacePath,
    /// The first line to read, counted from 1.
    #[serde(default)]
    offset: Option<NonZeroUsize>,
    /// How many lines to read; 2000 if left out.
    #[serde(default)]
    limit: Option<NonZeroUsize>,
}

/// Reads text inside the workspace.
pub(crate) fn read_file(workspace: &Workspace) -> impl Tool + use<> {
    let workspace = workspace.clone();
    tool(
        "read_file",
        "Reads a text file of the workspace. A line before the text says how many lines there are; \
         a long file comes in pages, and that line says with which offset to read on.",
        Effect::Pure,
        move |arguments: Arguments, context| {
            let workspace = workspace.clone();
            blocking(context.cancel, move |cancel| {
                let file = workspace.open_file(&arguments.path)?;
                let page = Page {
                    path: &arguments.path,
                    first: arguments.offset.map_or(1, NonZeroUsize::get),
                    lines: arguments.limit.map_or(USUAL_LINES, NonZeroUsize::get),
                };
                page.read(file, cancel)
            })
        },
    )
    .reach(Reach::Workspace)
}

/// The part of a file that a call asks for.
struct Page<'a> {
    path: &'a WorkspacePath,
    first: usize,
    lines: usize,
}

impl Page<'_> {
    fn read(&self, file: File, cancel: &CancellationToken) -> Result<String, ToolError> {
        let bytes = file.metadata()?.len();
        let mut reader = BufReader::with_capacity(64 * 1024, file);
        if looks_binary(reader.fill_buf()?) {
            return Err(ToolError(format!(
                "\"{}\" is not text: it has {bytes} bytes of some binary format",
                self.path
            )));
        }
        for skipped in 0..self.first - 1 {
            let line = read_line(&mut reader, 0, cancel)?;
            if line.length == 0 {
                return Err(ToolError(format!(
                    "\"{}\" has only {skipped} lines, so there is no line {}",
                    self.path, self.first
                )));
            }
        }
        let mut text = Vec::new();
        let mut shown = 0;
        let mut cut = None;
        let mut goes_on = false;
        while shown < self.lines {
            let room = MOST_BYTES - text.len();
            let line = read_line(&mut reader, room, cancel)?;
            if line.length == 0 {
                break;
            }
            if line.length > room && shown > 0 {
                goes_on = true;
                break;
            }
            shown += 1;
            if line.length > room {
                cut = Some(line.length);
            }
            text.extend(line.kept);
        }
        goes_on = goes_on || !reader.fill_buf()?.is_empty();
        if shown == 0 {
            return match self.first {
                1 => Ok("[the file is empty]".to_owned()),
                first => Err(ToolError(format!(
                    "\"{}\" has only {} lines, so there is no line {first}",
                    self.path,
                    first - 1
                ))),
            };
        }
        Ok(self.with_note(&text, shown, cut, goes_on))
    }

    /// The text behind a line that says how much of the file it is. Models count badly, so the
    /// lines are always counted for them; and what stands behind a text they take for a part of it.
    fn with_note(&self, text: &[u8], shown: usize, cut: Option<usize>, goes_on: bool) -> String {
        let last = self.first + shown - 1;
        let mut note = if goes_on {
            let next = last + 1;
            format!("Lines {} to {last}; the file goes on, read it with offset {next}", self.first)
        } else if self.first > 1 {
            format!("Lines {} to {last}, the end of the file", self.first)
        } else {
            format!("The whole file, {}", count(shown, "line"))
        };
        if let Some(length) = cut {
            let (line, kept) = (self.first, text.len());
            note = format!("{note}; line {line} has {length} bytes, the first {kept} are shown");
        }
        // A cut can fall into the middle of a character; that is no fault of the file.
        let faulty = match std::str::from_utf8(text) {
            Ok(_) => false,
            Err(error) => error.error_len().is_some() || cut.is_none(),
        };
        if faulty {
            note.push_str("; bytes that are not UTF-8 are shown as �");
        }
        format!("{note}:\n\n{}", String::from_utf8_lossy(text))
    }
}

/// One line with its end, of which only so much is kept.
struct Line {
    kept: Vec<u8>,
    /// 0 at the end of the file.
    length: usize,
}

fn read_line(
    reader: &mut impl BufRead,
    keep: usize,
    cancel: &CancellationToken,
) -> Result<Line, ToolError> {
    let mut line = Line { kept: Vec::new(), length: 0 };
    loop {
        if cancel.is_cancelled() {
            return Err(ToolError::new("cancelled"));
        }
        let buffer = reader.fill_buf()?;
        let end = buffer.iter().position(|byte| *byte == b'\n');
        let piece = buffer.get(..end.map_or(buffer.len(), |end| end + 1)).unwrap_or_default();
        let room = keep - line.kept.len();
        line.kept.extend(piece.iter().take(room));
        line.length += piece.len();
        let consumed = piece.len();
        reader.consume(consumed);
        if end.is_some() || consumed == 0 {
            return Ok(line);
        }
    }
}

#[cfg(test)]
mod tests {
    use duologue_core::Memory;

    use super::*;

    #[test]
    fn a_page_with_its_note_is_not_cut_in_the_prompt() {
        assert!(MOST_BYTES + 500 < Memory::default().result_chars);
    }
}
