//! The wires that `genai` speaks: what we make it write, and what we make of what it reads.

use std::{sync::Arc, time::Duration};

use duologue_core::{
    CallId, Delta, ErrorClass, FileSource, Message, Options, OutputSchema, Part, ReasoningEffort,
    Request, Role, StopReason, ToolCall, ToolChoice, ToolResult, ToolSpec, ToolStatus, Usage,
};
use duologue_models::{ProviderConfig, Wire};
use futures::future::join_all;
use serde_json::{Value, json};

use super::support::{Act, End, KEY, Server, answer, asked, conversation, deltas, stream};

fn file(media_type: &str, source: FileSource) -> Part {
    Part::File { media_type: media_type.into(), name: None, source }
}

fn signed(text: &str, signature: &str) -> Part {
    Part::Reasoning { text: text.into(), signature: Some(signature.into()) }
}

/// A conversation with everything in it that wires differ over.
fn rich_request(seal: &str) -> Request {
    let mut call = ToolCall::new("c1", "echo", json!({"text": "a"}));
    call.signature = Some(format!("{seal}:call-proof"));
    let broken = ToolCall::new("c2", "echo", json!("{\"te"));
    let results = vec![
        Part::from(ToolResult {
            content: vec![Part::text("a"), file("image/png", FileSource::Base64("AAAA".into()))],
            ..ToolResult::text(&call, ToolStatus::Ok, "")
        }),
        Part::from(ToolResult::text(&broken, ToolStatus::Invalid, "not JSON")),
    ];
    let mut request = conversation(vec![
        Message::new(
            Role::User,
            vec![Part::text("look"), file("image/png", FileSource::Url("https://h/a.png".into()))],
        ),
        Message::new(
            Role::Assistant,
            vec![
                signed("mine", &format!("{seal}:proof")),
                signed("another's", "somebody:proof"),
                Part::Reasoning { text: "unsigned".into(), signature: None },
                Part::text("Calling."),
                Part::from(call),
                Part::from(broken),
            ],
        ),
        Message::new(Role::Tool, results),
    ]);
    request.system = Some("Be brief.".into());
    request.tools = Arc::from(vec![Arc::new(ToolSpec::new(
        "echo",
        "Says it.",
        json!({"type": "object", "properties": {}}),
    ))]);
    request.options = Options {
        tool_choice: ToolChoice::Required,
        temperature: Some(0.5),
        max_tokens: Some(100),
        ..Options::default()
    };
    request
}

/// The body that a wire writes for a request, and its head.
async fn written(wire: Wire, model: &str, request: Request) -> (String, Value) {
    let server = Server::refusing("500 Internal Server Error", "", "{}").await;
    let error = deltas(&server.model(wire, model), request).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::Server, "{error}");
    let seen = server.seen().remove(0);
    (seen.head, seen.body)
}

#[tokio::test]
async fn anthropic_is_written_to_with_proofs_errors_images_and_a_cache_mark() {
    let (head, body) =
        written(Wire::Anthropic, "claude-sonnet-4-5", rich_request("anthropic")).await;
    assert!(head.starts_with("POST /v1/messages HTTP/1.1"), "{head}");
    assert!(head.contains(&format!("x-api-key: {KEY}")), "{head}");
    assert_eq!(body["system"], "Be brief.");
    assert_eq!(body["tool_choice"], json!({"type": "any"}));
    assert_eq!((&body["max_tokens"], &body["temperature"]), (&json!(100), &json!(0.5)));
    assert_eq!(body["tools"][0]["input_schema"], json!({"type": "object", "properties": {}}));
    assert_eq!(
        body["messages"],
        json!([
            {"role": "user", "content": [
                {"type": "text", "text": "look"},
                {"type": "image", "source": {"type": "url", "url": "https://h/a.png"}},
            ]},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "mine", "signature": "proof"},
                {"type": "text", "text": "Calling."},
                {"type": "tool_use", "id": "c1", "name": "echo", "input": {"text": "a"}},
                {"type": "tool_use", "id": "c2", "name": "echo", "input": {"invalid_json": "{\"te"}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": [
                    {"type": "text", "text": "a\n[file unnamed (image/png)]"},
                    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}},
                ]},
                {"type": "tool_result", "tool_use_id": "c2", "content": "not JSON", "is_error": true,
                    "cache_control": {"type": "ephemeral"}},
            ]},
        ])
    );
}

