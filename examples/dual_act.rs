//! One agent decides, another works: `cargo run -p examples --example dual-act`, and with a real
//! model `cargo run -p examples --example dual-act openai/gpt-4.1`.

#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::{error::Error, sync::Arc};

use duologue_behaviors::{Accepted, DualAct, DualActConfig, Generic, ReAct};
use duologue_core::{
    Agent, Effect, Event, MemoryStore, Reply, Session, SessionOptions, Toolbox, tool,
};
use duologue_models::{Scripted, Turn};
use examples::model_or;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

#[derive(Deserialize, JsonSchema)]
struct Lookup {
    /// The product.
    product: String,
}

/// H: reviews and decides.
fn planner() -> Result<Agent, Box<dyn Error>> {
    let decide = |arguments| Turn::call("decide", arguments);
    let script = Scripted::new([
        decide(json!({"action": "continue", "reasoning": "The price must be looked up.",
                      "instruction": "Look up the price of the lamp."})),
        decide(json!({"action": "redirect", "reasoning": "One price is not a comparison.",
                      "instruction": "Look up the chair as well.", "focus_area": "prices"})),
        decide(json!({"action": "terminate", "reasoning": "Both prices are known.",
                      "answer": "The lamp costs 30 and the chair 45, so the lamp is cheaper."})),
    ]);
    Ok(Agent::builder("planner", Generic::default())
        .system("You plan and review. You do no work yourself.")
        .model(model_or(script)?)
        .build())
}

/// R: works, with tools.
fn executor() -> Result<Agent, Box<dyn Error>> {
    let price = tool("price", "Looks up a price.", Effect::Pure, |args: Lookup, _| async move {
        Ok(match args.product.as_str() {
            "lamp" => "30",
            "chair" => "45",
            _ => "There is no such product.",
        })
    });
    let script = Scripted::new([
        Turn::call("price", json!({"product": "lamp"})),
        Turn::call(
            "conclude",
            json!({"summary": "The lamp costs 30.", "confidence": 0.9,
                                      "steps": ["looked up the lamp"], "artifacts": {"lamp": 30}}),
        ),
        Turn::call("price", json!({"product": "chair"})),
        Turn::call(
            "conclude",
            json!({"summary": "The chair costs 45.", "confidence": 0.9,
                                      "steps": ["looked up the chair"],
                                      "artifacts": {"lamp": 30, "chair": 45}}),
        ),
    ]);
    Ok(Agent::builder("executor", ReAct::default())
        .system("You carry out what you are told, with your tools.")
        .model(model_or(script)?)
        .tools(Toolbox::new().with(price))
        .build())
}

async fn compare() -> Result<Reply, Box<dyn Error>> {
    let agent = DualAct::new(DualActConfig::new(planner()?, executor()?))?.agent();
    let store = Arc::new(MemoryStore::new());
    let session = Session::start(&agent, store, SessionOptions::default())?;
    let reply = session.reply("Which is cheaper, the lamp or the chair?").await?;

    // Decisions and conclusions are entries of the journal, like everything else.
    for entry in session.state().await?.entries {
        if let Event::Note { topic, data } = &entry.event {
            println!("{topic}: {data}");
        }
    }
    Ok(reply)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let reply = compare().await?;
    println!("{} ({})", reply.text(), reply.outcome);
    if let Some(accepted) = reply.message.as_deref().and_then(Accepted::of) {
        println!("after {} loops: {:?}", accepted.loops, accepted.conclusions);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_answer_carries_what_was_accepted() {
        let reply = compare().await.unwrap();
        let answer = "The lamp costs 30 and the chair 45, so the lamp is cheaper.";
        assert_eq!(reply.text(), answer);
        let accepted = Accepted::of(reply.message.as_deref().unwrap()).unwrap();
        assert_eq!(accepted.loops, 2);
        let artifacts = &accepted.conclusions.first().unwrap().conclusion.artifacts;
        assert_eq!(json!(artifacts), json!({"lamp": 30, "chair": 45}));
    }
}
