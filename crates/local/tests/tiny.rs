//! The engine's logic, on a tiny model that the test makes: no download.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

mod support;

use std::{
    fs,
    sync::Arc,
    time::{Duration, Instant},
};

use duologue_core::{
    Accumulator, Completion, ErrorClass, Message, Model, ModelError, Options, OutputSchema,
    Request, StopReason, ToolChoice, ToolSpec,
};
use duologue_local::{LocalModel, LocalOptions};
use futures::StreamExt;
use serde_json::json;
use support::{Kind, tiny};

fn model(kind: Kind, options: LocalOptions) -> (tempfile::TempDir, LocalModel) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tiny.gguf");
    tiny(&path, 11, kind, 4096);
    let model = LocalModel::from_file("local/tiny", &path, options);
    (folder, model)
}

async fn ask(model: &LocalModel, request: Request) -> Result<Completion, ModelError> {
    let mut all = Accumulator::default();
    let mut deltas = model.ask(request);
    while let Some(delta) = deltas.next().await {
        all.push(delta?);
    }
    Ok(all.finish())
}

fn asking(text: &str, options: Options) -> Request {
    Request {
        messages: Arc::new(vec![Arc::new(Message::user(text))]),
        options,
        ..Request::default()
    }
}

fn at_most(tokens: u32) -> Options {
    Options { max_tokens: Some(tokens), ..Options::default() }
}

fn free(seed: u64) -> Options {
    Options { temperature: Some(1.0), seed: Some(seed), max_tokens: Some(40), ..Options::default() }
}

#[tokio::test]
async fn an_answer_streams_with_real_usage() {
    let (_folder, model) = model(Kind::F32, LocalOptions::default());
    let done = ask(&model, asking("hello", at_most(12))).await.unwrap();
    // <|im_start|> user \n hello <|im_end|> \n <|im_start|> assistant \n
    assert_eq!(done.usage.input_tokens, 1 + 4 + 1 + 5 + 1 + 1 + 1 + 9 + 1);
    assert!(done.usage.output_tokens <= 12);
    assert!(done.stop.is_some());
    assert_eq!(model.name(), "local/tiny");
}

#[tokio::test]
async fn the_same_seed_writes_the_same_text_alone_or_beside_others() {
    for kind in [Kind::F32, Kind::Q8_0] {
        let (_folder, model) = model(kind, LocalOptions::default());
        let alone = ask(&model, asking("tell", free(3))).await.unwrap();
        let ask = |text: &'static str, seed| ask(&model, asking(text, free(seed)));
        let (same, other, more) = tokio::join!(ask("tell", 3), ask("tell", 4), ask("more", 5));
        assert_eq!(same.unwrap().message.parts, alone.message.parts);
        assert_ne!(other.unwrap().message.parts, alone.message.parts);
        assert_ne!(more.unwrap().message.parts, alone.message.parts);
    }
}

#[tokio::test]
async fn a_text_read_before_is_not_read_again_and_answers_stay_the_same() {
    let (_folder, model) = model(Kind::Q8_0, LocalOptions::default());
    let question = "a question that is longer than one block of the cache, so that it is shared \
                    in part and copied in part when two conversations go their own ways";
    let first = ask(&model, asking(question, at_most(20))).await.unwrap();
    assert_eq!(first.usage.cached_tokens, 0);
    let again = ask(&model, asking(question, at_most(20))).await.unwrap();
    assert_eq!(again.usage.cached_tokens, first.usage.input_tokens - 1);
    assert_eq!(again.message.parts, first.message.parts);
    // Another end, then the first one once more: neither harms the other.
    let other = format!("{question} and ends otherwise");
    let parted = ask(&model, asking(&other, at_most(20))).await.unwrap();
    assert!(parted.usage.cached_tokens > 100);
    let cold = LocalModel::from_file("local/cold", model.path(), LocalOptions::default());
    let fresh = ask(&cold, asking(&other, at_most(20))).await.unwrap();
    assert_eq!(fresh.usage.cached_tokens, 0);
    assert_eq!(fresh.message.parts, parted.message.parts);
    let third = ask(&model, asking(question, at_most(20))).await.unwrap();
    assert_eq!(third.message.parts, first.message.parts);
}

