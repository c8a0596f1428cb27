//! Reading requests as the protocol's JSON allows them to be written.

use a2a::A2AError;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, value::RawValue};

use crate::fault;

/// What holds names of somebody else's choice.
const OPAQUE: [&str; 4] = ["metadata", "data", "params", "header"];

/// A request from its JSON, or what is wrong with it. Fields may be named as JSON names them or as
/// the protocol's definition does, `contextId` or `context_id`.
pub(crate) fn read_request<T: DeserializeOwned>(json: Option<&RawValue>) -> Result<T, A2AError> {
    // Nearly all are as JSON names them, and read as they are.
    if let Some(json) = json
        && !has_underscored_name(json.get())
        && let Ok(request) = serde_json::from_str(json.get())
    {
        return Ok(request);
    }
    request_from(value_of(json)?)
}

/// The same from a tree.
pub(crate) fn request_from<T: DeserializeOwned>(json: Option<Value>) -> Result<T, A2AError> {
    let mut json = json.unwrap_or_else(|| Value::Object(Map::new()));
    rename(&mut json);
    serde_json::from_value(json).map_err(|error| fault::invalid("params", error.to_string()))
}

/// JSON as a tree.
pub(crate) fn value_of(json: Option<&RawValue>) -> Result<Option<Value>, A2AError> {
    json.map(|json| serde_json::from_str(json.get()))
        .transpose()
        .map_err(|error| fault::invalid("params", error.to_string()))
}

/// Whether a field of an object has an underscore in its name. What stands in it is JSON.
fn has_underscored_name(json: &str) -> bool {
    let mut rest = json.as_bytes();
    while let Some(start) = rest.iter().position(|byte| *byte == b'"') {
        let text = rest.get(start + 1..).unwrap_or_default();
        let mut is_escaped = false;
        let end = text.iter().position(|byte| {
            let is_end = *byte == b'"' && !is_escaped;
            is_escaped = *byte == b'\\' && !is_escaped;
            is_end
        });
        let (text, behind) = text.split_at(end.unwrap_or(text.len()));
        rest = behind.get(1..).unwrap_or_default();
        // An escape in a name may stand for an underscore.
        let is_odd = text.contains(&b'_') || text.contains(&b'\\');
        if is_odd && rest.trim_ascii_start().first() == Some(&b':') {
            return true;
        }
    }
    false
}

fn rename(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            if fields.keys().any(|name| name.contains('_')) {
                let old = std::mem::take(fields);
                for (name, value) in old {
                    // A name that is there in both ways counts as JSON spells it.
                    fields.entry(camel(&name)).or_insert(value);
                }
            }
            for (name, value) in fields.iter_mut() {
                if !OPAQUE.contains(&name.as_str()) {
                    rename(value);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(rename),
        _ => {}
    }
}

fn camel(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    let mut is_new_word = false;
    for c in name.chars() {
        if c == '_' {
            is_new_word = true;
        } else if is_new_word {
            out.extend(c.to_uppercase());
            is_new_word = false;
        } else {
            out.push(c);
        }
    }
    out
}

/// Data as it was meant: the protocol's own types hold every number as a double, and so 3 comes out
/// of some bindings as 3.0.
///
/// ```
/// use serde_json::json;
///
/// let told = json!({"count": 3.0, "mean": 0.5});
/// assert_eq!(duologue_a2a::whole_numbers(told), json!({"count": 3, "mean": 0.5}));
/// ```
pub fn whole_numbers(value: Value) -> Value {
    match value {
        Value::Number(number) => Value::Number(whole(&number).unwrap_or(number)),
        Value::Array(items) => items.into_iter().map(whole_numbers).collect(),
        Value::Object(fields) => {
            fields.into_iter().map(|(name, value)| (name, whole_numbers(value))).collect()
        }
        other => other,
    }
}

/// A double as a whole number, where it is one that doubles hold exactly.
fn whole(number: &serde_json::Number) -> Option<serde_json::Number> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let double = number.as_f64().filter(|_| number.is_f64())?;
    let is_whole = double.fract() == 0.0 && double.abs() <= EXACT;
    // It is whole and within bounds, so nothing is cut off.
    #[allow(clippy::cast_possible_truncation, reason = "it was looked at")]
    is_whole.then(|| (double as i64).into())
}

#[cfg(test)]
mod tests {
    use a2a::SendMessageRequest;
    use serde_json::json;

    use super::*;

    #[test]
    fn both_spellings_of_a_field_are_read_and_foreign_names_are_left_alone() {
        let json = json!({
            "message": {
                "message_id": "m",
                "contextId": "c",
                "role": "ROLE_USER",
                "parts": [{"data": {"my_key": 1}, "media_type": "application/json"}],
                "metadata": {"trace_id": "t"},
            },
            "configuration": {"history_length": 3},
        });
        let json = serde_json::value::to_raw_value(&json).unwrap();
        let request: SendMessageRequest = read_request(Some(&json)).unwrap();
        assert_eq!(request.message.message_id, "m");
        assert_eq!(request.configuration.unwrap().history_length, Some(3));
        let part = &request.message.parts[0];
        assert_eq!(part.media_type.as_deref(), Some("application/json"));
        assert_eq!(part.content, a2a::PartContent::Data(json!({"my_key": 1})));
        assert!(request.message.metadata.unwrap().contains_key("trace_id"));
    }

    #[test]
    fn an_underscore_counts_in_names_and_not_in_texts() {
        assert!(!has_underscored_name(r#"{"role": "ROLE_USER", "text": "a_b: \"c_d\":", "n": 1}"#));
        assert!(!has_underscored_name(r#"{"path": "C:\\", "list": ["x_y", {"z": "_"}]}"#));
        assert!(has_underscored_name(r#"{"a": {"message_id" : 1}}"#));
        assert!(has_underscored_name(r#"{"message\u005fid": 1}"#));
    }
}
