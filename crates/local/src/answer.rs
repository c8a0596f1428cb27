//! The answer while it is written: bytes from tokens become text, thoughts and calls.

use duologue_core::{Delta, StopReason};

use crate::grammar::{Form, TEXT_OPENING};

const CALL_OPENING: &str = "{\"tool_name\":";
const OPEN_THOUGHT: &str = "<think>";
const CLOSE_THOUGHT: &str = "</think>";

/// Turns what the model writes into deltas.
#[derive(Debug)]
pub(crate) struct Answer {
    stage: Stage,
    /// Bytes that are no whole character yet.
    bytes: Vec<u8>,
    /// Text that may yet turn out to be the beginning of something.
    held: String,
    /// Texts that end the answer.
    stops: Vec<String>,
    stopped: bool,
    called: bool,
}

#[derive(Clone, Debug, PartialEq)]
enum Stage {
    /// The first character decides between text and a call.
    Start,
    /// Before text there may be a thought.
    MaybeThought,
    Thought,
    /// White space before the text is not part of it.
    BeforeText,
    Text,
    /// `{"tool_name": "…", "params": ` until the name is known.
    CallName,
    Arguments(Nesting),
    /// Nothing more is of interest.
    Over,
}

/// How deep inside JSON the text is.
#[derive(Clone, Debug, Default, PartialEq)]
struct Nesting {
    depth: usize,
    in_text: bool,
    escaped: bool,
}

impl Nesting {
    /// Take in a character; true when it closes the value.
    fn closes(&mut self, char: char) -> bool {
        if self.in_text {
            match char {
                _ if self.escaped => self.escaped = false,
                '\\' => self.escaped = true,
                '"' => self.in_text = false,
                _ => {}
            }
            return false;
        }
        match char {
            '"' => self.in_text = true,
            '{' | '[' => self.depth += 1,
            '}' | ']' => {
                self.depth = self.depth.saturating_sub(1);
                return self.depth == 0;
            }
            _ => {}
        }
        false
    }
}

impl Answer {
    pub(crate) fn new(form: &Form, stops: Vec<String>) -> Self {
        let stage = match form {
            Form::Text => Stage::MaybeThought,
            Form::Json => Stage::Text,
            Form::Call | Form::TextOrCall | Form::JsonOrCall => Stage::Start,
        };
        Self {
            stage,
            bytes: Vec::new(),
            held: String::new(),
            stops: stops.into_iter().filter(|stop| !stop.is_empty()).collect(),
            stopped: false,
            called: false,
        }
    }

    /// Whether a stop text was met: nothing more is wanted.
    pub(crate) fn stopped(&self) -> bool {
        self.stopped
    }

