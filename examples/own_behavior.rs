//! A behaviour of your own: it lets the model answer, then asks it once to do better.

#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::{error::Error, sync::Arc};

use duologue_core::{
    Agent, Ask, Behavior, Entry, Event, Latest, MemoryStore, Message, Outcome, Reply, RunState,
    Session, SessionOptions, Step, replay,
};
use duologue_models::{Scripted, Turn};
use examples::model_or;

/// Answers twice and keeps the second answer.
struct SecondThought;

impl Behavior for SecondThought {
    /// How often the model answered.
    type State = u32;

    fn name(&self) -> &'static str {
        "second-thought"
    }

    fn fold(&self, answers: &mut u32, entry: &Entry) {
        match entry.event {
            Event::UserRequest { .. } => *answers = 0,
            Event::AgentMessage { .. } => *answers += 1,
            _ => {}
        }
    }

    fn decide(&self, run: &RunState, answers: &u32) -> Step {
        match (run.latest(), answers) {
            (_, 2..) => Step::End(Outcome::Completed),
            (Latest::Answer, _) => {
                let again = Message::user("Look at your answer again and improve it.");
                Step::Ask(Ask { extra: vec![Arc::new(again)], ..Ask::default() })
            }
            _ => Step::Ask(Ask::default().without_tools()),
        }
    }
}

async fn think(question: &str) -> Result<Reply, Box<dyn Error>> {
    let script =
        Scripted::new([Turn::text("Roses are red."), Turn::text("Roses are red, dawn is too.")]);
    let agent = Agent::builder("poet", SecondThought).model(model_or(script)?).build();
    let store = Arc::new(MemoryStore::new());
    let session = Session::start(&agent, store, SessionOptions::default())?;
    let reply = session.reply(question).await?;

    // The journal alone is enough to check every decision again.
    let checked = replay(&agent, &session.state().await?.entries)?;
    println!("{checked} decisions, the same again");
    Ok(reply)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    println!("{}", think("Write a line about roses.").await?.text());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_second_answer_counts() {
        let reply = think("Write a line about roses.").await.unwrap();
        assert_eq!(reply.text(), "Roses are red, dawn is too.");
    }
}
