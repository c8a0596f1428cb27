//! What the tests share: agents, servers and a client that hides nothing.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

pub use duologue_a2a::{Server, Serving};
use duologue_behaviors::ReAct;
pub use duologue_core::{Agent, MemoryStore, Store};
use duologue_core::{
    AgentBuilder, DeltaStream, Effect, Execution, Mode, Model, Policy, Reach, Request, Toolbox,
    tool,
};
use duologue_models::Scripted;
pub use duologue_models::Turn;
use futures::StreamExt;
use schemars::JsonSchema;
use serde::Deserialize;
pub use serde_json::{Value, json};
use tokio::sync::Notify;

/// A model whose script begins anew for every task, also of one conversation.
pub struct Script(pub Vec<Turn>);

impl Model for Script {
    fn name(&self) -> &str {
        "scripted/test"
    }

    fn ask(&self, request: Request) -> DeltaStream {
        Scripted::new(self.0.clone()).by_position().looped().ask(request)
    }
}

#[derive(Deserialize, JsonSchema)]
pub struct Word {
    /// Any word.
    #[allow(dead_code)]
    word: String,
}

#[derive(Deserialize, JsonSchema)]
pub struct Question {
    /// What to ask.
    #[allow(dead_code)]
    question: String,
}

/// What the tools of an agent did and wait for.
#[derive(Clone, Default)]
pub struct World {
    pub acted: Arc<AtomicUsize>,
    pub started: Arc<Notify>,
    pub go: Arc<Notify>,
}

/// An agent with tools that look, act, wait and ask.
pub fn agent(turns: impl IntoIterator<Item = Turn>, world: &World) -> AgentBuilder {
    let acted = Arc::clone(&world.acted);
    let act = tool("act", "Does something.", Effect::SideEffect, move |_: Word, _| {
        acted.fetch_add(1, Ordering::SeqCst);
        async { Ok("done") }
    });
    let held = world.clone();
    let wait = tool("wait", "Waits.", Effect::Pure, move |_: Word, _| {
        let held = held.clone();
        async move {
            held.started.notify_one();
            held.go.notified().await;
            Ok("waited")
        }
    })
    .reach(Reach::Workspace);
    let ask = tool("ask_human", "Asks.", Effect::Pure, |_: Question, _| async { Ok("") })
        .execution(Execution::Human);
    Agent::builder("tester", ReAct::default())
        .description("An agent for tests")
        .model(Arc::new(Script(turns.into_iter().collect())))
        .policy(Policy::new(Mode::Ask))
        .tools(Toolbox::new().with(act).with(wait).with(ask))
}

pub async fn serve(agent: Agent) -> Serving {
    Server::new(agent, Arc::new(MemoryStore::new())).start().await.unwrap()
}

/// A client for one server.
#[derive(Clone)]
pub struct Client {
    pub url: String,
    pub http: reqwest::Client,
    pub version: &'static str,
}

