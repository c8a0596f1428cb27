//! What agents that pass work on need of sessions: to be put down and taken up, to be joined, to have
//! children made for them, to call things off, and to be held to a budget that came with the work.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use duologue_core::{
    Agent, Attendance, Behavior, Budget, ChildTurn, Entry, Event, Latest, Limit, MemoryStore,
    Message, Outcome, RunState, Session, SessionError, SessionOptions, Step, Store, WhenBusy,
};
use serde_json::{Value, json};
use tokio::sync::Notify;

/// Calls a function and says what it gave. Stopped before that, it calls off.
struct Caller;

impl Behavior for Caller {
    type State = Option<Value>;

    fn name(&self) -> &'static str {
        "caller"
    }

    fn fold(&self, state: &mut Option<Value>, entry: &Entry) {
        match &entry.event {
            Event::FunctionAnswered { output, .. } => *state = output.as_deref().cloned(),
            Event::UserRequest { .. } => *state = None,
            _ => {}
        }
    }

    fn decide(&self, run: &RunState, state: &Option<Value>) -> Step {
        match (run.latest(), state) {
            (Latest::Answer, _) => Step::End(Outcome::Completed),
            (_, Some(value)) => Step::Say(Message::assistant(value.to_string())),
            (_, None) => Step::Invoke { function: "work".into(), input: json!("input") },
        }
    }

    fn farewell(&self, _: &RunState, _: &Option<Value>) -> Option<(String, Value)> {
        Some(("call_off".into(), json!("what was begun")))
    }
}

#[derive(Clone, Default)]
struct World {
    calls: Arc<AtomicUsize>,
    started: Arc<Notify>,
    go: Arc<Notify>,
    called_off: Arc<Mutex<Vec<Value>>>,
    off: Arc<Notify>,
}

fn caller(world: &World) -> Agent {
    let (work, off) = (world.clone(), world.clone());
    Agent::builder("caller", Caller)
        .function_in("work", move |input, context| {
            let world = work.clone();
            async move {
                world.calls.fetch_add(1, Ordering::SeqCst);
                world.started.notify_one();
                world.go.notified().await;
                Ok(json!({
                    "input": input,
                    "session": context.session.as_str(),
                    "steps_left": context.left.steps,
                }))
            }
        })
        .function("call_off", move |input| {
            let world = off.clone();
            async move {
                world.called_off.lock().unwrap().push(input);
                world.off.notify_one();
                Ok(Value::Null)
            }
        })
        .build()
}

fn start(agent: &Agent, store: &Arc<MemoryStore>, options: SessionOptions) -> Session {
    Session::start(agent, Arc::clone(store) as Arc<dyn Store>, options).unwrap()
}

#[tokio::test]
async fn a_suspended_turn_is_gone_on_with_by_whoever_opens_the_session() {
    let (world, store) = (World::default(), Arc::new(MemoryStore::new()));
    let agent = caller(&world);
    let session = start(&agent, &store, SessionOptions::default());
    let id = session.id().clone();
    let running = tokio::spawn({
        let session = session.clone();
        async move { session.reply("go").await }
    });
    world.started.notified().await;
    session.suspend().await.unwrap();
    assert_eq!(running.await.unwrap(), Err(SessionError::Suspended));
    assert_eq!(session.reply("more").await, Err(SessionError::Suspended));
    drop(session);
    let kept = Arc::clone(&store) as Arc<dyn Store>;
    let session = Session::open(&agent, kept, &id, SessionOptions::default()).await.unwrap();
    assert!(session.is_unfinished());
    world.go.notify_one();
    let reply = session.resume().await.unwrap();
    assert_eq!(reply.outcome, Outcome::Completed);
    assert!(reply.text().contains(id.as_str()), "{}", reply.text());
    assert_eq!(world.calls.load(Ordering::SeqCst), 2);
    // Being put down is not being stopped: nothing was called off.
    assert!(world.called_off.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_run_that_is_stopped_calls_off_what_it_began() {
    let (world, store) = (World::default(), Arc::new(MemoryStore::new()));
    let session = start(&caller(&world), &store, SessionOptions::default());
    let running = tokio::spawn({
        let session = session.clone();
        async move { session.reply("go").await.unwrap() }
    });
    world.started.notified().await;
    session.cancel("enough");
    assert_eq!(running.await.unwrap().outcome, Outcome::Aborted { reason: "enough".into() });
    tokio::time::timeout(Duration::from_secs(5), world.off.notified()).await.unwrap();
    assert_eq!(*world.called_off.lock().unwrap(), [json!("what was begun")]);
}

#[tokio::test]
async fn only_a_turn_under_way_can_be_joined() {
    let (world, store) = (World::default(), Arc::new(MemoryStore::new()));
    let session = start(&caller(&world), &store, SessionOptions::default());
    let late = session.reply_when_busy("too early", WhenBusy::Join).await;
    assert_eq!(late, Err(SessionError::NotUnderWay));
    let running = tokio::spawn({
        let session = session.clone();
        async move { session.reply("go").await.unwrap() }
    });
    world.started.notified().await;
    let joined = tokio::spawn({
        let session = session.clone();
        async move { session.reply_when_busy("and this", WhenBusy::Join).await.unwrap() }
    });
    tokio::time::sleep(Duration::from_millis(20)).await;
    world.go.notify_one();
    assert_eq!(running.await.unwrap(), joined.await.unwrap());
    let late = session.reply_when_busy("too late", WhenBusy::Join).await;
    assert_eq!(late, Err(SessionError::NotUnderWay));
}

/// Runs whatever child the request names, and says what it said.
struct Parent;

impl Behavior for Parent {
    type State = (String, Option<String>);

    fn name(&self) -> &'static str {
        "parent"
    }

    fn fold(&self, state: &mut Self::State, entry: &Entry) {
        match &entry.event {
            Event::UserRequest { message, .. } => *state = (message.text(), None),
            Event::ChildReplied { message, .. } => {
                state.1 = message.as_ref().map(|message| message.text());
            }
            _ => {}
        }
    }

    fn decide(&self, run: &RunState, (key, said): &Self::State) -> Step {
        match (run.latest(), said) {
            (Latest::Answer, _) => Step::End(Outcome::Completed),
            (_, Some(said)) => Step::Say(Message::assistant(said.as_str())),
            (_, None) => Step::Run(vec![ChildTurn {
                key: key.clone(),
                input: Message::user("go"),
                expects: None,
            }]),
        }
    }
}

/// Says its agent's own word.
struct Says(String);

impl Behavior for Says {
    type State = ();

    fn name(&self) -> &'static str {
        "says"
    }

    fn decide(&self, run: &RunState, (): &()) -> Step {
        match run.latest() {
            Latest::Answer => Step::End(Outcome::Completed),
            _ => Step::Say(Message::assistant(self.0.as_str())),
        }
    }
}

