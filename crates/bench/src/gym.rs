//! A conversation step by step, for training loops: `reset`, `step`, reward.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
};

use futures::future::BoxFuture;

use crate::{
    AgentError, Domain, Environment, Incoming, Limits, Message, Mode, Orchestrator, Replay, Seat,
    Simulation, SimulationError, Task, Termination, Utterance,
    evaluate::{EvaluateError, EvaluationType, Evaluator, Judge},
    llm::ToolList,
    orchestrator::Role,
    simulation::RewardInfo,
};

/// Makes the user of each episode.
pub type MakeUser = Arc<dyn Fn() -> Result<Box<dyn Seat>, AgentError> + Send + Sync>;

/// An environment for an agent that is outside.
pub struct Gym {
    domain: Arc<Domain>,
    task: Arc<Task>,
    mode: Mode,
    limits: Limits,
    user: MakeUser,
    judge: Option<Arc<dyn Judge>>,
    episode: Option<Episode>,
}

struct Episode {
    orchestrator: Orchestrator,
    actions: Actions,
    /// How much of the trajectory was shown.
    shown: usize,
}

/// What the agent sees.
#[derive(Clone, Debug, Default)]
pub struct Observation {
    /// What is new since it last acted, its own messages left out.
    pub messages: Vec<Message>,
    /// What came of the conversation, once it is over.
    pub end: Option<Ending>,
}

/// How an episode ended.
#[derive(Clone, Debug)]
pub struct Ending {
    /// Why.
    pub reason: Termination,
    /// The reward.
    pub reward: f64,
    /// How it was judged.
    pub info: RewardInfo,
    /// The whole conversation.
    pub simulation: Simulation,
}

/// Why a step failed.
#[derive(Debug, thiserror::Error)]
pub enum GymError {
    /// There is no episode: reset first.
    #[error("there is no episode under way: reset first")]
    NoEpisode,
    /// The conversation broke off.
    #[error(transparent)]
    Simulation(#[from] SimulationError),
    /// It could not be judged.
    #[error(transparent)]
    Evaluate(#[from] EvaluateError),
}

impl Gym {
    /// A gym for a task.
    pub fn new(domain: Arc<Domain>, task: Arc<Task>, mode: Mode, user: MakeUser) -> Self {
        Self { domain, task, mode, limits: Limits::default(), user, judge: None, episode: None }
    }

    /// With limits.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// With a judge of natural-language assertions.
    #[must_use]
    pub fn judge(mut self, judge: Arc<dyn Judge>) -> Self {
        self.judge = Some(judge);
        self
    }

    /// The rules that the agent follows.
    pub fn policy(&self) -> &str {
        match (self.mode, &self.domain.solo_policy) {
            (Mode::Solo, Some(policy)) => policy,
            _ => &self.domain.policy,
        }
    }

    /// The tools that the agent may call.
    pub fn tools(&self) -> ToolList {
        self.domain.agent_tools(self.mode)
    }

    /// Begins an episode, up to the agent's first turn. An agent alone gives its first action here.
    pub async fn reset(
        &mut self,
        seed: i64,
        first: Option<Utterance>,
    ) -> Result<Observation, GymError> {
        let environment = Environment::for_task(&self.domain, self.mode, Some(&self.task))
            .map_err(SimulationError::from)?;
        let user = (self.user)().map_err(SimulationError::User)?;
        let actions = Actions::default();
        actions.put(first);
        let agent = Box::new(actions.clone());
        let mut orchestrator = Orchestrator::new(environment, agent, user, Arc::clone(&self.task))
            .limits(self.limits)
            .seed(seed);
        orchestrator.initialize().await?;
        self.episode = Some(Episode { orchestrator, actions, shown: 0 });
        self.advance().await
    }

    /// Acts, and goes on to the agent's next turn.
    pub async fn step(&mut self, action: Utterance) -> Result<Observation, GymError> {
        let episode = self.episode.as_mut().ok_or(GymError::NoEpisode)?;
        episode.actions.put(Some(action));
        episode.orchestrator.step().await?;
        episode.orchestrator.check_limits();
        self.advance().await
    }

    async fn advance(&mut self) -> Result<Observation, GymError> {
        let episode = self.episode.as_mut().ok_or(GymError::NoEpisode)?;
        let orchestrator = &mut episode.orchestrator;
        while orchestrator.ended().is_none() && orchestrator.turn_of() != Role::Agent {
            orchestrator.step().await?;
            orchestrator.check_limits();
        }
        let trajectory = orchestrator.trajectory();
        let new = trajectory.get(episode.shown..).unwrap_or_default();
        let seen = |message: &&Message| {
            crate::participant::is_valid_agent_history_message(message)
                && !(matches!(message, Message::Assistant(_)) && episode.shown > 0)
        };
        let messages = new.iter().filter(seen).cloned().collect();
        episode.shown = trajectory.len();
        let Some(reason) = orchestrator.ended() else {
            return Ok(Observation { messages, end: None });
        };
        let mut simulation = orchestrator.simulation(reason);
        self.episode = None;
        let evaluator = Evaluator {
            domain: &self.domain,
            mode: self.mode,
            kind: EvaluationType::All,
            replay: Replay::Strict,
        };
        let info = evaluator.evaluate(&simulation, &self.task, self.judge.as_deref()).await?;
        simulation.reward_info = Some(info.clone());
        let end = Ending { reason, reward: info.reward, info, simulation };
        Ok(Observation { messages, end: Some(end) })
    }
}

/// A seat whose messages come from outside.
#[derive(Clone, Default)]
struct Actions(Arc<Mutex<VecDeque<Utterance>>>);

impl Actions {
    fn put(&self, action: Option<Utterance>) {
        if let (Ok(mut actions), Some(action)) = (self.0.lock(), action) {
            actions.push_back(action);
        }
    }
}

impl Seat for Actions {
    fn begin(&mut self, _: &[Message]) -> Result<(), AgentError> {
        Ok(())
    }

    fn next(&mut self, _: Incoming) -> BoxFuture<'_, Result<Utterance, AgentError>> {
        let action = self.0.lock().ok().and_then(|mut actions| actions.pop_front());
        Box::pin(async move { action.ok_or(AgentError::ScriptOver) })
    }

    fn is_stop(&self, message: &Utterance) -> bool {
        message.content.as_deref().is_some_and(|content| content.contains(crate::users::STOP))
    }

    fn stop(&mut self, _: Option<&Incoming>) {}

    fn set_seed(&mut self, _: i64) {}
}
