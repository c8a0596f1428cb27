//! Where the data of the domains is, and how it is read.

use std::{
    env, fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde::de::DeserializeOwned;

use crate::{
    Dict, Failure, Task, Value,
    schema::Model,
    world::{Assets, Database},
};

/// Why data could not be read.
#[derive(Debug, thiserror::Error)]
pub enum DataError {
    /// Nothing says where it is.
    #[error(
        "no data directory: get the data with `duo bench data pull`, or set TAU2_DATA_DIR to the \
         `data` folder of a τ²-bench checkout, or give --data"
    )]
    NoDirectory,
    /// A file cannot be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file does not hold what it should.
    #[error("{path}: {reason}")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// There is no such domain.
    #[error("unknown domain {name:?}; there are {known}")]
    UnknownDomain {
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// There is no such split of a domain's tasks.
    #[error("unknown task split {name:?}; there are {known}")]
    UnknownSplit {
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// The data do not fit the domain.
    #[error("{0}")]
    Failure(#[from] Failure),
}

/// The folder with the data, in the reference's layout: `tau2/domains/NAME/…` below it.
#[derive(Clone, Debug)]
pub struct DataDir(PathBuf);

/// The tasks of a domain and how they are split.
#[derive(Clone, Debug, Default)]
pub struct TaskSet {
    /// All tasks, in their order.
    pub tasks: Vec<Arc<Task>>,
    /// Names of splits and the ids of their tasks.
    pub splits: Vec<(String, Vec<String>)>,
}

impl DataDir {
    /// This folder.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// The folder that `TAU2_DATA_DIR` names.
    pub fn from_env() -> Result<Self, DataError> {
        match env::var_os("TAU2_DATA_DIR") {
            Some(path) if !path.is_empty() => Ok(Self::new(path)),
            _ => Err(DataError::NoDirectory),
        }
    }

    /// The folder itself.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// A file of a domain.
    pub fn file(&self, domain: &str, name: &str) -> PathBuf {
        self.0.join("tau2").join("domains").join(domain).join(name)
    }

    /// A file of a domain as text.
    pub fn text(&self, domain: &str, name: &str) -> Result<String, DataError> {
        read_text(&self.file(domain, name))
    }

    /// A JSON file of a domain.
    pub fn json<T: DeserializeOwned>(&self, domain: &str, name: &str) -> Result<T, DataError> {
        read_json(&self.file(domain, name))
    }

    /// A TOML file of a domain; dates become texts.
    pub fn toml(&self, domain: &str, name: &str) -> Result<Value, DataError> {
        let path = self.file(domain, name);
        let table: toml::Table = read_text(&path)?.parse().map_err(|error: toml::de::Error| {
            DataError::Malformed { path, reason: error.to_string() }
        })?;
        Ok(from_toml(&toml::Value::Table(table)))
    }

    /// A database from JSON.
    pub fn database(
        &self,
        domain: &str,
        name: &str,
        model: &'static Model,
    ) -> Result<Database, DataError> {
        Ok(Database { value: model.read(&self.json(domain, name)?)?, model })
    }

    /// The tasks of a file, and of the splits in `split_FILE` where there is one.
    pub fn tasks(&self, domain: &str, name: &str) -> Result<TaskSet, DataError> {
        let tasks: Vec<Task> = self.json(domain, name)?;
        let splits = self.file(domain, &format!("split_{name}"));
        let splits: Dict = if splits.exists() { read_json(&splits)? } else { Dict::default() };
        let splits = splits.iter().map(|(split, ids)| {
            let ids = ids.items().iter().filter_map(Value::as_str).map(str::to_owned);
            (split.to_string(), ids.collect())
        });
        Ok(TaskSet { splits: splits.collect(), tasks: tasks.into_iter().map(Arc::new).collect() })
    }
}

impl TaskSet {
    /// The tasks of a split, in the order of the file.
    pub fn split(&self, name: &str) -> Result<Vec<Arc<Task>>, DataError> {
        let Some((_, ids)) = self.splits.iter().find(|(split, _)| split == name) else {
            let known: Vec<&str> = self.splits.iter().map(|(split, _)| split.as_str()).collect();
            return Err(DataError::UnknownSplit { name: name.to_owned(), known: known.join(", ") });
        };
        let ids: std::collections::HashSet<&str> = ids.iter().map(String::as_str).collect();
        Ok(self.tasks.iter().filter(|task| ids.contains(task.id.as_str())).cloned().collect())
    }

    /// A task by its id.
    pub fn task(&self, id: &str) -> Option<&Arc<Task>> {
        self.tasks.iter().find(|task| task.id == id)
    }
}

/// No assets.
pub fn no_assets() -> Assets {
    Arc::new(())
}

/// A file as text.
pub fn read_text(path: &Path) -> Result<String, DataError> {
    fs::read_to_string(path).map_err(|source| DataError::Read { path: path.to_owned(), source })
}

/// A file as JSON.
pub fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, DataError> {
    serde_json::from_str(&read_text(path)?)
        .map_err(|error| DataError::Malformed { path: path.to_owned(), reason: error.to_string() })
}

fn from_toml(value: &toml::Value) -> Value {
    match value {
        toml::Value::String(text) => text.as_str().into(),
        toml::Value::Integer(number) => (*number).into(),
        toml::Value::Float(number) => (*number).into(),
        toml::Value::Boolean(truth) => (*truth).into(),
        toml::Value::Datetime(time) => time.to_string().into(),
        toml::Value::Array(items) => Value::list(items.iter().map(from_toml)),
        toml::Value::Table(table) => table
            .iter()
            .map(|(key, value)| (key.clone(), from_toml(value)))
            .collect::<Dict>()
            .into(),
    }
}
