//! Small truths about schemas and arguments that every wire needs.

use serde_json::{Value, json};

/// Whether a schema keeps the rules that providers demand before they enforce one to the letter:
/// every object lists all its properties as required and allows no others.
pub(crate) fn is_strict(schema: &Value) -> bool {
    match schema {
        Value::Object(fields) => {
            let unsupported =
                ["oneOf", "allOf", "not", "if", "patternProperties", "dependentRequired"];
            if unsupported.iter().any(|key| fields.contains_key(*key)) {
                return false;
            }
            if let Some(properties) = fields.get("properties") {
                let Some(properties) = properties.as_object() else {
                    return false;
                };
                let required: Vec<&str> = fields
                    .get("required")
                    .and_then(Value::as_array)
                    .map(|names| names.iter().filter_map(Value::as_str).collect())
                    .unwrap_or_default();
                let closed = fields.get("additionalProperties") == Some(&Value::Bool(false));
                if !closed || !properties.keys().all(|key| required.contains(&key.as_str())) {
                    return false;
                }
                if !properties.values().all(is_strict) {
                    return false;
                }
            } else if fields.get("type").and_then(Value::as_str) == Some("object") {
                return false;
            }
            ["items", "anyOf", "$defs", "definitions"]
                .iter()
                .filter_map(|key| fields.get(*key))
                .all(|inner| match inner {
                    Value::Array(items) => items.iter().all(is_strict),
                    Value::Object(defs)
                        if !defs.contains_key("type")
                            && !defs.contains_key("$ref")
                            && !defs.contains_key("anyOf") =>
                    {
                        defs.values().all(is_strict)
                    }
                    one => is_strict(one),
                })
        }
        Value::Bool(_) => false,
        _ => true,
    }
}

/// How arguments that were not JSON are shown to the model that wrote them. Every wire wants an
/// object here, and several servers refuse a conversation that has anything else.
pub(crate) fn invalid_arguments(text: &str) -> Value {
    json!({ "invalid_json": text })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_closed_schemas_with_everything_required_are_strict() {
        let closed = json!({"type": "object", "properties": {"a": {"type": "string"}},
            "required": ["a"], "additionalProperties": false});
        assert!(is_strict(&closed));
        assert!(is_strict(
            &json!({"type": "object", "properties": {"list": {"type": "array", "items": closed}},
            "required": ["list"], "additionalProperties": false, "$defs": {"x": closed}})
        ));
        for open in [
            json!({"type": "object", "properties": {"a": {}}, "required": ["a"]}),
            json!({"type": "object", "properties": {"a": {}}, "additionalProperties": false}),
            json!({"type": "object"}),
            json!({"type": "object", "properties": {"a": {"type": "object"}}, "required": ["a"], "additionalProperties": false}),
            json!({"oneOf": [{"type": "string"}]}),
            json!(true),
        ] {
            assert!(!is_strict(&open), "{open}");
        }
    }
}