    /// Take in the bytes of a token.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Vec<Delta> {
        self.bytes.extend_from_slice(bytes);
        let whole = match std::str::from_utf8(&self.bytes) {
            Ok(text) => text.len(),
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            // Bytes that can never become a character are shown as such.
            Err(_) => self.bytes.len(),
        };
        let rest = self.bytes.split_off(whole);
        let text = std::mem::replace(&mut self.bytes, rest);
        self.held.push_str(&String::from_utf8_lossy(&text));
        self.advance(Ending::Open)
    }

    /// The answer is complete: give out what was held back. Returns why it ended, if it ended by
    /// itself.
    pub(crate) fn finish(&mut self) -> (Vec<Delta>, StopReason) {
        let rest = std::mem::take(&mut self.bytes);
        self.held.push_str(&String::from_utf8_lossy(&rest));
        let deltas = self.advance(Ending::Closed);
        let reason = match (self.stopped, self.called) {
            (true, _) => StopReason::StopText,
            (false, true) => StopReason::ToolCalls,
            (false, false) => StopReason::Completed,
        };
        (deltas, reason)
    }

    fn advance(&mut self, ending: Ending) -> Vec<Delta> {
        let mut deltas = Vec::new();
        loop {
            let before = (self.stage.clone(), self.held.len());
            self.step(ending, &mut deltas);
            if (&self.stage, self.held.len()) == (&before.0, before.1) || self.held.is_empty() {
                return deltas;
            }
        }
    }

    fn step(&mut self, ending: Ending, deltas: &mut Vec<Delta>) {
        match &mut self.stage {
            Stage::Start => {
                if self.held.is_empty() {
                    return;
                }
                if let Some(text) = self.held.strip_prefix(TEXT_OPENING) {
                    self.held = text.to_owned();
                    self.stage = Stage::BeforeText;
                } else if TEXT_OPENING.starts_with(&self.held) && ending == Ending::Open {
                    // Not decided yet.
                } else if self.held.starts_with(CALL_OPENING) {
                    self.stage = Stage::CallName;
                } else if !CALL_OPENING.starts_with(&self.held) || ending == Ending::Closed {
                    self.stage = Stage::Text;
                }
            }
            Stage::MaybeThought => {
                let text = self.held.trim_start();
                if text.starts_with(OPEN_THOUGHT) {
                    self.held = text.split_off_start(OPEN_THOUGHT.len());
                    self.stage = Stage::Thought;
                } else if !OPEN_THOUGHT.starts_with(text) || ending == Ending::Closed {
                    self.stage = Stage::Text;
                }
            }
            Stage::Thought => {
                if let Some(end) = self.held.find(CLOSE_THOUGHT) {
                    let rest = self.held.split_off(end);
                    let thought = std::mem::replace(
                        &mut self.held,
                        rest.split_off_start(CLOSE_THOUGHT.len()),
                    );
                    emit(deltas, Delta::Reasoning, thought);
                    self.stage = Stage::BeforeText;
                } else {
                    let sure = sure_length(&self.held, &[CLOSE_THOUGHT.to_owned()], ending);
                    emit(deltas, Delta::Reasoning, self.held.split_off_start_into(sure));
                }
            }
            Stage::BeforeText => {
                self.held = self.held.trim_start().to_owned();
                if !self.held.is_empty() {
                    self.stage = Stage::Text;
                }
            }
            Stage::Text => {
                let met = self.stops.iter().filter_map(|stop| self.held.find(stop)).min();
                let sure = met.unwrap_or_else(|| sure_length(&self.held, &self.stops, ending));
                emit(deltas, Delta::Text, self.held.split_off_start_into(sure));
                if met.is_some() {
                    self.stopped = true;
                    self.held.clear();
                    self.stage = Stage::Over;
                }
            }
            Stage::CallName => {
                if let Some((name, rest)) = read_call_name(&self.held) {
                    self.held = rest;
                    self.called = true;
                    deltas.push(Delta::CallStart { index: 0, id: None, name });
                    self.stage = Stage::Arguments(Nesting::default());
                }
            }
            Stage::Arguments(nesting) => {
                let mut end = None;
                for (at, char) in self.held.char_indices() {
                    if nesting.closes(char) {
                        end = Some(at + char.len_utf8());
                        break;
                    }
                }
                let sure = end.unwrap_or(self.held.len());
                let fragment = self.held.split_off_start_into(sure);
                if !fragment.is_empty() {
                    deltas.push(Delta::CallArguments { index: 0, fragment });
                }
                if end.is_some() {
                    self.stage = Stage::Over;
                }
            }
            Stage::Over => self.held.clear(),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Ending {
    /// More may come.
    Open,
    Closed,
}

/// The name in `{"tool_name": "…", "params": ` and what follows, once all of it is there.
fn read_call_name(text: &str) -> Option<(String, String)> {
    let rest = text.strip_prefix(CALL_OPENING)?;
    let mut names = serde_json::Deserializer::from_str(rest).into_iter::<String>();
    let name = names.next()?.ok()?;
    let rest = rest.get(names.byte_offset()..)?;
    let rest = rest.strip_prefix(", \"params\": ")?;
    Some((name, rest.to_owned()))
}

/// How much of a text cannot be the beginning of one of `endings`.
fn sure_length(text: &str, endings: &[String], ending: Ending) -> usize {
    if ending == Ending::Closed {
        return text.len();
    }
    let unsure = endings.iter().filter_map(|ending| {
        let starts = text.char_indices().map(|(at, _)| at);
        starts.into_iter().find(|at| text.get(*at..).is_some_and(|tail| ending.starts_with(tail)))
    });
    unsure.min().unwrap_or(text.len())
}

fn emit(deltas: &mut Vec<Delta>, kind: fn(String) -> Delta, text: String) {
    if !text.is_empty() {
        deltas.push(kind(text));
    }
}

trait SplitStart {
    /// What follows the first bytes.
    fn split_off_start(&self, len: usize) -> String;
}

impl SplitStart for str {
    fn split_off_start(&self, len: usize) -> String {
        self.get(len..).unwrap_or_default().to_owned()
    }
}

trait TakeStart {
    /// Cut the first bytes off and return them.
    fn split_off_start_into(&mut self, len: usize) -> String;
}

impl TakeStart for String {
    fn split_off_start_into(&mut self, len: usize) -> String {
        let rest = self.split_off(len);
        std::mem::replace(self, rest)
    }
}

#[cfg(test)]
mod tests {
    use duologue_core::{Accumulator, Part};
    use serde_json::json;

    use super::*;

    /// What an answer is when it comes in pieces of any size.
    fn read(form: Form, stops: &[&str], text: &str, piece: usize) -> (Vec<Part>, StopReason) {
        let mut answer = Answer::new(&form, stops.iter().map(|s| (*s).to_owned()).collect());
        let mut all = Accumulator::default();
        for bytes in text.as_bytes().chunks(piece) {
            answer.push(bytes).into_iter().for_each(|delta| all.push(delta));
        }
        let (deltas, reason) = answer.finish();
        deltas.into_iter().for_each(|delta| all.push(delta));
        all.push(Delta::Stop(reason.clone()));
        (all.finish().message.parts, reason)
    }

    #[test]
    fn text_comes_out_as_it_went_in_whatever_the_pieces() {
        for piece in 1..8 {
            let (parts, reason) = read(Form::Text, &[], "<thé 日本> {\"a\": 1}", piece);
            assert_eq!(parts, [Part::text("<thé 日本> {\"a\": 1}")]);
            assert_eq!(reason, StopReason::Completed);
        }
    }

    #[test]
    fn a_thought_is_told_from_the_answer() {
        for piece in [1, 3, 100] {
            let (parts, _) = read(Form::Text, &[], "<think>\nhm < 3</think>\n\nYes.", piece);
            let thought = Part::Reasoning { text: "\nhm < 3".into(), signature: None };
            assert_eq!(parts, [thought, Part::text("Yes.")]);
        }
    }

    #[test]
    fn a_stop_text_ends_the_answer_and_is_not_part_of_it() {
        for piece in [1, 2, 50] {
            let (parts, reason) = read(Form::Text, &["END", "\n\n"], "one EN two\n\nthree", piece);
            assert_eq!(parts, [Part::text("one EN two")]);
            assert_eq!(reason, StopReason::StopText);
        }
    }

    #[test]
    fn a_call_is_read_while_it_is_written() {
        let text = "{\"tool_name\": \"say\", \"params\": {\"a\": \"}\\\"{\", \"b\": [1, {}]}}";
        for piece in [1, 4, 100] {
            let (parts, reason) = read(Form::TextOrCall, &[], text, piece);
            let [Part::ToolCall(call)] = parts.as_slice() else { panic!("{parts:?}") };
            assert_eq!(call.name, "say");
            assert_eq!(call.arguments, json!({"a": "}\"{", "b": [1, {}]}));
            assert_eq!(reason, StopReason::ToolCalls);
        }
    }

    #[test]
    fn text_instead_of_a_call_is_text() {
        for piece in [1, 7, 100] {
            let text = format!("{TEXT_OPENING}Hello {{\"tool_name\": 1}}");
            let (parts, reason) = read(Form::TextOrCall, &[], &text, piece);
            assert_eq!(parts, [Part::text("Hello {\"tool_name\": 1}")]);
            assert_eq!(reason, StopReason::Completed);
        }
    }
}
