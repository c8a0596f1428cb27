//! What goes over the wire, and what is made of what comes back.

use std::{collections::VecDeque, sync::Arc};

use duologue_core::{
    CallId, Delta, FileSource, Message, Options, OutputSchema, Part, ReasoningEffort, Request,
    Role, StopReason, ToolCall, ToolChoice, ToolResult, ToolSpec, ToolStatus, Usage,
};
use serde_json::{Value, json};

use super::{
    Dialect, body,
    chunk::{Assembler, Read},
};

fn encode(dialect: Dialect, request: &Request) -> Value {
    serde_json::from_slice(&body::encode("m", dialect, request).unwrap()).unwrap()
}

fn conversation(messages: Vec<Message>) -> Request {
    Request {
        messages: Arc::new(messages.into_iter().map(Arc::new).collect()),
        ..Request::default()
    }
}

fn file(media_type: &str, source: FileSource) -> Part {
    Part::File { media_type: media_type.into(), name: Some("f".into()), source }
}

#[test]
fn a_plain_request_is_as_small_as_it_can_be() {
    let request = conversation(vec![Message::user("hi")]);
    assert_eq!(
        encode(Dialect::Compatible, &request),
        json!({"model": "m", "messages": [{"role": "user", "content": "hi"}],
            "stream": true, "stream_options": {"include_usage": true}})
    );
}

#[test]
fn a_conversation_with_tools_is_written_as_the_wire_wants_it() {
    let call = ToolCall::new("c1", "echo", json!({"text": "\"a\"\n"}));
    let broken = ToolCall::new("c2", "echo", json!("{\"text\": "));
    let results = vec![
        Part::from(ToolResult::text(&call, ToolStatus::Ok, "a")),
        Part::from(ToolResult {
            content: vec![
                Part::data(json!({"n": 1})),
                file("image/png", FileSource::Base64("AAAA".into())),
            ],
            ..ToolResult::text(&broken, ToolStatus::Invalid, "")
        }),
    ];
    let mut request = conversation(vec![
        Message::user("do it").with_name("Ada L."),
        Message::new(
            Role::Assistant,
            vec![
                Part::Reasoning { text: "hm".into(), signature: None },
                Part::text("Calling."),
                Part::from(call),
                Part::from(broken),
            ],
        ),
        Message::new(Role::Tool, results),
        Message::new(
            Role::Assistant,
            vec![Part::Reasoning { text: "cut".into(), signature: None }],
        ),
    ]);
    request.system = Some("Be brief.".into());
    request.extra = vec![Arc::new(Message::new(Role::System, vec![Part::text("Now.")]))];
    request.tools =
        Arc::from(vec![Arc::new(ToolSpec::new("echo", "Says it.", json!({"type": "object"})))]);
    let written = encode(Dialect::Compatible, &request);
    assert_eq!(
        written["messages"],
        json!([
            {"role": "system", "content": "Be brief."},
            {"role": "user", "name": "Ada_L_", "content": "do it"},
            {"role": "assistant", "content": "Calling.", "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "echo", "arguments": "{\"text\":\"\\\"a\\\"\\n\"}"}},
                {"id": "c2", "type": "function", "function": {"name": "echo", "arguments": "{\"invalid_json\":\"{\\\"text\\\": \"}"}},
            ]},
            {"role": "tool", "tool_call_id": "c1", "content": "a"},
            {"role": "tool", "tool_call_id": "c2", "content": "{\"n\":1}\n[file f (image/png)]"},
            {"role": "user", "content": [
                {"type": "text", "text": "Files that the tools above gave:"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
            ]},
            {"role": "system", "content": "Now."},
        ])
    );
    assert_eq!(
        written["tools"],
        json!([{"type": "function", "function":
            {"name": "echo", "description": "Says it.", "parameters": {"type": "object"}}}])
    );
}

