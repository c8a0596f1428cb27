//! What users of scripts rely on.

use duologue_core::{
    Accumulator, Completion, Part, StopReason, ToolCall, ToolResult, ToolStatus, Usage,
};
use serde_json::json;

use super::*;

fn asked(messages: Vec<Message>) -> Request {
    Request {
        messages: Arc::new(messages.into_iter().map(Arc::new).collect()),
        ..Request::default()
    }
}

async fn deltas(model: &Scripted, request: Request) -> Vec<Result<Delta, ModelError>> {
    model.ask(request).collect().await
}

async fn answer(model: &Scripted, messages: Vec<Message>) -> Result<Completion, ModelError> {
    let mut all = Accumulator::default();
    for delta in deltas(model, asked(messages)).await {
        all.push(delta?);
    }
    Ok(all.finish())
}

async fn text(model: &Scripted, messages: Vec<Message>) -> String {
    match answer(model, messages).await {
        Ok(completion) => completion.message.text(),
        Err(error) => format!("{}: {error}", error.class),
    }
}

fn result(tool: &str, text: &str) -> Message {
    let call = ToolCall::new("c", tool, json!({}));
    let result = ToolResult::text(&call, ToolStatus::Ok, text);
    Message::new(Role::Tool, vec![Part::from(result)])
}

#[tokio::test]
async fn text_is_streamed_by_words_and_arguments_in_fragments() {
    let model = Scripted::new([Turn::text("one two\nthree")
        .reasoning("hm so")
        .and_call(
            TurnCall::new("echo", json!({"text": "abcdefghijklmnopqrstuvwxyz"})).with_id("c1"),
        )
        .usage(Usage { input_tokens: 5, ..Usage::default() })]);
    let said: Vec<Delta> =
        deltas(&model, Request::default()).await.into_iter().map(Result::unwrap).collect();
    assert_eq!(
        said,
        [
            Delta::Reasoning("hm ".into()),
            Delta::Reasoning("so".into()),
            Delta::Text("one ".into()),
            Delta::Text("two\n".into()),
            Delta::Text("three".into()),
            Delta::CallStart { index: 0, id: Some("c1".into()), name: "echo".into() },
            Delta::CallArguments { index: 0, fragment: "{\"text\":\"abcdefghijklmno".into() },
            Delta::CallArguments { index: 0, fragment: "pqrstuvwxyz\"}".into() },
            Delta::Usage(Usage { input_tokens: 5, ..Usage::default() }),
            Delta::Stop(StopReason::ToolCalls),
        ]
    );
}

#[tokio::test]
async fn turns_are_given_in_order_and_their_end_is_loud() {
    let model = Scripted::new(["one", "two"]);
    assert_eq!(text(&model, vec![Message::user("a")]).await, "one");
    assert_eq!(text(&model, vec![Message::user("a")]).await, "two");
    assert_eq!(
        text(&model, vec![Message::user("more?")]).await,
        "replay mismatch: scripted/test: the script has 2 turns and all were given; \
         the last message is \"more?\""
    );
}

#[tokio::test]
async fn by_position_a_new_process_goes_on_where_the_last_one_was() {
    let script = || Scripted::new(["one", "two", "three"]).by_position();
    let conversation = vec![
        Message::user("a"),
        Message::assistant("one"),
        Message::user("b"),
        Message::assistant("two"),
        Message::user("c"),
    ];
    assert_eq!(text(&script(), conversation.clone()).await, "three");
    let model = script();
    assert_eq!(text(&model, conversation.clone()).await, "three");
    assert_eq!(text(&model, conversation).await, "three");
    assert_eq!(text(&model, vec![Message::user("a")]).await, "one");
}

#[tokio::test]
async fn by_position_an_error_comes_before_its_turn_and_does_not_count() {
    let model = Scripted::new([
        Turn::text("one"),
        Turn::error(ErrorClass::RateLimited, "slow").retry_after(Duration::from_secs(3)),
        Turn::text("two"),
    ])
    .by_position();
    let conversation = || vec![Message::user("a"), Message::assistant("one"), Message::user("b")];
    let error = answer(&model, conversation()).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::RateLimited);
    assert_eq!(error.retry_after, Some(Duration::from_secs(3)));
    assert_eq!(text(&model, conversation()).await, "two");
}

#[tokio::test]
async fn a_looped_script_begins_again() {
    let model = Scripted::new(["one", "two"]).looped();
    for expected in ["one", "two", "one"] {
        assert_eq!(text(&model, Vec::new()).await, expected);
    }
    let model = Scripted::new(["one", "two"]).by_position().looped();
    let said = |n| vec![Message::assistant("x"); n];
    assert_eq!(text(&model, said(3)).await, "two");
    assert_eq!(text(&model, said(4)).await, "one");
}

