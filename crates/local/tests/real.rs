//! The real model, end to end. Runs where `DUOLOGUE_TEST_MODEL` names a model of the catalogue
//! (such as `small`) or a GGUF file; a named one is pulled first. Without it every test here says
//! that it skips and asserts nothing; CI does not set it yet.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    missing_docs
)]

use std::{
    env,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use duologue_core::{
    Accumulator, Completion, Delta, Message, Model, Options, OutputSchema, Part, Request, Role,
    StopReason, ToolChoice, ToolResult, ToolSpec, ToolStatus,
};
use duologue_local::{Catalogue, LocalModel, LocalOptions, PullOptions, pull};
use futures::{StreamExt, stream};
use serde_json::{Value, json};

async fn model() -> Option<LocalModel> {
    let Ok(name) = env::var("DUOLOGUE_TEST_MODEL") else {
        eprintln!("skipped: DUOLOGUE_TEST_MODEL is not set");
        return None;
    };
    let path = match Catalogue::default().get(&name) {
        Some(file) => pull(file, &PullOptions::default(), &|_| ()).await.expect("the model"),
        None => PathBuf::from(&name),
    };
    Some(LocalModel::from_file("local/test", &path, LocalOptions::default()))
}

async fn answer(model: &LocalModel, request: Request) -> Completion {
    let mut all = Accumulator::default();
    let mut deltas = model.ask(request);
    while let Some(delta) = deltas.next().await {
        all.push(delta.expect("an answer"));
    }
    all.finish()
}

fn asking(text: &str, options: Options, tools: &Arc<[Arc<ToolSpec>]>) -> Request {
    Request {
        system: Some("You are a helpful assistant.".into()),
        messages: Arc::new(vec![Arc::new(Message::user(text))]),
        tools: Arc::clone(tools),
        options,
        ..Request::default()
    }
}

fn tools() -> Arc<[Arc<ToolSpec>]> {
    let tool = |name: &str, about: &str, fields: &[(&str, &str, &str)]| {
        let properties: serde_json::Map<String, Value> = fields
            .iter()
            .map(|(name, kind, about)| {
                ((*name).to_owned(), json!({"type": kind, "description": about}))
            })
            .collect();
        let required: Vec<&str> = fields.iter().map(|field| field.0).collect();
        let schema = json!({
            "type": "object", "properties": properties, "required": required,
            "additionalProperties": false,
        });
        Arc::new(ToolSpec::new(name, about, schema))
    };
    [
        tool(
            "calculator",
            "Computes an arithmetic expression.",
            &[("expression", "string", "The expression, such as 2*(3+4).")],
        ),
        tool("get_weather", "Tells the weather in a city.", &[("city", "string", "The city.")]),
        tool("read_file", "Reads a file.", &[("path", "string", "The path of the file.")]),
        tool(
            "set_timer",
            "Rings after some minutes.",
            &[("minutes", "integer", "How many minutes.")],
        ),
        tool(
            "send_message",
            "Sends a message to a person.",
            &[("to", "string", "The person's name."), ("text", "string", "What to tell them.")],
        ),
    ]
    .into()
}

const CHOICES: [(&str, &str, &str); 20] = [
    ("What is 37*12?", "calculator", "37*12"),
    ("Compute 1024 divided by 16.", "calculator", "1024/16"),
    ("How much is 15 plus 27?", "calculator", "15+27"),
    ("What is (3+4)*5?", "calculator", "(3+4)*5"),
    ("What's the weather in Paris?", "get_weather", "paris"),
    ("Is it raining in Tokyo right now?", "get_weather", "tokyo"),
    ("Tell me the weather in Berlin.", "get_weather", "berlin"),
    ("How warm is it in Madrid today?", "get_weather", "madrid"),
    ("Show me what is in notes.txt", "read_file", "notes.txt"),
    ("Read the file src/main.rs", "read_file", "src/main.rs"),
    ("Open README.md and read it.", "read_file", "readme.md"),
    ("What does the file config.toml say?", "read_file", "config.toml"),
    ("Set a timer for 5 minutes.", "set_timer", "5"),
    ("Wake me up in 20 minutes.", "set_timer", "20"),
    ("Ring in 45 minutes please", "set_timer", "45"),
    ("I need a 10 minute timer.", "set_timer", "10"),
    ("Tell Anna that I am late.", "send_message", "anna"),
    ("Send Bob a message: dinner is ready", "send_message", "bob"),
    ("Write to Carol that the meeting moved.", "send_message", "carol"),
    ("Let David know that I will call tomorrow.", "send_message", "david"),
];

#[tokio::test(flavor = "multi_thread")]
async fn it_knows_the_capital_of_france() {
    let Some(model) = model().await else { return };
    let question = "What is the capital of France?";
    for tools in [Arc::default(), tools()] {
        let done = answer(&model, asking(question, Options::default(), &tools)).await;
        assert!(done.message.text().contains("Paris"), "{done:?}");
        assert_eq!(done.stop, Some(StopReason::Completed));
        assert!(done.usage.input_tokens > 10 && done.usage.output_tokens > 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn it_calculates_with_a_tool_and_says_the_result() {
    let Some(model) = model().await else { return };
    let mut request = asking("what is 37*12?", Options::default(), &tools());
    let done = answer(&model, request.clone()).await;
    let call = done.message.tool_calls().next().expect("a call").clone();
    assert_eq!(call.name, "calculator");
    let result = Part::ToolResult(ToolResult::text(&call, ToolStatus::Ok, "444"));
    let messages = Arc::make_mut(&mut request.messages);
    messages.push(Arc::new(done.message));
    messages.push(Arc::new(Message::new(Role::Tool, vec![result])));
    let done = answer(&model, request).await;
    assert!(done.message.text().contains("444"), "{done:?}");
    assert!(done.usage.cached_tokens * 10 > done.usage.input_tokens * 7, "{:?}", done.usage);
}

#[tokio::test(flavor = "multi_thread")]
async fn it_chooses_the_right_tool_with_the_right_arguments() {
    let Some(model) = model().await else { return };
    let tools = tools();
    for choice in [ToolChoice::Required, ToolChoice::Auto] {
        let mut right = 0;
        for (text, tool, argument) in CHOICES {
            let options = Options {
                tool_choice: choice.clone(),
                max_tokens: Some(120),
                ..Options::default()
            };
            let done = answer(&model, asking(text, options, &tools)).await;
            let call = done.message.tool_calls().next();
            let fits = call.is_some_and(|call| {
                let arguments = call.arguments.to_string().to_lowercase().replace(' ', "");
                call.name == tool && arguments.contains(argument)
            });
            right += usize::from(fits);
            if !fits {
                eprintln!("{choice:?} wrong: {text} -> {:?}", done.message.parts);
            }
        }
        eprintln!("{choice:?}: {right} of 20");
        if choice == ToolChoice::Required {
            assert!(right >= 18, "only {right} of 20 were right");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn constrained_answers_always_fit_their_schema() {
    let Some(model) = model().await else { return };
    let schemas = [
        json!({"enum": ["continue", "redirect", "terminate"]}),
        json!({"type": "object", "properties": {"route": {"enum": ["search", "write", "ask"]},
            "sure": {"type": "boolean"}}, "required": ["route", "sure"],
            "additionalProperties": false}),
        json!({"type": "object", "properties": {"name": {"type": "string", "maxLength": 30},
            "age": {"type": "integer", "minimum": 0, "maximum": 150}},
            "required": ["name", "age"], "additionalProperties": false}),
        json!({"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 5}),
        json!({"type": "object", "properties": {"steps": {"type": "array", "maxItems": 3,
            "items": {"type": "object", "properties": {
                "title": {"type": "string", "maxLength": 40}, "done": {"type": "boolean"}},
                "required": ["title", "done"], "additionalProperties": false}}},
            "required": ["steps"], "additionalProperties": false}),
        json!({"anyOf": [{"type": "null"}, {"type": "number"},
            {"type": "object", "properties": {"why": {"type": "string"}}, "required": ["why"],
             "additionalProperties": false}]}),
        json!({"type": "object", "properties": {"date": {"type": "string",
            "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"}}, "required": ["date"],
            "additionalProperties": false}),
        json!({"$defs": {"pair": {"type": "object", "properties": {"a": {"type": "string",
            "maxLength": 10}, "b": {"type": ["integer", "null"]}}, "required": ["a", "b"],
            "additionalProperties": false}}, "type": "object", "properties": {
            "left": {"$ref": "#/$defs/pair"}, "right": {"$ref": "#/$defs/pair"}},
            "required": ["left", "right"], "additionalProperties": false}),
        json!({"type": "string", "maxLength": 40}),
        json!({"type": "boolean"}),
    ];
    let asked = schemas.iter().flat_map(|schema| (0..20).map(move |seed| (schema, seed)));
    let failures: Vec<String> = stream::iter(asked)
        .map(|(schema, seed)| {
            let model = model.clone();
            async move {
                let options = Options {
                    temperature: Some(1.0),
                    seed: Some(seed),
                    max_tokens: Some(400),
                    output: Some(OutputSchema {
                        name: "answer".into(),
                        schema: Arc::new(schema.clone()),
                    }),
                    ..Options::default()
                };
                let text = "Invent an example about the sea.";
                let done = answer(&model, asking(text, options, &Arc::default())).await;
                let text = done.message.text();
                let fits = serde_json::from_str(&text)
                    .is_ok_and(|value| jsonschema::is_valid(schema, &value));
                (!fits).then(|| format!("{schema} got {text:?} ({:?})", done.stop))
            }
        })
        .buffer_unordered(4)
        .filter_map(|failure| async move { failure })
        .collect()
        .await;
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_request_stops_at_once() {
    let Some(model) = model().await else { return };
    let none: Arc<[Arc<ToolSpec>]> = Arc::default();
    let short = Options { max_tokens: Some(1), ..Options::default() };
    let mut undisturbed = Duration::ZERO;
    for _ in 0..4 {
        let since = Instant::now();
        answer(&model, asking("Hi", short.clone(), &none)).await;
        undisturbed = since.elapsed();
    }
    // In the middle of a long prompt, and in the middle of an answer.
    for text in ["word and more ".repeat(1_000), "Count from 1 to 500.".to_owned()] {
        let mut deltas = model.ask(asking(&text, Options::default(), &none));
        if text.len() < 100 {
            let first = deltas.next().await;
            assert!(matches!(first, Some(Ok(Delta::Text(_)))), "{first:?}");
        } else {
            tokio::time::sleep(Duration::from_millis(400)).await;
        }
        drop(deltas);
        let dropped = Instant::now();
        // Were the other one still computed, the next answer would have to wait for it.
        let mut next = model.ask(asking("Hi", short.clone(), &none));
        while next.next().await.is_some() {}
        let took = dropped.elapsed();
        eprintln!("the next answer came after {took:?}, undisturbed after {undisturbed:?}");
        assert!(took < undisturbed + Duration::from_millis(300), "{took:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_seed_writes_the_same_text_also_beside_others() {
    let Some(model) = model().await else { return };
    let none: Arc<[Arc<ToolSpec>]> = Arc::default();
    let ask = |seed: u64| {
        let options = Options {
            temperature: Some(0.9),
            seed: Some(seed),
            max_tokens: Some(24),
            ..Options::default()
        };
        let request = asking("Tell a short story about a fox.", options, &none);
        let model = model.clone();
        async move { answer(&model, request).await.message.text() }
    };
    let alone = ask(7).await;
    let (beside, other, third) = tokio::join!(ask(7), ask(8), ask(9));
    assert_eq!(alone, beside);
    assert_ne!(alone, other);
    assert_ne!(other, third);
}
