//! Memory: what of the journal goes into the next prompt.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{Message, MessageId, Part, Role, ToolResult};

/// How much of the conversation a prompt carries, and what happens when that is full.
///
/// Nothing is ever deleted from the journal; what leaves the prompt leaves only the prompt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Memory {
    /// The most that a prompt carries.
    pub window: WindowLimit,
    /// The share of the window that is kept when it overflows, between 0 and 1.
    pub trim_to: f64,
    /// What happens to what leaves.
    pub on_full: OnFull,
    /// How many characters of one tool result a prompt carries.
    pub result_chars: usize,
}

/// The most that a prompt carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WindowLimit {
    /// This many tokens, as [`Message::estimated_tokens`] counts them.
    Tokens(u64),
    /// This many messages.
    Messages(u64),
    /// As much as there is.
    Unlimited,
}

/// What happens to messages that leave the prompt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnFull {
    /// They are left out.
    #[default]
    Trim,
    /// The model writes a summary that stands for them.
    Summarize,
}

impl Default for Memory {
    fn default() -> Self {
        Self {
            window: WindowLimit::Tokens(32_000),
            trim_to: 0.6,
            on_full: OnFull::Trim,
            result_chars: 20_000,
        }
    }
}

/// The messages of the next prompt.
///
/// The list is shared with the request that is under way and extended in place once that is done,
/// so that a step costs the same in a long conversation as in a short one.
#[derive(Clone, Debug, Default)]
pub struct Window {
    messages: Arc<Vec<Arc<Message>>>,
    marks: Vec<Mark>,
    tokens: u64,
    /// The task that is worked on; its requests stay.
    task: u32,
}

/// What trimming must know of a message.
#[derive(Clone, Copy, Debug)]
struct Mark {
    tokens: u64,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Somebody asked for something, as part of this task.
    Request(u32),
    /// The results of the calls in the message before: the two stay together.
    Results,
    /// Anything else.
    Other,
}

impl Window {
    /// The messages, oldest first, shared.
    pub fn messages(&self) -> &Arc<Vec<Arc<Message>>> {
        &self.messages
    }

    /// About how many tokens they take.
    pub fn tokens(&self) -> u64 {
        self.tokens
    }

    /// A new task begins: the requests of the last one may be trimmed from now on.
    pub(crate) fn begin_task(&mut self) {
        self.task += 1;
    }

    pub(crate) fn push_request(&mut self, message: Arc<Message>) {
        self.push(message, Kind::Request(self.task));
    }

    pub(crate) fn push_message(&mut self, message: Arc<Message>) {
        self.push(message, Kind::Other);
    }

    /// Add the results of the calls in the last message, cut to what a prompt can carry.
    pub(crate) fn push_results(&mut self, results: &[Arc<ToolResult>], seq: u64, chars: usize) {
        let parts = results.iter().map(|result| Part::ToolResult(cut(result, chars))).collect();
        let message = Message {
            id: MessageId::from(format!("results-{seq}")),
            role: Role::Tool,
            name: None,
            parts,
            metadata: crate::Metadata::new(),
        };
        self.push(Arc::new(message), Kind::Results);
    }

    fn push(&mut self, message: Arc<Message>, kind: Kind) {
        let tokens = message.estimated_tokens();
        self.tokens += tokens;
        self.marks.push(Mark { tokens, kind });
        Arc::make_mut(&mut self.messages).push(message);
    }

    /// Put another message in the place of the one with this id, if it is still here.
    pub(crate) fn replace(&mut self, id: &MessageId, message: Arc<Message>) {
        let Some(at) = self.messages.iter().rposition(|old| old.id == *id) else {
            return;
        };
        let tokens = message.estimated_tokens();
        if let Some(mark) = self.marks.get_mut(at) {
            self.tokens = self.tokens - mark.tokens + tokens;
            mark.tokens = tokens;
        }
        if let Some(place) = Arc::make_mut(&mut self.messages).get_mut(at) {
            *place = message;
        }
    }

    /// How many messages must go before the next prompt, if any.
    pub(crate) fn excess(&self, memory: &Memory) -> Option<usize> {
        let (size, limit) = match memory.window {
            WindowLimit::Unlimited => return None,
            WindowLimit::Tokens(limit) => (self.tokens, limit),
            WindowLimit::Messages(limit) => (self.messages.len() as u64, limit),
        };
        if size <= limit {
            return None;
        }
        let by_tokens = matches!(memory.window, WindowLimit::Tokens(_));
        let target = (limit as f64 * memory.trim_to.clamp(0.0, 1.0)) as u64;
        self.to_drop(size, target, |mark| if by_tokens { mark.tokens } else { 1 })
    }

