//! Argument checks for tools whose JSON Schema is data: those of MCP servers and of other
//! outside parties, which no Rust type describes.

use std::{future::Future, sync::Arc};

use duologue_core::{Content, Tool, ToolContext, ToolError, ToolOutput, ToolSpec};
use futures::future::BoxFuture;
use jsonschema::{
    PatternOptions, ValidationError, Validator,
    error::{TypeKind, ValidationErrorKind as Kind},
    paths::{Location, LocationSegment},
};
use serde_json::Value;

use crate::suggest::did_you_mean;

/// A model that is told five mistakes mends them; a list of a hundred only fills its prompt.
const MOST_ERRORS: usize = 5;
/// How much of a value an error shows.
const SHOWN_CHARS: usize = 60;
/// How deep the branches of `anyOf` and `oneOf` are explained.
const BRANCH_DEPTH: usize = 2;
/// Patterns come from outside: one that backtracks for ever is an error, not a stopped agent.
const BACKTRACK_LIMIT: usize = 100_000;

/// A JSON Schema, compiled once.
///
/// References to other documents are refused: a schema cannot make this process read a file or
/// an address.
#[derive(Debug)]
pub struct Schema {
    source: Value,
    validator: Validator,
}

/// A schema that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the JSON Schema cannot be used: {0}")]
pub struct SchemaError(pub String);

impl Schema {
    /// Compile a schema.
    pub fn compile(schema: &Value) -> Result<Self, SchemaError> {
        let patterns = PatternOptions::fancy_regex().backtrack_limit(BACKTRACK_LIMIT);
        let validator = jsonschema::options()
            .offline()
            .with_pattern_options(patterns)
            .build(schema)
            .map_err(|error| SchemaError(describe_own_fault(&error)))?;
        Ok(Self { source: schema.clone(), validator })
    }

    /// Whether a value fits. The error says where, what was expected and what came, for a model
    /// that may try again.
    pub fn check(&self, value: &Value) -> Result<(), String> {
        let mut errors = self.validator.iter_errors(value);
        let mut lines: Vec<String> = Vec::new();
        for error in errors.by_ref().take(MOST_ERRORS) {
            lines.push(self.describe(&error, BRANCH_DEPTH));
        }
        if lines.is_empty() {
            return Ok(());
        }
        if errors.next().is_some() {
            lines.push("and more".to_owned());
        }
        Err(lines.join("\n"))
    }

    fn describe(&self, error: &ValidationError<'_>, depth: usize) -> String {
        let path = path_of(error.instance_path());
        let came = show(error.instance());
        match error.kind() {
            Kind::Required { property } => {
                let name = property.as_str().unwrap_or_default();
                format!("{}: missing, but required", join(&path, name))
            }
            Kind::Type { kind } => at(&path, &format!("expected {}, got {came}", types(kind))),
            Kind::Enum { options } => {
                let allowed: Vec<String> = match options.as_array() {
                    Some(options) => options.iter().take(20).map(Value::to_string).collect(),
                    None => vec![options.to_string()],
                };
                at(&path, &format!("expected one of {}, got {came}", allowed.join(", ")))
            }
            Kind::Constant { expected_value } => {
                at(&path, &format!("expected {expected_value}, got {came}"))
            }
            Kind::AdditionalProperties { unexpected }
            | Kind::UnevaluatedProperties { unexpected } => {
                let known = self.known_fields(error.schema_path());
                let unknown: Vec<String> = unexpected
                    .iter()
                    .take(MOST_ERRORS)
                    .map(|name| {
                        let hint = did_you_mean(name, known.iter().map(String::as_str));
                        format!("{}: unknown field{hint}", join(&path, &clip(name)))
                    })
                    .collect();
                unknown.join("\n")
            }
            Kind::AnyOf { context } | Kind::OneOfNotValid { context } if depth > 0 => {
                let mut text = format!("{came} fits none of the {} allowed forms", context.len());
                for (number, branch) in context.iter().enumerate().take(MOST_ERRORS) {
                    if let Some(first) = branch.first() {
                        let why = self.describe(first, depth - 1);
                        text.push_str(&format!("\n  form {}: {why}", number + 1));
                    }
                }
                at(&path, &text)
            }
            _ => at(&path, &error.masked_with(came).to_string()),
        }
    }

