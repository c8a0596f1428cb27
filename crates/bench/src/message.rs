//! Messages of a simulation, in the reference's format. Unknown fields are kept.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Value;

/// Fields that this program does not know, kept for whoever reads the file next.
pub type Extra = BTreeMap<String, Value>;

/// Who asked for a tool call.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Requestor {
    /// The agent.
    #[default]
    Assistant,
    /// The simulated user.
    User,
}

impl Requestor {
    /// Its name in the format.
    pub fn name(self) -> &'static str {
        match self {
            Self::Assistant => "assistant",
            Self::User => "user",
        }
    }
}

/// One message of a trajectory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Message {
    /// Instructions.
    System(SystemMessage),
    /// The agent speaks or calls tools.
    Assistant(Utterance),
    /// The user speaks or calls tools.
    User(Utterance),
    /// A tool answers.
    Tool(ToolMessage),
}

/// Instructions that frame the conversation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SystemMessage {
    /// The text.
    #[serde(default)]
    pub content: Option<String>,
    /// Its place in the trajectory.
    #[serde(default)]
    pub turn_idx: Option<i64>,
    /// When it was made.
    #[serde(default)]
    pub timestamp: Option<String>,
    /// The rest.
    #[serde(flatten)]
    pub extra: Extra,
}

/// What a participant said or asked a tool for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Utterance {
    /// The text.
    #[serde(default)]
    pub content: Option<String>,
    /// The calls. An empty list counts as a tool call message, `None` does not.
    #[serde(default)]
    pub tool_calls: Option<Vec<ToolCall>>,
    /// Its place in the trajectory.
    #[serde(default)]
    pub turn_idx: Option<i64>,
    /// When it was made.
    #[serde(default)]
    pub timestamp: Option<String>,
    /// What it cost, in dollars.
    #[serde(default)]
    pub cost: Option<f64>,
    /// The tokens it took.
    #[serde(default)]
    pub usage: Option<Value>,
    /// What the provider sent.
    #[serde(default)]
    pub raw_data: Option<Value>,
    /// How long it took to make.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation_time_seconds: Option<f64>,
    /// The rest.
    #[serde(flatten)]
    pub extra: Extra,
}

/// A call of a tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Its id, which the answer repeats; may be empty.
    #[serde(default)]
    pub id: String,
    /// The tool.
    pub name: String,
    /// A dictionary of arguments.
    pub arguments: Value,
    /// Who asks.
    #[serde(default)]
    pub requestor: Requestor,
}

/// What a tool answered.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ToolMessage {
    /// The id of the call.
    pub id: String,
    /// The answer.
    #[serde(default)]
    pub content: Option<String>,
    /// Who asked.
    #[serde(default)]
    pub requestor: Requestor,
    /// Whether the call failed.
    #[serde(default)]
    pub error: bool,
    /// Its place in the trajectory.
    #[serde(default)]
    pub turn_idx: Option<i64>,
    /// When it was made.
    #[serde(default)]
    pub timestamp: Option<String>,
    /// The rest.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Several answers at once, one for each call of a message.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MultiToolMessage {
    /// The answers, in the order of the calls.
    pub tool_messages: Vec<ToolMessage>,
}

impl Utterance {
    /// A text.
    pub fn text(content: impl Into<String>) -> Self {
        Self { content: Some(content.into()), ..Self::default() }
    }

    /// Tool calls.
    pub fn calls(tool_calls: Vec<ToolCall>) -> Self {
        Self { tool_calls: Some(tool_calls), ..Self::default() }
    }

    /// Whether it says something.
    pub fn has_text(&self) -> bool {
        self.content.as_ref().is_some_and(|content| !content.trim().is_empty())
    }

    /// Whether it is a tool call message.
    pub fn is_tool_call(&self) -> bool {
        self.tool_calls.is_some()
    }
}

impl Message {
    /// When it was made.
    pub fn timestamp(&self) -> Option<&str> {
        match self {
            Self::System(message) => message.timestamp.as_deref(),
            Self::Assistant(message) | Self::User(message) => message.timestamp.as_deref(),
            Self::Tool(message) => message.timestamp.as_deref(),
        }
    }

    /// The tool calls of a participant's message; none for other messages.
    pub fn tool_calls(&self) -> &[ToolCall] {
        match self {
            Self::Assistant(message) | Self::User(message) => {
                message.tool_calls.as_deref().unwrap_or_default()
            }
            Self::System(_) | Self::Tool(_) => &[],
        }
    }

    /// The text.
    pub fn content(&self) -> Option<&str> {
        match self {
            Self::System(message) => message.content.as_deref(),
            Self::Assistant(message) | Self::User(message) => message.content.as_deref(),
            Self::Tool(message) => message.content.as_deref(),
        }
    }

    /// Sets its place in the trajectory.
    pub fn set_turn(&mut self, turn: i64) {
        *match self {
            Self::System(message) => &mut message.turn_idx,
            Self::Assistant(message) | Self::User(message) => &mut message.turn_idx,
            Self::Tool(message) => &mut message.turn_idx,
        } = Some(turn);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_keep_what_is_not_known() {
        let text = r#"{"role":"assistant","content":null,"tool_calls":[{"id":"1","name":"f","arguments":{"b":1,"a":2.0},"requestor":"assistant"}],"turn_idx":2,"timestamp":null,"cost":0.5,"usage":null,"raw_data":{"x":[1]},"reasoning":"because"}"#;
        let message: Message = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&message).unwrap(), text);
        assert_eq!(message.tool_calls()[0].name, "f");
    }
}
