//! Recording and replaying: what matches, and how loudly what does not match says so.

use std::{sync::Arc, time::Duration};

use duologue_core::{
    Answer, Delta, Effect, Entry, ErrorClass, Event, HookChange, Inquiry, InquiryKind, Message,
    MessageId, Model, ModelError, Part, Request, Role, RunId, StopReason, ToolCall, ToolResult,
    ToolSpec, ToolStatus, Usage,
};
use duologue_models::{Recorder, Replay, Scripted, Turn, TurnCall};
use futures::StreamExt;
use serde_json::json;

use super::support::{answer, asked, conversation, deltas};

fn tape(folder: &tempfile::TempDir) -> std::path::PathBuf {
    folder.path().join("deep/tape.jsonl")
}

fn record(turns: Vec<Turn>, path: &std::path::Path) -> Arc<dyn Model> {
    Arc::new(Recorder::new(Arc::new(Scripted::new(turns)), path).unwrap())
}

fn replay(path: &std::path::Path) -> Arc<dyn Model> {
    Arc::new(Replay::from_cassette(path).unwrap())
}

/// A conversation after a tool call, with ids of its own.
fn after_call(id: &str, result: &str) -> Request {
    let call = ToolCall::new(id, "echo", json!({"b": 1, "a": [2]}));
    let result = ToolResult::text(&call, ToolStatus::Ok, result);
    let mut request = conversation(vec![
        Message::user("echo something"),
        Message::new(Role::Assistant, vec![Part::text("Sure."), Part::from(call)]),
        Message::new(Role::Tool, vec![Part::from(result)]),
    ]);
    request.system = Some("You are terse.\nAlways.".into());
    request.tools =
        Arc::from(vec![Arc::new(ToolSpec::new("echo", "Says it.", json!({"type": "object"})))]);
    request
}

#[tokio::test]
async fn what_was_recorded_is_replayed_delta_by_delta_whatever_the_ids() {
    let folder = tempfile::tempdir().unwrap();
    let turn = Turn::text("Done it.")
        .reasoning("hm")
        .and_call(TurnCall::new("echo", json!({"x": "\u{fc}"})).with_id("c9"))
        .usage(Usage { input_tokens: 3, ..Usage::default() });
    let recorder = record(vec![turn], &tape(&folder));
    assert_eq!(recorder.name(), "scripted/test");
    let said = deltas(&recorder, after_call("id-one", "a")).await.unwrap();
    let replay = replay(&tape(&folder));
    assert_eq!(replay.name(), "replay/scripted/test");
    let again = deltas(&replay, after_call("id-two", "a")).await.unwrap();
    assert_eq!(again, said);
    assert!(again.len() > 5);
}

#[tokio::test]
async fn a_miss_shows_how_the_closest_request_differs() {
    let folder = tempfile::tempdir().unwrap();
    let recorder = record(vec!["one".into(), "two".into()], &tape(&folder));
    deltas(&recorder, asked("something else")).await.unwrap();
    deltas(&recorder, after_call("a", "first\nsecond\nthird")).await.unwrap();
    let error =
        deltas(&replay(&tape(&folder)), after_call("b", "first\n2nd\nthird")).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::ReplayMiss);
    let text = error.message.replace(&tape(&folder).display().to_string(), "TAPE");
    let expected = [
        "TAPE: none of the 2 recorded exchanges has this request; the closest is number 2:",
        "--- recorded",
        "+++ asked",
        "@@ -7,4 +7,4 @@",
        " assistant call-1 calls echo: {\"a\":[2],\"b\":1}",
        " tool call-1 echo ok: first",
        "-    second",
        "+    2nd",
        "     third",
    ];
    assert_eq!(text.lines().collect::<Vec<_>>(), expected);
}

#[tokio::test]
async fn every_part_of_a_request_that_a_model_sees_counts() {
    let folder = tempfile::tempdir().unwrap();
    let recorder = record(vec!["one".into()], &tape(&folder));
    deltas(&recorder, after_call("a", "r")).await.unwrap();
    let changes: [fn(&mut Request); 4] = [
        |request| request.system = None,
        |request| request.tools = Arc::default(),
        |request| request.options.temperature = Some(0.1),
        |request| request.extra.push(Arc::new(Message::user("more"))),
    ];
    for change in changes {
        let mut request = after_call("a", "r");
        change(&mut request);
        let error = deltas(&replay(&tape(&folder)), request).await.unwrap_err();
        assert_eq!(error.class, ErrorClass::ReplayMiss);
    }
    // What a model does not see does not count.
    let mut request = after_call("a", "r");
    let message = Message {
        metadata: [("trace".to_owned(), json!(1))].into(),
        ..(*request.messages[0]).clone()
    };
    Arc::make_mut(&mut request.messages)[0] = Arc::new(message);
    deltas(&replay(&tape(&folder)), request).await.unwrap();
}

