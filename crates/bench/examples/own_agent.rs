//! An agent of your own on τ²-bench: `cargo run -p duologue-bench --example own_agent`.
//!
//! It knows one thing: to look the day up that a task expects. That is not enough to pass, and the
//! scores say so.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::sync::Arc;

use duologue_bench::{
    AgentError, DataDir, Incoming, Limits, Message, Mode, Participant, Protocol, Registry,
    Requestor, Seated, ToolCall, Utterance, Value,
    evaluate::EvaluationType,
    metrics::Metrics,
    run::{Keep, Plan, run},
    users::Guidelines,
};
use futures::future::BoxFuture;

/// Looks a day up, tells what it found, and has nothing more to say.
struct Calendar;

impl Participant for Calendar {
    /// Any state will do that serde can write: here, how often it spoke.
    type State = u32;

    fn get_init_state(&self, _history: &[Message]) -> Result<u32, AgentError> {
        Ok(0)
    }

    fn generate_next_message<'a>(
        &'a self,
        message: Incoming,
        spoke: u32,
    ) -> BoxFuture<'a, Result<(Utterance, u32), AgentError>> {
        let said = match (message, spoke) {
            (_, 0) => Utterance::calls(vec![ToolCall {
                id: "day".to_owned(),
                name: "get_day".to_owned(),
                arguments: Value::dict([("day", "2026-05-15".into())]),
                requestor: Requestor::Assistant,
            }]),
            (Incoming::Tool(answer), _) => {
                Utterance::text(format!("Tomorrow: {}", answer.content.unwrap_or_default()))
            }
            _ => Utterance::text("I only know the calendar."),
        };
        Box::pin(async move { Ok((said, spoke + 1)) })
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut registry = Registry::default();
    registry.register_agent("calendar", Mode::Dialogue, false, |_casting| {
        Ok(Box::new(Seated::new(Calendar)))
    });

    // The embedded domain takes no data directory.
    let entry = registry.domain("bike_shop")?;
    let data = DataDir::new("");
    let plan = Plan {
        domain: Arc::new((entry.load)(&data, None)?),
        tasks: (entry.tasks)(&data)?.tasks,
        agent: ("calendar".to_owned(), registry.agent("calendar")?.clone()),
        user: ("oracle_user".to_owned(), registry.user("oracle_user")?.clone()),
        agent_llm: None,
        user_llm: None,
        judge: None,
        trials: 1,
        limits: Limits::default(),
        protocol: Protocol::Enforced,
        seed: 300,
        concurrency: 4,
        retries: 0,
        evaluation: EvaluationType::All,
        guidelines: Guidelines::own(),
    };
    let results = run(Arc::new(plan), &mut Keep::in_memory(), |_| {}).await?;
    for simulation in &results.simulations {
        let reward = simulation.reward_info.as_ref().map_or(0.0, |info| info.reward);
        println!("{reward:.0}  {}", simulation.task_id);
    }
    println!("mean reward {:.2}", Metrics::of(&results).average_reward);
    Ok(())
}
