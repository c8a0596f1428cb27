//! The agent that the official A2A compatibility kit is run against:
//! `cargo run -p tck-agent -- --port 9999 --grpc-port 10000`.
//!
//! The kit says in the id of a message what it wants to happen. The agent has no model: it is a
//! behaviour of a few lines, and everything else is the server's.

#![allow(clippy::print_stdout, reason = "it tells where it is reached")]

use std::{error::Error, net::Ipv4Addr, sync::Arc, time::Duration};

use clap::Parser;
use duologue_a2a::{
    PushSettings, Server,
    a2a::{Artifact, Part as WirePart},
    give_artifact, reply_directly,
};
use duologue_core::{
    Agent, Behavior, Entry, Event, FileSource, Latest, MemoryStore, Message, Outcome, Part, Role,
    RunState, Step,
};
use serde_json::{Value, json};

#[derive(Parser)]
#[command(about = "Serve the agent that the A2A compatibility kit tests")]
struct Arguments {
    /// The port of JSON-RPC and HTTP+JSON.
    #[arg(long, default_value_t = 9999)]
    port: u16,
    /// The port of gRPC.
    #[arg(long, default_value_t = 10000)]
    grpc_port: u16,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    let agent = Agent::builder("tck-agent", Kit)
        .description("Does what the compatibility kit asks for in the ids of its messages")
        .function("wait", |input| async move {
            let seconds = input.as_u64().unwrap_or_default();
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            Ok(Value::Null)
        })
        .build();
    // The kit listens for notifications on this machine.
    let push = PushSettings { allow_private: true, ..PushSettings::default() };
    let serving = Server::new(agent, Arc::new(MemoryStore::new()))
        .bind((Ipv4Addr::LOCALHOST, arguments.port).into())
        .grpc((Ipv4Addr::LOCALHOST, arguments.grpc_port).into())
        .push(push)
        .card(|card| {
            // The kit sends media types that nobody knows and wants them taken.
            card.default_input_modes = vec!["*/*".to_owned()];
            // It checks the card against the fields of 1.0 alone.
            card.supported_interfaces.retain(|face| face.protocol_version == "1.0");
        })
        .start()
        .await?;
    println!("{} (gRPC {})", serving.url(), serving.grpc_address());
    tokio::signal::ctrl_c().await?;
    serving.stop().await;
    Ok(())
}

/// Does what the id of a message asks for.
struct Kit;

/// What was done in the current turn.
#[derive(Default)]
struct Done {
    chunks: u32,
    waited: bool,
}

impl Behavior for Kit {
    type State = Done;

    fn name(&self) -> &'static str {
        "tck"
    }

    fn fold(&self, done: &mut Done, entry: &Entry) {
        match &entry.event {
            Event::UserRequest { .. } => *done = Done::default(),
            Event::Note { topic, .. } if !topic.starts_with('@') => done.chunks += 1,
            Event::FunctionAnswered { .. } => done.waited = true,
            _ => {}
        }
    }

    fn decide(&self, run: &RunState, done: &Done) -> Step {
        if run.latest() != Latest::Input {
            return Step::End(Outcome::Completed);
        }
        let id = run.request().map(|message| message.id.as_str()).unwrap_or_default();
        scenario(id, done)
    }
}

/// What the kit's scenarios say, the longer prefixes first.
fn scenario(id: &str, done: &Done) -> Step {
    let starts = |prefix: &str| id.starts_with(prefix);
    if starts("tck-stream-artifact-chunked") {
        return match done.chunks {
            0 => chunk("chunk-1 ", false, false),
            1 => chunk("chunk-2", true, true),
            _ => Step::End(Outcome::Completed),
        };
    }
    if starts("test-resubscribe-message-id") {
        if done.waited {
            return Step::End(Outcome::Completed);
        }
        return Step::Invoke { function: "wait".into(), input: json!(4) };
    }
    if starts("tck-input-required") {
        return Step::End(Outcome::InputRequired { inquiries: Vec::new() });
    }
    if starts("tck-reject-task") {
        return Step::End(Outcome::Rejected { reason: "rejected".into() });
    }
    if starts("tck-stream-002") {
        return Step::End(Outcome::Completed);
    }
    let message = Message::new(Role::Assistant, vec![answer(id)]);
    if starts("tck-message-response") {
        return reply_directly(message);
    }
    Step::Say(message)
}

fn answer(id: &str) -> Part {
    let starts = |prefix: &str| id.starts_with(prefix);
    let file = |source| Part::File {
        media_type: "text/plain".into(),
        name: Some("output.txt".into()),
        source,
    };
    if starts("tck-artifact-file-url") {
        return file(FileSource::Url("https://example.com/output.txt".into()));
    }
    if starts("tck-artifact-file") || starts("tck-stream-artifact-file") {
        return file(FileSource::Base64("dGNr".into()));
    }
    if starts("tck-artifact-data") {
        return Part::data(json!({"key": "value", "count": 42}));
    }
    let texts = [
        ("tck-complete-task", "Hello from TCK"),
        ("tck-artifact-text", "Generated text content"),
        ("tck-message-response", "Direct message response"),
        ("tck-stream-001", "Stream hello from TCK"),
        ("tck-stream-003", "Stream task lifecycle"),
        ("tck-stream-ordering-001", "Ordered output"),
        ("tck-stream-artifact-text", "Streamed text content"),
    ];
    let known = texts.iter().find(|(prefix, _)| starts(prefix)).map(|(_, text)| *text);
    Part::text(known.unwrap_or("Nothing special was asked for"))
}

fn chunk(text: &str, append: bool, last: bool) -> Step {
    let artifact = Artifact {
        artifact_id: "chunked".into(),
        name: None,
        description: None,
        parts: vec![WirePart::text(text)],
        metadata: None,
        extensions: None,
    };
    give_artifact(artifact, append, last)
}