    /// How many messages must go so that about half of the prompt is left, for a model that says
    /// that the prompt is too long for it.
    pub(crate) fn half(&self) -> Option<usize> {
        self.to_drop(self.tokens, self.tokens / 2, |mark| mark.tokens)
    }

    /// Counts off droppable messages from the oldest, whole units at a time, until `size` is down
    /// to `target`. The last unit stays: it is what the model must answer.
    fn to_drop(&self, mut size: u64, target: u64, cost: impl Fn(&Mark) -> u64) -> Option<usize> {
        let mut dropped = 0;
        let mut marks = self.marks.iter().peekable();
        while size > target {
            let Some(mark) = marks.next() else { break };
            if mark.kind == Kind::Request(self.task) {
                continue;
            }
            let mut unit = vec![mark];
            while let Some(results) = marks.next_if(|next| next.kind == Kind::Results) {
                unit.push(results);
            }
            if marks.peek().is_none() {
                break;
            }
            dropped += unit.len();
            size = size.saturating_sub(unit.into_iter().map(&cost).sum());
        }
        (dropped > 0).then_some(dropped)
    }

    /// The oldest `count` messages that may go: what a summary has to stand for.
    pub(crate) fn droppable(&self, count: usize) -> Vec<Arc<Message>> {
        self.messages
            .iter()
            .zip(&self.marks)
            .filter(|(_, mark)| mark.kind != Kind::Request(self.task))
            .take(count)
            .map(|(message, _)| Arc::clone(message))
            .collect()
    }

    /// Drop the oldest `count` messages that may go, and put a summary in their place.
    pub(crate) fn trim(&mut self, count: usize, summary: Option<Arc<Message>>) {
        let old = std::mem::take(&mut self.messages);
        let marks = std::mem::take(&mut self.marks);
        self.tokens = 0;
        if let Some(summary) = summary {
            self.push(summary, Kind::Other);
        }
        let mut left = count;
        for (message, mark) in old.iter().zip(marks) {
            if left > 0 && mark.kind != Kind::Request(self.task) {
                left -= 1;
            } else {
                self.tokens += mark.tokens;
                self.marks.push(mark);
                Arc::make_mut(&mut self.messages).push(Arc::clone(message));
            }
        }
    }
}

/// A result as a prompt carries it: the journal's own, or, where it is long, cut, with a note of how to read the rest.
fn cut(result: &Arc<ToolResult>, limit: usize) -> Arc<ToolResult> {
    // Bytes are at least as many as characters, so a short text needs no counting.
    let bytes: usize = result.content.iter().map(part_bytes).sum();
    if bytes <= limit {
        return Arc::clone(result);
    }
    let text = result.prompt_text();
    let total = text.chars().count();
    let files = result.content.iter().filter(|part| matches!(part, Part::File { .. })).cloned();
    let mut content: Vec<Part> = Vec::new();
    if total <= limit {
        return Arc::clone(result);
    }
    let shown: String = text.chars().take(limit).collect();
    content.push(Part::text(format!(
        "{shown}\n{CUT_NOTE} {limit} of {total} characters are shown; read_result with call_id \
         \"{}\" and offset {limit} reads on]",
        result.call_id
    )));
    content.extend(files);
    Arc::new(ToolResult {
        call_id: result.call_id.clone(),
        name: result.name.clone(),
        status: result.status,
        content,
    })
}

/// How the note begins that stands where a long result was cut.
pub const CUT_NOTE: &str = "[cut here:";

