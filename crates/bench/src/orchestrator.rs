//! Passing messages between agent, user and environment until the conversation is over.

mod history;
mod record;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize};

pub use record::Record;

use crate::{
    AgentError, Environment, Failure, Incoming, Message, Mode, MultiToolMessage, Replay, Requestor,
    Simulation, Task, Termination, ToolCall, ToolMessage, Utterance, clock,
    participant::{Seat, is_valid_agent_history_message, is_valid_user_history_message},
    users,
};
use history::{check_history, complete, restamped, stamped};

/// What the agent says first.
pub const GREETING: &str = "Hi! How can I help you today?";

/// How long a conversation may get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most steps.
    pub max_steps: u32,
    /// Most failed tool calls.
    pub max_errors: u32,
    /// Most time.
    pub timeout: Option<Duration>,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_steps: 200, max_errors: 10, timeout: None }
    }
}

/// Whether a message that speaks and acts at once ends the conversation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// It does not.
    #[default]
    Free,
    /// It does, as an error of whoever sent it.
    Enforced,
}

/// Why a simulation broke off without an end of its own.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SimulationError {
    /// The agent failed.
    #[error("the agent failed: {0}")]
    Agent(AgentError),
    /// The user failed.
    #[error("the simulated user failed: {0}")]
    User(AgentError),
    /// The environment failed.
    #[error("the environment failed: {0}")]
    Environment(#[from] Failure),
    /// The history that the task starts from is not one.
    #[error("the task's message history is not valid: {0}")]
    History(String),
    /// The conversation is already over.
    #[error("the simulation is over")]
    Over,
    /// Its record cannot be gone on with, or not be written.
    #[error("the record of the simulation: {0}")]
    Record(String),
}

/// Who is on which end of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The agent.
    Agent,
    /// The user.
    User,
    /// The environment.
    Environment,
}

/// A conversation under way. [`run`](Self::run) goes to its end; [`step`](Self::step) by step is for
/// whoever wants to look or to act in between.
pub struct Orchestrator {
    environment: Environment,
    agent: Box<dyn Seat>,
    user: Box<dyn Seat>,
    task: Arc<Task>,
    limits: Limits,
    protocol: Protocol,
    seed: Option<i64>,
    id: String,
    trajectory: Vec<Message>,
    /// How much of it is on record.
    recorded: usize,
    from: Role,
    to: Role,
    message: Incoming,
    steps: u32,
    errors: u32,
    ended: Option<Termination>,
    begun: Option<(Instant, String)>,
}

/// The answers of the environment as somebody gets them.
fn incoming(answers: impl IntoIterator<Item = ToolMessage>) -> Incoming {
    let mut answers: Vec<ToolMessage> = answers.into_iter().collect();
    match (answers.pop(), answers.is_empty()) {
        (Some(one), true) => Incoming::Tool(one),
        (last, _) => {
            answers.extend(last);
            Incoming::Tools(MultiToolMessage { tool_messages: answers })
        }
    }
}

impl Orchestrator {
    /// A conversation about a task.
    pub fn new(
        environment: Environment,
        agent: Box<dyn Seat>,
        user: Box<dyn Seat>,
        task: Arc<Task>,
    ) -> Self {
        Self {
            environment,
            agent,
            user,
            task,
            limits: Limits::default(),
            protocol: Protocol::Free,
            seed: None,
            id: clock::random_id(),
            trajectory: Vec::new(),
            recorded: 0,
            from: Role::Agent,
            to: Role::User,
            message: Incoming::Begin,
            steps: 0,
            errors: 0,
            ended: None,
            begun: None,
        }
    }

    /// With limits.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// With a protocol.
    #[must_use]
    pub fn protocol(mut self, protocol: Protocol) -> Self {
        self.protocol = protocol;
        self
    }

    /// With a seed.
    #[must_use]
    pub fn seed(mut self, seed: i64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// With an id.
    #[must_use]
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = id.into();
        self
    }

    /// Goes to the end.
    pub async fn run(&mut self) -> Result<Simulation, SimulationError> {
        let result = self.run_to_end().await;
        self.leave();
        result?;
        Ok(self.simulation(self.ended.unwrap_or(Termination::UnexpectedError)))
    }

    /// Everybody leaves their seat.
    fn leave(&mut self) {
        let (to_agent, to_user) = match self.to {
            Role::Agent => (Some(&self.message), None),
            Role::User => (None, Some(&self.message)),
            Role::Environment => (None, None),
        };
        self.agent.stop(to_agent);
        self.user.stop(to_user);
    }

    async fn run_to_end(&mut self) -> Result<(), SimulationError> {
        self.initialize().await?;
        while self.ended.is_none() {
            self.step().await?;
            self.check_limits();
        }
        Ok(())
    }

