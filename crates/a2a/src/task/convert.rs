//! Between the protocol's messages and ours.
//!
//! What the protocol knows and a journal's message does not, such as the metadata of a part, is
//! kept in the message's own metadata, so that a history gives back what was sent.

use std::collections::{BTreeMap, HashMap};

use a2a::PartContent;
use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use chrono::{DateTime, Utc};
use duologue_core::{Answer, FileSource, Message, MessageId, Metadata, Part, Role};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::wire::whole_numbers;

/// Where a message keeps what only the protocol knows.
const KEPT: &str = "a2a";

/// The media type of a file that came without one.
const ANY_FILE: &str = "application/octet-stream";

/// What only the protocol knows of a message.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Kept {
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<HashMap<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    extensions: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reference_task_ids: Option<Vec<String>>,
    /// By place, for parts that have any.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    parts: BTreeMap<usize, KeptPart>,
}

/// What only the protocol knows of a part.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct KeptPart {
    #[serde(skip_serializing_if = "Option::is_none")]
    filename: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    media_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<HashMap<String, Value>>,
}

/// A message of the protocol as a journal writes it.
pub(crate) fn message_from_wire(message: &a2a::Message) -> Message {
    let mut kept = Kept {
        metadata: message.metadata.clone().filter(|metadata| !metadata.is_empty()),
        extensions: message.extensions.clone().filter(|list| !list.is_empty()),
        reference_task_ids: message.reference_task_ids.clone().filter(|list| !list.is_empty()),
        parts: BTreeMap::new(),
    };
    for (place, part) in message.parts.iter().enumerate() {
        let is_file = matches!(part.content, PartContent::Raw(_) | PartContent::Url(_));
        let extra = KeptPart {
            filename: part.filename.clone().filter(|_| !is_file),
            media_type: part.media_type.clone().filter(|_| !is_file),
            metadata: part.metadata.clone().filter(|metadata| !metadata.is_empty()),
        };
        if extra.filename.is_some() || extra.media_type.is_some() || extra.metadata.is_some() {
            kept.parts.insert(place, extra);
        }
    }
    let mut metadata = Metadata::new();
    match serde_json::to_value(&kept) {
        Ok(Value::Object(fields)) if !fields.is_empty() => {
            metadata.insert(KEPT.to_owned(), Value::Object(fields));
        }
        _ => {}
    }
    Message {
        id: MessageId::from(message.message_id.as_str()),
        role: match message.role {
            a2a::Role::Agent => Role::Assistant,
            a2a::Role::User | a2a::Role::Unspecified => Role::User,
        },
        name: None,
        parts: parts_from_wire(&message.parts),
        metadata,
    }
}

/// Let a message refer to tasks of the agent that it goes to.
pub(crate) fn refer_to(message: &mut Message, tasks: &[&str]) {
    let tasks = tasks.iter().map(|task| (*task).to_owned()).collect();
    let kept = Kept { reference_task_ids: Some(tasks), ..Kept::default() };
    if let Ok(kept) = serde_json::to_value(kept) {
        message.metadata.insert(KEPT.to_owned(), kept);
    }
}

/// Parts of the protocol as a journal writes them.
pub(crate) fn parts_from_wire(parts: &[a2a::Part]) -> Vec<Part> {
    parts.iter().map(part_from_wire).collect()
}

fn part_from_wire(part: &a2a::Part) -> Part {
    let file = |source| Part::File {
        media_type: part.media_type.clone().unwrap_or_else(|| ANY_FILE.to_owned()),
        name: part.filename.clone(),
        source,
    };
    match &part.content {
        PartContent::Text(text) => Part::text(text.as_str()),
        PartContent::Data(value) => Part::Data { value: whole_numbers(value.clone()) },
        PartContent::Raw(bytes) => file(FileSource::Base64(BASE64.encode(bytes))),
        PartContent::Url(url) => file(FileSource::Url(url.clone())),
    }
}

