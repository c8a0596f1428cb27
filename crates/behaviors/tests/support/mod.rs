//! A model that says what a test tells it, and agents around it.

#![allow(dead_code, unreachable_pub, reason = "each test file uses its own part of this")]

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use duologue_behaviors::Generic;
use duologue_core::{
    Agent, AgentBuilder, Delta, DeltaStream, Effect, Entry, Event, MemoryStore, Mode, Model,
    ModelError, Policy, Request, Session, SessionId, SessionOptions, StopReason, Store, Toolbox,
    Usage, read_all, tool,
};
use futures::{StreamExt, stream};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

/// What the model does when it is asked.
pub enum Turn {
    Deltas(Vec<Delta>),
    Fails(ModelError),
    /// Says this much and then never goes on.
    Hangs(&'static str),
    /// Says this much and then breaks off.
    BreaksOff(&'static str),
}

/// A model with a list of turns; it remembers what it was asked.
pub struct Turns {
    turns: Mutex<VecDeque<Turn>>,
    pub requests: Mutex<Vec<Request>>,
}

impl Turns {
    pub fn new(turns: impl IntoIterator<Item = Turn>) -> Arc<Self> {
        Arc::new(Self {
            turns: Mutex::new(turns.into_iter().collect()),
            requests: Mutex::default(),
        })
    }

    pub fn asked(&self) -> usize {
        self.requests.lock().unwrap().len()
    }

    /// The texts of the messages of one request.
    pub fn prompt(&self, at: usize) -> Vec<String> {
        let requests = self.requests.lock().unwrap();
        requests[at]
            .all_messages()
            .map(|message| {
                let results: Vec<String> = message
                    .tool_results()
                    .map(|result| format!("{}: {}", result.status, result.prompt_text()))
                    .collect();
                if results.is_empty() { message.text() } else { results.join(" | ") }
            })
            .collect()
    }
}

impl Model for Turns {
    fn name(&self) -> &str {
        "test/turns"
    }

    fn ask(&self, mut request: Request) -> DeltaStream {
        // A copy of the list, so that keeping it does not change what the agent pays.
        request.messages = Arc::new(request.messages.to_vec());
        self.requests.lock().unwrap().push(request);
        match self.turns.lock().unwrap().pop_front().expect("the model was asked too often") {
            Turn::Deltas(deltas) => stream::iter(deltas.into_iter().map(Ok)).boxed(),
            Turn::Fails(error) => stream::iter([Err(error)]).boxed(),
            Turn::Hangs(text) => {
                stream::iter([Ok(Delta::Text(text.into()))]).chain(stream::pending()).boxed()
            }
            Turn::BreaksOff(text) => stream::iter([Ok(Delta::Text(text.into()))]).boxed(),
        }
    }
}

/// The model says a text and is done.
pub fn says(text: &str) -> Turn {
    let usage = Usage { input_tokens: 100, output_tokens: 10, ..Usage::default() };
    Turn::Deltas(vec![
        Delta::Text(text.into()),
        Delta::Usage(usage),
        Delta::Stop(StopReason::Completed),
    ])
}

/// The model calls tools: id, name, arguments as JSON text.
pub fn calls(list: &[(&str, &str, &str)]) -> Turn {
    let mut deltas = vec![Delta::Text("I will. ".into())];
    for (index, (id, name, arguments)) in list.iter().enumerate() {
        let id = (!id.is_empty()).then(|| (*id).into());
        deltas.push(Delta::CallStart { index, id, name: (*name).into() });
        deltas.push(Delta::CallArguments { index, fragment: (*arguments).into() });
    }
    let usage = Usage { input_tokens: 100, output_tokens: 10, ..Usage::default() };
    deltas.push(Delta::Usage(usage));
    deltas.push(Delta::Stop(StopReason::ToolCalls));
    Turn::Deltas(deltas)
}

#[derive(Deserialize, JsonSchema)]
pub struct Word {
    /// A word.
    pub word: String,
}

/// What tools did, in order.
#[derive(Clone, Default)]
pub struct Deeds(Arc<Mutex<Vec<String>>>);

impl Deeds {
    pub fn add(&self, deed: impl Into<String>) {
        self.0.lock().unwrap().push(deed.into());
    }

    pub fn list(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

/// `look` (pure), `put` (idempotent), `act` (side effect), `fail`, `slow` (pure, a second each).
pub fn toolbox(deeds: &Deeds) -> Toolbox {
    let does = |name: &'static str, effect| {
        let deeds = deeds.clone();
        tool(name, "A test tool.", effect, move |args: Word, cx| {
            let deeds = deeds.clone();
            async move {
                deeds.add(format!("{name} {} {}", args.word, cx.idempotency_key));
                Ok(format!("{name} did {}", args.word))
            }
        })
    };
    let fail = tool("fail", "Fails.", Effect::Pure, |args: Word, _| async move {
        Err::<String, _>(duologue_core::ToolError::new(format!("no {}", args.word)))
    });
    let slow = tool("slow", "Is slow.", Effect::Pure, |args: Word, _| async move {
        tokio::time::sleep(Duration::from_secs(1)).await;
        Ok(args.word)
    });
    Toolbox::new()
        .with(does("look", Effect::Pure))
        .with(does("put", Effect::Idempotent))
        .with(does("act", Effect::SideEffect))
        .with(fail)
        .with(slow)
}

pub fn builder(model: &Arc<Turns>, deeds: &Deeds) -> AgentBuilder {
    Agent::builder("tester", Generic::default())
        .model(Arc::clone(model) as Arc<dyn Model>)
        .tools(toolbox(deeds))
        .policy(Policy::new(Mode::Full))
}

pub fn agent(model: &Arc<Turns>, deeds: &Deeds) -> Agent {
    builder(model, deeds).build()
}

pub fn start(agent: &Agent) -> (Session, MemoryStore) {
    let store = MemoryStore::new();
    let options = SessionOptions::default();
    (Session::start(agent, Arc::new(store.clone()), options).unwrap(), store)
}

pub async fn journal(store: &dyn Store, id: &SessionId) -> Vec<Arc<Entry>> {
    read_all(store, id).await.unwrap()
}

/// The kinds of all entries, for whole comparisons.
pub fn kinds(entries: &[Arc<Entry>]) -> Vec<&str> {
    entries.iter().map(|entry| entry.event.kind()).collect()
}

/// The results in a journal: call id, status, text.
pub fn results(entries: &[Arc<Entry>]) -> Vec<(String, String, String)> {
    entries
        .iter()
        .filter_map(|entry| match &entry.event {
            Event::ToolEnded { result, .. } => {
                Some((result.call_id.to_string(), result.status.to_string(), result.prompt_text()))
            }
            _ => None,
        })
        .collect()
}

/// Counts something from several places.
#[derive(Clone, Default)]
pub struct Counter(Arc<AtomicUsize>);

impl Counter {
    pub fn up(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }

    pub fn get(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

pub fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}