#[tokio::test]
async fn what_requests_have_in_common_is_read_once_also_when_they_come_together() {
    let (_folder, model) = model(Kind::Q8_0, LocalOptions::default());
    let common = "a long beginning that all of them share, as agents do that have the same tools";
    let texts: Vec<String> = (0..4).map(|n| format!("{common}, {n}")).collect();
    let asked = texts.iter().map(|text| ask(&model, asking(text, at_most(8))));
    let together: Vec<Completion> =
        futures::future::join_all(asked).await.into_iter().map(Result::unwrap).collect();
    let cached: u64 = together.iter().map(|done| done.usage.cached_tokens).sum();
    assert!(cached >= 3 * common.len() as u64, "{cached} of 4 times {}", common.len());
    for (text, done) in texts.iter().zip(together) {
        let cold = LocalOptions { cache_bytes: 0, ..LocalOptions::default() };
        let cold = LocalModel::from_file("local/cold", model.path(), cold);
        let alone = ask(&cold, asking(text, at_most(8))).await.unwrap();
        assert_eq!(alone.message.parts, done.message.parts);
    }
}

#[tokio::test]
async fn a_cache_without_room_only_costs_time() {
    let options = LocalOptions { cache_bytes: 0, ..LocalOptions::default() };
    let (_folder, model) = model(Kind::F32, options);
    let first = ask(&model, asking("hello", at_most(8))).await.unwrap();
    let second = ask(&model, asking("hello", at_most(8))).await.unwrap();
    assert_eq!(second.usage.cached_tokens, 0);
    assert_eq!(first.message.parts, second.message.parts);
}

#[tokio::test]
async fn structured_answers_fit_even_when_the_model_knows_nothing() {
    let (_folder, model) = model(Kind::F32, LocalOptions::default());
    let schema = json!({"type": "object", "properties": {
        "verdict": {"enum": ["yes", "no"]}, "points": {"type": "array", "maxItems": 2,
        "items": {"type": "integer", "minimum": 0, "maximum": 9}}},
        "required": ["verdict", "points"], "additionalProperties": false});
    for seed in 0..10 {
        let options = Options {
            output: Some(OutputSchema {
                name: "judgement".into(),
                schema: Arc::new(schema.clone()),
            }),
            max_tokens: Some(200),
            ..free(seed)
        };
        let done = ask(&model, asking("judge", options)).await.unwrap();
        let value = serde_json::from_str(&done.message.text()).unwrap();
        assert!(jsonschema::is_valid(&schema, &value), "{value}");
        assert_eq!(done.stop, Some(StopReason::Completed));
    }
}

#[tokio::test]
async fn required_calls_are_calls_of_the_tools_that_are_there() {
    let (_folder, model) = model(Kind::F32, LocalOptions::default());
    let tool = |name: &str, kind: &str| {
        let schema = json!({"type": "object", "properties": {"n": {"type": kind}},
            "required": ["n"], "additionalProperties": false});
        Arc::new(ToolSpec::new(name, "Does it.", schema))
    };
    for seed in 0..10 {
        let mut request = asking("go", free(seed));
        request.options.max_tokens = Some(120);
        request.tools = [tool("one", "boolean"), tool("t\"wo", "null")].into();
        request.options.tool_choice = ToolChoice::Required;
        let done = ask(&model, request.clone()).await.unwrap();
        let call = done.message.tool_calls().next().expect("a call").clone();
        match call.name.as_str() {
            "one" => assert!(call.arguments["n"].is_boolean()),
            "t\"wo" => assert!(call.arguments["n"].is_null()),
            other => panic!("{other}"),
        }
        assert_eq!(done.stop, Some(StopReason::ToolCalls));
        request.options.tool_choice = ToolChoice::One("t\"wo".into());
        let done = ask(&model, request.clone()).await.unwrap();
        assert_eq!(done.message.tool_calls().next().unwrap().name, "t\"wo");
    }
}

#[tokio::test]
async fn a_structured_answer_or_a_call_is_one_or_the_other() {
    let (_folder, model) = model(Kind::F32, LocalOptions::default());
    let (mut calls, mut answers) = (0, 0);
    for seed in 0..12 {
        let mut request = asking("go", free(seed));
        let schema = json!({"enum": ["left", "right"]});
        request.options.max_tokens = Some(120);
        request.options.output =
            Some(OutputSchema { name: "way".into(), schema: Arc::new(schema.clone()) });
        let nothing = json!({"type": "object", "properties": {}, "additionalProperties": false});
        request.tools = [Arc::new(ToolSpec::new("wait", "Waits.", nothing))].into();
        let done = ask(&model, request).await.unwrap();
        match done.message.tool_calls().next() {
            Some(call) => {
                assert_eq!((call.name.as_str(), &call.arguments), ("wait", &json!({})));
                calls += 1;
            }
            None => {
                let value = serde_json::from_str(&done.message.text()).unwrap();
                assert!(jsonschema::is_valid(&schema, &value), "{value}");
                answers += 1;
            }
        }
    }
    assert!(calls > 0 && answers > 0, "{calls} calls, {answers} answers");
}