#[tokio::test]
async fn equal_requests_are_answered_in_order_errors_included_and_not_once_too_often() {
    let folder = tempfile::tempdir().unwrap();
    let turns = vec![
        Turn::error(ErrorClass::RateLimited, "slow").retry_after(Duration::from_millis(20)),
        "now".into(),
    ];
    let recorder = record(turns, &tape(&folder));
    deltas(&recorder, asked("hi")).await.unwrap_err();
    deltas(&recorder, asked("hi")).await.unwrap();
    let replay = replay(&tape(&folder));
    let error = deltas(&replay, asked("hi")).await.unwrap_err();
    assert_eq!(
        error,
        ModelError::new(ErrorClass::RateLimited, "slow").retry_after(Duration::from_millis(20))
    );
    assert_eq!(answer(&replay, asked("hi")).await.unwrap().message.text(), "now");
    let error = deltas(&replay, asked("hi")).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::ReplayMiss);
    assert!(error.message.ends_with("recorded 2 times and is asked once more"), "{error}");
}

#[tokio::test]
async fn a_cancelled_answer_is_not_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let recorder = record(vec!["one two three".into(), "four".into()], &tape(&folder));
    let mut said = recorder.ask(asked("hi"));
    said.next().await.unwrap().unwrap();
    drop(said);
    assert_eq!(std::fs::read_to_string(tape(&folder)).unwrap(), "");
    deltas(&recorder, asked("hi")).await.unwrap();
    let text = std::fs::read_to_string(tape(&folder)).unwrap();
    assert_eq!(text.lines().count(), 1);
    assert!(text.ends_with('\n'));
}

#[tokio::test]
async fn a_recorder_goes_on_where_the_last_one_stopped() {
    let folder = tempfile::tempdir().unwrap();
    deltas(&record(vec!["one".into()], &tape(&folder)), asked("a")).await.unwrap();
    deltas(&record(vec!["two".into()], &tape(&folder)), asked("b")).await.unwrap();
    let replay = replay(&tape(&folder));
    assert_eq!(answer(&replay, asked("b")).await.unwrap().message.text(), "two");
    assert_eq!(answer(&replay, asked("a")).await.unwrap().message.text(), "one");
}

#[test]
fn a_broken_cassette_says_where() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.jsonl");
    std::fs::write(&path, "\n{\"model\": 1}\n").unwrap();
    let error = Replay::from_cassette(&path).unwrap_err().to_string();
    assert!(error.contains("t.jsonl:2: not a recorded exchange"), "{error}");
    assert!(Replay::from_cassette(folder.path().join("none")).is_err());
}

/// A journal made by hand.
#[derive(Default)]
struct Journal(Vec<Arc<Entry>>);

impl Journal {
    fn add(&mut self, run: u32, event: Event) {
        self.0.push(Arc::new(Entry { seq: self.0.len() as u64, at: 0, run: RunId(run), event }));
    }

    fn request(&mut self, text: &str) -> Arc<Message> {
        let message = Arc::new(Message::user(text));
        let delivery = duologue_core::Delivery::Start;
        self.add(0, Event::UserRequest { message: Arc::clone(&message), delivery, expects: None });
        message
    }

    fn said(&mut self, run: u32, message: Message, stop: Option<StopReason>) -> Arc<Message> {
        let message = Arc::new(message);
        self.add(
            run,
            Event::AgentMessage {
                message: Arc::clone(&message),
                model: "openai/m".into(),
                usage: Usage { input_tokens: 7, cost_microusd: 5, ..Usage::default() },
                stop,
                elapsed_ms: 1,
                aside: None,
            },
        );
        message
    }

    fn ended(&mut self, result: &ToolResult) {
        self.add(0, Event::ToolEnded { result: Arc::new(result.clone()), elapsed_ms: 1 });
    }

    fn replay(&self) -> Arc<dyn Model> {
        Arc::new(Replay::from_journal(&self.0, RunId::ROOT))
    }
}

