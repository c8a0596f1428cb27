//! The servers: an echo agent of ours, and a bare server that reads and writes the same JSON.

use std::{path::PathBuf, sync::Arc};

use anyhow::{Context, Result};
use axum::{
    Router,
    body::Bytes,
    http::header::CONTENT_TYPE,
    response::{IntoResponse, Response},
    routing::post,
    serve::ListenerExt,
};
use clap::ValueEnum;
use duologue_a2a::{
    Server,
    a2a::{Artifact, SendMessageRequest, StreamResponse, Task, TaskState, TaskStatus},
};
use duologue_core::{
    Agent, Behavior, Effect, Execution, Latest, MemoryStore, Message, Outcome, Part, Role,
    RunState, Step, Store, ToolCall, Toolbox, tool,
};
use duologue_store::{SqliteOptions, SqliteStore};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::{io::AsyncReadExt, net::TcpListener};

/// Serve until standard input ends.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Which server
    #[arg(value_enum)]
    arm: Arm,
    /// The file of the SQLite journal
    #[arg(long)]
    file: Option<PathBuf>,
}

/// A server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Arm {
    /// Reads a request, writes the answer, does nothing else
    Bare,
    /// Our server with its journal in memory
    Memory,
    /// Our server with its journal in SQLite, on the disk before a client is told
    Sqlite,
    /// Our server in memory, with an agent that asks and waits
    Asking,
}

impl Arm {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Bare => "bare",
            Self::Memory => "memory",
            Self::Sqlite => "sqlite",
            Self::Asking => "asking",
        }
    }
}

pub(crate) async fn run(args: Args) -> Result<()> {
    if args.arm == Arm::Bare {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        println!("{}", listener.local_addr()?.port());
        let listener = listener.tap_io(|socket| {
            // Slower, and that would show.
            let _ = socket.set_nodelay(true);
        });
        let router = Router::new().route("/", post(bare));
        tokio::select! {
            served = axum::serve(listener, router) => served?,
            ended = input_ends() => ended?,
        }
        return Ok(());
    }
    let store: Arc<dyn Store> = match args.arm {
        Arm::Sqlite => {
            let file = args.file.context("--file says where the journal is")?;
            Arc::new(SqliteStore::open(file, SqliteOptions::default()).await?)
        }
        _ => Arc::new(MemoryStore::new()),
    };
    let agent = if args.arm == Arm::Asking { asking() } else { echo() };
    let serving = Server::new(agent, store).start().await?;
    println!("{}", serving.address().port());
    input_ends().await?;
    serving.stop().await;
    Ok(())
}

async fn input_ends() -> Result<()> {
    let mut rest = Vec::new();
    tokio::io::stdin().read_to_end(&mut rest).await?;
    Ok(())
}

/// An agent that says what it is told.
pub(crate) fn echo() -> Agent {
    Agent::builder("echo", Echo).description("Says what it is told").build()
}

struct Echo;

impl Behavior for Echo {
    type State = ();

    fn name(&self) -> &'static str {
        "echo"
    }

    fn decide(&self, run: &RunState, (): &()) -> Step {
        match (run.latest(), run.request()) {
            (Latest::Input, Some(request)) => {
                Step::Say(Message::new(Role::Assistant, vec![Part::text(request.text())]))
            }
            _ => Step::End(Outcome::Completed),
        }
    }
}

#[derive(Deserialize, JsonSchema)]
struct Question {
    /// What is asked.
    #[allow(dead_code, reason = "the driver reads it from the call")]
    question: String,
}

/// An agent that asks and, when it is answered, says what it was told.
fn asking() -> Agent {
    let ask = tool("ask_human", "Asks.", Effect::Pure, |_: Question, _| async { Ok("") })
        .execution(Execution::Human);
    Agent::builder("asking", Asking).tools(Toolbox::new().with(ask)).build()
}

struct Asking;

impl Behavior for Asking {
    type State = bool;

    fn name(&self) -> &'static str {
        "asking"
    }

    fn fold(&self, asked: &mut bool, entry: &duologue_core::Entry) {
        if matches!(entry.event, duologue_core::Event::ToolEnded { .. }) {
            *asked = true;
        }
    }

    fn decide(&self, run: &RunState, asked: &bool) -> Step {
        match run.latest() {
            Latest::Calls => Step::Call,
            Latest::Input if !asked => {
                let call = ToolCall::new("ask", "ask_human", json!({"question": "Go on?"}));
                Step::Say(Message::new(Role::Assistant, vec![Part::from(call)]))
            }
            Latest::Input => Step::Say(Message::new(Role::Assistant, vec![Part::text("Done.")])),
            _ => Step::End(Outcome::Completed),
        }
    }
}

#[derive(Deserialize)]
struct Request {
    id: Value,
    method: String,
    params: SendMessageRequest,
}

/// Read a request into the protocol's types and write the answer that an echo agent gives.
async fn bare(body: Bytes) -> Response {
    let Ok(request) = serde_json::from_slice::<Request>(&body) else {
        return axum::http::StatusCode::BAD_REQUEST.into_response();
    };
    let task = task_of(request.params);
    if request.method == "SendMessage" {
        let reply = json!({"jsonrpc": "2.0", "id": request.id, "result": {"task": task}});
        let body = serde_json::to_vec(&reply).unwrap_or_default();
        return ([(CONTENT_TYPE, "application/json")], body).into_response();
    }
    let mut working = task.clone();
    working.status.state = TaskState::Working;
    working.artifacts = None;
    let updates = [StreamResponse::Task(working), StreamResponse::Task(task)];
    let events = updates.into_iter().enumerate().map(move |(at, update)| {
        let reply = json!({"jsonrpc": "2.0", "id": request.id, "result": update});
        Ok::<_, std::convert::Infallible>(format!("id: {at}\ndata: {reply}\n\n"))
    });
    let body = axum::body::Body::from_stream(futures::stream::iter(events));
    ([(CONTENT_TYPE, "text/event-stream")], body).into_response()
}

fn task_of(request: SendMessageRequest) -> Task {
    let mut message = request.message;
    let id = format!("{:032x}", fastrand::u128(..));
    let context = message.context_id.clone().unwrap_or_else(|| id.clone());
    message.task_id = Some(id.clone());
    message.context_id = Some(context.clone());
    let answer = Artifact {
        artifact_id: "answer".to_owned(),
        name: None,
        description: None,
        parts: message.parts.clone(),
        metadata: None,
        extensions: None,
    };
    Task {
        id,
        context_id: context,
        status: TaskStatus { state: TaskState::Completed, message: None, timestamp: None },
        artifacts: Some(vec![answer]),
        history: Some(vec![message]),
        metadata: None,
    }
}
