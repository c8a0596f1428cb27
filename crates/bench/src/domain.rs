//! A domain: its tools, databases, rules and tasks.

use crate::{
    Failure, Mode, Task, Toolkit, World,
    data::no_assets,
    llm::ToolList,
    world::{Assets, Database, UserDatabase},
};

/// A domain as loaded; environments share it.
#[derive(Clone)]
pub struct Domain {
    /// Its name.
    pub name: String,
    /// The agent's tools.
    pub agent: Toolkit,
    /// The user's tools, where it has some.
    pub user: Option<Toolkit>,
    /// The agent's database as every conversation starts with it.
    pub db: Database,
    /// The user's database.
    pub user_db: UserDatabase,
    /// The rules for the agent.
    pub policy: String,
    /// The rules for an agent that works alone; `None` where the domain does not allow it.
    pub solo_policy: Option<String>,
    /// Brings both sides in step after each call.
    pub sync: fn(&mut World) -> Result<(), Failure>,
    /// Makes a fresh world ready for a task.
    pub prepare: fn(&mut World, Option<&Task>),
    /// What it keeps beside its databases.
    pub assets: Assets,
}

impl Domain {
    /// The tools that an agent is shown; one that works alone holds the user's too.
    pub fn agent_tools(&self, mode: Mode) -> ToolList {
        let users = self.user.iter().filter(|_| mode == Mode::Solo);
        ToolList::new(self.agent.shown().chain(users.flat_map(|kit| kit.shown())))
    }

    /// The tools that the user of a task is shown. A task that names one that does not exist gives
    /// its user none.
    pub fn user_tools(&self, task: &Task) -> ToolList {
        let Some(kit) = &self.user else { return ToolList::default() };
        match &task.user_tools {
            None => ToolList::new(kit.shown()),
            Some(names) if names.iter().all(|name| kit.shown().any(|t| t.name == name)) => {
                ToolList::new(kit.shown().filter(|tool| names.iter().any(|n| n == tool.name)))
            }
            Some(_) => ToolList::default(),
        }
    }

    /// A domain with an agent's side only.
    pub fn new(name: impl Into<String>, agent: Toolkit, db: Database, policy: String) -> Self {
        Self {
            name: name.into(),
            agent,
            user: None,
            db,
            user_db: UserDatabase::None,
            policy,
            solo_policy: None,
            sync: |_| Ok(()),
            prepare: |_, _| {},
            assets: no_assets(),
        }
    }
}
