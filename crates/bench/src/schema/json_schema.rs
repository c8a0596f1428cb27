//! JSON Schemas as pydantic writes them, from the same tables.

use serde_json::{Map, Value as Json, json};

use super::{Default, Field, Model, Type};
use crate::python::title_case;

/// The schema of a tool's parameters.
pub fn parameters(fields: &[Field]) -> Json {
    let mut definitions = Map::new();
    let mut schema = object("parameters", fields, &mut definitions);
    if !definitions.is_empty() {
        schema.insert("$defs".to_owned(), Json::Object(definitions));
    }
    Json::Object(schema)
}

fn object(title: &str, fields: &[Field], definitions: &mut Map<String, Json>) -> Map<String, Json> {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for field in fields {
        if matches!(field.default, Default::Required) {
            required.push(Json::from(field.name));
        }
        properties.insert(field.name.to_owned(), property(field, definitions));
    }
    let mut schema = Map::new();
    schema.insert("properties".to_owned(), Json::Object(properties));
    if !required.is_empty() {
        schema.insert("required".to_owned(), Json::Array(required));
    }
    schema.insert("title".to_owned(), title.into());
    schema.insert("type".to_owned(), "object".into());
    schema
}

fn property(field: &Field, definitions: &mut Map<String, Json>) -> Json {
    let mut schema = of_type(&field.ty, definitions);
    if let Some(entries) = schema.as_object_mut() {
        if let Some(default) = field.default.value(&field.ty)
            && !matches!(field.default, Default::Made(_) | Default::Model)
        {
            entries.insert("default".to_owned(), serde_json::to_value(default).unwrap_or_default());
        }
        if !field.description.is_empty() {
            entries.insert("description".to_owned(), field.description.into());
        }
        if !entries.contains_key("$ref") {
            entries.insert("title".to_owned(), title_case(field.name).into());
        }
    }
    schema
}

fn of_type(ty: &Type, definitions: &mut Map<String, Json>) -> Json {
    match ty {
        Type::Any => json!({}),
        Type::Str => json!({"type": "string"}),
        Type::Int => json!({"type": "integer"}),
        Type::Float => json!({"type": "number"}),
        Type::Bool => json!({"type": "boolean"}),
        Type::Date => json!({"type": "string", "format": "date"}),
        Type::DateTime => json!({"type": "string", "format": "date-time"}),
        Type::Literal([only]) => json!({"type": "string", "const": only}),
        Type::Literal(texts) => json!({"type": "string", "enum": texts}),
        Type::Enum(name, texts) => define(name, definitions, |_| {
            let entries = json!({"title": name, "type": "string", "enum": texts});
            entries.as_object().cloned().unwrap_or_default()
        }),
        Type::Optional(inner) => {
            json!({"anyOf": [of_type(inner, definitions), {"type": "null"}]})
        }
        Type::List(inner) => json!({"type": "array", "items": of_type(inner, definitions)}),
        Type::Dict(inner) => {
            json!({"type": "object", "additionalProperties": of_type(inner, definitions)})
        }
        Type::Keyed(keys, inner) => json!({
            "type": "object",
            "propertyNames": {"enum": keys},
            "additionalProperties": of_type(inner, definitions),
        }),
        Type::Object => json!({"type": "object", "additionalProperties": true}),
        Type::Model(model) => {
            define(model.name, definitions, |definitions| model_schema(model, definitions))
        }
        Type::Union(types) => {
            let types: Vec<Json> = types.iter().map(|ty| of_type(ty, definitions)).collect();
            json!({"anyOf": types})
        }
    }
}

fn model_schema(model: &Model, definitions: &mut Map<String, Json>) -> Map<String, Json> {
    let mut schema = object(model.name, model.fields, definitions);
    if model.extra == super::Extra::Forbid {
        schema.insert("additionalProperties".to_owned(), false.into());
    }
    schema
}

fn define(
    name: &str,
    definitions: &mut Map<String, Json>,
    schema: impl FnOnce(&mut Map<String, Json>) -> Map<String, Json>,
) -> Json {
    if !definitions.contains_key(name) {
        // The place is taken first, so that a record may contain itself.
        definitions.insert(name.to_owned(), Json::Null);
        let schema = schema(definitions);
        definitions.insert(name.to_owned(), Json::Object(schema));
    }
    json!({"$ref": format!("#/$defs/{name}")})
}
