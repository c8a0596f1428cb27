//! Asides: structured questions to the model beside the conversation.

use duologue_core::{OutputSchema, parameters_of};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{classify::Classification, meta::MetaLook, plan::PlanAnswer, validation::Validation};

/// How often an answer that does not fit is asked for again before a default is taken.
pub(crate) const MOST_TRIES: u32 = 3;

/// What the model is asked beside the conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Aside {
    Classification,
    Plan,
    Validation,
    Meta,
}

impl Aside {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Classification => "classification",
            Self::Plan => "plan",
            Self::Validation => "validation",
            Self::Meta => "meta",
        }
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        [Self::Classification, Self::Plan, Self::Validation, Self::Meta]
            .into_iter()
            .find(|aside| aside.name() == name)
    }
}

/// The shapes of all asides, made once.
#[derive(Clone, Debug)]
pub(crate) struct Shapes {
    classification: OutputSchema,
    plan: OutputSchema,
    validation: OutputSchema,
    meta: OutputSchema,
}

impl Shapes {
    /// The shapes for an agent with these tools. Where they are not known, a plan may name any.
    pub(crate) fn new(tools: &[String]) -> Self {
        let mut plan = parameters_of::<PlanAnswer>();
        if !tools.is_empty() {
            name_tools(&mut plan, tools);
        }
        close(&mut plan);
        Self {
            classification: shape::<Classification>(Aside::Classification),
            plan: OutputSchema { name: Aside::Plan.name().to_owned(), schema: plan.into() },
            validation: shape::<Validation>(Aside::Validation),
            meta: shape::<MetaLook>(Aside::Meta),
        }
    }

    pub(crate) fn of(&self, aside: Aside) -> &OutputSchema {
        match aside {
            Aside::Classification => &self.classification,
            Aside::Plan => &self.plan,
            Aside::Validation => &self.validation,
            Aside::Meta => &self.meta,
        }
    }
}

fn shape<A: JsonSchema>(aside: Aside) -> OutputSchema {
    let mut schema = parameters_of::<A>();
    close(&mut schema);
    OutputSchema { name: aside.name().to_owned(), schema: schema.into() }
}

/// Let a plan's steps name these tools, or none.
fn name_tools(schema: &mut Value, tools: &[String]) {
    match schema {
        Value::Object(fields) => {
            if let Some(Value::Object(tool)) =
                fields.get_mut("properties").and_then(|properties| properties.get_mut("tool"))
            {
                let names: Vec<&str> =
                    tools.iter().map(String::as_str).chain(std::iter::once("")).collect();
                tool.insert("enum".into(), names.into());
            }
            fields.values_mut().for_each(|value| name_tools(value, tools));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| name_tools(item, tools)),
        _ => {}
    }
}

/// Ask for every field and no other, which is what providers need to hold a model to a shape. The
/// answer is read more kindly than it is asked for.
fn close(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            if let Some(Value::Object(properties)) = fields.get("properties") {
                let names: Vec<Value> = properties.keys().cloned().map(Value::String).collect();
                fields.insert("required".into(), names.into());
                fields.insert("additionalProperties".into(), false.into());
                fields.remove("default");
            }
            for (_, field) in fields.iter_mut() {
                if let Some(inner) = field.as_object_mut() {
                    inner.remove("default");
                }
                close(field);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(close),
        _ => {}
    }
}

/// Read an answer. A fence around the JSON is what some models add, and is let pass.
pub(crate) fn read<A: DeserializeOwned>(text: &str) -> Result<A, String> {
    let text = text.trim();
    let text = text.strip_prefix("```json").or_else(|| text.strip_prefix("```")).unwrap_or(text);
    let text = text.strip_suffix("```").unwrap_or(text).trim();
    if text.is_empty() {
        return Err("the answer is empty".to_owned());
    }
    serde_json::from_str(text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn shapes_ask_for_every_field_and_no_other() {
        let schema = Shapes::new(&["read".to_owned()]).of(Aside::Plan).schema.clone();
        assert_eq!(schema["required"], json!(["reasoning", "steps"]));
        assert_eq!(schema["additionalProperties"], false);
        let step = &schema["properties"]["steps"]["items"];
        assert_eq!(step["required"], json!(["title", "tool"]));
        assert_eq!(step["properties"]["tool"].get("default"), None);
    }

    #[test]
    fn fenced_answers_are_read_and_prose_is_not() {
        let fenced = "```json\n{\"reasoning\": \"r\", \"steps\": [{\"title\": \"a\"}]}\n```";
        assert_eq!(read::<PlanAnswer>(fenced).unwrap().steps.len(), 1);
        let error = read::<Validation>("It is complete.").unwrap_err();
        assert!(error.contains("expected value"), "{error}");
    }
}