#[tokio::test]
async fn gemini_is_written_to_with_proofs_on_calls_and_files_behind_results() {
    let (head, body) = written(Wire::Gemini, "gemini-2.5-flash", rich_request("gemini")).await;
    assert!(
        head.starts_with("POST /v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse"),
        "{head}"
    );
    assert!(head.contains(&format!("x-goog-api-key: {KEY}")), "{head}");
    assert_eq!(body["toolConfig"]["functionCallingConfig"]["mode"], "ANY");
    let parts = |at: usize| body["contents"][at]["parts"].clone();
    assert_eq!(
        parts(1),
        json!([
            {"text": "Calling.", "thoughtSignature": "proof"},
            {"functionCall": {"id": "c1", "name": "echo", "args": {"text": "a"}}, "thoughtSignature": "call-proof"},
            {"functionCall": {"id": "c2", "name": "echo", "args": {"invalid_json": "{\"te"}}},
        ])
    );
    assert_eq!(parts(2)[1]["functionResponse"]["name"], "echo");
    assert_eq!(parts(3)[1]["inline_data"], json!({"mime_type": "image/png", "data": "AAAA"}));
}

#[tokio::test]
async fn openai_responses_are_written_to_with_sealed_reasoning() {
    let (head, body) =
        written(Wire::OpenaiResponses, "gpt-5", rich_request("openai-responses")).await;
    assert!(head.starts_with("POST /v1/responses HTTP/1.1"), "{head}");
    assert!(head.contains(&format!("authorization: Bearer {KEY}")), "{head}");
    assert_eq!(body["instructions"], "Be brief.");
    assert_eq!(body["store"], false);
    assert_eq!(body["include"], json!(["reasoning.encrypted_content"]));
    let kinds: Vec<&str> = body["input"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["type"].as_str().or(item["role"].as_str()).unwrap())
        .collect();
    assert_eq!(
        kinds,
        [
            "user",
            "reasoning",
            "message",
            "function_call",
            "function_call",
            "function_call_output",
            "function_call_output",
            "user"
        ]
    );
    assert_eq!(body["input"][1]["encrypted_content"], "proof");
    assert_eq!(body["input"][3]["arguments"], "{\"text\":\"a\"}");
}

#[tokio::test]
async fn structured_output_and_effort_reach_every_wire() {
    let mut request = asked("hi");
    request.options.output = Some(OutputSchema {
        name: "answer".into(),
        schema: Arc::new(json!({"type": "object", "properties": {"a": {"type": "string"}},
            "required": ["a"], "additionalProperties": false})),
    });
    request.options.reasoning_effort = Some(ReasoningEffort::Low);
    for (wire, model, schema, effort) in [
        (
            Wire::Anthropic,
            "claude-opus-4-5",
            "/output_config/format/schema/required/0",
            "/output_config/effort",
        ),
        (
            Wire::Gemini,
            "gemini-3-pro",
            "/generationConfig/responseJsonSchema/required/0",
            "/generationConfig/thinkingConfig/thinkingLevel",
        ),
        (Wire::OpenaiResponses, "gpt-5", "/text/format/schema/required/0", "/reasoning/effort"),
    ] {
        let (_, body) = written(wire, model, request.clone()).await;
        assert_eq!(body.pointer(schema), Some(&json!("a")), "{wire}: {body}");
        let effort = body.pointer(effort).and_then(Value::as_str).unwrap_or_default();
        assert_eq!(effort.to_lowercase(), "low", "{wire}: {body}");
    }
}

#[tokio::test]
async fn what_a_wire_cannot_carry_is_refused_before_it_is_sent() {
    let server = Server::refusing("200 OK", "", "{}").await;
    let mut request = asked("hi");
    request.options.stop = vec!["END".into()];
    let error = deltas(&server.model(Wire::OpenaiResponses, "gpt-5"), request).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::BadRequest);
    assert!(error.message.contains("stop texts"), "{error}");
    let mut request = asked("hi");
    request.options.tool_choice = ToolChoice::Required;
    let error = deltas(&server.model(Wire::Ollama, "qwen3"), request).await.unwrap_err();
    assert!(error.message.contains("a tool choice"), "{error}");
    assert!(server.seen().is_empty());
}

