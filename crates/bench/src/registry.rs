//! Agents, users and domains by name, the reference's names among them.

use std::{collections::BTreeMap, sync::Arc};

use crate::{
    AgentError, Domain, Mode, Seat, Seated, Task,
    agents::{GroundTruthAgent, LlmAgent, SoloAgent, StepDetail},
    baselines::{Idle, Oracle, OracleUser},
    domains::{self, DomainEntry},
    llm::{Llm, ToolList},
    users::{DummyUser, Guidelines, UserSimulator},
};

/// What a participant is made for.
pub struct Casting<'a> {
    /// The domain.
    pub domain: &'a Arc<Domain>,
    /// Whether the agent works alone.
    pub mode: Mode,
    /// The rules.
    pub policy: &'a str,
    /// The tools of this seat.
    pub tools: ToolList,
    /// The task.
    pub task: &'a Arc<Task>,
    /// The model, where one was named.
    pub llm: Option<Arc<dyn Llm>>,
    /// What simulated users are told.
    pub guidelines: &'a Guidelines,
}

impl Casting<'_> {
    /// The model; a participant that needs one and got none cannot be made.
    pub fn llm(&self) -> Result<Arc<dyn Llm>, AgentError> {
        self.llm.clone().ok_or_else(|| AgentError::Other("it needs a model: name one".to_owned()))
    }
}

/// Makes a participant for a simulation.
pub type Factory =
    Arc<dyn for<'a> Fn(Casting<'a>) -> Result<Box<dyn Seat>, AgentError> + Send + Sync>;

/// An agent by name.
#[derive(Clone)]
pub struct AgentEntry {
    /// Whether it works alone or with a user.
    pub mode: Mode,
    /// Whether it speaks with a model.
    pub needs_llm: bool,
    /// Makes one.
    pub make: Factory,
}

/// A simulated user by name.
#[derive(Clone)]
pub struct UserEntry {
    /// Whether it speaks with a model.
    pub needs_llm: bool,
    /// Makes one.
    pub make: Factory,
}

/// Everything that has a name.
#[derive(Clone)]
pub struct Registry {
    agents: BTreeMap<String, AgentEntry>,
    users: BTreeMap<String, UserEntry>,
    domains: BTreeMap<String, DomainEntry>,
}

/// There is nothing of this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown {what} {name:?}; there are {known}")]
pub struct Unknown {
    what: &'static str,
    name: String,
    known: String,
}

impl Default for Registry {
    fn default() -> Self {
        let mut registry =
            Self { agents: BTreeMap::new(), users: BTreeMap::new(), domains: BTreeMap::new() };
        registry.register_agent("llm_agent", Mode::Dialogue, true, |casting| {
            let agent = LlmAgent::new(casting.llm()?, casting.tools.clone(), casting.policy);
            Ok(Box::new(Seated::new(agent)))
        });
        for (name, detail) in [
            ("llm_agent_gt", StepDetail::WithArguments),
            ("llm_agent_gt_names", StepDetail::NamesOnly),
        ] {
            registry.register_agent(name, Mode::Dialogue, true, move |casting| {
                let tools = casting.tools.clone();
                let llm = casting.llm()?;
                let agent =
                    GroundTruthAgent::new(llm, tools, casting.policy, casting.task, detail)?;
                Ok(Box::new(Seated::new(agent)))
            });
        }
        registry.register_agent("llm_agent_solo", Mode::Solo, true, |casting| {
            let tools = casting.tools.clone();
            let agent = SoloAgent::new(casting.llm()?, tools, casting.policy, casting.task)?;
            Ok(Box::new(Seated::new(agent)))
        });
        registry.register_agent("oracle", Mode::Dialogue, false, |casting| {
            Ok(Box::new(Seated::new(Oracle::new(Arc::clone(casting.task), casting.mode))))
        });
        registry.register_agent("oracle_solo", Mode::Solo, false, |casting| {
            Ok(Box::new(Seated::new(Oracle::new(Arc::clone(casting.task), casting.mode))))
        });
        registry.register_agent("idle", Mode::Dialogue, false, |_| Ok(Box::new(Seated::new(Idle))));
        registry.register_user("user_simulator", true, |casting| {
            let scenario = casting.task.user_scenario.to_string();
            let tools = casting.tools.clone();
            let user = UserSimulator::new(casting.llm()?, tools, casting.guidelines, &scenario);
            Ok(Box::new(Seated::new(user)))
        });
        registry.register_user("dummy_user", false, |_| Ok(Box::new(Seated::new(DummyUser))));
        registry.register_user("oracle_user", false, |_| Ok(Box::new(Seated::new(OracleUser))));
        for entry in domains::DOMAINS {
            registry.register_domain(*entry);
        }
        registry
    }
}

impl Registry {
    /// Adds an agent, or replaces the one of this name.
    pub fn register_agent(
        &mut self,
        name: impl Into<String>,
        mode: Mode,
        needs_llm: bool,
        make: impl for<'a> Fn(Casting<'a>) -> Result<Box<dyn Seat>, AgentError> + Send + Sync + 'static,
    ) {
        self.agents.insert(name.into(), AgentEntry { mode, needs_llm, make: Arc::new(make) });
    }

    /// Adds a simulated user, or replaces the one of this name.
    pub fn register_user(
        &mut self,
        name: impl Into<String>,
        needs_llm: bool,
        make: impl for<'a> Fn(Casting<'a>) -> Result<Box<dyn Seat>, AgentError> + Send + Sync + 'static,
    ) {
        self.users.insert(name.into(), UserEntry { needs_llm, make: Arc::new(make) });
    }

    /// Adds a domain with its tasks, or replaces the one of this name.
    pub fn register_domain(&mut self, entry: DomainEntry) {
        self.domains.insert(entry.name.to_owned(), entry);
    }

    /// An agent by name.
    pub fn agent(&self, name: &str) -> Result<&AgentEntry, Unknown> {
        self.agents.get(name).ok_or_else(|| unknown("agent", name, self.agents.keys()))
    }

    /// A user by name.
    pub fn user(&self, name: &str) -> Result<&UserEntry, Unknown> {
        self.users.get(name).ok_or_else(|| unknown("user", name, self.users.keys()))
    }

    /// A domain by name.
    pub fn domain(&self, name: &str) -> Result<&DomainEntry, Unknown> {
        self.domains.get(name).ok_or_else(|| unknown("domain", name, self.domains.keys()))
    }

    /// The names of all agents.
    pub fn agents(&self) -> impl Iterator<Item = &str> {
        self.agents.keys().map(String::as_str)
    }

    /// The names of all users.
    pub fn users(&self) -> impl Iterator<Item = &str> {
        self.users.keys().map(String::as_str)
    }

    /// The names of all domains.
    pub fn domains(&self) -> impl Iterator<Item = &str> {
        self.domains.keys().map(String::as_str)
    }
}

fn unknown<'a>(what: &'static str, name: &str, known: impl Iterator<Item = &'a String>) -> Unknown {
    let known: Vec<&str> = known.map(String::as_str).collect();
    Unknown { what, name: name.to_owned(), known: known.join(", ") }
}
