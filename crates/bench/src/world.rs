//! What tools work on: the databases of one environment.

use std::{any::Any, sync::Arc};

use crate::{Failure, Value, raise, schema::Model};

/// What a domain keeps beside its databases and never changes, such as documents.
pub type Assets = Arc<dyn Any + Send + Sync>;

/// The databases of one environment. A fresh one shares everything with its domain.
#[derive(Clone)]
pub struct World {
    /// The agent's database.
    pub db: Value,
    /// What a domain remembers during a conversation and does not hash.
    pub scratch: Value,
    /// What a domain keeps beside its databases.
    pub assets: Assets,
    model: &'static Model,
    user: UserStore,
}

/// Where the user's database is.
#[derive(Clone)]
enum UserStore {
    /// There is none.
    None,
    /// Apart from the agent's.
    Own(Value, &'static Model),
    /// It is the agent's.
    Shared,
}

/// A database and its shape.
#[derive(Clone, Debug)]
pub struct Database {
    /// What it holds.
    pub value: Value,
    /// What it may hold.
    pub model: &'static Model,
}

/// The user's database as a domain declares it.
#[derive(Clone, Debug)]
pub enum UserDatabase {
    /// The domain has no user tools.
    None,
    /// Apart from the agent's.
    Own(Database),
    /// The user's tools work on the agent's database.
    Shared,
}

impl World {
    /// A world of these databases.
    pub fn new(agent: &Database, user: &UserDatabase, assets: Assets) -> Self {
        let user = match user {
            UserDatabase::None => UserStore::None,
            UserDatabase::Own(database) => UserStore::Own(database.value.clone(), database.model),
            UserDatabase::Shared => UserStore::Shared,
        };
        Self {
            db: agent.value.clone(),
            scratch: Value::empty_dict(),
            assets,
            model: agent.model,
            user,
        }
    }

    /// The database that the user's tools work on.
    pub fn user_db(&self) -> &Value {
        static NONE: Value = Value::None;
        match &self.user {
            UserStore::None => &NONE,
            UserStore::Own(value, _) => value,
            UserStore::Shared => &self.db,
        }
    }

    /// The same to write to. Where there is none, what is written reaches nobody.
    pub fn user_db_mut(&mut self) -> &mut Value {
        match &mut self.user {
            UserStore::Own(value, _) => value,
            UserStore::None | UserStore::Shared => &mut self.db,
        }
    }

    /// Whether there is a database for the user's tools.
    pub fn has_user_db(&self) -> bool {
        !matches!(self.user, UserStore::None)
    }

    /// Whether the user's tools work on the agent's database.
    pub fn shares_db(&self) -> bool {
        matches!(self.user, UserStore::Shared)
    }

    /// Merges data into the agent's database. From then on the user's tools work on it too.
    pub(crate) fn update_agent(&mut self, update: &Value) -> Result<(), Failure> {
        self.db = merged(&self.db, self.model, update)?;
        if self.has_user_db() {
            self.user = UserStore::Shared;
        }
        Ok(())
    }

    /// Merges data into the user's database. From then on the agent's tools work on it too.
    pub(crate) fn update_user(&mut self, update: &Value) -> Result<(), Failure> {
        match &self.user {
            UserStore::None => {
                return raise("'NoneType' object has no attribute 'update_db'");
            }
            UserStore::Own(value, model) => {
                self.db = merged(value, model, update)?;
                self.model = model;
                self.user = UserStore::Shared;
            }
            UserStore::Shared => self.db = merged(&self.db, self.model, update)?,
        }
        Ok(())
    }
}

/// A section of a database; asking one of another shape is Python's `AttributeError`.
pub fn section<'a>(database: &'a Value, class: &str, name: &str) -> Result<&'a Value, Failure> {
    match database.entry(name) {
        Some(section) => Ok(section),
        None => raise(format!("'{class}' object has no attribute '{name}'")),
    }
}

fn merged(database: &Value, model: &Model, update: &Value) -> Result<Value, Failure> {
    let mut merged = database.clone();
    merged.merge(update);
    model.read(&merged)
}