#[tokio::test]
async fn children_are_made_by_their_names_when_they_are_needed() {
    let agent = Agent::builder("parent", Parent)
        .children_from(|key| {
            let word = key.strip_prefix("says-")?;
            Some(Agent::builder(word, Says(word.to_owned())).build())
        })
        .build();
    let store = Arc::new(MemoryStore::new());
    let session = start(&agent, &store, SessionOptions::default());
    assert_eq!(session.reply("says-one").await.unwrap().text(), "one");
    assert_eq!(session.reply("says-two").await.unwrap().text(), "two");
    let unknown = session.reply("nobody").await.unwrap().outcome;
    assert!(matches!(unknown, Outcome::Failed { .. }), "{unknown}");
    let entries = duologue_core::read_all(&*store, session.id()).await.unwrap();
    duologue_core::replay(&agent, &entries).unwrap();
}

/// A model that always wants to look again.
struct Curious;

impl duologue_core::Model for Curious {
    fn name(&self) -> &str {
        "test/curious"
    }

    fn ask(&self, _: duologue_core::Request) -> duologue_core::DeltaStream {
        use duologue_core::{Delta, StopReason};
        let deltas = [Ok(Delta::Text("hm".into())), Ok(Delta::Stop(StopReason::Completed))];
        Box::pin(futures::stream::iter(deltas))
    }
}

/// Asks and asks.
struct Asks;

impl Behavior for Asks {
    type State = ();

    fn name(&self) -> &'static str {
        "asks"
    }

    fn decide(&self, _: &RunState, (): &()) -> Step {
        Step::Ask(duologue_core::Ask::default())
    }
}

#[tokio::test]
async fn a_session_keeps_to_the_budget_that_it_was_given_also_after_a_restart() {
    let own = Budget { steps: Some(5), ..Budget::default() };
    let agent = Agent::builder("asks", Asks).model(Arc::new(Curious)).budget(own).build();
    let store = Arc::new(MemoryStore::new());
    let given = Budget { steps: Some(2), ..Budget::default() };
    let options = SessionOptions { budget: given, ..SessionOptions::default() };
    let session = start(&agent, &store, options);
    let id = session.id().clone();
    let bounded = Outcome::LimitReached { limit: Limit::Steps };
    assert_eq!(session.reply("go").await.unwrap().outcome, bounded);
    drop(session);
    let kept = Arc::clone(&store) as Arc<dyn Store>;
    let options =
        SessionOptions { attendance: Attendance::Unattended, ..SessionOptions::default() };
    let session = Session::open(&agent, kept, &id, options).await.unwrap();
    assert_eq!(session.reply("again").await.unwrap().outcome, bounded);
    let entries = duologue_core::read_all(&*store, &id).await.unwrap();
    let asked = entries.iter().filter(|e| matches!(e.event, Event::AgentMessage { .. })).count();
    assert_eq!(asked, 4);
}
