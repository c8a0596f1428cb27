//! Cassettes: recorded exchanges with a model, one JSON line each.
//!
//! A request is kept in a canonical, readable shape: what the model sees, without ids that differ
//! from run to run. A line looks like this:
//!
//! ```json
//! {"model":"openai/gpt-4.1",
//!  "request":{"messages":[{"role":"user","parts":[{"type":"text","text":"hi"}]}]},
//!  "deltas":[{"text":"Hello."},{"stop":"completed"}]}
//! ```

use std::{collections::HashMap, time::Duration};

use duologue_core::{
    CUT_NOTE, CallId, Delta, ErrorClass, Message, ModelError, Options, Part, Request, StopReason,
    Usage,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// One line of a cassette.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Exchange {
    /// The model that answered, as `provider/model`.
    pub(crate) model: String,
    /// What it was asked, in canonical shape.
    pub(crate) request: Value,
    /// What it answered.
    pub(crate) deltas: Vec<RecordedDelta>,
    /// How it failed, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<RecordedError>,
}

/// A delta as a cassette keeps it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RecordedDelta {
    Text(String),
    Reasoning(String),
    ReasoningSignature(String),
    CallStart {
        index: usize,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<CallId>,
        name: String,
    },
    CallArguments {
        index: usize,
        fragment: String,
    },
    CallSignature {
        index: usize,
        signature: String,
    },
    Usage(Usage),
    Stop(StopReason),
}

/// An error as a cassette keeps it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct RecordedError {
    pub(crate) class: ErrorClass,
    pub(crate) message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) retry_after_ms: Option<u64>,
}

impl From<&Delta> for RecordedDelta {
    fn from(delta: &Delta) -> Self {
        match delta.clone() {
            Delta::Text(text) => Self::Text(text),
            Delta::Reasoning(text) => Self::Reasoning(text),
            Delta::ReasoningSignature(proof) => Self::ReasoningSignature(proof),
            Delta::CallStart { index, id, name } => Self::CallStart { index, id, name },
            Delta::CallArguments { index, fragment } => Self::CallArguments { index, fragment },
            Delta::CallSignature { index, signature } => Self::CallSignature { index, signature },
            Delta::Usage(usage) => Self::Usage(usage),
            Delta::Stop(stop) => Self::Stop(stop),
        }
    }
}

impl From<RecordedDelta> for Delta {
    fn from(delta: RecordedDelta) -> Self {
        match delta {
            RecordedDelta::Text(text) => Self::Text(text),
            RecordedDelta::Reasoning(text) => Self::Reasoning(text),
            RecordedDelta::ReasoningSignature(proof) => Self::ReasoningSignature(proof),
            RecordedDelta::CallStart { index, id, name } => Self::CallStart { index, id, name },
            RecordedDelta::CallArguments { index, fragment } => {
                Self::CallArguments { index, fragment }
            }
            RecordedDelta::CallSignature { index, signature } => {
                Self::CallSignature { index, signature }
            }
            RecordedDelta::Usage(usage) => Self::Usage(usage),
            RecordedDelta::Stop(stop) => Self::Stop(stop),
        }
    }
}

impl From<&ModelError> for RecordedError {
    fn from(error: &ModelError) -> Self {
        Self {
            class: error.class,
            message: error.message.to_string(),
            retry_after_ms: error
                .retry_after
                .map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)),
        }
    }
}

impl From<RecordedError> for ModelError {
    fn from(error: RecordedError) -> Self {
        let mut made = Self::new(error.class, error.message);
        made.retry_after = error.retry_after_ms.map(Duration::from_millis);
        made
    }
}

/// A request as a cassette keeps it: what the model sees of it, with calls numbered by their order.
pub(crate) fn canonical(request: &Request) -> Value {
    let mut names = CallNames::default();
    let messages: Vec<Value> =
        request.all_messages().map(|message| canonical_message(message, &mut names)).collect();
    let mut fields = Map::new();
    if let Some(system) = &request.system {
        fields.insert("system".to_owned(), json!(system));
    }
    fields.insert("messages".to_owned(), Value::Array(messages));
    if !request.tools.is_empty() {
        let tools = request.tools.iter().map(|tool| {
            json!({
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.parameters,
            })
        });
        fields.insert("tools".to_owned(), tools.collect());
    }
    if request.options != Options::default() {
        // Plain data: it cannot fail to become JSON.
        let options = serde_json::to_value(&request.options).unwrap_or_default();
        fields.insert("options".to_owned(), options);
    }
    sorted(Value::Object(fields))
}

