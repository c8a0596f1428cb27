//! Our chat client against servers that behave, and servers that do not.

use std::{sync::Arc, time::Duration};

use duologue_core::{Delta, ErrorClass, StopReason, Usage};
use duologue_models::{ProviderConfig, Wire};
use futures::StreamExt;
use serde_json::{Value, json};

use super::support::{Act, End, KEY, Server, answer, asked, deltas, stream};

fn text(text: &str) -> Value {
    json!({"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": null}]})
}

fn finish(reason: &str) -> Value {
    json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
}

#[tokio::test]
async fn an_answer_is_streamed_with_its_usage_and_its_reason() {
    let usage = json!({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}});
    let server = Server::streaming(&[text("Hel"), text("lo."), finish("stop"), usage]).await;
    let model = server.model(Wire::OpenaiChat, "m");
    let said = deltas(&model, asked("hi")).await.unwrap();
    assert_eq!(
        said,
        [
            Delta::Text("Hello.".into()),
            Delta::Usage(Usage { input_tokens: 3, output_tokens: 2, ..Usage::default() }),
            Delta::Stop(StopReason::Completed),
        ]
    );
    let seen = &server.seen()[0];
    assert!(seen.head.starts_with("POST /v1/chat/completions HTTP/1.1"), "{}", seen.head);
    assert!(seen.head.contains(&format!("authorization: Bearer {KEY}")), "{}", seen.head);
    assert_eq!(seen.body["model"], "m");
    assert_eq!(seen.body["stream"], true);
}

#[tokio::test]
async fn reads_may_be_cut_anywhere_even_inside_a_character() {
    let call = json!({"choices": [{"delta": {"tool_calls": [{"index": 0, "id": "c\u{e9}", "function":
        {"name": "echo", "arguments": "{\"text\":\"\\u00fc\u{1f600}\\n\"}"}}]}, "finish_reason": null}]});
    let mut whole = String::from(": comment\r\n\r\n");
    for event in [text("gr\u{fc}\u{df} \u{1f600}"), call, finish("tool_calls")] {
        whole.push_str(&format!("data: {event}\r\n\r\n"));
    }
    // No line end after the last event: some servers leave it out.
    whole.push_str("data: [DONE]");
    // Three bytes at a time cut every character, escape, `data:` and CRLF at some place.
    let pieces: Vec<&[u8]> = whole.as_bytes().chunks(3).collect();
    let server = Server::start(stream(&pieces, End::Proper)).await;
    let completion = answer(&server.model(Wire::OpenaiChat, "m"), asked("hi")).await.unwrap();
    assert_eq!(completion.message.text(), "gr\u{fc}\u{df} \u{1f600}");
    let call = completion.message.tool_calls().next().unwrap();
    assert_eq!(call.id.as_str(), "c\u{e9}");
    assert_eq!(call.arguments, json!({"text": "\u{fc}\u{1f600}\n"}));
    assert_eq!(completion.stop, Some(StopReason::ToolCalls));
}

#[tokio::test]
async fn text_is_handed_over_while_the_answer_is_still_coming() {
    let first = format!("data: {}\n\n", text("first"));
    let server = Server::start(stream(&[first.as_bytes()], End::Never)).await;
    let model = server.model(Wire::OpenaiChat, "m");
    let mut said = model.ask(asked("hi"));
    assert_eq!(said.next().await, Some(Ok(Delta::Text("first".into()))));
}

#[tokio::test]
async fn a_stream_without_an_end_is_an_error_and_not_a_short_answer() {
    let piece = format!("data: {}\n\n", text("half"));
    for (end, class) in [(End::Proper, ErrorClass::Malformed), (End::Torn, ErrorClass::Network)] {
        let server = Server::start(stream(&[piece.as_bytes()], end)).await;
        let model = server.model(Wire::OpenaiChat, "m");
        let mut said = model.ask(asked("hi"));
        assert_eq!(said.next().await, Some(Ok(Delta::Text("half".into()))));
        let error = said.next().await.unwrap().unwrap_err();
        assert_eq!(error.class, class, "{error}");
        assert!(said.next().await.is_none());
    }
}

#[tokio::test]
async fn a_reason_to_stop_is_an_end_though_the_last_word_is_missing() {
    let whole = format!("data: {}\n\ndata: {}\n\n", text("all"), finish("stop"));
    let server = Server::start(stream(&[whole.as_bytes()], End::Proper)).await;
    let completion = answer(&server.model(Wire::OpenaiChat, "m"), asked("hi")).await.unwrap();
    assert_eq!(completion.message.text(), "all");
    assert_eq!(completion.stop, Some(StopReason::Completed));
}

#[tokio::test]
async fn silence_is_a_timeout() {
    for acts in
        [vec![Act::Hang], stream(&[format!("data: {}\n\n", text("a")).as_bytes()], End::Never)]
    {
        let server = Server::start(acts).await;
        let config = ProviderConfig { idle_timeout_secs: Some(1), ..ProviderConfig::default() };
        let model = server.providers_with(Wire::OpenaiChat, config).model("mock/m").unwrap();
        let began = std::time::Instant::now();
        let error = deltas(&model, asked("hi")).await.unwrap_err();
        assert_eq!(error.class, ErrorClass::Timeout, "{error}");
        assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    }
}