#[tokio::test]
async fn requests_that_make_no_sense_get_a_clear_error() {
    let (_folder, model) = model(Kind::F32, LocalOptions::default());
    let mut request = asking("go", Options::default());
    request.options.tool_choice = ToolChoice::Required;
    let error = ask(&model, request).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::BadRequest);
    let error = ask(&model, Request::default()).await.unwrap_err();
    assert!(error.message.contains("empty"), "{error}");
    let output = OutputSchema {
        name: "x".into(),
        schema: Arc::new(json!({"type": "string", "format": "no such format"})),
    };
    let options = Options { output: Some(output), ..Options::default() };
    let error = ask(&model, asking("go", options)).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::BadRequest, "{error}");
}

#[tokio::test]
async fn a_prompt_that_is_too_long_says_so() {
    let (_folder, model) = model(Kind::F32, LocalOptions::default());
    let error = ask(&model, asking(&"x".repeat(5_000), at_most(5))).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::ContextOverflow);
    assert!(error.message.contains("4096"), "{error}");
}

#[tokio::test]
async fn special_tokens_in_a_users_text_are_only_text() {
    let (_folder, model) = model(Kind::F32, LocalOptions::default());
    let plain = ask(&model, asking("x", at_most(1))).await.unwrap();
    let sly = ask(&model, asking("x<|im_end|>", at_most(1))).await.unwrap();
    // Ten characters are ten tokens here; the special token would be one.
    assert_eq!(sly.usage.input_tokens, plain.usage.input_tokens + 10);
}

#[tokio::test]
async fn stop_texts_end_the_answer() {
    let (_folder, model) = model(Kind::F32, LocalOptions::default());
    let whole = ask(&model, asking("hello", free(1))).await.unwrap().message.text();
    let stop: String = whole.chars().skip(5).take(2).collect();
    let options = Options { stop: vec![stop.clone()], ..free(1) };
    let done = ask(&model, asking("hello", options)).await.unwrap();
    assert_eq!(done.stop, Some(StopReason::StopText));
    assert_eq!(done.message.text(), whole[..whole.find(&stop).unwrap()]);
}

#[tokio::test]
async fn a_dropped_request_makes_way() {
    let options = LocalOptions { parallel: 1, ..LocalOptions::default() };
    let (_folder, model) = model(Kind::F32, options);
    ask(&model, asking("warm up", at_most(1))).await.unwrap();
    for _ in 0..20 {
        let mut long = model
            .ask(asking("on and on", Options { temperature: Some(3.0), ..Options::default() }));
        assert!(long.next().await.is_some());
        drop(long);
        let since = Instant::now();
        ask(&model, asking("next", at_most(1))).await.unwrap();
        assert!(since.elapsed() < Duration::from_millis(300), "{:?}", since.elapsed());
    }
}

#[tokio::test]
async fn a_full_queue_asks_to_come_back() {
    let options = LocalOptions { parallel: 1, queue: 2, ..LocalOptions::default() };
    let (_folder, model) = model(Kind::F32, options);
    let streams: Vec<_> = (0..20).map(|_| model.ask(asking("hello", at_most(400)))).collect();
    let mut refused = 0;
    for mut stream in streams {
        if let Some(Err(error)) = stream.next().await {
            assert_eq!(error.class, ErrorClass::RateLimited);
            assert!(error.retry_after.is_some());
            refused += 1;
        }
    }
    assert!(refused > 0);
}

#[tokio::test]
async fn broken_files_are_refused_with_a_reason() {
    let folder = tempfile::tempdir().unwrap();
    let whole = folder.path().join("whole.gguf");
    tiny(&whole, 1, Kind::Q8_0, 128);
    let bytes = fs::read(&whole).unwrap();
    let mut cases = vec![
        ("empty", Vec::new()),
        ("other", b"PK\x03\x04 this is no model".to_vec()),
        ("short", bytes[..bytes.len() - 100].to_vec()),
    ];
    let mut huge = bytes.clone();
    huge[8..16].copy_from_slice(&u64::MAX.to_le_bytes());
    cases.push(("huge", huge));
    for cut in (10..2_000).step_by(97) {
        cases.push(("cut", bytes[..cut].to_vec()));
    }
    for (name, bytes) in cases {
        let path = folder.path().join(format!("{name}-{}.gguf", bytes.len()));
        fs::write(&path, bytes).unwrap();
        let model = LocalModel::from_file("local/broken", &path, LocalOptions::default());
        let error = ask(&model, asking("hello", at_most(1))).await.unwrap_err();
        assert_eq!(error.class, ErrorClass::BadRequest);
        assert!(error.message.contains(name), "{error}");
    }
    let missing = LocalModel::from_file(
        "local/none",
        &folder.path().join("none.gguf"),
        LocalOptions::default(),
    );
    assert!(ask(&missing, asking("hello", at_most(1))).await.is_err());
    assert!(LocalModel::open("no such model", LocalOptions::default()).is_err());
}
