//! What a conversation is on record: a line for each step, from which another process goes on.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::{Orchestrator, Role, SimulationError, incoming};
use crate::{
    Incoming, Message, Replay, Simulation, Termination, evaluate,
    participant::{is_valid_agent_history_message, is_valid_user_history_message},
};

/// What a step added to a conversation. All of them, in order, are the conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// How many steps there were; 0 where it began.
    pub steps: u32,
    /// How many tool calls had failed.
    pub errors: u32,
    /// Who sent the last message.
    pub from: Role,
    /// Whom it is for.
    pub to: Role,
    /// What was said.
    pub messages: Vec<Message>,
    /// What is new about the agent's state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<Json>,
    /// What is new about the user's state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<Json>,
    /// Why it ended, where it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Termination>,
    /// When it began.
    pub start_time: String,
    /// How many seconds it had taken.
    pub elapsed: f64,
}

impl Orchestrator {
    /// Goes to the end and gives a record of each step. With earlier records it goes on behind them.
    ///
    /// # Errors
    /// [`SimulationError::Record`] where the records are not those of this conversation, or where
    /// one could not be kept.
    pub async fn run_recorded(
        &mut self,
        earlier: Vec<Record>,
        keep: impl FnMut(Record) -> Result<(), String>,
    ) -> Result<Simulation, SimulationError> {
        let result = self.go_on(earlier, keep).await;
        self.leave();
        result?;
        Ok(self.simulation(self.ended.unwrap_or(Termination::UnexpectedError)))
    }

    async fn go_on(
        &mut self,
        earlier: Vec<Record>,
        mut keep: impl FnMut(Record) -> Result<(), String>,
    ) -> Result<(), SimulationError> {
        if earlier.is_empty() {
            self.initialize().await?;
            keep(self.record().await).map_err(SimulationError::Record)?;
        } else {
            self.resume(earlier)?;
        }
        while self.ended.is_none() {
            self.step().await?;
            self.check_limits();
            keep(self.record().await).map_err(SimulationError::Record)?;
        }
        Ok(())
    }

    /// What is new since this was last asked.
    async fn record(&mut self) -> Record {
        let messages = self.trajectory.get(self.recorded..).unwrap_or_default().to_vec();
        self.recorded = self.trajectory.len();
        let (elapsed, start_time) = match &self.begun {
            Some((instant, time)) => (instant.elapsed().as_secs_f64(), time.clone()),
            None => (0.0, String::new()),
        };
        Record {
            steps: self.steps,
            errors: self.errors,
            from: self.from,
            to: self.to,
            messages,
            agent: self.agent.keep().await,
            user: self.user.keep().await,
            ended: self.ended,
            start_time,
            elapsed,
        }
    }

    /// Sets everybody to the state that the records tell. Calls are made again in the fresh
    /// environment, and must be answered as they were.
    fn resume(&mut self, records: Vec<Record>) -> Result<(), SimulationError> {
        let Some(last) = records.last() else { return Ok(()) };
        let initial = self.task.initial_state.clone();
        let given = initial.as_ref().and_then(|state| state.message_history.as_ref());
        let given = given.map_or(0, Vec::len);
        self.trajectory = records.iter().flat_map(|record| record.messages.clone()).collect();
        self.recorded = self.trajectory.len();
        let (history, since) = self.trajectory.split_at(given.min(self.trajectory.len()));
        self.environment.set_state(initial.as_ref(), history, Replay::Strict)?;
        self.environment.repeat(evaluate::complete_part(since)).map_err(|failure| {
            SimulationError::Record(format!("it cannot be gone on with: {failure}"))
        })?;
        if let Some(seed) = self.seed {
            self.agent.set_seed(seed);
            self.user.set_seed(seed);
        }
        // Whoever is to answer the last message has not seen it yet. A history that was given ends
        // with one message, a step of the environment with all its answers.
        let unseen = match (last.from, last.steps) {
            (Role::Environment, 1..) => last.messages.len(),
            _ => 1,
        };
        let seen = self.trajectory.len().saturating_sub(unseen);
        let (before, unseen) = self.trajectory.split_at(seen);
        self.message = match (last.from, unseen) {
            (Role::Environment, answers) => {
                incoming(answers.iter().filter_map(|message| match message {
                    Message::Tool(answer) => Some(answer.clone()),
                    _ => None,
                }))
            }
            (_, [Message::Assistant(said) | Message::User(said)]) => Incoming::Said(said.clone()),
            _ => Incoming::Begin,
        };
        let whole = self.trajectory.as_slice();
        let of = |to: Role| if last.to == to { before } else { whole };
        let filtered = |messages: &[Message], valid: fn(&Message) -> bool| -> Vec<Message> {
            messages.iter().filter(|message| valid(message)).cloned().collect()
        };
        let agents = filtered(of(Role::Agent), is_valid_agent_history_message);
        let users = filtered(of(Role::User), is_valid_user_history_message);
        let kept = |of: fn(&Record) -> Option<&Json>| -> Vec<Json> {
            records.iter().filter_map(|record| of(record).cloned()).collect()
        };
        let (agent_kept, user_kept) = (kept(|r| r.agent.as_ref()), kept(|r| r.user.as_ref()));
        self.agent.resume(&agents, agent_kept).map_err(SimulationError::Agent)?;
        self.user.resume(&users, user_kept).map_err(SimulationError::User)?;
        (self.from, self.to) = (last.from, last.to);
        (self.steps, self.errors, self.ended) = (last.steps, last.errors, last.ended);
        let took = Duration::try_from_secs_f64(last.elapsed).unwrap_or_default();
        let begun = Instant::now().checked_sub(took).unwrap_or_else(Instant::now);
        self.begun = Some((begun, last.start_time.clone()));
        Ok(())
    }
}
