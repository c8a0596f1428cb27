//! `read_result`: the rest of a result that was too long for the prompt.

use std::num::NonZeroUsize;

use duologue_core::{CallId, Effect, Reach, Tool, ToolError, tool};
use schemars::JsonSchema;
use serde::Deserialize;

/// How many characters a call gives unless it asks for another number.
const USUAL_CHARS: usize = 8_000;
/// How many it gives at most, so that its own result is not cut again.
const MOST_CHARS: usize = 16_000;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The id of the call whose result to read, as the note in the cut result gives it.
    call_id: String,
    /// The first character to read, counted from 0.
    #[serde(default)]
    offset: usize,
    /// How many characters to read; 8000 if left out, 16000 at most.
    #[serde(default)]
    limit: Option<NonZeroUsize>,
}

/// Reads an earlier result of the session as the journal has it.
pub(crate) fn read_result() -> impl Tool {
    tool(
        "read_result",
        "Reads on in the result of an earlier tool call that was shown cut.",
        Effect::Pure,
        |arguments: Arguments, context| async move {
            let call = CallId::from(arguments.call_id.as_str());
            let Some(text) = context.results.result_text(call).await else {
                let shown: String = arguments.call_id.chars().take(60).collect();
                return Err(ToolError(format!(
                    "no earlier call of this conversation has the id \"{shown}\" and a result"
                )));
            };
            let limit = arguments.limit.map_or(USUAL_CHARS, NonZeroUsize::get).min(MOST_CHARS);
            page(&text, arguments.offset, limit)
        },
    )
    .reach(Reach::Workspace)
}

fn page(text: &str, offset: usize, limit: usize) -> Result<String, ToolError> {
    let total = text.chars().count();
    if offset > 0 && offset >= total {
        return Err(ToolError(format!(
            "the result has only {total} characters, so there is none at {offset}"
        )));
    }
    let mut part: String = text.chars().skip(offset).take(limit).collect();
    let end = offset.saturating_add(limit);
    if end < total {
        part.push_str(&format!(
            "\n[characters {offset} to {end} of {total}; read on with offset {end}]"
        ));
    }
    Ok(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_join_to_the_whole() {
        let text: String = ('a'..='z').cycle().take(95).map(|c| format!("{c}ü")).collect();
        let mut whole = String::new();
        let mut offset = 0;
        while offset < 190 {
            let part = page(&text, offset, 50).unwrap();
            let (body, note) = part.split_once("\n[").unwrap_or((&part, ""));
            whole.push_str(body);
            offset += 50;
            let expected = format!("read on with offset {offset}]");
            assert_eq!(note.ends_with(&expected), offset < 190, "{note}");
        }
        assert_eq!(whole, text);
    }

    #[test]
    fn a_page_with_its_note_is_not_cut_in_the_prompt() {
        assert!(MOST_CHARS + 500 < duologue_core::Memory::default().result_chars);
    }

    #[test]
    fn an_offset_behind_the_end_is_an_error() {
        assert!(page("abc", 3, 10).unwrap_err().0.contains("only 3 characters"));
        assert_eq!(page("", 0, 10), Ok(String::new()));
        assert_eq!(page("abc", 1, usize::MAX), Ok("bc".to_owned()));
    }
}
