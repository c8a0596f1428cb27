//! Constrained answers end within their limit, on a tiny model that knows nothing and never stops by
//! itself: a token of it is a byte, so that room is easy to count.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

mod support;

use std::sync::Arc;

use duologue_core::{
    Accumulator, Completion, Message, Model, Options, OutputSchema, Request, StopReason,
    ToolChoice, ToolSpec,
};
use duologue_local::{LocalModel, LocalOptions};
use futures::StreamExt;
use serde_json::{Value, json};
use support::{Architecture, Kind};

fn model(architecture: Architecture) -> (tempfile::TempDir, LocalModel) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tiny.gguf");
    support::write(&path, architecture, 11, Kind::F32, 2048);
    let model = LocalModel::from_file("local/tiny", &path, LocalOptions::default());
    (folder, model)
}

async fn ask(model: &LocalModel, request: Request) -> Completion {
    let mut all = Accumulator::default();
    let mut deltas = model.ask(request);
    while let Some(delta) = deltas.next().await {
        all.push(delta.unwrap());
    }
    all.finish()
}

fn asking(seed: u64, most: u32) -> Request {
    Request {
        messages: Arc::new(vec![Arc::new(Message::user("go"))]),
        options: Options {
            temperature: Some(1.0),
            seed: Some(seed),
            max_tokens: Some(most),
            ..Options::default()
        },
        ..Request::default()
    }
}

async fn structured(model: &LocalModel, schema: &Value, seed: u64, most: u32) -> Completion {
    let mut request = asking(seed, most);
    request.options.output =
        Some(OutputSchema { name: "answer".into(), schema: Arc::new(schema.clone()) });
    ask(model, request).await
}

/// Schemas, each with a value that fits it and is about as short as can be.
fn schemas() -> Vec<(Value, Value)> {
    let object = |properties: Value| {
        let required: Vec<&String> = properties.as_object().unwrap().keys().collect();
        json!({"type": "object", "required": required, "properties": properties,
            "additionalProperties": false})
    };
    let text = json!({"type": "string"});
    let inner = object(json!({"why": text, "sure": {"type": "boolean"}}));
    vec![
        (object(json!({"why": text})), json!({"why": ""})),
        (
            object(json!({"first": text, "second": text, "third": {"enum": ["left", "right"]}})),
            json!({"first": "", "second": "", "third": "right"}),
        ),
        (
            object(json!({"outer": object(json!({"inner": inner, "note": text}))})),
            json!({"outer": {"inner": {"why": "", "sure": false}, "note": ""}}),
        ),
        (
            object(json!({"items": {"type": "array", "minItems": 3, "items": inner}})),
            json!({"items": [{"why": "", "sure": false}, {"why": "", "sure": false},
                {"why": "", "sure": false}]}),
        ),
        (json!({"type": "array", "minItems": 4, "items": {"type": "number"}}), json!([0, 0, 0, 0])),
        (
            object(json!({"age": {"type": "integer", "minimum": 100, "maximum": 150},
                "share": {"type": "number", "minimum": 0.25, "maximum": 0.5}})),
            json!({"age": 100, "share": 0.25}),
        ),
        (
            object(json!({"name": {"type": "string", "minLength": 20, "maxLength": 400}})),
            json!({"name": "12345678901234567890"}),
        ),
        (
            object(json!({"day": {"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"},
                "note": text})),
            json!({"day": "2025-01-01", "note": ""}),
        ),
        (json!({"anyOf": [{"type": "array", "minItems": 9, "items": text}, text]}), json!([])),
        (
            // Nothing is required, and what else may be there is open.
            json!({"type": "object", "properties": {"a": text, "b": {"type": "integer"}}}),
            json!({}),
        ),
        (
            json!({"$defs": {"tree": {"type": "object", "properties": {"name": text,
                "children": {"type": "array", "items": {"$ref": "#/$defs/tree"}}},
                "required": ["name", "children"], "additionalProperties": false}},
                "$ref": "#/$defs/tree"}),
            json!({"name": "", "children": []}),
        ),
    ]
}

