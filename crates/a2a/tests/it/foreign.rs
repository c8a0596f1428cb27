//! Clients and servers that nobody here wrote: `a2a-sdk` of Python, 1.x and 0.3, and `@a2a-js/sdk`.
//!
//! `cargo xtask setup` installs them; without them these tests say so and pass.

use std::{
    io::Write as _,
    path::{Path, PathBuf},
    process::Stdio,
    sync::Arc,
    time::Duration,
};

use duologue_a2a::{Credentials, PushSettings, Remote};
use duologue_core::{
    Answer, Behavior, Entry, Event, InquiryKind, Latest, Message, Outcome, RunState, Session,
    SessionOptions, Step, ToolCall,
};
use serde_json::json;
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
};

use crate::support::*;

/// Echoes, asks and waits, as its messages say. Its mirror images are `foreign/server*`.
struct Parley;

#[derive(Default)]
struct Heard {
    answer: Option<String>,
    waited: bool,
}

impl Behavior for Parley {
    type State = Heard;

    fn name(&self) -> &'static str {
        "parley"
    }

    fn fold(&self, heard: &mut Heard, entry: &Entry) {
        match &entry.event {
            Event::UserRequest { .. } => *heard = Heard::default(),
            Event::ToolEnded { result, .. } => heard.answer = Some(result.prompt_text()),
            Event::FunctionAnswered { .. } => heard.waited = true,
            _ => {}
        }
    }

    fn decide(&self, run: &RunState, heard: &Heard) -> Step {
        let text = run.request().map(|message| message.text()).unwrap_or_default();
        match (run.latest(), text.as_str(), &heard.answer) {
            (Latest::Calls, ..) => Step::Call,
            (Latest::Input, "ask", None) => {
                let call = ToolCall::new("q", "ask_human", json!({"question": "Which city?"}));
                Step::Say(Message::new(duologue_core::Role::Assistant, vec![call.into()]))
            }
            (Latest::Input, "ask", Some(city)) => {
                Step::Say(Message::assistant(format!("Sunny in {city}")))
            }
            (Latest::Input, "wait", _) if !heard.waited => {
                Step::Invoke { function: "wait".into(), input: json!(30) }
            }
            (Latest::Input, text, _) => Step::Say(Message::assistant(format!("You said {text}"))),
            _ => Step::End(Outcome::Completed),
        }
    }
}

async fn parley() -> Serving {
    let tools = agent([], &World::default()).build().tools().clone();
    let agent = Agent::builder("parley", Parley)
        .tools(tools)
        .function("wait", |seconds| async move {
            tokio::time::sleep(Duration::from_secs(seconds.as_u64().unwrap_or(1))).await;
            Ok(Value::Null)
        })
        .build();
    let push = PushSettings { allow_private: true, ..PushSettings::default() };
    Server::new(agent, Arc::new(MemoryStore::new())).push(push).start().await.unwrap()
}

fn scripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/foreign")
}

/// Where something that setup installs is, if it is there.
fn installed(what: &str) -> Option<PathBuf> {
    let root = std::env::var_os("DUOLOGUE_A2A_TOOLS")
        .map(PathBuf::from)
        .unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools/a2a"));
    let found = root.join(what).canonicalize().ok();
    if found.is_none() {
        let note =
            format!("SKIPPED: a2a/{what} is not installed; `cargo xtask setup` installs it\n");
        // Not by a macro: the test runner would keep that to itself.
        let _ = std::io::stderr().write_all(note.as_bytes());
    }
    found
}

fn python(version: &str) -> Option<PathBuf> {
    installed(version).map(|folder| folder.join("bin/python"))
}