impl Client {
    pub fn new(serving: &Serving) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        Self { url: serving.url().to_owned(), http, version: "1.0" }
    }

    pub fn of_version(mut self, version: &'static str) -> Self {
        self.version = version;
        self
    }

    pub async fn post_rpc(&self, method: &str, params: Value) -> reqwest::Response {
        let body = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
        let request = self.http.post(&self.url).header("a2a-version", self.version);
        request.json(&body).send().await.unwrap()
    }

    /// The whole response of a call.
    pub async fn rpc(&self, method: &str, params: Value) -> Value {
        let response = self.post_rpc(method, params).await;
        let body: Value = response.json().await.unwrap();
        assert_eq!((&body["jsonrpc"], &body["id"]), (&json!("2.0"), &json!(7)), "{body}");
        body
    }

    /// The result of a call that must succeed.
    pub async fn call(&self, method: &str, params: Value) -> Value {
        let body = self.rpc(method, params).await;
        assert!(body.get("error").is_none(), "{body}");
        body["result"].clone()
    }

    /// The code of a call that must fail.
    pub async fn refused(&self, method: &str, params: Value) -> i64 {
        let body = self.rpc(method, params).await;
        body["error"]["code"].as_i64().unwrap_or_else(|| panic!("{body}"))
    }

    pub async fn send(&self, text: &str) -> Value {
        self.call("SendMessage", said(text)).await["task"].clone()
    }

    pub async fn send_to(&self, task: &Value, text: &str) -> Value {
        let mut params = said(text);
        params["message"]["taskId"] = task["id"].clone();
        self.call("SendMessage", params).await["task"].clone()
    }

    pub async fn get(&self, task: &Value) -> Value {
        self.call("GetTask", json!({"id": task["id"]})).await
    }

    /// Open a stream by a call.
    pub async fn stream(&self, method: &str, params: Value) -> Events {
        Events::new(self.post_rpc(method, params).await)
    }

    /// Wait until a task is in a state.
    pub async fn until(&self, task: &Value, state: &str) -> Value {
        for _ in 0..200 {
            let now = self.get(task).await;
            if now["status"]["state"] == state {
                return now;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("the task never came to {state}: {}", self.get(task).await)
    }
}

/// The parameters of a message.
pub fn said(text: &str) -> Value {
    let id = format!("m-{}", fastrand_id());
    json!({"message": {"messageId": id, "role": "ROLE_USER", "parts": [{"text": text}]}})
}

fn fastrand_id() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Server-sent events as they come.
pub struct Events {
    body: futures::stream::BoxStream<'static, reqwest::Result<bytes::Bytes>>,
    buffer: String,
}

impl Events {
    pub fn new(response: reqwest::Response) -> Self {
        let kind = response.headers()["content-type"].to_str().unwrap().to_owned();
        assert!(kind.starts_with("text/event-stream"), "{kind}");
        Self { body: response.bytes_stream().boxed(), buffer: String::new() }
    }

    /// The next event's id and what it says; `None` when the stream has ended.
    pub async fn next(&mut self) -> Option<(String, Value)> {
        loop {
            if let Some((event, rest)) = self.buffer.split_once("\n\n") {
                let mut id = String::new();
                let mut data = String::new();
                for line in event.lines() {
                    if let Some(text) = line.strip_prefix("id: ") {
                        text.clone_into(&mut id);
                    } else if let Some(text) = line.strip_prefix("data: ") {
                        data.push_str(text);
                    }
                }
                self.buffer = rest.to_owned();
                if data.is_empty() {
                    continue;
                }
                let value: Value = serde_json::from_str(&data).unwrap();
                let value = value.get("result").cloned().unwrap_or(value);
                return Some((id, value));
            }
            let piece = tokio::time::timeout(Duration::from_secs(10), self.body.next());
            match piece.await.expect("the stream is stuck") {
                Some(piece) => self.buffer.push_str(std::str::from_utf8(&piece.unwrap()).unwrap()),
                None => return None,
            }
        }
    }

    /// All that is left.
    pub async fn rest(&mut self) -> Vec<(String, Value)> {
        let mut all = Vec::new();
        while let Some(event) = self.next().await {
            all.push(event);
        }
        all
    }
}

/// What an update is about, in a word or two.
pub fn brief(update: &Value) -> String {
    if let Some(task) = update.get("task") {
        return format!("task {}", task["status"]["state"].as_str().unwrap());
    }
    if let Some(status) = update.get("statusUpdate") {
        let text = status["status"]["message"]["parts"][0]["text"].as_str().unwrap_or_default();
        let state = status["status"]["state"].as_str().unwrap();
        return format!("{state} {text}").trim().to_owned();
    }
    if let Some(artifact) = update.get("artifactUpdate") {
        let text = artifact["artifact"]["parts"][0]["text"].as_str().unwrap_or_default();
        return format!("artifact {text}");
    }
    panic!("{update}")
}