    /// Sets everybody to the state that the task starts from.
    pub async fn initialize(&mut self) -> Result<(), SimulationError> {
        self.begun = Some((Instant::now(), clock::now()));
        let task = Arc::clone(&self.task);
        let initial = task.initial_state.as_ref();
        let history =
            initial.and_then(|state| state.message_history.as_deref()).unwrap_or_default();
        let history = restamped(history);
        self.environment.set_state(initial, &history, Replay::Strict)?;
        if let Some(seed) = self.seed {
            self.agent.set_seed(seed);
            self.user.set_seed(seed);
        }
        match history.last() {
            Some(last) => {
                check_history(&history)?;
                let last = last.clone();
                self.take_up(&history, last)?;
                self.trajectory = history;
            }
            None => self.open().await?,
        }
        self.check_protocol();
        self.environment.sync()?;
        Ok(())
    }

    /// Begins without a history: the agent greets, or goes to work where it is alone.
    async fn open(&mut self) -> Result<(), SimulationError> {
        self.user.begin(&[]).map_err(SimulationError::User)?;
        self.from = Role::Agent;
        if self.environment.mode() == Mode::Dialogue {
            let greeting = Utterance {
                cost: Some(0.0),
                timestamp: Some(clock::now()),
                ..Utterance::text(GREETING)
            };
            let message = Message::Assistant(greeting.clone());
            self.agent.begin(std::slice::from_ref(&message)).map_err(SimulationError::Agent)?;
            self.trajectory.push(message);
            self.message = Incoming::Said(greeting);
            self.to = Role::User;
            return Ok(());
        }
        self.agent.begin(&[]).map_err(SimulationError::Agent)?;
        let said = self.agent.next(Incoming::Begin).await.map_err(SimulationError::Agent)?;
        let said = stamped(said);
        let is_stop = self.agent.is_stop(&said);
        self.to = Role::Environment;
        if is_stop {
            self.to = Role::User;
            self.ended = Some(Termination::AgentStop);
        } else if !said.is_tool_call() {
            self.to = Role::User;
            self.ended = Some(Termination::AgentError);
        }
        self.trajectory.push(Message::Assistant(said.clone()));
        self.message = Incoming::Said(said);
        Ok(())
    }

    /// Goes on from a history. Whoever is to answer the last message has not seen it yet.
    fn take_up(&mut self, history: &[Message], last: Message) -> Result<(), SimulationError> {
        let before = history.split_last().map(|(_, before)| before).unwrap_or_default();
        let (agent_sees, user_sees) = match &last {
            Message::Assistant(said) => {
                self.from = Role::Agent;
                self.to = if said.is_tool_call() { Role::Environment } else { Role::User };
                if self.agent.is_stop(said) {
                    self.ended = Some(Termination::AgentStop);
                }
                (history, before)
            }
            Message::User(said) => {
                self.from = Role::User;
                self.to = if said.is_tool_call() { Role::Environment } else { Role::Agent };
                if users::is_stop(said) {
                    self.ended = Some(Termination::UserStop);
                }
                (before, history)
            }
            Message::Tool(answer) => {
                self.from = Role::Environment;
                if answer.requestor == Requestor::Assistant {
                    self.to = Role::Agent;
                    (before, history)
                } else {
                    self.to = Role::User;
                    (history, before)
                }
            }
            Message::System(_) => {
                return Err(SimulationError::History(
                    "the last message must be an agent's, a user's or a tool's".to_owned(),
                ));
            }
        };
        let seen = |messages: &[Message], valid: fn(&Message) -> bool| -> Vec<Message> {
            messages.iter().filter(|message| valid(message)).cloned().collect()
        };
        let agents = seen(agent_sees, is_valid_agent_history_message);
        let users = seen(user_sees, is_valid_user_history_message);
        self.agent.begin(&agents).map_err(SimulationError::Agent)?;
        self.user.begin(&users).map_err(SimulationError::User)?;
        self.message = match last {
            Message::Assistant(said) | Message::User(said) => Incoming::Said(said),
            Message::Tool(answer) => Incoming::Tool(answer),
            Message::System(_) => Incoming::Begin,
        };
        Ok(())
    }

    /// Passes the message on to whom it is for, and takes theirs.
    pub async fn step(&mut self) -> Result<(), SimulationError> {
        if self.ended.is_some() {
            return Err(SimulationError::Over);
        }
        match self.to {
            Role::User => self.user_speaks().await?,
            Role::Agent => self.agent_speaks().await?,
            Role::Environment => self.environment_answers(),
        }
        self.check_protocol();
        self.steps += 1;
        self.environment.sync()?;
        Ok(())
    }