fn anthropic_events() -> Vec<Value> {
    let delta = |index: u32, delta: Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
    let start = |index: u32, block: Value| json!({"type": "content_block_start", "index": index, "content_block": block});
    let stop = |index: u32| json!({"type": "content_block_stop", "index": index});
    vec![
        json!({"type": "message_start", "message": {"usage": {"input_tokens": 10, "cache_read_input_tokens": 30, "output_tokens": 1}}}),
        start(0, json!({"type": "thinking", "thinking": "", "signature": ""})),
        delta(0, json!({"type": "thinking_delta", "thinking": "h"})),
        delta(0, json!({"type": "thinking_delta", "thinking": "m"})),
        delta(0, json!({"type": "signature_delta", "signature": "pro"})),
        delta(0, json!({"type": "signature_delta", "signature": "of"})),
        stop(0),
        start(1, json!({"type": "redacted_thinking", "data": "sealed"})),
        stop(1),
        json!({"type": "ping"}),
        start(2, json!({"type": "text", "text": ""})),
        delta(2, json!({"type": "text_delta", "text": "Calling."})),
        stop(2),
        start(3, json!({"type": "tool_use", "id": "t1", "name": "echo", "input": {}})),
        delta(3, json!({"type": "input_json_delta", "partial_json": "{\"te"})),
        delta(3, json!({"type": "input_json_delta", "partial_json": "xt\":\"\u{fc}\"}"})),
        stop(3),
        start(4, json!({"type": "tool_use", "id": "t2", "name": "now", "input": {}})),
        stop(4),
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 20}}),
        json!({"type": "message_stop"}),
    ]
}

#[tokio::test]
async fn anthropics_answer_is_read_with_true_fragments_and_whole_proofs() {
    let server = Server::streaming_named(&anthropic_events()).await;
    let model = server.model(Wire::Anthropic, "claude-sonnet-4-5");
    let said = deltas(&model, asked("hi")).await.unwrap();
    assert_eq!(
        said,
        [
            Delta::Reasoning("h".into()),
            Delta::Reasoning("m".into()),
            Delta::ReasoningSignature("anthropic:proof".into()),
            Delta::Text("Calling.".into()),
            Delta::CallStart { index: 0, id: Some(CallId::from("t1")), name: "echo".into() },
            Delta::CallArguments { index: 0, fragment: "{\"te".into() },
            Delta::CallArguments { index: 0, fragment: "xt\":\"\u{fc}\"}".into() },
            Delta::CallStart { index: 1, id: Some(CallId::from("t2")), name: "now".into() },
            Delta::ReasoningSignature("anthropic:proof\nredacted:sealed".into()),
            Delta::Usage(Usage {
                input_tokens: 40,
                output_tokens: 20,
                cached_tokens: 30,
                ..Usage::default()
            }),
            Delta::Stop(StopReason::ToolCalls),
        ]
    );
}

#[tokio::test]
async fn a_thought_goes_back_to_its_author_as_it_came() {
    let server = Server::streaming_named(&anthropic_events()).await;
    let model = server.model(Wire::Anthropic, "claude-sonnet-4-5");
    let said = answer(&model, asked("hi")).await.unwrap().message;
    let request = conversation(vec![Message::user("hi"), said, Message::user("go on")]);
    let (_, body) = written(Wire::Anthropic, "claude-sonnet-4-5", request).await;
    let content = body["messages"][1]["content"].as_array().unwrap();
    assert_eq!(
        content[..3],
        [
            json!({"type": "thinking", "thinking": "hm", "signature": "proof"}),
            json!({"type": "redacted_thinking", "data": "sealed"}),
            json!({"type": "text", "text": "Calling."}),
        ]
    );
}