/// How many bytes a value takes as the model writes it.
fn length(value: &Value) -> usize {
    let commas_and_colons = value.to_string().chars().filter(|char| ",:".contains(*char)).count();
    value.to_string().len() + commas_and_colons
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_with_enough_room_is_whole_and_fits_its_schema() {
    for architecture in [Architecture::Qwen2, Architecture::Llama] {
        let (_folder, model) = model(architecture);
        for (schema, shortest) in schemas() {
            // As much as is needed where the way to the end is not the very shortest, and more.
            let enough = length(&shortest) as u32 * 5 / 4 + 16;
            for (seed, most) in (0..).zip([enough, enough + 1, enough + 7, 2 * enough]) {
                let done = structured(&model, &schema, seed, most).await;
                let text = done.message.text();
                assert_eq!(done.stop, Some(StopReason::Completed), "{most}: {schema}: {text}");
                let value = serde_json::from_str(&text).unwrap();
                assert!(jsonschema::is_valid(&schema, &value), "{schema}: {text}");
                assert!(done.usage.output_tokens <= u64::from(most) + 1, "{:?}", done.usage);
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_without_enough_room_says_that_it_was_cut() {
    let (_folder, model) = model(Architecture::Qwen2);
    let mut cut = 0;
    for (schema, shortest) in schemas() {
        for (seed, most) in (0..).zip([1, 2, 5, 13, 29]) {
            let done = structured(&model, &schema, seed, most).await;
            let text = done.message.text();
            let value = serde_json::from_str::<Value>(&text);
            let fits = value.is_ok_and(|value| jsonschema::is_valid(&schema, &value));
            match done.stop {
                Some(StopReason::Completed) => assert!(fits, "{most}: {schema}: {text}"),
                Some(StopReason::MaxTokens) => {
                    cut += 1;
                    assert!(!fits, "{most}: {schema}: {text}");
                    assert!((most as usize) < length(&shortest) * 5 / 4 + 16);
                }
                other => panic!("{other:?}"),
            }
        }
    }
    assert!(cut > 10, "only {cut} were cut");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_is_whole_or_is_not_begun() {
    let (_folder, model) = model(Architecture::Qwen2);
    let schema = json!({"type": "object", "properties": {"to": {"type": "string"},
        "text": {"type": "string"}, "urgent": {"type": "boolean"}},
        "required": ["to", "text", "urgent"], "additionalProperties": false});
    let tool = Arc::new(ToolSpec::new("send", "Sends.", schema.clone()));
    let (mut calls, mut texts) = (0, 0);
    for seed in 0..16 {
        for choice in [ToolChoice::Required, ToolChoice::Auto] {
            let mut request = asking(seed, 96);
            request.tools = [Arc::clone(&tool)].into();
            request.options.tool_choice = choice.clone();
            let done = ask(&model, request).await;
            match done.message.tool_calls().next() {
                Some(call) => {
                    assert!(jsonschema::is_valid(&schema, &call.arguments), "{call:?}");
                    assert_eq!(done.stop, Some(StopReason::ToolCalls));
                    calls += 1;
                }
                None => {
                    assert_eq!(choice, ToolChoice::Auto);
                    assert!(!done.message.text().is_empty());
                    texts += 1;
                }
            }
        }
    }
    assert!(calls >= 16 && texts > 0, "{calls} calls, {texts} texts");
}

#[tokio::test(flavor = "multi_thread")]
async fn room_to_spare_is_used() {
    let (_folder, model) = model(Architecture::Qwen2);
    let schema = json!({"type": "object", "properties": {"why": {"type": "string"}},
        "required": ["why"], "additionalProperties": false});
    // This model never closes a text by itself for long; what it wrote is kept until the end.
    let longest = async |most| {
        let mut longest = 0;
        for seed in 0..8 {
            longest =
                longest.max(structured(&model, &schema, seed, most).await.message.text().len());
        }
        longest
    };
    assert!(longest(60).await > 40);
    assert!(longest(700).await > 60);
}