#[tokio::test]
async fn whoever_stops_listening_cancels_the_request() {
    let piece = format!("data: {}\n\n", text("a"));
    let server = Server::start(stream(&[piece.as_bytes()], End::Never)).await;
    let model = server.model(Wire::OpenaiChat, "m");
    let mut said = model.ask(asked("hi"));
    said.next().await.unwrap().unwrap();
    drop(said);
    for _ in 0..200 {
        if server.closed() == 1 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the connection is still open");
}

#[tokio::test]
async fn a_connection_is_used_again_even_if_the_stream_is_dropped_at_its_stop() {
    let server = Server::streaming(&[text("a"), finish("stop")]).await;
    let model = server.model(Wire::OpenaiChat, "m");
    for _ in 0..5 {
        let mut said = model.ask(asked("hi"));
        while let Some(delta) = said.next().await {
            if matches!(delta.unwrap(), Delta::Stop(_)) {
                break;
            }
        }
        drop(said);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!((server.seen().len(), server.connections()), (5, 1));
}

#[tokio::test]
async fn the_request_is_let_go_before_the_answer_comes() {
    let server = Server::start(vec![Act::Hang]).await;
    let model = server.model(Wire::OpenaiChat, "m");
    let request = asked("hi");
    let messages = Arc::clone(&request.messages);
    let _said = model.ask(request);
    assert_eq!(Arc::strong_count(&messages), 1);
}

#[tokio::test]
async fn a_refusal_has_its_class_its_wait_and_no_key() {
    let body =
        json!({"error": {"message": format!("no more, {KEY}"), "type": "requests"}}).to_string();
    for (header, wait) in [
        ("retry-after: 7\r\n", Some(Duration::from_secs(7))),
        ("retry-after-ms: 1500\r\n", Some(Duration::from_millis(1500))),
        ("retry-after: Sun, 06 Nov 1994 08:49:37 GMT\r\n", Some(Duration::ZERO)),
        ("", None),
    ] {
        let server = Server::refusing("429 Too Many Requests", header, &body).await;
        let error = deltas(&server.model(Wire::OpenaiChat, "m"), asked("hi")).await.unwrap_err();
        assert_eq!(error.class, ErrorClass::RateLimited);
        assert_eq!(error.retry_after, wait);
        assert_eq!(error.message, "mock answered 429: no more, [redacted]");
    }
}

#[tokio::test]
async fn an_error_inside_the_stream_ends_it() {
    let error = json!({"error": {"message": "overloaded", "code": 503}});
    let server = Server::streaming(&[text("a"), error, text("b")]).await;
    let model = server.model(Wire::OpenaiChat, "m");
    let said: Vec<_> = model.ask(asked("hi")).collect().await;
    assert_eq!(said.len(), 2);
    assert_eq!(said[1].as_ref().unwrap_err().class, ErrorClass::Server);
}

#[tokio::test]
async fn what_is_not_json_is_malformed_and_shown() {
    let server = Server::start(stream(&[b"data: {\"choices\": <<<\n\n"], End::Proper)).await;
    let error = deltas(&server.model(Wire::OpenaiChat, "m"), asked("hi")).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::Malformed);
    assert!(error.message.contains("<<<"), "{error}");
}

#[tokio::test]
async fn a_server_that_does_not_stream_is_understood() {
    let body = json!({"choices": [{"message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}]});
    let server = Server::refusing("200 OK", "", &body.to_string()).await;
    let completion = answer(&server.model(Wire::OpenaiChat, "m"), asked("hi")).await.unwrap();
    assert_eq!(completion.message.text(), "hi");
}

#[tokio::test]
async fn a_redirect_is_not_followed_because_it_would_take_the_key_along() {
    let other = Server::streaming(&[text("stolen"), finish("stop")]).await;
    let header = format!("location: http://127.0.0.1:{}/v1/chat/completions\r\n", other.port);
    let server = Server::refusing("307 Temporary Redirect", &header, "").await;
    let error = deltas(&server.model(Wire::OpenaiChat, "m"), asked("hi")).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::BadRequest);
    assert!(other.seen().is_empty());
}

#[tokio::test]
async fn nobody_at_home_is_a_network_error_without_the_address() {
    let port = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().port()
    };
    let config = ProviderConfig {
        base_url: Some(format!("http://127.0.0.1:{port}/v1?key=abc")),
        ..ProviderConfig::default()
    };
    let configs = std::collections::BTreeMap::from([("gone".to_owned(), config)]);
    let providers = duologue_models::Providers::with_environment(configs, |_| None).unwrap();
    let model = providers.model("gone/m").unwrap();
    let error = deltas(&model, asked("hi")).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::Network);
    assert!(error.message.starts_with("gone cannot be reached"), "{error}");
    assert!(!error.message.contains("abc"), "{error}");
}

#[tokio::test]
async fn headers_of_the_configuration_are_sent_and_their_secrets_kept() {
    let body = json!({"error": {"message": "who is team-secret?"}}).to_string();
    let server = Server::refusing("403 Forbidden", "", &body).await;
    let config = ProviderConfig {
        headers: [("x-team".to_owned(), "${TEAM_SECRET}".to_owned())].into(),
        ..ProviderConfig::default()
    };
    let model = server.providers_with(Wire::OpenaiChat, config).model("mock/m").unwrap();
    let error = deltas(&model, asked("hi")).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::Authentication);
    assert!(!error.message.contains("team-secret"), "{error}");
    assert!(server.seen()[0].head.contains("x-team: team-secret"));
}
