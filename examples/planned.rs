//! A task with a plan: `cargo run -p examples --example planned`, and with a real model
//! `cargo run -p examples --example planned openai/gpt-4.1`.

#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::{
    collections::BTreeMap,
    error::Error,
    sync::{Arc, Mutex},
};

use duologue_behaviors::{Planned, PlannedConfig, PlannedNote};
use duologue_core::{
    Effect, Event, MemoryStore, Mode, Policy, Reply, Session, SessionOptions, ToolError, Toolbox,
    tool,
};
use duologue_models::{Scripted, Turn};
use examples::model_or;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

#[derive(Deserialize, JsonSchema)]
struct Read {
    /// The note's name.
    name: String,
}

#[derive(Deserialize, JsonSchema)]
struct Write {
    /// The note's name.
    name: String,
    /// What it says.
    text: String,
}

/// Notes in memory that can be read and written.
fn notebook() -> Toolbox {
    let list = "bread\nmilk\nbread".to_owned();
    let notes = Arc::new(Mutex::new(BTreeMap::from([("list".to_owned(), list)])));
    let kept = Arc::clone(&notes);
    let read = tool("read", "Reads a note.", Effect::Pure, move |it: Read, _| {
        let found = notes.lock().ok().and_then(|notes| notes.get(&it.name).cloned());
        async move { found.ok_or_else(|| ToolError::new(format!("there is no note {}", it.name))) }
    });
    let write = tool("write", "Writes a note.", Effect::Idempotent, move |it: Write, _| {
        let told = format!("{} has {} lines", it.name, it.text.lines().count());
        if let Ok(mut notes) = kept.lock() {
            notes.insert(it.name, it.text);
        }
        async move { Ok(told) }
    });
    Toolbox::new().with(read).with(write)
}

/// What the model says when no real one is named: the classification, a plan, two steps, a check.
fn script() -> Scripted {
    let classification = json!({
        "is_simple_task": false, "complexity": "medium", "needs_explicit_reasoning": false,
        "reasoning": "It has to be read before it can be written."
    });
    let plan = json!({ "reasoning": "Read, then write.", "steps": [
        { "title": "Read the list", "tool": "read" },
        { "title": "Write it without doubles", "tool": "write" },
    ] });
    let check = json!({
        "is_complete": true, "reasoning": "The list has bread and milk once each.",
        "suggestions": [], "confidence": 0.95
    });
    Scripted::new([
        Turn::text(classification.to_string()),
        Turn::text(plan.to_string()),
        Turn::call("read", json!({ "name": "list" })),
        Turn::call("write", json!({ "name": "list", "text": "bread\nmilk" })),
        Turn::text(check.to_string()),
    ])
}

async fn tidy() -> Result<Reply, Box<dyn Error>> {
    let agent = Planned::builder("tidy", PlannedConfig::default(), notebook())
        .model(model_or(script())?)
        .policy(Policy::new(Mode::Full))
        .build();
    let store = Arc::new(MemoryStore::new());
    let session = Session::start(&agent, store, SessionOptions::default())?;
    let reply = session.reply("Remove the doubles from the note called list.").await?;
    for entry in &session.state().await?.entries {
        let Event::Note { topic, data } = &entry.event else { continue };
        match PlannedNote::read(topic, data) {
            Some(PlannedNote::Strategy(choice)) => {
                println!("{}: {}", choice.strategy, choice.reason);
            }
            Some(PlannedNote::Todo(todo)) => println!("{}", todo.to_text()),
            Some(PlannedNote::Validation(note)) => {
                println!("checked: {}", note.validation.reasoning);
            }
            _ => println!("{topic}"),
        }
    }
    Ok(reply)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let reply = tidy().await?;
    println!("{}: {}", reply.outcome, reply.text());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_list_is_tidied_by_plan_and_checked() {
        let reply = tidy().await.unwrap();
        assert_eq!(reply.text(), "The list has bread and milk once each.");
    }
}