/// A journal's message as the protocol writes it, inside a task.
pub(crate) fn message_to_wire(message: &Message, task: &str, context: &str) -> a2a::Message {
    let kept: Kept = message
        .metadata
        .get(KEPT)
        .and_then(|value| serde_json::from_value(value.clone()).ok())
        .unwrap_or_default();
    let mut parts = parts_to_wire(&message.parts);
    for (place, extra) in kept.parts {
        if let Some(part) = parts.get_mut(place) {
            part.filename = extra.filename.or_else(|| part.filename.take());
            part.media_type = extra.media_type.or_else(|| part.media_type.take());
            part.metadata = extra.metadata;
        }
    }
    a2a::Message {
        message_id: message.id.as_str().to_owned(),
        context_id: Some(context.to_owned()),
        task_id: Some(task.to_owned()),
        role: match message.role {
            Role::User => a2a::Role::User,
            Role::Assistant | Role::System | Role::Tool => a2a::Role::Agent,
        },
        parts,
        metadata: kept.metadata,
        extensions: kept.extensions,
        reference_task_ids: kept.reference_task_ids,
    }
}

/// Whether others may see a part: not thoughts, and not calls.
pub(crate) fn is_public(part: &Part) -> bool {
    matches!(part, Part::Text { .. } | Part::Data { .. } | Part::File { .. })
}

/// What others may see of a message's parts: not its thoughts and not its calls.
pub(crate) fn parts_to_wire(parts: &[Part]) -> Vec<a2a::Part> {
    parts.iter().filter_map(part_to_wire).collect()
}

fn part_to_wire(part: &Part) -> Option<a2a::Part> {
    match part {
        Part::Text { text } => Some(a2a::Part::text(text.as_str())),
        Part::Data { value } => Some(a2a::Part::data(value.clone())),
        Part::File { media_type, name, source } => {
            let mut part = match source {
                FileSource::Url(url) => a2a::Part::url(url.as_str()),
                // What is not base 64 is nobody's file; it is shown as it is.
                FileSource::Base64(text) => match BASE64.decode(text) {
                    Ok(bytes) => a2a::Part::raw(bytes),
                    Err(_) => a2a::Part::text(text.as_str()),
                },
            };
            part.media_type = Some(media_type.clone());
            part.filename.clone_from(name);
            Some(part)
        }
        Part::Reasoning { .. } | Part::ToolCall(_) | Part::ToolResult(_) => None,
    }
}

/// A journal's time as the protocol writes it.
pub(crate) fn time_to_wire(at: i64) -> Option<DateTime<Utc>> {
    DateTime::from_timestamp_millis(at)
}

/// An answer that came another way, as somebody would have said it.
pub(super) fn spoken(answer: &Answer, seq: u64) -> Message {
    let parts = match answer {
        Answer::Approve => vec![Part::text("approve")],
        Answer::ApproveAlways => vec![Part::text("always")],
        Answer::Deny { reason } if reason.is_empty() => vec![Part::text("deny")],
        Answer::Deny { reason } => vec![Part::text(reason.as_str())],
        Answer::Edit { arguments } => vec![Part::data(json!({ "arguments": arguments }))],
        Answer::Result { content, .. } => content.clone(),
    };
    let mut message = Message::new(Role::User, parts);
    // The same journal must always give the same history.
    message.id = format!("answer-{seq}").as_str().into();
    message
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_message_comes_back_as_it_was_sent() {
        let sent: a2a::Message = serde_json::from_value(json!({
            "messageId": "m1",
            "contextId": "c1",
            "taskId": "t1",
            "role": "ROLE_USER",
            "parts": [
                {"text": "look", "metadata": {"k": 1}},
                {"raw": "dGNr", "mediaType": "text/plain", "filename": "a.txt"},
                {"url": "https://example.com/b", "mediaType": "image/png"},
                {"data": {"x": [1, null]}, "mediaType": "application/json"},
            ],
            "metadata": {"trace": "7"},
            "extensions": ["https://example.com/e"],
            "referenceTaskIds": ["t0"],
        }))
        .unwrap();
        let kept = message_from_wire(&sent);
        // Through the journal's JSON and back.
        let read: Message = serde_json::from_str(&serde_json::to_string(&kept).unwrap()).unwrap();
        assert_eq!(message_to_wire(&read, "t1", "c1"), sent);
    }

    #[test]
    fn thoughts_and_calls_stay_inside() {
        let parts = [
            Part::Reasoning { text: "hm".into(), signature: None },
            Part::text("Hello"),
            Part::from(duologue_core::ToolCall::new("c", "t", json!({}))),
        ];
        assert_eq!(parts_to_wire(&parts), [a2a::Part::text("Hello")]);
    }
}