fn part_bytes(part: &Part) -> usize {
    match part {
        Part::Text { text } | Part::Reasoning { text, .. } => text.len(),
        Part::Data { value } => value.to_string().len(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::{ToolCall, ToolStatus};

    /// What happens in a conversation, as far as the window is concerned.
    #[derive(Clone, Debug)]
    enum Move {
        Task(usize),
        Say(usize),
        Use(usize, usize),
        Overflow,
    }

    fn moves() -> impl Strategy<Value = Vec<Move>> {
        let one = prop_oneof![
            (1..400usize).prop_map(Move::Task),
            (1..400usize).prop_map(Move::Say),
            (1..4usize, 1..400usize).prop_map(|(calls, size)| Move::Use(calls, size)),
            Just(Move::Overflow),
        ];
        prop::collection::vec(one, 1..60)
    }

    fn apply(window: &mut Window, seq: u64, step: &Move, memory: &Memory) {
        match step {
            Move::Task(size) => {
                window.begin_task();
                window.push_request(Arc::new(Message::user("t".repeat(*size))));
            }
            Move::Say(size) => {
                window.push_message(Arc::new(Message::assistant("s".repeat(*size))));
            }
            Move::Use(count, size) => {
                let calls: Vec<ToolCall> = (0..*count)
                    .map(|n| ToolCall::new(format!("c{seq}-{n}"), "t", json!({})))
                    .collect();
                let results: Vec<Arc<ToolResult>> = calls
                    .iter()
                    .map(|call| Arc::new(ToolResult::text(call, ToolStatus::Ok, "r".repeat(*size))))
                    .collect();
                let parts = calls.into_iter().map(Part::from).collect();
                window.push_message(Arc::new(Message::new(Role::Assistant, parts)));
                window.push_results(&results, seq, memory.result_chars);
            }
            Move::Overflow => {
                if let Some(count) = window.half() {
                    window.trim(count, None);
                }
            }
        }
        if let Some(count) = window.excess(memory) {
            window.trim(count, None);
        }
    }

    proptest! {
        #[test]
        fn trimming_keeps_calls_with_results_and_never_drops_the_task(
            steps in moves(),
            limit in 50..600u64,
            by_messages in any::<bool>(),
        ) {
            let window_limit = if by_messages {
                WindowLimit::Messages(limit / 50 + 1)
            } else {
                WindowLimit::Tokens(limit)
            };
            let memory = Memory { window: window_limit, ..Memory::default() };
            let mut window = Window::default();
            let mut task = None;
            for (seq, step) in steps.iter().enumerate() {
                apply(&mut window, seq as u64, step, &memory);
                if matches!(step, Move::Task(_)) {
                    task = window.messages().last().map(|message| message.id.clone());
                }
                let kept = window.messages();
                let mut open: Vec<String> = Vec::new();
                for message in kept.iter() {
                    for result in message.tool_results() {
                        let at = open.iter().position(|id| *id == result.call_id.to_string());
                        prop_assert!(at.is_some(), "a result without its call");
                        open.remove(at.unwrap());
                    }
                    prop_assert!(
                        open.is_empty() || message.tool_calls().next().is_none(),
                        "a call without its result"
                    );
                    open.extend(message.tool_calls().map(|call| call.id.to_string()));
                }
                prop_assert!(open.is_empty(), "a call without its result at the end");
                if let Some(task) = &task {
                    prop_assert!(kept.iter().any(|m| m.id == *task), "the task is gone");
                }
                let counted: u64 = kept.iter().map(|m| m.estimated_tokens()).sum();
                prop_assert_eq!(counted, window.tokens());
            }
        }
    }

    #[test]
    fn an_overflowing_window_is_trimmed_to_its_share() {
        let memory = Memory { window: WindowLimit::Messages(10), ..Memory::default() };
        let mut window = Window::default();
        for n in 0..11 {
            window.push_message(Arc::new(Message::assistant(n.to_string())));
        }
        window.trim(window.excess(&memory).unwrap(), None);
        let kept: Vec<String> = window.messages().iter().map(|m| m.text()).collect();
        assert_eq!(kept, ["5", "6", "7", "8", "9", "10"]);
    }

    #[test]
    fn a_long_result_is_cut_with_a_note_of_how_to_read_on() {
        let call = ToolCall::new("c1", "t", json!({}));
        let whole = Arc::new(ToolResult::text(&call, ToolStatus::Ok, "ä".repeat(500)));
        let mut window = Window::default();
        window.push_results(&[Arc::clone(&whole)], 3, 100);
        let shown = window.messages()[0].tool_results().next().unwrap().prompt_text();
        assert!(shown.starts_with(&"ä".repeat(100)));
        assert!(shown.ends_with(
            "[cut here: 100 of 500 characters are shown; read_result with call_id \"c1\" and \
             offset 100 reads on]"
        ));
        window.push_results(&[whole], 4, 500);
        assert_eq!(window.messages()[1].tool_results().next().unwrap().prompt_text().len(), 1000);
    }
}
