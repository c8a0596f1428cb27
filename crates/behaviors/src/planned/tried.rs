//! What was tried in a task, for whoever plans again or has to help.

use std::{collections::VecDeque, fmt::Write as _, sync::Arc};

use duologue_core::{Message, ToolResult};

/// How many steps are remembered.
const KEPT: usize = 12;
const ARGUMENTS: usize = 120;
const RESULT: usize = 200;

/// The last steps with what came of them. Text is made of it only when somebody asks.
#[derive(Debug, Default)]
pub(crate) struct TriedSteps(VecDeque<Tried>);

#[derive(Debug)]
struct Tried {
    message: Arc<Message>,
    results: Vec<Arc<ToolResult>>,
}

impl TriedSteps {
    pub(crate) fn push(&mut self, message: Arc<Message>, results: Vec<Arc<ToolResult>>) {
        if self.0.len() == KEPT {
            self.0.pop_front();
        }
        self.0.push_back(Tried { message, results });
    }

    /// The steps as a list, the oldest first.
    pub(crate) fn to_text(&self) -> String {
        let mut text = String::new();
        for Tried { message, results } in &self.0 {
            let mut calls = message.tool_calls().peekable();
            if calls.peek().is_none() {
                let _ = writeln!(text, "- said: {}", clip(&message.text(), RESULT));
            }
            for call in calls {
                let arguments = clip(&call.arguments.to_string(), ARGUMENTS);
                let _ = write!(text, "- {} {arguments}", call.name);
                match results.iter().find(|result| result.call_id == call.id) {
                    Some(result) => {
                        let said = clip(&result.prompt_text(), RESULT);
                        let _ = writeln!(text, " → {}: {said}", result.status);
                    }
                    None => text.push('\n'),
                }
            }
        }
        text.truncate(text.trim_end().len());
        text
    }
}

/// A text on one line and not longer than that, with a mark where something was left out.
pub(crate) fn clip(text: &str, most: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(most) {
        Some((at, _)) => {
            let (kept, rest) = line.split_at(at);
            format!("{kept}… ({} characters more)", rest.chars().count())
        }
        None => line,
    }
}