/// Run a client to its end; it says `ok` when all was as it should be.
async fn passes(mut command: Command) {
    command.kill_on_drop(true).stdin(Stdio::null());
    let output = tokio::time::timeout(Duration::from_secs(60), command.output());
    let output = output.await.expect("it hangs").unwrap();
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && out.trim().ends_with("ok"), "{out}\n{err}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_python_client_of_1_0_works_over_every_binding() {
    let Some(python) = python("v1") else { return };
    for binding in ["JSONRPC", "HTTP+JSON", "GRPC"] {
        let serving = parley().await;
        let mut command = Command::new(&python);
        command.arg(scripts().join("client_v1.py")).args([serving.url(), binding]);
        passes(command).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_python_client_of_0_3_works_over_both_bindings() {
    let Some(python) = python("v03") else { return };
    for binding in ["JSONRPC", "HTTP+JSON"] {
        let serving = parley().await;
        let mut command = Command::new(&python);
        command.arg(scripts().join("client_v03.py")).args([serving.url(), binding]);
        passes(command).await;
    }
}

/// A module is looked for beside the script, so the script goes to where the modules are.
fn javascript(name: &str) -> Option<Command> {
    let folder = installed("js")?;
    let script = folder.join(name);
    std::fs::copy(scripts().join(name), &script).unwrap();
    let mut command = Command::new("node");
    command.arg(script);
    Some(command)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_javascript_client_works() {
    for binding in ["JSONRPC", "HTTP+JSON"] {
        let Some(mut command) = javascript("client.mjs") else { return };
        let serving = parley().await;
        command.args([serving.url(), binding]);
        passes(command).await;
    }
}

/// A server of somebody else's, ended with the test.
struct Theirs {
    url: String,
    _process: Child,
}

async fn start(mut command: Command) -> Theirs {
    // A port that is free now; the server says when it listens there.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    command.arg(port.to_string()).kill_on_drop(true);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit());
    let mut process = command.spawn().unwrap();
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
    let ready = async {
        while let Some(line) = lines.next_line().await.unwrap() {
            if line.trim() == "ready" {
                return;
            }
        }
        panic!("the server ended before it was ready");
    };
    tokio::time::timeout(Duration::from_secs(30), ready).await.expect("the server does not start");
    tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
    Theirs { url: format!("http://127.0.0.1:{port}"), _process: process }
}

/// Talk to a server of somebody else's: an answer, a question and its answer, and a cancellation.
async fn talk_to(theirs: &Theirs) {
    let remote = Remote::connect(&theirs.url, &Credentials::none()).await.unwrap();
    let session = || {
        let options = SessionOptions::default();
        Session::start(&remote.agent("far"), Arc::new(MemoryStore::new()), options).unwrap()
    };
    let reply = session().reply("hello").await.unwrap();
    assert_eq!((&reply.outcome, reply.text().as_str()), (&Outcome::Completed, "You said hello"));

    let asking = session();
    let reply = asking.reply("ask").await.unwrap();
    let Outcome::InputRequired { inquiries } = &reply.outcome else { panic!("{reply:?}") };
    let InquiryKind::Question { text, .. } = &inquiries[0].kind else { panic!("{inquiries:?}") };
    assert_eq!(text, "Which city?");
    asking.answer(&inquiries[0].id, Answer::text("Rome"), None).unwrap();
    let reply = asking.resume().await.unwrap();
    assert_eq!((&reply.outcome, reply.text().as_str()), (&Outcome::Completed, "Sunny in Rome"));

    let waiting = session();
    let running = tokio::spawn({
        let waiting = waiting.clone();
        async move { waiting.reply("wait").await.unwrap() }
    });
    tokio::time::sleep(Duration::from_secs(1)).await;
    waiting.cancel("enough");
    let reply = tokio::time::timeout(Duration::from_secs(5), running).await.unwrap().unwrap();
    assert!(matches!(reply.outcome, Outcome::Aborted { .. }), "{reply:?}");
    // Their task was cancelled too.
    let state = waiting.state().await.unwrap();
    let sent = state.entries.iter().find_map(|entry| match &entry.event {
        Event::FunctionAnswered { output: Some(output), .. } => {
            output["task"]["id"].as_str().map(str::to_owned)
        }
        _ => None,
    });
    let id = sent.expect("the task was begun");
    let task = tokio::time::timeout(Duration::from_secs(5), remote.follow(&id)).await.unwrap();
    assert_eq!(task.unwrap().status.state, duologue_a2a::a2a::TaskState::Canceled);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_python_server_of_1_0_is_an_agent_of_ours() {
    let Some(python) = python("v1") else { return };
    let mut command = Command::new(python);
    command.arg(scripts().join("server_v1.py"));
    talk_to(&start(command).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_python_server_of_0_3_is_an_agent_of_ours() {
    let Some(python) = python("v03") else { return };
    for binding in ["JSONRPC", "HTTP+JSON"] {
        let mut command = Command::new(&python);
        command.arg(scripts().join("server_v03.py")).arg(binding);
        talk_to(&start(command).await).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_javascript_server_is_an_agent_of_ours() {
    let Some(command) = javascript("server.mjs") else { return };
    talk_to(&start(command).await).await;
}
