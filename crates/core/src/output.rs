//! The shape of an answer that is written as JSON text.

use std::sync::Arc;

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

/// A shape that an answer must have.
///
/// ```
/// use duologue_core::{OutputSchema, parameters_of};
/// use schemars::JsonSchema;
/// use serde::Deserialize;
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Verdict {
///     #[serde(default)]
///     reason: String,
///     is_right: bool,
/// }
///
/// let shape = OutputSchema::strict("verdict", parameters_of::<Verdict>());
/// assert_eq!(shape.schema["required"], serde_json::json!(["reason", "is_right"]));
/// let verdict: Verdict = OutputSchema::read(r#"{"is_right": true}"#)?;
/// assert!(verdict.is_right);
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OutputSchema {
    /// A name for it; some providers want one.
    pub name: String,
    /// The JSON Schema.
    pub schema: Arc<Value>,
}

impl OutputSchema {
    /// A shape that asks for every field and no other, which is what providers need to hold a model
    /// to it. The answer is [read](Self::read) more kindly than it is asked for.
    pub fn strict(name: impl Into<String>, mut schema: Value) -> Self {
        close(&mut schema);
        Self { name: name.into(), schema: schema.into() }
    }

    /// Read an answer. A fence around the JSON is what some models add, and is let pass; nothing is
    /// read out of prose.
    pub fn read<A: DeserializeOwned>(text: &str) -> Result<A, String> {
        let text = text.trim();
        let fenced = text.strip_prefix("```json").or_else(|| text.strip_prefix("```"));
        let text = fenced.unwrap_or(text);
        let text = text.strip_suffix("```").unwrap_or(text).trim();
        if text.is_empty() {
            return Err("the answer is empty".to_owned());
        }
        serde_json::from_str(text).map_err(|error| error.to_string())
    }
}

fn close(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            fields.remove("default");
            if let Some(Value::Object(properties)) = fields.get("properties") {
                let names: Vec<Value> = properties.keys().cloned().map(Value::String).collect();
                fields.insert("required".to_owned(), names.into());
                fields.insert("additionalProperties".to_owned(), false.into());
            }
            fields.values_mut().for_each(close);
        }
        Value::Array(items) => items.iter_mut().for_each(close),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fenced_answers_are_read_and_prose_is_not() {
        assert_eq!(OutputSchema::read::<Value>("```json\n{\"a\": 1}\n```"), Ok(json!({"a": 1})));
        assert_eq!(OutputSchema::read::<Value>("```\n[]\n```"), Ok(json!([])));
        let said = OutputSchema::read::<Value>("It is complete.");
        assert!(said.is_err_and(|error| error.contains("expected value")));
        assert_eq!(OutputSchema::read::<Value>(" "), Err("the answer is empty".to_owned()));
    }
}
