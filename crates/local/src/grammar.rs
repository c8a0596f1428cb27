//! Constrained decoding: an answer that must be a tool call or JSON of a shape can be nothing else.

use std::{collections::HashMap, fmt, sync::Arc};

use duologue_core::{ErrorClass, ModelError, Request, ToolChoice, ToolSpec};
use llguidance::{
    Matcher, ParserFactory,
    api::TopLevelGrammar,
    toktrie::{TokEnv, TokRxInfo, TokTrie, TokenId, TokenizerEnv},
};
use serde_json::{Value, json};

use crate::{
    constraint::Constraint,
    ending::Endings,
    tokenizer::{TokenKind, Tokenizer},
};

/// How many prepared grammars are kept.
const KEPT: usize = 32;

/// How the model writes that it answers in text where it could call a tool. Having to choose first,
/// in the same words as for a tool, small models choose far better than when they just begin.
pub(crate) const TEXT_OPENING: &str = "{\"tool_name\": \"answer\"}\n";

/// What an answer may be.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Form {
    /// Any text.
    Text,
    /// One tool call, and nothing else.
    Call,
    /// A tool call or any other text.
    TextOrCall,
    /// JSON of a shape.
    Json,
    /// JSON of a shape, or a tool call.
    JsonOrCall,
}

/// Prepares constraints for one vocabulary.
pub(crate) struct Grammars {
    factory: ParserFactory,
    endings: Arc<Endings>,
    /// Those used lately, ready to be copied.
    prepared: HashMap<String, Matcher>,
}

impl fmt::Debug for Grammars {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Grammars").finish_non_exhaustive()
    }
}

impl Grammars {
    /// Prepare for a vocabulary. `width` is how many tokens the network scores.
    pub(crate) fn new(tokenizer: &Arc<Tokenizer>, width: usize) -> Result<Self, ModelError> {
        if tokenizer.ends.is_empty() {
            let text = "the model's vocabulary has no token that ends an answer";
            return Err(bad_request(text.to_owned()));
        }
        let vocabulary: TokEnv = Arc::new(Vocabulary::new(tokenizer, width));
        let factory = ParserFactory::new_simple(&vocabulary).map_err(|error| {
            ModelError::new(
                ErrorClass::BadRequest,
                format!("the model's vocabulary cannot be constrained: {error}"),
            )
        })?;
        let endings = Arc::new(Endings::new(tokenizer, width));
        Ok(Self { factory, endings, prepared: HashMap::new() })
    }

    /// What holds the answer to the form that a request asks for.
    pub(crate) fn constrain(
        &mut self,
        request: &Request,
    ) -> Result<Option<Constraint>, ModelError> {
        let Some(grammar) = grammar(request)? else {
            return Ok(None);
        };
        let matcher = match self.prepared.get(&grammar) {
            Some(matcher) => matcher.deep_clone(),
            None => self.prepare(grammar)?,
        };
        Ok(Some(Constraint::new(matcher, Arc::clone(&self.endings))))
    }

    fn prepare(&mut self, grammar: String) -> Result<Matcher, ModelError> {
        let parser = self.factory.create_parser(TopLevelGrammar::from_lark(grammar.clone()));
        let matcher = Matcher::new(parser);
        if let Some(error) = matcher.get_error() {
            return Err(bad_request(format!(
                "a schema of the request cannot be enforced: {error}"
            )));
        }
        if self.prepared.len() >= KEPT {
            self.prepared.clear();
        }
        self.prepared.insert(grammar, matcher.deep_clone());
        Ok(matcher)
    }
}

fn bad_request(text: String) -> ModelError {
    ModelError::new(ErrorClass::BadRequest, text)
}

/// The form of the answer to a request.
pub(crate) fn form(request: &Request) -> Result<Form, ModelError> {
    let choice = &request.options.tool_choice;
    let calls = !request.tools.is_empty();
    match (choice, calls, request.options.output.is_some()) {
        (ToolChoice::Required | ToolChoice::One(_), false, _) => {
            Err(bad_request("a tool call is required, but the request has no tools".to_owned()))
        }
        (ToolChoice::Required | ToolChoice::One(_), true, _) => Ok(Form::Call),
        (ToolChoice::Auto, true, false) => Ok(Form::TextOrCall),
        (ToolChoice::Auto, true, true) => Ok(Form::JsonOrCall),
        (_, _, true) => Ok(Form::Json),
        (_, _, false) => Ok(Form::Text),
    }
}

