//! What a configuration is made from.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    path::{Path, PathBuf},
};

use duologue_core::Rule;
use toml::Value;

use super::dirs::{Dirs, Platform};

/// The name of a project's file.
pub(crate) const PROJECT_FILE: &str = "duologue.toml";

/// Everything that a configuration is made from. A test fills it in; the program takes
/// [`Sources::of_process`] and adds its flags.
#[derive(Clone, Debug)]
pub(crate) struct Sources {
    /// The working folder, absolute.
    pub(crate) cwd: PathBuf,
    /// The user's folders.
    pub(crate) dirs: Dirs,
    /// The environment. Only names that begin with `DUOLOGUE_` are looked at.
    pub(crate) environment: BTreeMap<String, OsString>,
    /// What flags say, such as `--model`.
    pub(crate) flags: Vec<Flag>,
    /// What `--set` says, each as `key.path=value`. They come after the flags.
    pub(crate) set: Vec<String>,
    /// The names that other parts of the program know.
    pub(crate) vocabulary: Vocabulary,
}

/// What a flag of the command line sets.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Flag {
    /// The flag, as the user typed it, such as `--model`.
    pub(crate) flag: String,
    /// The key that it sets, such as `permissions.mode`.
    pub(crate) key: String,
    /// To what.
    pub(crate) value: Value,
}

/// The names that other parts of the program know, so that a file's words can be checked.
#[derive(Clone, Debug)]
pub(crate) struct Vocabulary {
    /// Every tool there is. Empty: tools are not checked.
    pub(crate) tools: Vec<String>,
    /// Every behaviour there is.
    pub(crate) behaviors: Vec<String>,
    /// The providers that need no section. Empty: providers are not checked.
    pub(crate) providers: Vec<String>,
    /// Words that stand for a model as they are, without a provider, such as `demo`. One that ends
    /// in `:` wants something behind it, such as a file.
    pub(crate) models: Vec<String>,
    /// Whether a text is a permission rule; the error says what is wrong.
    pub(crate) check_rule: fn(&str) -> Result<(), String>,
}

impl Default for Vocabulary {
    fn default() -> Self {
        Self {
            tools: Vec::new(),
            behaviors: ["generic", "react", "planned", "dual", "browser", "bidirectional"]
                .map(String::from)
                .to_vec(),
            providers: Vec::new(),
            models: Vec::new(),
            check_rule,
        }
    }
}

impl Vocabulary {
    /// Whether a text stands for a model by itself, without a provider.
    pub(crate) fn is_model_word(&self, text: &str) -> bool {
        self.models.iter().any(|word| match text.strip_prefix(word.as_str()) {
            Some(rest) => rest.is_empty() != word.ends_with(':'),
            None => false,
        })
    }
}

/// Whether a text is a rule as agents read it.
fn check_rule(rule: &str) -> Result<(), String> {
    match rule.parse::<Rule>() {
        Ok(_) => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}

impl Flag {
    /// A flag that sets a key.
    pub(crate) fn new(flag: &str, key: &str, value: impl Into<Value>) -> Self {
        Self { flag: flag.into(), key: key.into(), value: value.into() }
    }
}

impl Sources {
    /// What this process was started with, without flags.
    pub(crate) fn of_process(vocabulary: Vocabulary) -> std::io::Result<Self> {
        let home = |name: &str| (name == "HOME").then(std::env::home_dir).flatten();
        let variable = |name: &str| std::env::var_os(name).or_else(|| home(name).map(Into::into));
        let environment = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value)))
            .filter(|(name, _)| name.starts_with(super::environment::PREFIX))
            .collect();
        Ok(Self {
            cwd: std::env::current_dir()?,
            dirs: Dirs::find(Platform::HERE, variable),
            environment,
            flags: Vec::new(),
            set: Vec::new(),
            vocabulary,
        })
    }

    /// The project's file: in the working folder, or in the nearest folder above that has one.
    pub(crate) fn project_file(&self) -> Option<PathBuf> {
        let folders = self.cwd.ancestors();
        let mut files = folders.map(|folder| folder.join(PROJECT_FILE));
        // What is there and cannot be read must be an error, not a reason to look further up.
        files.find(|file| file.symlink_metadata().is_ok_and(|found| !found.is_dir()))
    }

    /// The home folder, for `~`.
    pub(crate) fn home(&self) -> Option<&Path> {
        self.dirs.home.as_deref()
    }
}
