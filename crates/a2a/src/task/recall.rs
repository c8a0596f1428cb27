//! What a new task knows of its conversation.
//!
//! Tasks of one context are one conversation, but each has its own journal. What was said before is
//! put at the beginning of the next one, shortened to what was said: not how it was found out.

use std::sync::Arc;

use a2a::Task;
use duologue_core::{Entry, Event, Message, Outcome, Part, Role, RunId};

use super::record::{SAID, Said};

/// The most messages that are carried on, the last ones.
const MOST: usize = 40;
/// The most characters of one of them.
const LONGEST: usize = 20_000;

/// What was said in a task and before it.
pub(super) fn conversation(entries: &[Arc<Entry>]) -> Vec<Message> {
    let mut all = Vec::new();
    let mut answer = None;
    for entry in entries.iter().filter(|entry| entry.run == RunId::ROOT) {
        match &entry.event {
            Event::Observed { message } | Event::UserRequest { message, .. } => {
                all.push(shortened(message));
            }
            Event::Note { topic, data } if topic.strip_prefix('@') == Some(SAID) => {
                if let Ok(said) = serde_json::from_value::<Said>(data.clone()) {
                    all.push(shortened(&said.message));
                }
            }
            Event::AgentMessage { message, aside: None, .. } => answer = Some(shortened(message)),
            Event::AgentResponseEnd { outcome, .. } => {
                let answer = answer.take();
                all.extend(match outcome {
                    Outcome::Completed => answer,
                    Outcome::InputRequired { inquiries } => {
                        let questions = inquiries.iter().map(|inquiry| inquiry.kind.to_string());
                        Some(Message::assistant(questions.collect::<Vec<_>>().join("\n")))
                    }
                    other => Some(Message::assistant(format!("({other})"))),
                });
            }
            _ => {}
        }
    }
    all.retain(|message| !message.parts.is_empty());
    let surplus = all.len().saturating_sub(MOST);
    all.drain(..surplus);
    all
}

/// What another task gave, as a message refers to it.
pub(super) fn answer_of(id: &str, task: &Task) -> Option<Message> {
    let parts = task.artifacts.iter().flatten().flat_map(|artifact| &artifact.parts);
    let texts: Vec<&str> = parts.filter_map(a2a::Part::as_text).collect();
    if texts.is_empty() {
        return None;
    }
    let text = format!("The result of task {id}, which is referred to:\n{}", texts.join("\n"));
    Some(Message::user(cut(&text)))
}

/// A message without calls and thoughts, and without what is too long.
fn shortened(message: &Message) -> Message {
    let role = match message.role {
        Role::Assistant => Role::Assistant,
        Role::User | Role::System | Role::Tool => Role::User,
    };
    let parts = message.parts.iter().filter_map(|part| match part {
        Part::Text { text } if !text.is_empty() => Some(Part::text(cut(text))),
        Part::Data { value } => Some(Part::text(cut(&value.to_string()))),
        Part::File { name, media_type, .. } => {
            let name = name.as_deref().unwrap_or("unnamed");
            Some(Part::text(format!("[file {name} ({media_type})]")))
        }
        _ => None,
    });
    let mut short = Message::new(role, parts.collect());
    short.id = message.id.clone();
    short
}

fn cut(text: &str) -> String {
    let mut short: String = text.chars().take(LONGEST).collect();
    if short.len() < text.len() {
        short.push_str(" […]");
    }
    short
}