fn grammar(request: &Request) -> Result<Option<String>, ModelError> {
    let form = form(request)?;
    let tools: Vec<&ToolSpec> = match &request.options.tool_choice {
        ToolChoice::One(name) => {
            let tool = request.tools.iter().find(|tool| tool.name == *name);
            let tool = tool.ok_or_else(|| {
                bad_request(format!(
                    "the tool {name:?} is required, but the request has none of that name"
                ))
            })?;
            vec![tool]
        }
        _ => request.tools.iter().map(AsRef::as_ref).collect(),
    };
    let mut choices = Vec::new();
    let mut rules = String::new();
    if matches!(form, Form::Call | Form::TextOrCall | Form::JsonOrCall) {
        for (index, tool) in tools.into_iter().enumerate() {
            let name = Value::from(tool.name.as_str());
            let opening = Value::from(format!("{{\"tool_name\": {name}, \"params\": "));
            // What a schema asks beyond what can be enforced is left to the check that every call
            // passes before it runs.
            let schema = guided(&tool.parameters, Unknown::Ignored);
            rules.push_str(&format!("call_{index}: {opening} params_{index} \"}}\"\n"));
            rules.push_str(&format!("params_{index}: %json {schema}\n"));
            choices.push(format!("call_{index}"));
        }
    }
    match form {
        Form::Text => return Ok(None),
        Form::Call => {}
        Form::TextOrCall => {
            choices.push("text".to_owned());
            let opening = Value::from(TEXT_OPENING);
            rules.push_str(&format!("text: {opening} TEXT\nTEXT: /(.|\\n)+/\n"));
        }
        Form::Json | Form::JsonOrCall => {
            if let Some(output) = &request.options.output {
                choices.push("output".to_owned());
                let schema = guided(&output.schema, Unknown::Refused);
                let opening = match form {
                    Form::JsonOrCall => Value::from(TEXT_OPENING).to_string(),
                    _ => String::new(),
                };
                rules.push_str(&format!("output: {opening} value\nvalue: %json {schema}\n"));
            }
        }
    }
    Ok(Some(format!("start: {}\n{rules}", choices.join(" | "))))
}

/// What happens to parts of a schema that cannot be enforced.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unknown {
    Ignored,
    Refused,
}

/// A schema with what the grammar needs to know: one way to write white space, so that a small
/// model cannot fill its answer with it, and numbers that can be read.
fn guided(schema: &Value, unknown: Unknown) -> Value {
    let mut schema = match bounded(schema) {
        Value::Object(fields) => fields,
        // `true` allows everything.
        _ => serde_json::Map::new(),
    };
    schema.insert(
        "x-guidance".to_owned(),
        json!({
            "whitespace_flexible": false,
            "item_separator": ", ",
            "key_separator": ": ",
            "lenient": unknown == Unknown::Ignored,
        }),
    );
    Value::Object(schema)
}

/// The largest whole number that every reader of JSON reads exactly.
const LARGEST: i64 = (1 << 53) - 1;

/// What a model says before its verdict, and how many characters of it. A small one goes in circles
/// there until its tokens are used up.
const REASONS: [&str; 2] = ["reasoning", "reason"];
const LONGEST_REASON: usize = 600;

/// A property's schema, with a bound for reasons that have none.
fn bounded_property(name: &str, schema: &Value) -> Value {
    let mut schema = bounded(schema);
    if REASONS.contains(&name)
        && let Value::Object(fields) = &mut schema
        && fields.get("type").is_some_and(|kind| kind == "string")
        && !["enum", "const", "pattern", "format", "maxLength"]
            .iter()
            .any(|k| fields.contains_key(*k))
    {
        fields.insert("maxLength".to_owned(), json!(LONGEST_REASON));
    }
    schema
}

