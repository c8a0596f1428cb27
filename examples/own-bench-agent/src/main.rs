//! An agent of your own on τ²-bench, with everything that `duo bench` can do:
//!
//! ```sh
//! cargo run -p own-bench-agent -- run --agent calendar --user oracle_user --save-to calendar.json
//! cargo run -p own-bench-agent -- view calendar.json --task full_day
//! ```
//!
//! It knows one thing: to look a day up. That is not enough to pass, and the scores say so.

use duologue_bench::{
    AgentError, Incoming, Message, Mode, Participant, Registry, Requestor, Seated, ToolCall,
    Utterance, Value,
    participant::{Format, validate_message_format},
};
use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};

/// Looks a day up, tells what it found, and has nothing more to say.
struct Calendar {
    day: String,
}

/// Any state will do that serde can write: a killed run goes on from it.
#[derive(Clone, Debug, Serialize, Deserialize)]
enum State {
    New,
    Looked,
    Told,
}

impl Participant for Calendar {
    type State = State;

    fn get_init_state(&self, _history: &[Message]) -> Result<State, AgentError> {
        Ok(State::New)
    }

    fn generate_next_message<'a>(
        &'a self,
        message: Incoming,
        state: State,
    ) -> BoxFuture<'a, Result<(Utterance, State), AgentError>> {
        let (said, next) = match (message, state) {
            (_, State::New) => {
                let call = ToolCall {
                    id: "day".to_owned(),
                    name: "get_day".to_owned(),
                    arguments: Value::dict([("day", self.day.as_str().into())]),
                    requestor: Requestor::Assistant,
                };
                (Utterance::calls(vec![call]), State::Looked)
            }
            (Incoming::Tool(answer), State::Looked) => {
                let found = answer.content.unwrap_or_default();
                (Utterance::text(format!("{}: {found}", self.day)), State::Told)
            }
            _ => (Utterance::text("I only know the calendar."), State::Told),
        };
        Box::pin(async move {
            validate_message_format(&said, Format::Dialogue)?;
            Ok((said, next))
        })
    }
}

fn main() -> std::process::ExitCode {
    let mut registry = Registry::default();
    // `casting` has the domain's rules and tools, the task, and the model that was named.
    registry.register_agent("calendar", Mode::Dialogue, false, |casting| {
        if !casting.tools.contains("get_day") {
            return Err(AgentError::MissingTool { tool: "get_day".to_owned() });
        }
        Ok(Box::new(Seated::new(Calendar { day: "2026-05-15".to_owned() })))
    });
    duo::bench(registry)
}
