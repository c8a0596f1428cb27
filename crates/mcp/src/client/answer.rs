//! What a server asks the person, as a question in words, and the answer, as the server wants it.

use duologue_core::Part;
use duologue_tools::Schema;
use rmcp::model::{ElicitRequestParams, ElicitResult, ElicitationAction};
use serde_json::{Map, Value};

/// A question of a server: a few fields to fill in, or a page to go to.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Form {
    message: String,
    kind: Kind,
}

#[derive(Clone, Debug, PartialEq)]
enum Kind {
    Fields(Value),
    Page(String),
}

impl Form {
    pub(super) fn new(request: ElicitRequestParams) -> Self {
        match request {
            ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } => {
                let schema = serde_json::to_value(requested_schema).unwrap_or_default();
                Self { message, kind: Kind::Fields(schema) }
            }
            ElicitRequestParams::UrlElicitationParams { message, url, .. } => {
                Self { message, kind: Kind::Page(url) }
            }
            // A later kind of question: the person may still say yes or no.
            _ => Self { message: String::new(), kind: Kind::Fields(Value::Null) },
        }
    }

    /// The question, with what an answer must look like.
    pub(super) fn question(&self, server: &str) -> String {
        let mut text = format!("{server} asks: {}", self.message);
        match &self.kind {
            Kind::Page(url) => {
                text.push_str(&format!("\nGo to {url}, then answer yes; no declines."));
            }
            Kind::Fields(_) => match self.fields().as_slice() {
                [] => text.push_str("\nAnswer yes or no."),
                [one] => {
                    let about = about(one);
                    if !about.is_empty() {
                        text.push_str(&format!("\n{}: {about}", one.0));
                    }
                }
                many => {
                    text.push_str("\nAnswer with one line for each, such as \"name: value\":");
                    for field in many {
                        let must = if self.is_required(field.0) { "" } else { " (optional)" };
                        text.push_str(&format!("\n- {}{must}: {}", field.0, about(field)));
                    }
                }
            },
        }
        text
    }

    /// Answers to choose from, where there are few.
    pub(super) fn choices(&self) -> Vec<String> {
        match (&self.kind, self.fields().as_slice()) {
            (Kind::Page(_), _) | (_, []) => vec!["yes".to_owned(), "no".to_owned()],
            (_, [(_, schema)]) => options(schema),
            _ => Vec::new(),
        }
    }

    /// What the server gets for an answer; why not, where it does not fit.
    pub(super) fn read(&self, answer: Option<&[Part]>) -> Result<ElicitResult, String> {
        let Some(parts) = answer else {
            return Ok(ElicitResult::new(ElicitationAction::Decline));
        };
        let accepted =
            |content: Value| ElicitResult::new(ElicitationAction::Accept).with_content(content);
        let given = parts.iter().find_map(|part| match part {
            Part::Data { value: Value::Object(fields) } => Some(fields.clone()),
            _ => None,
        });
        let text: String = parts.iter().filter_map(text_of).collect::<Vec<_>>().join("\n");
        let text = text.trim();
        let fields = self.fields();
        if matches!(self.kind, Kind::Page(_)) || fields.is_empty() {
            return match yes_or_no(text) {
                Some(false) => Ok(ElicitResult::new(ElicitationAction::Decline)),
                Some(true) if fields.is_empty() && matches!(self.kind, Kind::Fields(_)) => {
                    Ok(accepted(Value::Object(Map::new())))
                }
                Some(true) => Ok(ElicitResult::new(ElicitationAction::Accept)),
                None => Err("answer yes or no".to_owned()),
            };
        }
        let values = match (given, fields.as_slice()) {
            (Some(values), _) => values,
            (None, [(name, schema)]) if !text.starts_with('{') => {
                Map::from_iter([((*name).to_owned(), typed(text, schema))])
            }
            (None, fields) => read_lines(text, fields)?,
        };
        let content = Value::Object(values);
        let Kind::Fields(schema) = &self.kind else { return Ok(accepted(content)) };
        // A schema that cannot be used is the server's fault; it checks what it gets itself.
        if let Ok(schema) = Schema::compile(schema) {
            schema.check(&content)?;
        }
        Ok(accepted(content))
    }

    fn fields(&self) -> Vec<(&str, &Value)> {
        let Kind::Fields(schema) = &self.kind else { return Vec::new() };
        let properties = schema.get("properties").and_then(Value::as_object);
        properties.into_iter().flatten().map(|(name, schema)| (name.as_str(), schema)).collect()
    }

    fn is_required(&self, name: &str) -> bool {
        let Kind::Fields(schema) = &self.kind else { return false };
        let required = schema.get("required").and_then(Value::as_array);
        required.into_iter().flatten().any(|field| field == name)
    }
}

fn text_of(part: &Part) -> Option<&str> {
    match part {
        Part::Text { text } => Some(text),
        _ => None,
    }
}

