//! The configuration as a user meets it: files and variables in, values or errors out.

mod environment;
mod errors;
mod flags;
mod golden;
mod layers;
mod properties;

use std::{collections::BTreeMap, path::PathBuf};

use super::{
    Config, FileText, Flag, Loaded, Sources, Vocabulary,
    dirs::{Dirs, Platform},
};

/// A user with a home, a project and a set of variables, none of it on disk.
struct House {
    sources: Sources,
    user: Option<String>,
    project: Option<String>,
}

const HOME: &str = "/home/ada";
const PROJECT: &str = "/home/ada/work/engine";

/// A house with nothing configured, in the project's folder.
fn house() -> House {
    let sources = Sources {
        cwd: PROJECT.into(),
        dirs: Dirs::find(Platform::Xdg, |name| (name == "HOME").then(|| HOME.into())),
        environment: BTreeMap::new(),
        flags: Vec::new(),
        set: Vec::new(),
        vocabulary: Vocabulary {
            tools: ["echo", "read_file", "write_file", "search_files", "http_get", "shell"]
                .map(String::from)
                .to_vec(),
            providers: ["anthropic", "openai", "ollama"].map(String::from).to_vec(),
            models: vec!["demo".into(), "script:".into()],
            ..Vocabulary::default()
        },
    };
    House { sources, user: None, project: None }
}

impl House {
    fn user(mut self, text: &str) -> Self {
        self.user = Some(text.into());
        self
    }

    fn project(mut self, text: &str) -> Self {
        self.project = Some(text.into());
        self
    }

    fn var(mut self, name: &str, value: &str) -> Self {
        self.sources.environment.insert(name.into(), value.into());
        self
    }

    fn flag(mut self, flag: &str, key: &str, value: impl Into<toml::Value>) -> Self {
        self.sources.flags.push(Flag::new(flag, key, value));
        self
    }

    fn set(mut self, assignment: &str) -> Self {
        self.sources.set.push(assignment.into());
        self
    }

    fn try_load(&self) -> Result<Loaded, super::ConfigError> {
        let file = |path: PathBuf, text: &Option<String>| FileText { path, text: Ok(text.clone()) };
        let user = self.sources.dirs.user_file().map(|path| file(path, &self.user));
        let project = self.project.as_ref();
        let project =
            project.map(|_| file(format!("{PROJECT}/duologue.toml").into(), &self.project));
        Config::combine(&self.sources, user, project)
    }

    fn loaded(&self) -> Loaded {
        self.try_load().unwrap_or_else(|error| panic!("{error}"))
    }

    fn config(&self) -> Config {
        self.loaded().config
    }

    /// Every problem, a line each.
    fn errors(&self) -> Vec<String> {
        match self.try_load() {
            Ok(_) => Vec::new(),
            Err(error) => error.problems.iter().map(ToString::to_string).collect(),
        }
    }

    /// Where a key came from.
    fn from(&self, key: &str) -> String {
        let loaded = self.loaded();
        loaded.provenance.row(key).map_or("nowhere".into(), |row| row.origin.to_string())
    }
}