#[test]
fn every_option_has_its_word() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}},
        "required": ["a"], "additionalProperties": false});
    let mut request = conversation(vec![Message::user("hi")]);
    request.tools = Arc::from(vec![Arc::new(ToolSpec::new("echo", "", json!({})))]);
    request.options = Options {
        tool_choice: ToolChoice::One("echo".into()),
        temperature: Some(0.5),
        seed: Some(7),
        max_tokens: Some(100),
        stop: vec!["END".into()],
        output: Some(OutputSchema { name: "my answer".into(), schema: Arc::new(schema.clone()) }),
        reasoning_effort: Some(ReasoningEffort::Low),
    };
    let written = encode(Dialect::Compatible, &request);
    for (key, value) in [
        ("tool_choice", json!({"type": "function", "function": {"name": "echo"}})),
        ("temperature", json!(0.5)),
        ("seed", json!(7)),
        ("max_tokens", json!(100)),
        ("stop", json!(["END"])),
        ("reasoning_effort", json!("low")),
        (
            "response_format",
            json!({"type": "json_schema",
            "json_schema": {"name": "my_answer", "schema": schema, "strict": true}}),
        ),
    ] {
        assert_eq!(written[key], value, "{key}");
    }
    let written = encode(Dialect::OpenAi, &request);
    assert_eq!(
        (&written["max_tokens"], &written["max_completion_tokens"]),
        (&Value::Null, &json!(100))
    );
    for (choice, word) in [
        (ToolChoice::Required, json!("required")),
        (ToolChoice::None, json!("none")),
        (ToolChoice::Auto, Value::Null),
    ] {
        request.options.tool_choice = choice;
        assert_eq!(encode(Dialect::OpenAi, &request)["tool_choice"], word);
    }
}

#[test]
fn files_go_as_what_they_are_and_what_cannot_go_is_refused() {
    let request = conversation(vec![Message::new(
        Role::User,
        vec![
            Part::text("look"),
            file("image/png", FileSource::Url("https://h/a.png".into())),
            file("audio/mpeg", FileSource::Base64("BBBB".into())),
            file("application/pdf", FileSource::Base64("CCCC".into())),
        ],
    )]);
    assert_eq!(
        encode(Dialect::OpenAi, &request)["messages"][0]["content"],
        json!([
            {"type": "text", "text": "look"},
            {"type": "image_url", "image_url": {"url": "https://h/a.png"}},
            {"type": "input_audio", "input_audio": {"data": "BBBB", "format": "mp3"}},
            {"type": "file", "file": {"filename": "f", "file_data": "data:application/pdf;base64,CCCC"}},
        ])
    );
    let request = conversation(vec![Message::new(
        Role::User,
        vec![file("application/pdf", FileSource::Url("https://h/a.pdf".into()))],
    )]);
    let error = body::encode("m", Dialect::OpenAi, &request).unwrap_err();
    assert!(error.message.contains("application/pdf"), "{error}");
}

/// What an assembler makes of some chunks and the end of the stream.
fn assemble(chunks: &[Value]) -> Vec<Delta> {
    let mut assembler = Assembler::default();
    let mut queue = VecDeque::new();
    for chunk in chunks {
        assert!(matches!(assembler.take(chunk.to_string().as_bytes(), &mut queue), Ok(Read::More)));
    }
    assert!(matches!(assembler.take(b" [DONE] ", &mut queue), Ok(Read::Done)));
    assembler.done(&mut queue);
    queue.into()
}

fn delta(delta: &Value) -> Value {
    json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]})
}

fn start(index: usize, id: &str, name: &str) -> Delta {
    Delta::CallStart { index, id: Some(CallId::from(id)), name: name.into() }
}

fn arguments(index: usize, fragment: &str) -> Delta {
    Delta::CallArguments { index, fragment: fragment.into() }
}

