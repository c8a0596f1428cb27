//! From ReAct to dual act: the same agent, now supervised, behind the same interface.
//! `cargo run -p examples --example react-to-dual-act`, or with a real model's name after it.

#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::{error::Error, sync::Arc};

use duologue_behaviors::{DualAct, DualActConfig, Generic, ReAct};
use duologue_core::{Agent, MemoryStore, Reply, Session, SessionOptions};
use duologue_models::{Scripted, Turn};
use examples::model_or;
use serde_json::json;

/// The agent that was there before. Nothing about it changes.
fn react_agent(script: Scripted) -> Result<Agent, Box<dyn Error>> {
    Ok(Agent::builder("writer", ReAct::default())
        .system("You write short texts.")
        .model(model_or(script)?)
        .build())
}

/// Whoever talks to an agent does it like this, whatever the agent is.
async fn ask(agent: &Agent, text: &str) -> Result<Reply, Box<dyn Error>> {
    let store = Arc::new(MemoryStore::new());
    let session = Session::start(agent, store, SessionOptions::default())?;
    Ok(session.reply(text).await?)
}

async fn before() -> Result<Reply, Box<dyn Error>> {
    let agent = react_agent(Scripted::new([Turn::text("Roses are red.")]))?;
    ask(&agent, "Write a line about roses that rhymes.").await
}

async fn after() -> Result<Reply, Box<dyn Error>> {
    let conclude = |summary: &str| Turn::call("conclude", json!({"summary": summary}));
    let react_agent = react_agent(Scripted::new([
        conclude("Roses are red."),
        conclude("Roses are red, to the gardener's head."),
    ]))?;
    let decide = |arguments| Turn::call("decide", arguments);
    let planning_agent = Agent::builder("editor", Generic::default())
        .system("You judge texts and do not write any.")
        .model(model_or(Scripted::new([
            decide(json!({"action": "continue", "reasoning": "Nothing is written yet.",
                          "instruction": "Write a line about roses that rhymes."})),
            decide(json!({"action": "continue", "reasoning": "It does not rhyme.",
                          "instruction": "Make it rhyme."})),
            decide(json!({"action": "terminate", "reasoning": "It rhymes."})),
        ]))?)
        .build();
    let dual_act = DualAct::new(DualActConfig::new(planning_agent, react_agent))?.agent();
    ask(&dual_act, "Write a line about roses that rhymes.").await
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    println!("before: {}", before().await?.text());
    println!("after:  {}", after().await?.text());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_same_call_gets_a_supervised_answer() {
        assert_eq!(before().await.unwrap().text(), "Roses are red.");
        let reply = after().await.unwrap();
        assert_eq!(reply.text(), "Roses are red, to the gardener's head.");
    }
}