/// A run with two calls, one of which came from outside, and somebody who joined in.
fn journal() -> (Journal, Vec<Arc<Message>>) {
    let calls = [
        ToolCall::new("c1", "read", json!({"path": "x"})),
        ToolCall::new("c2", "ask", json!("{\"br")),
    ];
    let mut journal = Journal::default();
    journal.request("original");
    let changed =
        Arc::new(Message { id: MessageId::from("changed"), ..Message::user("changed by a hook") });
    journal.add(
        0,
        Event::HookAnswered {
            hook: "h".into(),
            change: HookChange::PreReply { message: Arc::clone(&changed) },
        },
    );
    let said = journal.said(
        0,
        Message::new(
            Role::Assistant,
            vec![
                Part::Reasoning { text: "hm".into(), signature: Some("anthropic:p".into()) },
                Part::text("Looking."),
                Part::from(calls[0].clone()),
                Part::from(calls[1].clone()),
            ],
        ),
        Some(StopReason::ToolCalls),
    );
    journal.add(
        0,
        Event::ToolStarted {
            call_id: "c1".into(),
            name: "read".into(),
            effect: Effect::Pure,
            arguments: None,
            authors: Default::default(),
        },
    );
    journal.add(
        0,
        Event::ExternalAction {
            inquiry: Box::new(Inquiry {
                id: "c2".into(),
                run: RunId::ROOT,
                kind: InquiryKind::Execution { call: calls[1].clone() },
            }),
        },
    );
    let steer = Arc::new(Message::user("also this"));
    journal.add(
        0,
        Event::UserRequest {
            message: Arc::clone(&steer),
            delivery: duologue_core::Delivery::Steer,
            expects: None,
        },
    );
    // Another run's words are not this one's.
    journal.said(3, Message::assistant("a child"), Some(StopReason::Completed));
    journal.add(
        0,
        Event::ExternalActionResult { id: "c2".into(), answer: Answer::text("outside"), by: None },
    );
    let results = [
        ToolResult::text(&calls[0], ToolStatus::Ok, "x".repeat(50)),
        ToolResult::text(&calls[1], ToolStatus::Ok, "outside"),
    ];
    journal.ended(&results[1]);
    journal.ended(&results[0]);
    let last = journal.said(0, Message::assistant("Done."), Some(StopReason::Completed));
    let results = results.map(Part::from).to_vec();
    let tool = Arc::new(Message::new(Role::Tool, results));
    (journal, vec![changed, said, tool, steer, last])
}

fn prompt(messages: &[Arc<Message>]) -> Request {
    Request { messages: Arc::new(messages.to_vec()), ..Request::default() }
}

#[tokio::test]
async fn a_journal_is_answered_from_in_order_and_the_run_is_told_the_same() {
    let (journal, messages) = journal();
    let model = journal.replay();
    assert_eq!(model.name(), "replay/openai/m");
    let first = answer(&model, prompt(&messages[..1])).await.unwrap();
    assert_eq!(first.message.parts, messages[1].parts);
    assert_eq!(first.stop, Some(StopReason::ToolCalls));
    assert_eq!((first.usage.input_tokens, first.usage.cost_microusd), (7, 5));
    let second = answer(&model, prompt(&messages[..4])).await.unwrap();
    assert_eq!(second.message.text(), "Done.");
    let error = deltas(&model, prompt(&messages)).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::ReplayMiss);
    assert!(error.message.contains("has 2 answers for run 0"), "{error}");
}

#[tokio::test]
async fn a_result_that_the_prompt_cuts_is_still_the_same_result() {
    let (journal, mut messages) = journal();
    let model = journal.replay();
    deltas(&model, prompt(&messages[..1])).await.unwrap();
    let mut tool = (*messages[2]).clone();
    let Part::ToolResult(result) = &mut tool.parts[0] else { panic!("no result") };
    let result = Arc::make_mut(result);
    let note =
        format!("{}\n{} 10 of 50 characters are shown]", "x".repeat(10), duologue_core::CUT_NOTE);
    result.content = vec![Part::text(note)];
    messages[2] = Arc::new(tool);
    deltas(&model, prompt(&messages[..4])).await.unwrap();
}

#[tokio::test]
async fn a_run_that_goes_another_way_is_told_where() {
    let (journal, messages) = journal();
    let model = journal.replay();
    let error =
        deltas(&model, conversation(vec![Message::user("something else")])).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::ReplayMiss);
    assert_eq!(
        error.message,
        "answer 1 of run 0 was given to something else:\n--- recorded\n+++ asked\n@@ -1 +1 @@\n\
         -user: changed by a hook\n+user: something else"
    );
    let mut tool = (*messages[2]).clone();
    let Part::ToolResult(result) = &mut tool.parts[1] else { panic!("no result") };
    Arc::make_mut(result).status = ToolStatus::Error;
    let changed = [&messages[..2], &[Arc::new(tool)], &messages[3..4]].concat();
    let error = deltas(&model, prompt(&changed)).await.unwrap_err();
    assert!(
        error
            .message
            .contains("-result of c2 ask (ok): outside\n+result of c2 ask (error): outside"),
        "{error}"
    );
}

#[tokio::test]
async fn words_put_into_the_agents_mouth_are_not_asked_for_and_a_cut_answer_ends() {
    let mut journal = Journal::default();
    let request = journal.request("hi");
    let mouth = Arc::new(Message::assistant("Welcome."));
    journal.add(
        0,
        Event::AgentMessage {
            message: Arc::clone(&mouth),
            model: Arc::default(),
            usage: Usage::default(),
            stop: Some(StopReason::Completed),
            elapsed_ms: 0,
            aside: None,
        },
    );
    journal.said(0, Message::assistant("I was sa"), None);
    let model = journal.replay();
    let said = deltas(&model, prompt(&[request, mouth])).await.unwrap();
    assert_eq!(said[0], Delta::Text("I was sa".into()));
    assert_eq!(said.last(), Some(&Delta::Stop(StopReason::Other("cut off".into()))));
}