#[test]
fn pieces_of_one_read_are_one_delta_and_the_end_has_usage_and_reason() {
    let said = assemble(&[
        delta(&json!({"role": "assistant", "content": ""})),
        delta(&json!({"reasoning_content": "h", "reasoning": "h"})),
        delta(&json!({"reasoning": "m"})),
        delta(&json!({"content": "a\u{fc}"})),
        delta(&json!({"content": "\n\"b\""})),
        json!({"choices": [{"delta": {}, "finish_reason": "length"}]}),
        json!({"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 5,
            "prompt_tokens_details": {"cached_tokens": 4}, "completion_tokens_details": {"reasoning_tokens": 2}}}),
    ]);
    assert_eq!(
        said,
        [
            Delta::Reasoning("hm".into()),
            Delta::Text("a\u{fc}\n\"b\"".into()),
            Delta::Usage(Usage {
                input_tokens: 9,
                output_tokens: 5,
                cached_tokens: 4,
                reasoning_tokens: 2,
                cost_microusd: 0
            }),
            Delta::Stop(StopReason::MaxTokens),
        ]
    );
}

#[test]
fn parallel_calls_are_kept_apart() {
    let said = assemble(&[
        delta(
            &json!({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "x", "arguments": ""}}]}),
        ),
        delta(&json!({"tool_calls": [{"index": 0, "function": {"arguments": "{\"k\""}}]})),
        delta(
            &json!({"tool_calls": [{"index": 1, "id": "b", "function": {"name": "y", "arguments": "{"}}]}),
        ),
        delta(
            &json!({"tool_calls": [{"index": 0, "function": {"arguments": ":1}"}}, {"index": 1, "function": {"arguments": "}"}}]}),
        ),
        json!({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]}),
    ]);
    assert_eq!(
        said,
        [
            start(0, "a", "x"),
            arguments(0, "{\"k\""),
            start(1, "b", "y"),
            arguments(1, "{"),
            arguments(0, ":1}"),
            arguments(1, "}"),
            Delta::Stop(StopReason::ToolCalls),
        ]
    );
}

#[test]
fn servers_that_number_every_call_0_or_not_at_all_are_understood() {
    for index in [json!(0), Value::Null] {
        let said = assemble(&[
            delta(
                &json!({"tool_calls": [{"index": index, "id": "a", "function": {"name": "x", "arguments": "{}"}}]}),
            ),
            delta(
                &json!({"tool_calls": [{"index": index, "id": "b", "function": {"name": "x", "arguments": "{}"}}]}),
            ),
            json!({"choices": [{"delta": {}, "finish_reason": "stop"}]}),
        ]);
        assert_eq!(
            said,
            [
                start(0, "a", "x"),
                arguments(0, "{}"),
                start(1, "b", "x"),
                arguments(1, "{}"),
                // It said `stop`, but it wants its tools to run.
                Delta::Stop(StopReason::ToolCalls),
            ]
        );
    }
}

#[test]
fn arguments_before_the_name_wait_for_it() {
    let said = assemble(&[
        delta(
            &json!({"tool_calls": [{"index": 0, "id": "a", "function": {"arguments": "{\"k\""}}]}),
        ),
        delta(
            &json!({"tool_calls": [{"index": 0, "function": {"name": "x", "arguments": ":1}"}}]}),
        ),
    ]);
    assert_eq!(
        said,
        [start(0, "a", "x"), arguments(0, "{\"k\":1}"), Delta::Stop(StopReason::ToolCalls)]
    );
}

#[test]
fn an_answer_that_was_not_streamed_is_an_answer_too() {
    let said = assemble(&[json!({"choices": [{"message": {"role": "assistant", "content": "hi",
        "tool_calls": [{"id": "a", "type": "function", "function": {"name": "x", "arguments": "{}"}}]},
        "finish_reason": "tool_calls"}], "usage": {"prompt_tokens": 1, "completion_tokens": 1}})]);
    assert_eq!(said[..3], [Delta::Text("hi".into()), start(0, "a", "x"), arguments(0, "{}")]);
}

#[test]
fn an_error_and_a_chunk_that_is_none_are_told_apart() {
    let mut assembler = Assembler::default();
    let mut queue = VecDeque::new();
    let error = br#"{"error":{"message":"busy","code":503}}"#;
    assert!(matches!(assembler.take(error, &mut queue), Ok(Read::Refused(_))));
    assert!(assembler.take(b"{\"choices\":[{", &mut queue).is_err());
    assert!(matches!(assembler.take(b"{\"choices\":null}", &mut queue), Ok(Read::More)));
    assert!(queue.is_empty() && !assembler.is_whole());
}