fn canonical_message(message: &Message, names: &mut CallNames) -> Value {
    let parts = message.parts.iter().map(|part| match part {
        Part::ToolCall(call) => {
            let mut call = call.clone();
            call.id = names.of(&call.id);
            Part::ToolCall(call)
        }
        Part::ToolResult(result) => {
            let mut result = duologue_core::ToolResult::clone(result);
            let name = names.of(&result.call_id);
            for part in &mut result.content {
                rename_in_note(part, &result.call_id, &name);
            }
            result.call_id = name;
            Part::from(result)
        }
        other => other.clone(),
    });
    let mut fields = Map::new();
    fields.insert("role".to_owned(), json!(message.role));
    if let Some(name) = &message.name {
        fields.insert("name".to_owned(), json!(name));
    }
    fields.insert("parts".to_owned(), json!(parts.collect::<Vec<_>>()));
    Value::Object(fields)
}

/// The note of how to read on in a result that was cut names the call.
fn rename_in_note(part: &mut Part, id: &CallId, name: &CallId) {
    if let Part::Text { text } = part
        && let Some((kept, note)) = text.rsplit_once(CUT_NOTE)
    {
        *text = format!("{kept}{CUT_NOTE}{}", note.replace(id.as_str(), name.as_str()));
    }
}

/// Numbers call ids in the order in which they appear.
#[derive(Default)]
struct CallNames(HashMap<CallId, usize>);

impl CallNames {
    fn of(&mut self, id: &CallId) -> CallId {
        let next = self.0.len() + 1;
        let number = *self.0.entry(id.clone()).or_insert(next);
        CallId::from(format!("call-{number}"))
    }
}

/// The same value with the keys of every object in order, so that equal values are equal texts
/// however `serde_json` was built.
pub(crate) fn sorted(value: Value) -> Value {
    match value {
        Value::Array(items) => items.into_iter().map(sorted).collect(),
        Value::Object(fields) => {
            let mut fields: Vec<(String, Value)> = fields.into_iter().collect();
            fields.sort_by(|(a, _), (b, _)| a.cmp(b));
            fields.into_iter().map(|(key, item)| (key, sorted(item))).collect::<Map<_, _>>().into()
        }
        other => other,
    }
}

/// A canonical request as lines that a person can compare.
pub(crate) fn readable(request: &Value) -> String {
    let mut text = String::new();
    let mut line = |head: &str, body: &str| {
        let indented = body.replace('\n', "\n    ");
        text.push_str(&format!("{head}: {indented}\n"));
    };
    if let Some(system) = request.get("system").and_then(Value::as_str) {
        line("system", system);
    }
    for tool in list(request, "tools") {
        let name = tool.get("name").and_then(Value::as_str).unwrap_or_default();
        let description = tool.get("description").and_then(Value::as_str).unwrap_or_default();
        let parameters = tool.get("parameters").cloned().unwrap_or_default();
        line(&format!("tool {name}"), &format!("{description}\n{parameters}"));
    }
    for message in list(request, "messages") {
        let role = message.get("role").and_then(Value::as_str).unwrap_or_default();
        let who = match message.get("name").and_then(Value::as_str) {
            Some(name) => format!("{role} {name}"),
            None => role.to_owned(),
        };
        for part in list(message, "parts") {
            let (kind, body) = readable_part(part);
            line(&format!("{who}{kind}"), &body);
        }
    }
    if let Some(options) = request.get("options").and_then(Value::as_object) {
        for (name, value) in options {
            line(&format!("option {name}"), &value.to_string());
        }
    }
    text
}

fn readable_part(part: &Value) -> (String, String) {
    let text = |key: &str| part.get(key).and_then(Value::as_str).unwrap_or_default();
    match text("type") {
        "text" => (String::new(), text("text").to_owned()),
        "reasoning" => (" thinks".to_owned(), text("text").to_owned()),
        "tool_call" => (
            format!(" {} calls {}", text("id"), text("name")),
            part.get("arguments").cloned().unwrap_or_default().to_string(),
        ),
        "tool_result" => {
            let content: Vec<String> =
                list(part, "content").map(|part| readable_part(part).1).collect();
            (
                format!(" {} {} {}", text("call_id"), text("name"), text("status")),
                content.join("\n"),
            )
        }
        other => (format!(" {other}"), part.to_string()),
    }
}

fn list<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    value.get(key).and_then(Value::as_array).into_iter().flatten()
}