/// The same schema with bounds for numbers that have none. Without them a model may write `1e999`
/// or digits without end, which fits the schema and which no program can read.
fn bounded(schema: &Value) -> Value {
    let Value::Object(fields) = schema else {
        return schema.clone();
    };
    let mut fields: serde_json::Map<String, Value> = fields
        .iter()
        .map(|(key, value)| {
            let value = match (key.as_str(), value) {
                ("properties", Value::Object(all)) => all
                    .iter()
                    .map(|(name, schema)| (name.clone(), bounded_property(name, schema)))
                    .collect(),
                ("patternProperties" | "$defs" | "definitions", Value::Object(all)) => {
                    all.iter().map(|(name, schema)| (name.clone(), bounded(schema))).collect()
                }
                ("items" | "additionalProperties", one) => bounded(one),
                ("anyOf" | "oneOf" | "allOf" | "prefixItems", Value::Array(all)) => {
                    all.iter().map(bounded).collect()
                }
                _ => value.clone(),
            };
            (key.clone(), value)
        })
        .collect();
    let is_number = |kind: &Value| kind == "number" || kind == "integer";
    let numeric = match fields.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().any(is_number),
        Some(kind) => is_number(kind),
        None => false,
    };
    if numeric && !fields.contains_key("enum") && !fields.contains_key("const") {
        if !fields.contains_key("minimum") && !fields.contains_key("exclusiveMinimum") {
            fields.insert("minimum".to_owned(), json!(-LARGEST));
        }
        if !fields.contains_key("maximum") && !fields.contains_key("exclusiveMaximum") {
            fields.insert("maximum".to_owned(), json!(LARGEST));
        }
    }
    Value::Object(fields)
}

/// The vocabulary as the grammar library wants it.
struct Vocabulary {
    tokenizer: Arc<Tokenizer>,
    trie: TokTrie,
}

impl Vocabulary {
    fn new(tokenizer: &Arc<Tokenizer>, width: usize) -> Self {
        let count = u32::try_from(width).unwrap_or(u32::MAX);
        let words: Vec<Vec<u8>> = (0..count)
            .map(|token| match tokenizer.kind(token) {
                TokenKind::Text => tokenizer.bytes(token).to_vec(),
                // A token that is no text must not be taken for the text of its name.
                TokenKind::Marker | TokenKind::Control => {
                    let mut word = vec![TokTrie::SPECIAL_TOKEN_MARKER];
                    word.extend_from_slice(tokenizer.bytes(token));
                    word
                }
            })
            .collect();
        let end = tokenizer.ends.first().copied().unwrap_or_default();
        let trie = TokTrie::from(&TokRxInfo::new(count, end), &words);
        let trie = trie.with_eos_tokens(&tokenizer.ends);
        Self { tokenizer: Arc::clone(tokenizer), trie }
    }
}

impl TokenizerEnv for Vocabulary {
    fn tok_trie(&self) -> &TokTrie {
        &self.trie
    }

    fn tokenize_bytes(&self, bytes: &[u8]) -> Vec<TokenId> {
        // Bytes that are no text fall back to the trie, as the library does it.
        self.trie.tokenize_with_greedy_fallback(bytes, |text| self.tokenizer.encode_text(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_get_bounds_where_they_have_none() {
        let schema = json!({"type": "object", "properties": {
            "type": {"type": ["number", "null"]}, "age": {"type": "integer", "minimum": 0},
            "kind": {"enum": [1, 2]}, "all": {"type": "array", "items": {"type": "integer",
            "exclusiveMinimum": 1, "maximum": 3}}}});
        let expected = json!({"type": "object", "properties": {
            "type": {"type": ["number", "null"], "minimum": -LARGEST, "maximum": LARGEST},
            "age": {"type": "integer", "minimum": 0, "maximum": LARGEST},
            "kind": {"enum": [1, 2]}, "all": {"type": "array", "items": {"type": "integer",
            "exclusiveMinimum": 1, "maximum": 3}}}});
        assert_eq!(bounded(&schema), expected);
    }

    #[test]
    fn reasons_are_brief_and_everything_else_is_as_long_as_it_wants() {
        let schema = json!({"type": "object", "properties": {
            "reasoning": {"type": "string"}, "reason": {"type": "string", "maxLength": 9},
            "text": {"type": "string"}}});
        let expected = json!({"type": "object", "properties": {
            "reasoning": {"type": "string", "maxLength": LONGEST_REASON},
            "reason": {"type": "string", "maxLength": 9}, "text": {"type": "string"}}});
        assert_eq!(bounded(&schema), expected);
    }
}
