//! A domain: its tools, databases, rules and tasks.

use crate::{
    Failure, Task, Toolkit, World,
    data::no_assets,
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
