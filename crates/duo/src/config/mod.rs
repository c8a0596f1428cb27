//! The configuration of the program, from all its layers.
//!
//! Five layers, later over earlier: defaults, the user's file, the project's `duologue.toml`, the
//! environment, the command line. [`Config::load`] reads them, checks every word, and gives either
//! the typed [`Config`] together with where each value came from, or everything that is wrong.
//!
//! | part | is |
//! |---|---|
//! | [`keys`] | every key: type, default, meaning. Start here to add one |
//! | [`schema`] | what a key is, as data |
//! | [`sources`], [`dirs`] | what a configuration is made from |
//! | [`raw`], [`environment`], [`command_line`], [`text`] | layers as they were written |
//! | [`check`], [`secret`] | whether they fit the keys |
//! | [`tree`], [`relations`] | the layers over each other, and what keys say about each other |
//! | [`into_core`] | sections as the types that agents are built from |
//! | [`provenance`], [`docs`] | `duo config` and `docs/configuration.md` |
//! | [`problem`], [`origin`], [`path`], [`suggest`](mod@suggest) | words for errors |

mod check;
mod command_line;
pub(crate) mod dirs;
mod docs;
mod environment;
mod into_core;
pub(crate) mod keys;
pub(crate) mod origin;
mod path;
pub(crate) mod problem;
pub(crate) mod provenance;
mod raw;
mod relations;
mod schema;
mod secret;
pub(crate) mod sources;
mod suggest;
#[cfg(test)]
#[cfg(unix)]
mod tests;
mod text;
mod tree;

use std::{
    io::{ErrorKind, Read},
    path::{Path, PathBuf},
};

pub(crate) use docs::docs_markdown;
pub(crate) use keys::Config;
pub(crate) use problem::ConfigError;
pub(crate) use sources::{Flag, Sources, Vocabulary};
pub(crate) use suggest::suggest;

use check::Checker;
use origin::{Line, Origin};
use problem::Problem;
use provenance::{Files, Provenance};
use raw::Raw;
use schema::{Kind, Section, Spec};
use tree::Table;

/// The most bytes of a configuration file, or of a file with an agent's instructions.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// A configuration and where it came from.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Loaded {
    /// The values. Paths are absolute, and every agent that can be chosen is in `agents`.
    pub(crate) config: Config,
    /// Where they came from.
    pub(crate) provenance: Provenance,
}

impl Config {
    /// Read all layers. The error has everything that is wrong with all of them.
    pub(crate) fn load(sources: &Sources) -> Result<Loaded, ConfigError> {
        let user = sources.dirs.user_file().map(FileText::read);
        let project = sources.project_file().map(FileText::read);
        Self::combine(sources, user, project)
    }

    /// Put all layers together. Reads nothing.
    fn combine(
        sources: &Sources,
        user: Option<FileText>,
        project: Option<FileText>,
    ) -> Result<Loaded, ConfigError> {
        let mut layers =
            Layers { sources, tree: Table::defaults(Self::SPEC), problems: Vec::new() };
        let files = Files {
            user: user.map(|file| layers.lay_file(file, Origin::User)),
            project: project.map(|file| layers.lay_file(file, Origin::Project)),
        };
        let environment =
            environment::layer(sources, Self::SPEC, &layers.tree, &mut layers.problems);
        layers.lay(environment, &sources.cwd);
        let command_line = command_line::layer(sources, Self::SPEC, &mut layers.problems);
        layers.lay(command_line, &sources.cwd);

        let Layers { mut tree, mut problems, .. } = layers;
        tree.fill_named(Self::SPEC);
        relations::fill_in(&mut tree, sources, &mut problems);
        let mut more = Vec::new();
        relations::check(&tree, &sources.vocabulary, &mut more);
        more.retain(|problem| !follows_from(problem, &problems));
        problems.append(&mut more);
        if !problems.is_empty() {
            return Err(ConfigError { problems });
        }
        let provenance = Provenance::of(&tree, Self::SPEC, files);
        relations::add_usual_agents(&mut tree, &sources.vocabulary);
        inherit(&mut tree, Self::SPEC);
        match tree.into_value().try_into() {
            Ok(config) => Ok(Loaded { config, provenance }),
            // The checks let nothing through that a type refuses; tests hold them to it.
            Err(error) => Err(ConfigError::from(Problem {
                origin: Origin::Default,
                key: String::new(),
                what: format!("cannot be put together: {}", error.message()),
            })),
        }
    }
}

/// Whether a relation may be broken only because a file or a key of the section was left out as
/// wrong. That is said already; the person would mend it twice.
fn follows_from(problem: &Problem, earlier: &[Problem]) -> bool {
    earlier.iter().any(|earlier| match earlier.key.strip_prefix(&problem.key) {
        Some(rest) => rest.is_empty() || rest.starts_with('.'),
        None => {
            earlier.key.is_empty() && matches!(earlier.origin, Origin::User(_) | Origin::Project(_))
        }
    })
}

/// The layers so far.
struct Layers<'a> {
    sources: &'a Sources,
    tree: Table,
    problems: Vec<Problem>,
}

