//! Asides: structured questions to the model beside the conversation.

use duologue_core::{OutputSchema, parameters_of};
use schemars::JsonSchema;
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
        Self {
            classification: shape::<Classification>(Aside::Classification),
            plan: OutputSchema::strict(Aside::Plan.name(), plan),
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
    OutputSchema::strict(aside.name(), parameters_of::<A>())
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
}