#[tokio::test]
async fn an_expectation_that_is_not_met_is_a_loud_miss() {
    let model = Scripted::new([Turn::text("ok").expect("42")]).by_position();
    assert_eq!(
        text(&model, vec![result("calculator", "41")]).await,
        "replay mismatch: scripted/test: the script expects \"42\" in the last message, which is \"41\""
    );
    assert_eq!(text(&model, vec![result("calculator", "42")]).await, "ok");
}

#[tokio::test]
async fn what_is_not_json_reaches_the_agent_as_text() {
    let model = Scripted::new([Turn::calls([TurnCall::raw("echo", "{\"text\": ")])]);
    let completion = answer(&model, Vec::new()).await.unwrap();
    let call = completion.message.tool_calls().next().unwrap();
    assert_eq!(call.arguments, json!("{\"text\": "));
}

#[tokio::test(start_paused = true)]
async fn a_delay_is_waited_for_before_every_delta() {
    let model = Scripted::new([Turn::text("a b").delay(Duration::from_millis(100))]);
    let began = tokio::time::Instant::now();
    assert_eq!(text(&model, Vec::new()).await, "a b");
    assert_eq!(began.elapsed(), Duration::from_millis(300));
}

const SCRIPT: &str = r"
name: demo
rules:
  - when: '/what is (?P<what>[^?]+)\?/i'
    from: user
    reasoning: $what is for the calculator.
    calls: [{ name: calculator, arguments: { expression: $1, all: ['$0', 1] } }]
  - when: '/^(-?[0-9.]+)$/'
    tool: calculator
    text: It is $1, which costs $$5.
  - when: HELLO
    text: Hi. $1
turns:
  - text: I only calculate.
";

#[tokio::test]
async fn rules_react_to_what_is_said_and_the_first_that_fits_wins() {
    let model = Scripted::from_yaml("x", SCRIPT).unwrap();
    assert_eq!(model.name(), "scripted/demo");
    let completion = answer(&model, vec![Message::user("So what is 6*7?")]).await.unwrap();
    assert_eq!(completion.message.reasoning(), "6*7 is for the calculator.");
    let call = completion.message.tool_calls().next().unwrap();
    assert_eq!(
        (call.name.as_str(), &call.arguments),
        ("calculator", &json!({"expression": "6*7", "all": ["what is 6*7?", 1]}))
    );
    assert_eq!(
        text(&model, vec![Message::user("…"), result("calculator", "42")]).await,
        "It is 42, which costs $5."
    );
    assert_eq!(text(&model, vec![Message::user("oh, hello there")]).await, "Hi. $1");
    assert_eq!(text(&model, vec![result("echo", "42")]).await, "I only calculate.");
}

#[tokio::test]
async fn a_file_of_either_kind_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let yaml = folder.path().join("talk.yaml");
    std::fs::write(
        &yaml,
        "turns:\n  - error: { class: server, message: down, retry_after_ms: 5 }\n  - text: hi\n    stop: max_tokens\n",
    )
    .unwrap();
    let model = Scripted::from_file(&yaml).unwrap();
    assert_eq!(model.name(), "scripted/talk");
    assert_eq!(text(&model, Vec::new()).await, "provider error: down");
    let completion = answer(&model, Vec::new()).await.unwrap();
    assert_eq!(completion.stop, Some(StopReason::MaxTokens));

    let json = folder.path().join("talk.json");
    std::fs::write(&json, r#"{"turns": [{"text": "hi"}], "order": "calls"}"#).unwrap();
    assert_eq!(text(&Scripted::from_file(&json).unwrap(), Vec::new()).await, "hi");
}

#[test]
fn a_bad_script_is_told_what_is_wrong_and_where() {
    for (script, words) in [
        ("turns: [{ txt: hi }]", "txt"),
        ("{}", "a script needs turns or rules"),
        ("turns: [{}]", "turns[0]: a turn needs a text"),
        ("turns: [{ when: x, text: y }]", "turns[0]: `when`"),
        ("rules: [{ text: y }]", "rules[0]: a rule needs a `when`"),
        ("rules: [{ when: '/(/', text: y }]", "rules[0]: when: \"/(/\" is not a pattern"),
        ("turns: [{ calls: [{ name: a, raw: x, arguments: {} }] }]", "both arguments and raw"),
        ("turns: [{ error: { class: odd } }]", "odd"),
    ] {
        let error = Scripted::from_yaml("s.yaml", script).unwrap_err().to_string();
        assert!(error.starts_with("s.yaml: ") && error.contains(words), "{script}: {error}");
    }
    let error = Scripted::from_file("/no/such/file.yaml").unwrap_err().to_string();
    assert!(error.starts_with("/no/such/file.yaml: "), "{error}");
}
