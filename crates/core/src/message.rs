//! Messages: what the parties of a conversation say to each other, in typed parts.

use std::{fmt, sync::Arc};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{CallId, MessageId, Metadata};

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Instructions that frame the conversation.
    System,
    /// The person, or whoever stands in their place.
    User,
    /// The agent.
    Assistant,
    /// The results of tools.
    Tool,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
        })
    }
}

/// One message of a conversation.
///
/// ```
/// use duologue_core::{Message, Part, Role};
///
/// let message = Message::user("What is in this file?").with_name("ada");
/// assert_eq!(message.role, Role::User);
/// assert_eq!(message.text(), "What is in this file?");
/// let json = serde_json::to_string(&message)?;
/// assert_eq!(serde_json::from_str::<Message>(&json)?, message);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// Unique in its session.
    pub id: MessageId,
    /// Who speaks.
    pub role: Role,
    /// The speaker's name, where several share a role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What is said.
    pub parts: Vec<Part>,
    /// What a protocol or an application attached; never shown to a model.
    #[serde(default, skip_serializing_if = "Metadata::is_empty")]
    pub metadata: Metadata,
}

/// One piece of a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Part {
    /// Plain text.
    Text {
        /// The text.
        text: String,
    },
    /// What a model thought before it spoke.
    Reasoning {
        /// The thought.
        text: String,
        /// The provider's proof that the thought is its own, to be sent back unchanged.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<String>,
    },
    /// A model asks for a tool.
    ToolCall(Box<ToolCall>),
    /// What a tool answered.
    ToolResult(Arc<ToolResult>),
    /// A structured value.
    Data {
        /// The value.
        value: Value,
    },
    /// A file or an image.
    File {
        /// Its media type, such as `image/png`.
        media_type: String,
        /// Its name, where it has one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// Where its bytes are.
        source: FileSource,
    },
}

/// Where the bytes of a file are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileSource {
    /// Here, in base 64.
    Base64(String),
    /// At an address.
    Url(String),
}

/// A model's wish to use a tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Unique in its session; results and approvals refer to it.
    pub id: CallId,
    /// Which tool.
    pub name: String,
    /// With what. A text instead of an object is what the model sent when it was not valid JSON.
    pub arguments: Value,
    /// The provider's signature over the call, to be sent back unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
}

impl ToolCall {
    /// A call with arguments that are already parsed.
    pub fn new(id: impl Into<CallId>, name: impl Into<String>, arguments: Value) -> Self {
        Self { id: id.into(), name: name.into(), arguments, signature: None }
    }

    /// A call as a model streams it: its arguments as JSON text. Text that does not parse is kept
    /// as it is; the call then gets an `invalid` result that tells the model so.
    pub fn from_json_text(id: impl Into<CallId>, name: impl Into<String>, text: &str) -> Self {
        let arguments = if text.trim().is_empty() {
            Value::Object(serde_json::Map::new())
        } else {
            serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))
        };
        // Parsing leaves room for more keys; a call is kept for as long as the conversation.
        let arguments = match arguments {
            Value::Object(fields) => Value::Object(fields.into_iter().collect()),
            other => other,
        };
        Self::new(id, name, arguments)
    }
}

/// How a tool call ended. Every call ends in exactly one of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolStatus {
    /// The tool did its work.
    Ok,
    /// The tool ran and failed.
    Error,
    /// The call did not fit the tool, so nothing ran.
    Invalid,
    /// A rule or a person said no, so nothing ran.
    Denied,
    /// The agent went another way before it ran.
    Skipped,
    /// The turn was cancelled while it ran or before.
    Cancelled,
    /// It ran longer than its timeout.
    TimedOut,
    /// The process died while it ran, and running it again could do harm: the outcome is unknown.
    Interrupted,
}

impl fmt::Display for ToolStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ok => "ok",
            Self::Error => "error",
            Self::Invalid => "invalid",
            Self::Denied => "denied",
            Self::Skipped => "skipped",
            Self::Cancelled => "cancelled",
            Self::TimedOut => "timed out",
            Self::Interrupted => "interrupted",
        })
    }
}

/// The answer to one tool call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolResult {
    /// The call that this answers.
    pub call_id: CallId,
    /// The tool's name.
    pub name: String,
    /// How it ended.
    pub status: ToolStatus,
    /// What it said, whole: text, data or files.
    pub content: Vec<Part>,
}

impl ToolResult {
    /// A result that is one text.
    pub fn text(call: &ToolCall, status: ToolStatus, text: impl Into<String>) -> Self {
        Self {
            call_id: call.id.clone(),
            name: call.name.clone(),
            status,
            content: vec![Part::text(text)],
        }
    }

