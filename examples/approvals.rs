//! A tool that asks first. The process could end while the question is open: the answer finds the
//! session again by its id.

#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::{error::Error, sync::Arc};

use duologue_behaviors::Generic;
use duologue_core::{
    Agent, Answer, Effect, MemoryStore, Outcome, Reply, Session, SessionOptions, Toolbox, tool,
};
use duologue_models::{Scripted, Turn, TurnCall};
use examples::model_or;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

#[derive(Deserialize, JsonSchema)]
struct Transfer {
    /// To whom.
    to: String,
    /// How much.
    amount: u32,
}

fn clerk() -> Result<Agent, Box<dyn Error>> {
    let transfer =
        tool("transfer", "Sends money.", Effect::SideEffect, |t: Transfer, _| async move {
            Ok(format!("{} went to {}", t.amount, t.to))
        });
    let call = TurnCall::new("transfer", json!({"to": "Ada", "amount": 10})).with_id("t1");
    let script =
        Scripted::new([Turn::calls([call]), Turn::text("Ada has her money.")]).by_position();
    Ok(Agent::builder("clerk", Generic::default())
        .model(model_or(script)?)
        .tools(Toolbox::new().with(transfer))
        .build())
}

async fn pay() -> Result<Reply, Box<dyn Error>> {
    let store = Arc::new(MemoryStore::new());
    let session = Session::start(&clerk()?, store.clone(), SessionOptions::default())?;
    let reply = session.reply("Send Ada 10.").await?;
    let Outcome::InputRequired { inquiries } = reply.outcome else { return Ok(reply) };
    let id = session.id().clone();
    drop(session);

    // Another process, another day.
    let session = Session::open(&clerk()?, store, &id, SessionOptions::default()).await?;
    for inquiry in inquiries {
        println!("{} Yes.", inquiry.kind);
        session.answer(&inquiry.id, Answer::Approve, Some("the boss".into()))?;
    }
    Ok(session.resume().await?)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    println!("{}", pay().await?.text());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_money_arrives_after_a_yes() {
        assert_eq!(pay().await.unwrap().text(), "Ada has her money.");
    }
}