    /// The fields that the schema beside this `additionalProperties` names.
    fn known_fields(&self, keyword: &Location) -> Vec<String> {
        let parent = keyword.as_str().rsplit_once('/').map_or("", |(parent, _)| parent);
        self.source
            .pointer(parent)
            .and_then(|schema| schema.get("properties")?.as_object())
            .map(|fields| fields.keys().cloned().collect())
            .unwrap_or_default()
    }
}

/// Whether a value fits a schema that is used only once. A tool that is called often should keep
/// a compiled [`Schema`].
///
/// ```
/// use duologue_tools::check_schema;
/// use serde_json::json;
///
/// let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}});
/// let error = check_schema(&schema, &json!({"city": 7})).unwrap_err();
/// assert_eq!(error, "city: expected string, got the number 7");
/// ```
pub fn check_schema(schema: &Value, value: &Value) -> Result<(), String> {
    Schema::compile(schema).map_err(|error| error.to_string())?.check(value)
}

/// A tool whose parameters are a JSON Schema from elsewhere. Made by [`schema_tool`].
pub struct SchemaTool<F> {
    spec: Arc<ToolSpec>,
    schema: Schema,
    function: F,
}

/// A tool from its description as data and a function that carries its calls out.
///
/// ```
/// use duologue_core::{Tool, ToolSpec};
/// use duologue_tools::schema_tool;
/// use serde_json::{Value, json};
///
/// let schema = json!({
///     "type": "object",
///     "properties": {"city": {"type": "string"}},
///     "required": ["city"],
/// });
/// let spec = ToolSpec::new("weather", "The weather in a city.", schema);
/// let weather = schema_tool(spec, |arguments: Value, _| async move {
///     Ok(format!("It rains in {}.", arguments["city"]))
/// })?;
/// assert_eq!(weather.check(&json!({})), Err("city: missing, but required".to_owned()));
/// # Ok::<(), duologue_tools::SchemaError>(())
/// ```
pub fn schema_tool<F, Fut, C>(spec: ToolSpec, function: F) -> Result<SchemaTool<F>, SchemaError>
where
    F: Fn(Value, ToolContext) -> Fut + Send + Sync,
    Fut: Future<Output = Result<C, ToolError>> + Send,
    C: Into<Content>,
{
    let schema = Schema::compile(&spec.parameters)?;
    Ok(SchemaTool { spec: Arc::new(spec), schema, function })
}

impl<F, Fut, C> Tool for SchemaTool<F>
where
    F: Fn(Value, ToolContext) -> Fut + Send + Sync,
    Fut: Future<Output = Result<C, ToolError>> + Send,
    C: Into<Content>,
{
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn check(&self, arguments: &Value) -> Result<(), String> {
        self.schema.check(arguments)
    }

    fn call(&self, arguments: Value, context: ToolContext) -> BoxFuture<'_, ToolOutput> {
        Box::pin(async move { (self.function)(arguments, context).await.map(Into::into) })
    }
}

fn describe_own_fault(error: &ValidationError<'_>) -> String {
    at(&path_of(error.instance_path()), &error.masked_with(show(error.instance())).to_string())
}

fn at(path: &str, text: &str) -> String {
    if path.is_empty() { text.to_owned() } else { format!("{path}: {text}") }
}

fn join(path: &str, field: &str) -> String {
    if path.is_empty() { field.to_owned() } else { format!("{path}.{field}") }
}

/// `items[2].name`, as the errors of typed tools spell it too.
fn path_of(location: &Location) -> String {
    location.segments().fold(String::new(), |path, segment| match segment {
        LocationSegment::Property(name) => join(&path, &clip(&name)),
        LocationSegment::Index(index) => format!("{path}[{index}]"),
    })
}

fn types(kind: &TypeKind) -> String {
    match kind {
        TypeKind::Single(one) => one.to_string(),
        TypeKind::Multiple(many) => {
            let names: Vec<String> = many.iter().map(|one| one.to_string()).collect();
            names.join(" or ")
        }
    }
}

/// A value in few words.
fn show(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(yes) => yes.to_string(),
        Value::Number(number) => format!("the number {}", clip(&number.to_string())),
        Value::String(text) => format!("the text {:?}", clip(text)),
        Value::Array(items) => format!("an array of {}", items.len()),
        Value::Object(fields) => format!("an object of {} fields", fields.len()),
    }
}

