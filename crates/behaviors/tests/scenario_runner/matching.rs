//! Whether an entry is what a scenario describes.

use duologue_core::Entry;
use serde_json::{Value, json};

/// An entry as scenarios see it: its JSON, and `by`, the path of the agent.
pub fn seen(entry: &Entry, by: &str) -> Value {
    let mut value = serde_json::to_value(entry).unwrap();
    value["by"] = json!(by);
    value
}

/// A text alone is a kind, with who wrote it before a slash if that matters: `human/agent_message`.
/// Fields that are described must fit; others do not matter. A text that begins with `~` must be
/// contained.
pub fn fits(expected: &Value, seen: &Value) -> bool {
    match expected {
        Value::String(text) => match text.rsplit_once('/') {
            Some((by, kind)) => seen["by"] == by && seen["kind"] == kind,
            None => seen["kind"] == text.as_str(),
        },
        other => covers(other, seen),
    }
}

/// Whether a value has everything that is described.
pub fn covers(expected: &Value, found: &Value) -> bool {
    match (expected, found) {
        (Value::Object(expected), Value::Object(found)) => expected
            .iter()
            .all(|(key, value)| covers(value, found.get(key).unwrap_or(&Value::Null))),
        (Value::Array(expected), Value::Array(found)) => {
            expected.len() == found.len()
                && expected.iter().zip(found).all(|(one, other)| covers(one, other))
        }
        (Value::String(expected), found) if expected.starts_with('~') => {
            let text = found.as_str().map_or_else(|| found.to_string(), str::to_owned);
            text.contains(&expected[1..])
        }
        (Value::Number(one), Value::Number(other)) => one.as_f64() == other.as_f64(),
        (one, other) => one == other,
    }
}

/// A short line for one entry, for people who look for a difference.
pub fn line(seen: &Value) -> String {
    let mut fields = seen.as_object().cloned().unwrap_or_default();
    let seq = fields.remove("seq").unwrap_or_default();
    let by = fields.remove("by").unwrap_or_default();
    let kind = fields.remove("kind").unwrap_or_default();
    for noise in ["at", "run", "usage", "elapsed_ms", "model", "stop"] {
        fields.remove(noise);
    }
    let rest: String = Value::Object(fields).to_string().chars().take(220).collect();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    format!("{seq:>4} {}/{} {rest}", text(&by), text(&kind))
}