#[tokio::test]
async fn geminis_answer_is_read_with_calls_that_have_no_ids() {
    let chunk = |parts: Value, finish: Option<&str>| {
        json!({"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": finish}],
            "usageMetadata": {"promptTokenCount": 5, "candidatesTokenCount": 7, "thoughtsTokenCount": 3, "totalTokenCount": 15}})
    };
    let call = |n: u32| json!({"functionCall": {"name": "echo", "args": {"n": n}}, "thoughtSignature": format!("proof{n}")});
    let events = [
        chunk(json!([{"text": "hm", "thought": true}]), None),
        chunk(json!([{"text": "Calling."}]), None),
        chunk(json!([call(1)]), None),
        chunk(json!([call(2), {"text": "", "thoughtSignature": "loose"}]), Some("STOP")),
    ];
    let text: String = events.iter().map(|event| format!("data: {event}\r\n\r\n")).collect();
    let server = Server::start(stream(&[text.as_bytes()], End::Proper)).await;
    let completion =
        answer(&server.model(Wire::Gemini, "gemini-2.5-flash"), asked("hi")).await.unwrap();
    assert_eq!(completion.stop, Some(StopReason::ToolCalls));
    assert_eq!(
        completion.usage,
        Usage { input_tokens: 5, output_tokens: 10, reasoning_tokens: 3, ..Usage::default() }
    );
    let message = completion.message;
    assert_eq!(message.parts[0], signed("hm", "gemini:loose"));
    assert_eq!(message.text(), "Calling.");
    let calls: Vec<&ToolCall> = message.tool_calls().collect();
    assert_eq!(
        calls.iter().map(|call| (&call.arguments, call.signature.as_deref())).collect::<Vec<_>>(),
        [(&json!({"n": 1}), Some("gemini:proof1")), (&json!({"n": 2}), Some("gemini:proof2"))]
    );
    assert_ne!(calls[0].id, calls[1].id);
}

#[tokio::test]
async fn a_prompt_that_gemini_blocks_is_filtered_and_a_call_that_it_botches_is_tried_again() {
    let blocked = json!({"promptFeedback": {"blockReason": "SAFETY"}});
    let server = Server::streaming(&[blocked]).await;
    let said = deltas(&server.model(Wire::Gemini, "gemini-2.5-flash"), asked("hi")).await.unwrap();
    assert_eq!(said, [Delta::Stop(StopReason::ContentFilter)]);
    let botched = json!({"candidates": [{"content": {"parts": []}, "finishReason": "MALFORMED_FUNCTION_CALL"}]});
    let server = Server::streaming(&[botched]).await;
    let error =
        deltas(&server.model(Wire::Gemini, "gemini-2.5-flash"), asked("hi")).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::Malformed);
}

#[tokio::test]
async fn openais_response_is_read_even_where_arguments_come_only_at_the_end() {
    let item = |index: u32, id: &str, name: &str, arguments: &str| json!({"output_index": index, "item": {"type": "function_call", "id": format!("fc_{id}"), "call_id": id, "name": name, "arguments": arguments}});
    let with_type = |kind: &str, mut event: Value| {
        event["type"] = json!(kind);
        event
    };
    let events = [
        json!({"type": "response.created", "response": {"id": "r"}}),
        json!({"type": "response.reasoning_summary_text.delta", "output_index": 0, "summary_index": 0, "delta": "hm"}),
        json!({"type": "response.output_item.done", "output_index": 0, "item": {"type": "reasoning", "id": "rs", "encrypted_content": "sealed1", "summary": []}}),
        json!({"type": "response.output_item.done", "output_index": 1, "item": {"type": "reasoning", "id": "rs2", "encrypted_content": "sealed2", "summary": []}}),
        json!({"type": "response.output_text.delta", "output_index": 2, "content_index": 0, "delta": "Calling."}),
        with_type("response.output_item.added", item(3, "a", "echo", "")),
        json!({"type": "response.function_call_arguments.delta", "output_index": 3, "delta": "{\"n\""}),
        json!({"type": "response.function_call_arguments.delta", "output_index": 3, "delta": ":1}"}),
        with_type("response.output_item.done", item(3, "a", "echo", "{\"n\":1}")),
        with_type("response.output_item.done", item(4, "b", "now", "{\"tz\":\"UTC\"}")),
        json!({"type": "response.completed", "response": {"id": "r", "object": "response", "created_at": 1, "status": "completed", "model": "gpt-5", "output": [],
            "usage": {"input_tokens": 4, "output_tokens": 6, "total_tokens": 10, "output_tokens_details": {"reasoning_tokens": 2}}}}),
    ];
    let server = Server::streaming_named(&events).await;
    let completion =
        answer(&server.model(Wire::OpenaiResponses, "gpt-5"), asked("hi")).await.unwrap();
    let message = completion.message;
    assert_eq!(message.parts[0], signed("hm", "openai-responses:sealed1\nsealed2"));
    assert_eq!(message.text(), "Calling.");
    let calls: Vec<(String, Value)> =
        message.tool_calls().map(|call| (call.id.to_string(), call.arguments.clone())).collect();
    assert_eq!(calls, [("a".to_owned(), json!({"n": 1})), ("b".to_owned(), json!({"tz": "UTC"}))]);
    assert_eq!(completion.stop, Some(StopReason::ToolCalls));
    assert_eq!(completion.usage.reasoning_tokens, 2);
}

