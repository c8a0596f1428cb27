//! The smallest agent with a tool: `cargo run -p examples --example first-agent`, and with a real
//! model `cargo run -p examples --example first-agent openai/gpt-4.1`.

#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::{error::Error, sync::Arc};

use duologue_behaviors::ReAct;
use duologue_core::{Agent, Effect, MemoryStore, Reply, Session, SessionOptions, Toolbox, tool};
use duologue_models::{Scripted, Turn};
use examples::model_or;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

#[derive(Deserialize, JsonSchema)]
struct Add {
    /// The first summand.
    a: f64,
    /// The second.
    b: f64,
}

async fn ask(question: &str) -> Result<Reply, Box<dyn Error>> {
    let add = tool("add", "Adds two numbers.", Effect::Pure, |args: Add, _| async move {
        Ok((args.a + args.b).to_string())
    });
    let script = Scripted::new([
        Turn::call("add", json!({"a": 2, "b": 40})),
        Turn::text("2 + 40 is 42.").expect("42"),
    ]);
    let agent = Agent::builder("clerk", ReAct::default())
        .system("You are good at sums.")
        .model(model_or(script)?)
        .tools(Toolbox::new().with(add))
        .build();
    let store = Arc::new(MemoryStore::new());
    let session = Session::start(&agent, store, SessionOptions::default())?;
    Ok(session.reply(question).await?)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let reply = ask("What is 2 + 40?").await?;
    println!("{} ({} tokens)", reply.text(), reply.usage.tokens());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_adds() {
        assert_eq!(ask("What is 2 + 40?").await.unwrap().text(), "2 + 40 is 42.");
    }
}
