//! Models under a real agent: a session is recorded, and goes the same way again without its model.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use duologue_core::{
    Agent, Ask, Behavior, Effect, Entry, Event, Latest, Memory, MemoryStore, Model, Outcome, Reply,
    RunId, RunState, Session, SessionOptions, Step, Toolbox, tool,
};
use duologue_models::{Recorder, Replay, Scripted, Turn, TurnCall};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

/// Asks until the model has nothing more to call.
struct Simple;

impl Behavior for Simple {
    type State = ();

    fn name(&self) -> &'static str {
        "simple"
    }

    fn decide(&self, run: &RunState, (): &()) -> Step {
        match run.latest() {
            Latest::Input => Step::Ask(Ask::default()),
            Latest::Calls => Step::Call,
            Latest::Answer | Latest::Nothing => Step::End(Outcome::Completed),
        }
    }
}

#[derive(Deserialize, JsonSchema)]
struct Repeat {
    /// What.
    text: String,
    /// How often.
    times: usize,
}

/// An agent with a tool that counts its calls, and with a prompt that shows little of a result.
fn agent(model: Arc<dyn Model>, calls: &Arc<AtomicUsize>) -> Agent {
    let calls = Arc::clone(calls);
    let repeat = tool("repeat", "Repeats a text.", Effect::Pure, move |args: Repeat, _| {
        calls.fetch_add(1, Ordering::SeqCst);
        async move { Ok(args.text.repeat(args.times)) }
    });
    Agent::builder("parrot", Simple)
        .system("Repeat.")
        .model(model)
        .tools(Toolbox::new().with(repeat))
        .memory(Memory { result_chars: 40, ..Memory::default() })
        .build()
}

fn script() -> Scripted {
    Scripted::new([
        Turn::calls([
            TurnCall::new("repeat", json!({"text": "ab", "times": 3})),
            TurnCall::new("repeat", json!({"text": "long ", "times": 100})),
            TurnCall::raw("repeat", "{\"text\": "),
        ])
        .reasoning("Twice, and once wrong."),
        Turn::text("ababab").expect("ababab"),
        Turn::text("You are welcome.").expect("thanks"),
    ])
}

async fn talk(agent: &Agent) -> (Vec<Reply>, Vec<Arc<Entry>>) {
    let store = Arc::new(MemoryStore::new());
    let session = Session::start(agent, store, SessionOptions::default()).unwrap();
    let mut replies = Vec::new();
    for text in ["repeat ab", "thanks"] {
        replies.push(session.reply(text).await.unwrap());
    }
    (replies, session.state().await.unwrap().entries)
}

fn kinds(entries: &[Arc<Entry>]) -> Vec<String> {
    entries.iter().map(|entry| entry.event.kind().to_owned()).collect()
}

#[tokio::test]
async fn a_session_goes_the_same_way_again_from_its_journal() {
    let calls = Arc::new(AtomicUsize::new(0));
    let (replies, entries) = talk(&agent(Arc::new(script()), &calls)).await;
    assert_eq!(replies[1].text(), "You are welcome.");
    let replay = Arc::new(Replay::from_journal(&entries, RunId::ROOT));
    let (again, entries_again) = talk(&agent(replay, &calls)).await;
    let texts = |replies: &[Reply]| replies.iter().map(Reply::text).collect::<Vec<_>>();
    assert_eq!(texts(&again), texts(&replies));
    assert_eq!(kinds(&entries_again), kinds(&entries));
    let results = |entries: &[Arc<Entry>]| {
        let ended = entries.iter().filter_map(|entry| match &entry.event {
            Event::ToolEnded { result, .. } => Some(Arc::clone(result)),
            _ => None,
        });
        ended.collect::<Vec<_>>()
    };
    assert_eq!(results(&entries_again), results(&entries));
}

#[tokio::test]
async fn a_session_whose_tool_changed_is_told_so_by_the_journal() {
    let calls = Arc::new(AtomicUsize::new(0));
    let (_, entries) = talk(&agent(Arc::new(script()), &calls)).await;
    let replay = Arc::new(Replay::from_journal(&entries, RunId::ROOT));
    let other = tool("repeat", "Repeats a text.", Effect::Pure, |_: Repeat, _| async move {
        Ok("something else")
    });
    let agent = agent(replay, &calls);
    let agent = agent.recast(Arc::clone(agent.model().unwrap()), Toolbox::new().with(other));
    let store = Arc::new(MemoryStore::new());
    let session = Session::start(&agent, store, SessionOptions::default()).unwrap();
    let reply = session.reply("repeat ab").await.unwrap();
    let Outcome::Failed { error, .. } = reply.outcome else {
        panic!("{:?}", reply.outcome);
    };
    assert!(error.contains("replay mismatch"), "{error}");
    assert!(error.contains("(ok): ababab\n"), "{error}");
    assert!(error.contains("(ok): something else"), "{error}");
}

#[tokio::test]
async fn a_session_goes_the_same_way_again_from_a_cassette() {
    let folder = tempfile::tempdir().unwrap();
    let tape = folder.path().join("tape.jsonl");
    let calls = Arc::new(AtomicUsize::new(0));
    let recorder = Arc::new(Recorder::new(Arc::new(script()), &tape).unwrap());
    let (replies, entries) = talk(&agent(recorder, &calls)).await;
    let replay = Arc::new(Replay::from_cassette(&tape).unwrap());
    let (again, entries_again) = talk(&agent(replay, &calls)).await;
    assert_eq!(again[1].text(), replies[1].text());
    assert_eq!(kinds(&entries_again), kinds(&entries));
    // Tools are real in both: only the model was replaced.
    assert_eq!(calls.load(Ordering::SeqCst), 4);
}