#[tokio::test]
async fn a_response_that_failed_keeps_the_class_of_its_code() {
    let failed = json!({"type": "response.failed", "response": {"id": "r", "object": "response", "created_at": 1, "status": "failed", "model": "gpt-5", "output": [],
        "error": {"code": "rate_limit_exceeded", "message": "slow down"}}});
    let server = Server::streaming_named(&[failed]).await;
    let error =
        deltas(&server.model(Wire::OpenaiResponses, "gpt-5"), asked("hi")).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::RateLimited, "{error}");
    assert!(error.message.contains("slow down"), "{error}");
}

#[tokio::test]
async fn an_error_event_of_anthropics_keeps_its_class() {
    let mut events = anthropic_events();
    events.truncate(4);
    events.push(
        json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}),
    );
    let server = Server::streaming_named(&events).await;
    let error =
        deltas(&server.model(Wire::Anthropic, "claude-sonnet-4-5"), asked("hi")).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::Server);
    assert_eq!(error.message, "mock broke off: Overloaded");
}

/// The first part of an answer on each wire, without its end.
fn beginnings() -> Vec<(Wire, &'static str, String)> {
    let named = |events: &[Value]| -> String {
        events
            .iter()
            .map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap()))
            .collect()
    };
    vec![
        (Wire::Anthropic, "claude-sonnet-4-5", named(&anthropic_events()[..12])),
        (
            Wire::Gemini,
            "gemini-2.5-flash",
            format!(
                "data: {}\n\n",
                json!({"candidates": [{"content": {"parts": [{"text": "half"}]}}]})
            ),
        ),
        (
            Wire::OpenaiResponses,
            "gpt-5",
            named(&[
                json!({"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "half"}),
            ]),
        ),
        (
            Wire::Ollama,
            "qwen3",
            format!(
                "{}\n",
                json!({"message": {"role": "assistant", "content": "half"}, "done": false})
            ),
        ),
    ]
}

#[tokio::test]
async fn on_every_wire_a_stream_without_an_end_is_an_error() {
    for (wire, model, text) in beginnings() {
        for (end, class) in [(End::Proper, ErrorClass::Malformed), (End::Torn, ErrorClass::Network)]
        {
            let server = Server::start(stream(&[text.as_bytes()], end)).await;
            let error = deltas(&server.model(wire, model), asked("hi")).await.unwrap_err();
            assert_eq!(error.class, class, "{wire}: {error}");
        }
    }
}

#[tokio::test]
async fn on_every_wire_silence_is_a_timeout() {
    let silences = beginnings().into_iter().flat_map(|(wire, model, text)| {
        let half = stream(&[text.as_bytes()], End::Never);
        [vec![Act::Hang], half].map(|acts| async move {
            let server = Server::start(acts).await;
            let config = ProviderConfig { idle_timeout_secs: Some(1), ..ProviderConfig::default() };
            let providers = server.providers_with(wire, config);
            let model = providers.model(&format!("mock/{model}")).unwrap();
            let error = deltas(&model, asked("hi")).await.unwrap_err();
            assert_eq!(error.class, ErrorClass::Timeout, "{wire}: {error}");
        })
    });
    join_all(silences).await;
}

#[tokio::test]
async fn on_every_wire_a_refusal_has_its_class_its_wait_and_no_key() {
    for (wire, model, _) in beginnings() {
        let body = json!({"error": {"message": format!("slow, {KEY}")}}).to_string();
        let server = Server::refusing("429 Too Many Requests", "retry-after: 3\r\n", &body).await;
        let error = deltas(&server.model(wire, model), asked("hi")).await.unwrap_err();
        assert_eq!(error.class, ErrorClass::RateLimited, "{wire}: {error}");
        assert_eq!(error.retry_after, Some(Duration::from_secs(3)), "{wire}");
        assert!(!error.message.contains(KEY), "{wire}: {error}");
    }
}