    /// The content as a model reads it: texts as they are, data as JSON, files by name.
    pub fn prompt_text(&self) -> String {
        match self.content.as_slice() {
            [Part::Text { text }] => text.clone(),
            parts => {
                let texts: Vec<String> = parts.iter().map(Part::prompt_text).collect();
                texts.join("\n")
            }
        }
    }
}

impl Part {
    /// A text part.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }

    /// A data part.
    pub fn data(value: impl Into<Value>) -> Self {
        Self::Data { value: value.into() }
    }

    /// The part as a model reads it inside a text.
    fn prompt_text(&self) -> String {
        match self {
            Self::Text { text } | Self::Reasoning { text, .. } => text.clone(),
            Self::Data { value } => value.to_string(),
            Self::File { media_type, name, .. } => {
                format!("[file {} ({media_type})]", name.as_deref().unwrap_or("unnamed"))
            }
            Self::ToolCall(call) => format!("[call {} {}]", call.name, call.arguments),
            Self::ToolResult(result) => result.prompt_text(),
        }
    }

    /// About how many bytes of text a model reads for this part.
    fn prompt_bytes(&self) -> usize {
        match self {
            Self::Text { text } | Self::Reasoning { text, .. } => text.len(),
            Self::Data { value } => json_bytes(value),
            // Providers bill an image at about this much, whatever its bytes.
            Self::File { .. } => 4_000,
            Self::ToolCall(call) => call.name.len() + json_bytes(&call.arguments) + 16,
            Self::ToolResult(result) => {
                result.content.iter().map(Self::prompt_bytes).sum::<usize>() + 16
            }
        }
    }
}

impl From<ToolCall> for Part {
    fn from(call: ToolCall) -> Self {
        Self::ToolCall(Box::new(call))
    }
}

impl From<ToolResult> for Part {
    fn from(result: ToolResult) -> Self {
        Self::ToolResult(Arc::new(result))
    }
}

impl Message {
    /// A message of one role and parts, with a new id.
    pub fn new(role: Role, parts: Vec<Part>) -> Self {
        Self { id: MessageId::random(), role, name: None, parts, metadata: Metadata::new() }
    }

    /// A user's text.
    pub fn user(text: impl Into<String>) -> Self {
        Self::new(Role::User, vec![Part::text(text)])
    }

    /// An agent's text.
    pub fn assistant(text: impl Into<String>) -> Self {
        Self::new(Role::Assistant, vec![Part::text(text)])
    }

    /// The same message with a speaker's name.
    #[must_use]
    pub fn with_name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// All text parts, joined.
    pub fn text(&self) -> String {
        let mut texts = self.parts.iter().filter_map(|part| match part {
            Part::Text { text } => Some(text.as_str()),
            _ => None,
        });
        let first = texts.next().unwrap_or_default().to_owned();
        texts.fold(first, |all, text| all + text)
    }

    /// All reasoning parts, joined.
    pub fn reasoning(&self) -> String {
        self.parts
            .iter()
            .filter_map(|part| match part {
                Part::Reasoning { text, .. } => Some(text.as_str()),
                _ => None,
            })
            .collect()
    }

    /// The tool calls in it, in order.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.parts.iter().filter_map(|part| match part {
            Part::ToolCall(call) => Some(&**call),
            _ => None,
        })
    }

    /// The answer that was given by calling the tool of an [`Expectation`](crate::Expectation).
    pub fn structured(&self, name: &str) -> Option<&Value> {
        self.tool_calls()
            .find(|call| call.name == name && call.arguments.is_object())
            .map(|call| &call.arguments)
    }

    /// The tool results in it, in order.
    pub fn tool_results(&self) -> impl Iterator<Item = &ToolResult> {
        self.parts.iter().filter_map(|part| match part {
            Part::ToolResult(result) => Some(&**result),
            _ => None,
        })
    }

    /// An estimate of the tokens that the message takes in a prompt: four bytes each, and a few
    /// for the frame. It only steers trimming; bills and budgets use what the provider counted.
    pub fn estimated_tokens(&self) -> u64 {
        let bytes: usize = self.parts.iter().map(Part::prompt_bytes).sum();
        (bytes as u64).div_ceil(4) + 4
    }
}

impl From<&str> for Message {
    fn from(text: &str) -> Self {
        Self::user(text)
    }
}

impl From<String> for Message {
    fn from(text: String) -> Self {
        Self::user(text)
    }
}

/// The length of a value's JSON without writing it.
fn json_bytes(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) => 4,
        Value::Number(_) => 6,
        Value::String(text) => text.len() + 2,
        Value::Array(items) => items.iter().map(|item| json_bytes(item) + 1).sum::<usize>() + 2,
        Value::Object(fields) => {
            fields.iter().map(|(key, item)| key.len() + json_bytes(item) + 4).sum::<usize>() + 2
        }
    }
}
