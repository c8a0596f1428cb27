//! `edit_file`: replaces one exact text in a file by another.

use std::io::Read as _;

use cap_std::fs::File;
use duologue_core::{Effect, Reach, Tool, ToolError, tool};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{
    blocking::blocking,
    text::{count, looks_binary},
};
use crate::workspace::{Workspace, WorkspacePath};

/// Larger files are not edited: they would have to be in memory whole.
const LARGEST: u64 = 16 << 20;
/// How many places of an ambiguous text are named.
const MOST_PLACES: usize = 10;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The file, from the workspace folder on.
    path: WorkspacePath,
    /// The text to replace, exactly as in the file, with enough around it to occur once.
    old_text: String,
    /// The text to put there instead.
    new_text: String,
    /// Replace every occurrence instead of the only one.
    #[serde(default)]
    replace_all: bool,
}

/// Edits a file inside the workspace. Running it twice is not the same as once: the new text may
/// contain the old one.
pub(crate) fn edit_file(workspace: &Workspace) -> impl Tool + use<> {
    let workspace = workspace.clone();
    tool(
        "edit_file",
        "Changes a file of the workspace: replaces old_text by new_text. old_text must occur \
         exactly once, unless replace_all is true. Read the file first.",
        Effect::SideEffect,
        move |arguments: Arguments, context| {
            let workspace = workspace.clone();
            blocking(context.cancel, move |_| {
                let path = &arguments.path;
                if !workspace.exists(path) {
                    let error = workspace.missing(path);
                    return Err(ToolError(format!("{error}; copy_file or write_file makes it")));
                }
                workspace.change(path, |file| {
                    let before = read(file, path)?;
                    let (after, lines) = replaced(&before, &arguments)?;
                    let report = match lines.as_slice() {
                        [line] => format!("edited {path} at line {line}"),
                        lines => format!("edited {path} in {}", count(lines.len(), "place")),
                    };
                    Ok((after.into_bytes(), report))
                })
            })
        },
    )
    .reach(Reach::Workspace)
}