fn clip(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn errors(schema: Value, value: Value) -> String {
        check_schema(&schema, &value).unwrap_err()
    }

    fn booking() -> Value {
        json!({
            "type": "object",
            "properties": {
                "city": {"type": "string"},
                "guests": {"type": "array", "items": {
                    "type": "object",
                    "properties": {"age": {"type": "integer", "minimum": 0}},
                }},
                "class": {"enum": ["basic", "business"]},
            },
            "required": ["city"],
            "additionalProperties": false,
        })
    }

    #[test]
    fn a_fitting_value_passes() {
        let value = json!({"city": "Bonn", "guests": [{"age": 3}], "class": "basic"});
        assert_eq!(check_schema(&booking(), &value), Ok(()));
    }

    #[test]
    fn an_error_says_where_what_was_expected_and_what_came() {
        let value = json!({"guests": [{"age": 3}, {"age": "old"}], "class": "first", "citty": 1});
        let text = errors(booking(), value);
        let mut lines: Vec<&str> = text.lines().collect();
        lines.sort_unstable();
        assert_eq!(
            lines,
            [
                "citty: unknown field (did you mean \"city\"?)",
                "city: missing, but required",
                "class: expected one of \"basic\", \"business\", got the text \"first\"",
                "guests[1].age: expected integer, got the text \"old\"",
            ]
        );
    }

    #[test]
    fn arguments_that_are_no_object_are_named() {
        assert_eq!(
            errors(booking(), json!("{\"city\": ")),
            "expected object, got the text \"{\\\"city\\\": \""
        );
    }

    #[test]
    fn only_a_few_errors_are_listed_and_long_values_are_clipped() {
        let schema = json!({"type": "array", "items": {"type": "string"}});
        let text = errors(schema, json!([1, 2, 3, 4, 5, 6, 7]));
        assert_eq!(text.lines().count(), MOST_ERRORS + 1);
        assert!(text.ends_with("and more"));
        let long = "x".repeat(100_000);
        assert!(errors(json!({"type": "integer"}), json!(long)).len() < 400);
        assert!(errors(json!({"maxLength": 5}), json!(long)).len() < 400);
    }

    #[test]
    fn every_form_of_a_choice_is_explained() {
        let schema = json!({"properties": {"when": {"anyOf": [
            {"type": "integer"},
            {"type": "object", "required": ["day"]},
        ]}}});
        assert_eq!(
            errors(schema, json!({"when": {}})),
            "when: an object of 0 fields fits none of the 2 allowed forms\n  \
             form 1: when: expected integer, got an object of 0 fields\n  \
             form 2: when.day: missing, but required"
        );
    }

    #[test]
    fn a_local_reference_works_and_one_to_elsewhere_is_refused() {
        let local = json!({"$ref": "#/$defs/n", "$defs": {"n": {"type": "integer"}}});
        assert_eq!(errors(local, json!("x")), "expected integer, got the text \"x\"");
        for outside in ["https://example.com/schema.json", "file:///etc/passwd"] {
            let error = Schema::compile(&json!({"$ref": outside})).unwrap_err();
            assert!(error.to_string().starts_with("the JSON Schema cannot be used"), "{error}");
        }
    }

    #[test]
    fn a_broken_schema_is_an_error_and_not_a_panic() {
        for broken in [json!({"type": 7}), json!({"pattern": "("}), json!("x"), json!([])] {
            assert!(Schema::compile(&broken).is_err(), "{broken}");
        }
        let circle = json!({"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}});
        for endless in [json!({"$ref": "#"}), json!({"$defs": circle, "$ref": "#/$defs/a"})] {
            let _ = Schema::compile(&endless).map(|schema| schema.check(&json!({})));
        }
    }

    #[test]
    fn a_pattern_that_backtracks_for_ever_ends() {
        let schema = Schema::compile(&json!({"pattern": "^(a+)+(?=x)\\1$"})).unwrap();
        let begun = std::time::Instant::now();
        assert!(schema.check(&json!("a".repeat(40))).is_err());
        assert!(begun.elapsed() < std::time::Duration::from_secs(5));
    }
}