/// A field's description, type and options in words.
fn about((name, schema): &(&str, &Value)) -> String {
    let word = |key: &str| schema.get(key).and_then(Value::as_str).unwrap_or_default();
    let mut words: Vec<String> = Vec::new();
    for key in ["title", "description"] {
        if !word(key).is_empty() && word(key) != *name {
            words.push(word(key).to_owned());
        }
    }
    let options = options(schema);
    if !options.is_empty() {
        words.push(format!("one of {}", options.join(", ")));
    } else if !matches!(word("type"), "" | "string") {
        words.push(word("type").to_owned());
    } else if !word("format").is_empty() {
        words.push(word("format").to_owned());
    }
    words.join("; ")
}

/// The values that a field can have, where they are listed.
fn options(schema: &Value) -> Vec<String> {
    if schema.get("type").and_then(Value::as_str) == Some("boolean") {
        return vec!["yes".to_owned(), "no".to_owned()];
    }
    let listed = schema.get("enum").and_then(Value::as_array);
    let listed = listed.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned);
    let named = ["oneOf", "anyOf"].iter().filter_map(|key| schema.get(*key)?.as_array()).flatten();
    let named = named.filter_map(|option| Some(option.get("const")?.as_str()?.to_owned()));
    listed.chain(named).collect()
}

/// A text as the value that a field wants. What cannot be one stays text; the check says why.
fn typed(text: &str, schema: &Value) -> Value {
    let text = text.trim();
    let as_text = || Value::String(text.to_owned());
    match schema.get("type").and_then(Value::as_str) {
        Some("boolean") => yes_or_no(text).map_or_else(as_text, Value::Bool),
        Some("integer" | "number") => {
            let number = serde_json::from_str::<Value>(text).ok().filter(Value::is_number);
            number.unwrap_or_else(as_text)
        }
        Some("array") => {
            let items = schema.get("items").unwrap_or(&Value::Null);
            match serde_json::from_str::<Value>(text) {
                Ok(list @ Value::Array(_)) => list,
                _ => text.split(',').map(|item| typed(item, items)).collect(),
            }
        }
        _ => as_text(),
    }
}

fn yes_or_no(text: &str) -> Option<bool> {
    match text.trim().to_lowercase().as_str() {
        "y" | "yes" | "true" | "ok" | "accept" => Some(true),
        "n" | "no" | "false" | "decline" => Some(false),
        _ => None,
    }
}

/// Several fields at once: as a JSON object, or a line for each.
fn read_lines(text: &str, fields: &[(&str, &Value)]) -> Result<Map<String, Value>, String> {
    if let Ok(Value::Object(values)) = serde_json::from_str(text) {
        return Ok(values);
    }
    let mut values = Map::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let split = line.split_once(':').or_else(|| line.split_once('='));
        let Some((name, value)) = split else {
            return Err(format!("\"{line}\" is not of the form \"name: value\""));
        };
        let name = name.trim().trim_start_matches("- ");
        let Some((known, schema)) =
            fields.iter().find(|(field, _)| field.eq_ignore_ascii_case(name))
        else {
            let known: Vec<&str> = fields.iter().map(|(field, _)| *field).collect();
            return Err(format!("there is no \"{name}\"; asked for are {}", known.join(", ")));
        };
        values.insert((*known).to_owned(), typed(value, schema));
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn form(schema: Value) -> Form {
        Form { message: "Who are you?".to_owned(), kind: Kind::Fields(schema) }
    }

    fn content(form: &Form, text: &str) -> Result<Value, String> {
        let parts = [Part::text(text)];
        form.read(Some(&parts)).map(|result| result.content.unwrap_or_default())
    }

    #[test]
    fn one_field_takes_the_answer_as_it_is() {
        let age = form(json!({"type": "object", "required": ["age"],
            "properties": {"age": {"type": "integer", "minimum": 1}}}));
        assert_eq!(age.question("bank"), "bank asks: Who are you?\nage: integer");
        assert_eq!(content(&age, " 42 "), Ok(json!({"age": 42})));
        assert!(content(&age, "old").unwrap_err().contains("expected integer"));
        let sure = form(json!({"type": "object", "properties": {"sure": {"type": "boolean"}}}));
        assert_eq!(sure.choices(), ["yes", "no"]);
        assert_eq!(content(&sure, "Yes"), Ok(json!({"sure": true})));
        let declined = sure.read(None).unwrap();
        assert_eq!(declined.action, ElicitationAction::Decline);
    }

    #[test]
    fn several_fields_take_lines_or_json() {
        let form = form(json!({"type": "object", "required": ["name"], "properties": {
            "name": {"type": "string", "description": "your name"},
            "size": {"type": "string", "enum": ["s", "m"]},
            "tags": {"type": "array", "items": {"type": "string"}}}}));
        assert!(form.question("shop").ends_with(
            "\n- name: your name\n- size (optional): one of s, m\n- tags (optional): array"
        ));
        let expected = json!({"name": "Ada", "size": "m", "tags": ["a", " b"]});
        let said = content(&form, "Name: Ada\nsize = m\ntags: a, b").unwrap();
        assert_eq!(said, json!({"name": "Ada", "size": "m", "tags": ["a", "b"]}));
        assert_eq!(content(&form, &expected.to_string()), Ok(expected));
        assert!(content(&form, "size: m").unwrap_err().contains("name: missing"));
        assert!(content(&form, "shoe: 7").unwrap_err().contains("asked for are name, size"));
    }
}