impl Layers<'_> {
    fn lay(&mut self, raw: Raw, base: &Path) {
        let mut checker = Checker {
            root: Config::SPEC,
            vocabulary: &self.sources.vocabulary,
            base,
            home: self.sources.home(),
            problems: Vec::new(),
        };
        let layer = checker.layer(raw);
        self.tree.lay(Config::SPEC, layer);
        // A table comes in the order of its names; people read from top to bottom.
        checker.problems.sort_by(|a, b| a.origin.cmp(&b.origin));
        self.problems.append(&mut checker.problems);
    }

    fn lay_file(&mut self, file: FileText, layer: fn(Line) -> Origin) -> provenance::File {
        let name = origin::shown(&file.path, &self.sources.cwd, self.sources.home());
        let origin = layer(Line { file: name.clone(), line: 0 });
        let read = !matches!(file.text, Ok(None));
        match file.text {
            Ok(None) => {}
            Ok(Some(text)) => match raw::parse(&text, &origin) {
                Ok(raw) => self.lay(raw, file.path.parent().unwrap_or(Path::new("/"))),
                Err(mut problems) => self.problems.append(&mut problems),
            },
            Err(why) => self.problems.push(Problem {
                origin,
                key: String::new(),
                what: format!("cannot read it: {why}"),
            }),
        }
        provenance::File { name, read }
    }
}

impl Loaded {
    /// Something is wrong with a value that only another part of the program could see. `item` is
    /// the place in a list. The error says where the value was set.
    pub(crate) fn error_at(
        &self,
        key: &str,
        item: Option<usize>,
        what: impl Into<String>,
    ) -> ConfigError {
        let row = self.provenance.row(key);
        let origin = row.map(|row| {
            let line = item.and_then(|item| row.items.get(item));
            line.unwrap_or(&row.origin).clone()
        });
        ConfigError::from(Problem {
            origin: origin.unwrap_or_default(),
            key: key.into(),
            what: what.into(),
        })
    }

    /// The instructions of an agent, from `system` or from `system_file`.
    pub(crate) fn system_of(&self, name: &str) -> Result<Option<String>, ConfigError> {
        let Some(agent) = self.config.agents.get(name) else {
            return Ok(None);
        };
        let Some(file) = &agent.system_file else {
            return Ok(agent.system.clone());
        };
        read_text(file).map(Some).map_err(|why| {
            let key = path::shown(&["agents", name, "system_file"]);
            self.error_at(&key, None, format!("cannot read {}: {why}", file.display()))
        })
    }

    /// The effective configuration as a table for people.
    pub(crate) fn render_text(&self) -> String {
        self.provenance.render_text()
    }

    /// The effective configuration as JSON.
    pub(crate) fn render_json(&self) -> serde_json::Value {
        self.provenance.render_json()
    }
}

/// A configuration file and what it says.
#[derive(Clone, Debug)]
struct FileText {
    path: PathBuf,
    /// Its text, `None` if it is not there, or why it could not be read.
    text: Result<Option<String>, String>,
}

impl FileText {
    fn read(path: PathBuf) -> Self {
        // A link that leads nowhere is there all the same: somebody meant something by it. A home
        // such as /dev/null has no folders in it.
        let text = match path.symlink_metadata() {
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
            {
                Ok(None)
            }
            _ => read_text(&path).map(Some),
        };
        Self { path, text }
    }
}

/// A text file of a sensible size.
fn read_text(file: &Path) -> Result<String, String> {
    let opened = std::fs::File::open(file).map_err(|error| error.to_string())?;
    let mut bytes = Vec::new();
    opened.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(format!("it has more than {MAX_FILE_BYTES} bytes"));
    }
    String::from_utf8(bytes).map_err(|error| {
        let good = error.utf8_error().valid_up_to();
        let bytes = error.as_bytes().iter().take(good);
        let line = bytes.filter(|byte| **byte == b'\n').count() + 1;
        format!("line {line} is not UTF-8")
    })
}

/// Put every inherited section over the section of that name at the top. What the command line says
/// at the top counts more than what a file says for one agent.
fn inherit(tree: &mut Table, root: &'static Spec) {
    let top = tree.tables.clone();
    for key in root.keys {
        let Kind::Named(spec) = key.kind else {
            continue;
        };
        let Some(named) = tree.tables.get_mut(key.name) else {
            continue;
        };
        for table in named.tables.values_mut() {
            for key in spec.keys {
                let Kind::Inherited(from, spec) = key.kind else {
                    continue;
                };
                let mut whole = top.get(from).cloned().unwrap_or_default();
                let mut own = table.tables.remove(key.name).unwrap_or_default();
                let is_flag = |leaf: &tree::Leaf| matches!(leaf.origin, Origin::Flag(_));
                own.leaves.retain(|name, leaf| {
                    is_flag(leaf) || !whole.leaves.get(name).is_some_and(is_flag)
                });
                whole.lay(spec, own);
                table.tables.insert(key.name.into(), whole);
            }
        }
    }
}