fn read(file: File, path: &WorkspacePath) -> Result<String, ToolError> {
    let mut bytes = Vec::new();
    file.take(LARGEST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LARGEST {
        return Err(ToolError(format!(
            "\"{path}\" is larger than {} MiB, too large to edit",
            LARGEST >> 20
        )));
    }
    if looks_binary(&bytes) {
        return Err(ToolError(format!("\"{path}\" is not text")));
    }
    String::from_utf8(bytes)
        .map_err(|_| ToolError(format!("\"{path}\" is not UTF-8, so it cannot be edited")))
}

/// The new text, and the lines where it differs.
fn replaced(text: &str, arguments: &Arguments) -> Result<(String, Vec<usize>), ToolError> {
    let (mut old, mut new) = (arguments.old_text.clone(), arguments.new_text.clone());
    if old.is_empty() {
        return Err(ToolError::new(
            "old_text is empty: give the text to replace; to write a whole file use write_file",
        ));
    }
    if old == new {
        return Err(ToolError::new("old_text and new_text are the same, so nothing would change"));
    }
    // Models write plain line ends; in a file with the other kind they mean those.
    if !text.contains(&old) && text.contains("\r\n") && !old.contains('\r') {
        old = old.replace('\n', "\r\n");
        new = new.replace("\r\n", "\n").replace('\n', "\r\n");
    }
    let places: Vec<usize> = text.match_indices(&old).map(|(at, _)| at).collect();
    let lines: Vec<usize> = lines_of(text, &places);
    match lines.as_slice() {
        [] => Err(ToolError(not_found(text, &old))),
        [_] => Ok((text.replacen(&old, &new, 1), lines)),
        _ if arguments.replace_all => Ok((text.replace(&old, &new), lines)),
        many => {
            let mut named: Vec<String> =
                many.iter().take(MOST_PLACES).map(ToString::to_string).collect();
            if many.len() > MOST_PLACES {
                named.push("…".to_owned());
            }
            Err(ToolError(format!(
                "old_text occurs {} times, at lines {}: give more of the lines around it so that \
                 it occurs once, or set replace_all",
                many.len(),
                named.join(", ")
            )))
        }
    }
}

/// The line numbers of ascending places.
fn lines_of(text: &str, places: &[usize]) -> Vec<usize> {
    let mut line = 1;
    let mut from = 0;
    places
        .iter()
        .map(|place| {
            let between = text.get(from..*place).unwrap_or_default();
            line += between.bytes().filter(|byte| *byte == b'\n').count();
            from = *place;
            line
        })
        .collect()
}

/// Why the text is not there, as near as that can be told.
fn not_found(text: &str, old: &str) -> String {
    let wanted: Vec<&str> = old.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let Some(first) = wanted.first() else {
        return "old_text is only white space that the file does not contain".to_owned();
    };
    let lines: Vec<(usize, &str)> = text
        .lines()
        .enumerate()
        .map(|(number, line)| (number + 1, line.trim()))
        .filter(|(_, line)| !line.is_empty())
        .collect();
    let same_but_for_space = lines
        .windows(wanted.len())
        .find(|window| window.iter().map(|(_, line)| line).eq(wanted.iter()));
    if let Some([(number, _), ..]) = same_but_for_space {
        return format!(
            "old_text is not in the file exactly; the lines from {number} on differ from it only \
             in white space: copy them as they are"
        );
    }
    let begins = lines.iter().find(|(_, line)| line == first);
    match begins {
        Some((number, _)) => format!(
            "old_text is not in the file; its first line is line {number}, but what follows \
             differs: read the file again from there"
        ),
        None => "old_text is not in the file: read the file again and copy it exactly".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edit(text: &str, old: &str, new: &str, replace_all: bool) -> Result<String, String> {
        let arguments = Arguments {
            path: WorkspacePath::root(),
            old_text: old.to_owned(),
            new_text: new.to_owned(),
            replace_all,
        };
        replaced(text, &arguments).map(|(text, _)| text).map_err(|error| error.0)
    }

    #[test]
    fn the_only_occurrence_is_replaced() {
        assert_eq!(edit("a b c", "b", "x", false), Ok("a x c".to_owned()));
        assert_eq!(edit("a b c", " b", "", false), Ok("a c".to_owned()));
        assert_eq!(edit("a a", "a", "aa", true), Ok("aa aa".to_owned()));
    }

    #[test]
    fn other_line_ends_are_matched_and_kept() {
        assert_eq!(
            edit("one\r\ntwo\r\nthree\r\n", "one\ntwo", "1\n2", false),
            Ok("1\r\n2\r\nthree\r\n".to_owned())
        );
    }

    #[test]
    fn an_error_tells_what_to_do() {
        for (text, old, expected) in [
            ("a\nb\na\n", "a", "old_text occurs 2 times, at lines 1, 3: give more of the lines"),
            (
                "fn x() {\n    y\n}\n",
                "fn x() {\n  y\n}",
                "the lines from 1 on differ from it only in",
            ),
            ("a\nb\nc\n", "b\nd", "its first line is line 2, but what follows differs"),
            ("a", "z", "read the file again and copy it exactly"),
            ("a", "", "old_text is empty"),
            ("a", "x", "old_text is not in the file"),
            ("a", " \n ", "only white space"),
        ] {
            let error = edit(text, old, "new", false).unwrap_err();
            assert!(error.contains(expected), "{old:?}: {error}");
        }
        let error = edit("a", "a", "a", false).unwrap_err();
        assert!(error.contains("nothing would change"), "{error}");
        let error = edit(&"a\n".repeat(500), "a", "b", false).unwrap_err();
        assert!(error.contains("8, 9, 10, …"), "{error}");
    }
}