    async fn user_speaks(&mut self) -> Result<(), SimulationError> {
        let said = self.user.next(self.message.clone()).await.map_err(SimulationError::User)?;
        let said = complete(said).map_err(SimulationError::User)?;
        if users::is_stop(&said) {
            self.ended = Some(Termination::UserStop);
        }
        self.from = Role::User;
        self.to = if said.is_tool_call() { Role::Environment } else { Role::Agent };
        self.trajectory.push(Message::User(said.clone()));
        self.message = Incoming::Said(said);
        Ok(())
    }

    async fn agent_speaks(&mut self) -> Result<(), SimulationError> {
        let said = self.agent.next(self.message.clone()).await.map_err(SimulationError::Agent)?;
        let said = complete(said).map_err(SimulationError::Agent)?;
        let is_stop = self.agent.is_stop(&said);
        if is_stop {
            self.ended = Some(Termination::AgentStop);
        }
        self.from = Role::Agent;
        self.to = if said.is_tool_call() { Role::Environment } else { Role::User };
        if self.environment.mode() == Mode::Solo && !said.is_tool_call() && !is_stop {
            self.ended = Some(Termination::AgentError);
        }
        self.trajectory.push(Message::Assistant(said.clone()));
        self.message = Incoming::Said(said);
        Ok(())
    }

    fn environment_answers(&mut self) {
        let calls: Vec<ToolCall> = match &self.message {
            Incoming::Said(said) => said.tool_calls.clone().unwrap_or_default(),
            _ => Vec::new(),
        };
        let mut answers: Vec<ToolMessage> = Vec::with_capacity(calls.len());
        for call in &calls {
            let mut answer = self.environment.respond(call);
            answer.timestamp = Some(clock::now());
            self.errors += u32::from(answer.error);
            self.trajectory.push(Message::Tool(answer.clone()));
            answers.push(answer);
        }
        self.to = self.from;
        self.from = Role::Environment;
        self.message = incoming(answers);
    }

    /// Ends the conversation where a bound is reached, even if it just ended by itself. While a
    /// message waits for the environment no bound counts.
    pub fn check_limits(&mut self) {
        if self.to == Role::Environment {
            return;
        }
        if self.steps >= self.limits.max_steps {
            self.ended = Some(Termination::MaxSteps);
        }
        if self.errors >= self.limits.max_errors {
            self.ended = Some(Termination::TooManyErrors);
        }
        let took = self.begun.as_ref().map(|(instant, _)| instant.elapsed());
        if let (Some(timeout), Some(took), None) = (self.limits.timeout, took, self.ended)
            && took >= timeout
        {
            self.ended = Some(Termination::Timeout);
        }
    }

    fn check_protocol(&mut self) {
        if self.protocol == Protocol::Free || self.from == Role::Environment {
            return;
        }
        let Incoming::Said(said) = &self.message else { return };
        let alone = self.from == Role::Agent
            && self.environment.mode() == Mode::Solo
            && said.has_text()
            && !self.agent.is_stop(said);
        if said.has_text() == said.is_tool_call() || alone {
            self.ended = Some(match self.from {
                Role::User => Termination::UserError,
                _ => Termination::AgentError,
            });
        }
    }

    /// What came of it, as far as it went.
    pub fn simulation(&self, reason: Termination) -> Simulation {
        let messages = self.trajectory();
        let cost = |of_agent: bool| {
            let costs = messages.iter().filter_map(|message| match message {
                Message::Assistant(said) if of_agent => Some(said.cost),
                Message::User(said) if !of_agent => Some(said.cost),
                _ => None,
            });
            costs.sum::<Option<f64>>()
        };
        let (agent_cost, user_cost) = (cost(true), cost(false));
        let (took, start_time) = match &self.begun {
            Some((instant, time)) => (instant.elapsed().as_secs_f64(), time.clone()),
            None => (0.0, clock::now()),
        };
        let now = clock::now();
        Simulation {
            id: self.id.clone(),
            task_id: self.task.id.clone(),
            timestamp: Some(now.clone()),
            start_time,
            end_time: now,
            duration: took,
            termination_reason: reason,
            agent_cost,
            user_cost,
            reward_info: None,
            messages: Some(messages),
            trial: None,
            seed: self.seed,
            extra: crate::Extra::new(),
        }
    }

    /// What was said so far, numbered.
    pub fn trajectory(&self) -> Vec<Message> {
        let mut messages = self.trajectory.clone();
        for (turn, message) in (0..).zip(messages.iter_mut()) {
            message.set_turn(turn);
        }
        messages
    }

    /// The environment.
    pub fn environment(&self) -> &Environment {
        &self.environment
    }

    /// How many steps were taken.
    pub fn steps(&self) -> u32 {
        self.steps
    }

    /// How many tool calls failed.
    pub fn errors(&self) -> u32 {
        self.errors
    }

    /// Why it ended, where it did.
    pub fn ended(&self) -> Option<Termination> {
        self.ended
    }

    /// Whom the next message is for.
    pub fn turn_of(&self) -> Role {
        self.to
    }
}
