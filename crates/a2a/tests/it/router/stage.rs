//! What the router's scenarios share: a model that is told what to decide, agents that are served,
//! and what a journal says of it all.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex},
};

use duologue_a2a::{BidirectionalAgent, BidirectionalBuilder, Directory, RouterSettings};
use duologue_core::{
    Agent, Delta, DeltaStream, Event, MemoryStore, Model, Reply, Request, Session, SessionOptions,
    StopReason, Store, Usage, read_all, replay,
};
pub use serde_json::{Value, json};

use crate::support::{Server, Serving, Turn, World, agent};

/// A model that decides what it is told to, point by point. What it was asked is kept.
#[derive(Clone, Default)]
pub struct Decider {
    answers: Arc<Mutex<HashMap<String, VecDeque<String>>>>,
    asked: Arc<Mutex<Vec<(String, String)>>>,
}

impl Decider {
    pub fn new() -> Self {
        Self::default()
    }

    /// At this point, decide so. Several are given one after the other.
    pub fn at(self, point: &str, answer: impl ToString) -> Self {
        let answer = answer.to_string();
        self.answers.lock().unwrap().entry(point.to_owned()).or_default().push_back(answer);
        self
    }

    /// Answer the user so.
    pub fn answer(self, text: &str) -> Self {
        self.at("answer", text)
    }

    /// What it was asked at a point, whole.
    pub fn asked(&self, point: &str) -> Vec<String> {
        let asked = self.asked.lock().unwrap();
        asked.iter().filter(|(at, _)| at == point).map(|(_, text)| text.clone()).collect()
    }

    /// Where it was asked, in order.
    pub fn points(&self) -> Vec<String> {
        self.asked.lock().unwrap().iter().map(|(point, _)| point.clone()).collect()
    }
}

impl Model for Decider {
    fn name(&self) -> &str {
        "test/decider"
    }

    fn ask(&self, request: Request) -> DeltaStream {
        let output = request.options.output.as_ref();
        let point = output.map_or_else(|| "answer".to_owned(), |output| output.name.clone());
        let text: Vec<String> = request
            .all_messages()
            .map(|message| {
                let results: Vec<String> =
                    message.tool_results().map(|result| result.prompt_text()).collect();
                format!("{}: {}{}", message.role, message.text(), results.join(" "))
            })
            .collect();
        self.asked.lock().unwrap().push((point.clone(), text.join("\n")));
        let answer = self.answers.lock().unwrap().get_mut(&point).and_then(VecDeque::pop_front);
        let answer = answer.unwrap_or_else(|| format!("nothing was scripted for {point}"));
        let usage = Usage { input_tokens: 7, output_tokens: 3, ..Usage::default() };
        let deltas = [Delta::Text(answer), Delta::Usage(usage), Delta::Stop(StopReason::Completed)];
        let deltas = deltas.map(Ok);
        Box::pin(futures::stream::iter(deltas))
    }
}

pub fn local() -> Value {
    json!({"route": "local", "agent": "", "reason": ""})
}

pub fn remote(agent: &str) -> Value {
    json!({"route": "remote", "agent": agent, "reason": "it can do this"})
}

pub fn tool(name: &str, params: Value) -> Value {
    json!({"tool_name": name, "params": params})
}

/// A bidirectional agent for a scenario.
pub fn described(model: &Decider, directory: &Directory) -> BidirectionalBuilder {
    let model = Arc::new(model.clone());
    BidirectionalAgent::new("front", "Front", model, directory.clone())
}

pub fn with(settings: RouterSettings, model: &Decider, directory: &Directory) -> Agent {
    described(model, directory).settings(settings).build().unwrap().agent().clone()
}

/// A conversation with an agent, and its journal.
pub struct Talk {
    pub session: Session,
    pub store: Arc<MemoryStore>,
    agent: Agent,
}

impl Talk {
    pub fn new(agent: &Agent) -> Self {
        let store = Arc::new(MemoryStore::new());
        let options = SessionOptions::default();
        let session = Session::start(agent, Arc::clone(&store) as Arc<dyn Store>, options).unwrap();
        Self { session, store, agent: agent.clone() }
    }

    pub async fn say(&self, text: &str) -> Reply {
        self.session.reply(text).await.unwrap()
    }

    /// Answer the first thing that waits, and go on.
    pub async fn answer(&self, answer: duologue_core::Answer) -> Reply {
        let id = self.session.pending()[0].id.clone();
        self.session.answer(&id, answer, None).unwrap();
        self.session.resume().await.unwrap()
    }

    /// The decisions as the journal has them: point, decision and who made it.
    pub async fn decisions(&self) -> Vec<String> {
        let entries = read_all(&*self.store, self.session.id()).await.unwrap();
        let notes = entries.iter().filter_map(|entry| match &entry.event {
            Event::Note { topic, data } if topic == "decision" => Some(data.clone()),
            _ => None,
        });
        let text = |note: &Value, field: &str| note[field].as_str().unwrap().to_owned();
        notes
            .map(|note| {
                let (point, decision) = (text(&note, "point"), text(&note, "decision"));
                format!("{point}: {decision} ({})", text(&note, "by"))
            })
            .collect()
    }

    /// The journal holds what the agent would decide again.
    pub async fn replays(&self) {
        let entries = read_all(&*self.store, self.session.id()).await.unwrap();
        replay(&self.agent, &entries).unwrap();
    }
}

/// Another agent, known in the directory by its name.
pub async fn other(
    directory: &Directory,
    name: &'static str,
    turns: impl IntoIterator<Item = Turn>,
) -> Serving {
    other_in(directory, name, turns, &World::default()).await
}

pub async fn other_in(
    directory: &Directory,
    name: &'static str,
    turns: impl IntoIterator<Item = Turn>,
    world: &World,
) -> Serving {
    let server = Server::new(agent(turns, world).build(), Arc::new(MemoryStore::new()));
    let serving = server.card(move |card| card.name = name.to_owned()).start().await.unwrap();
    directory.add(serving.url()).await.unwrap();
    serving
}
