//! A run on disk: its steps and finished simulations line by line while it goes on, put in order at
//! its end.

use std::{
    borrow::Cow,
    collections::HashMap,
    fs::{self, File, OpenOptions},
    io::Write,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use serde::{Deserialize, Serialize};

use super::Job;
use crate::{DataError, Results, Simulation, Termination, orchestrator::Record};

/// Why results could not be kept.
#[derive(Debug, thiserror::Error)]
pub enum KeepError {
    /// A file cannot be written.
    #[error("cannot write {path}: {source}")]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// What is there cannot be read.
    #[error(transparent)]
    Read(#[from] DataError),
}

/// What there is of a run: finished simulations, and records of those that are not.
#[derive(Debug, Default)]
pub struct Keep {
    simulations: HashMap<(String, u32), Arc<Simulation>>,
    unfinished: HashMap<String, Vec<Record>>,
    journal: Option<Journal>,
    results: Option<PathBuf>,
}

/// The file that a run is written down in while it goes on. Clones write into the same file.
#[derive(Clone, Debug)]
pub struct Journal {
    path: PathBuf,
    file: Arc<Mutex<File>>,
}

/// A line of the journal.
#[allow(clippy::large_enum_variant, reason = "there is one at a time")]
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line<'a> {
    Step { simulation: Cow<'a, str>, record: Cow<'a, Record> },
    Finished(Cow<'a, Simulation>),
}

impl Keep {
    /// In memory only.
    pub fn in_memory() -> Self {
        Self::default()
    }

    /// In a file of results. What a run left there before is taken up; what broke off for reasons
    /// around it is run again.
    pub fn in_file(path: &Path) -> Result<Self, KeepError> {
        let mut keep = Self::default();
        if path.exists() {
            for simulation in Results::load(path)?.simulations {
                if simulation.termination_reason != Termination::InfrastructureError {
                    keep.take(Arc::new(simulation));
                }
            }
        }
        let journal = beside(path, ".unfinished.jsonl");
        keep.read(&fs::read_to_string(&journal).unwrap_or_default());
        let written = |source| KeepError::Write { path: journal.clone(), source };
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(written)?;
        }
        // A kill in the middle of this must leave the old file or the new one.
        let new = beside(&journal, ".new");
        fs::write(&new, keep.lines()).and_then(|()| fs::rename(&new, &journal)).map_err(written)?;
        let file = OpenOptions::new().append(true).open(&journal).map_err(written)?;
        keep.journal = Some(Journal { path: journal, file: Arc::new(Mutex::new(file)) });
        keep.results = Some(path.to_owned());
        Ok(keep)
    }

    /// Takes in a journal. A line that a kill cut off is none.
    fn read(&mut self, text: &str) {
        for line in text.split_inclusive('\n').filter(|line| line.ends_with('\n')) {
            match serde_json::from_str::<Line<'_>>(line) {
                Ok(Line::Step { simulation, record }) => {
                    let records = self.unfinished.entry(simulation.into_owned()).or_default();
                    // It broke off and began again.
                    if record.steps == 0 {
                        records.clear();
                    }
                    records.push(record.into_owned());
                }
                Ok(Line::Finished(simulation)) => {
                    self.unfinished.remove(&simulation.id);
                    if simulation.termination_reason != Termination::InfrastructureError {
                        self.take(Arc::new(simulation.into_owned()));
                    }
                }
                Err(_) => {}
            }
        }
    }

    /// All that it has as a journal.
    fn lines(&self) -> String {
        let finished = self.simulations.values().map(|s| Line::Finished(Cow::Borrowed(&**s)));
        let steps = self.unfinished.iter().flat_map(|(id, records)| {
            let step = |record| Line::Step {
                simulation: Cow::Borrowed(id.as_str()),
                record: Cow::Borrowed(record),
            };
            records.iter().map(step)
        });
        let lines = finished.chain(steps).filter_map(|line| serde_json::to_string(&line).ok());
        lines.map(|line| line + "\n").collect()
    }

    /// What there is of a simulation that is not finished.
    pub fn take_unfinished(&mut self, id: &str) -> Vec<Record> {
        self.unfinished.remove(id).unwrap_or_default()
    }

    /// How many are begun and not finished.
    pub fn unfinished(&self) -> usize {
        self.unfinished.len()
    }

    /// Where steps are written down, if they are.
    pub fn journal(&self) -> Option<Journal> {
        self.journal.clone()
    }

    /// Whether a run is finished.
    pub fn has(&self, task: &str, trial: u32) -> bool {
        self.simulations.contains_key(&(task.to_owned(), trial))
    }

    /// How many are finished.
    pub fn len(&self) -> usize {
        self.simulations.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.simulations.is_empty()
    }

    /// Keeps a finished simulation.
    pub fn add(&mut self, simulation: &Arc<Simulation>) -> Result<(), KeepError> {
        if let Some(journal) = &self.journal {
            journal.write(&Line::Finished(Cow::Borrowed(&**simulation)))?;
        }
        self.take(Arc::clone(simulation));
        Ok(())
    }

    /// The simulations of jobs, in their order.
    pub fn in_order(&self, jobs: &[Job]) -> Vec<Simulation> {
        let kept = jobs.iter().filter_map(|job| {
            self.simulations.get(&(job.task.id.clone(), job.trial)).map(|s| (**s).clone())
        });
        kept.collect()
    }

    /// Writes the file of results, whole or not at all, and drops what led to it.
    pub fn finish(self, results: &Results) -> Result<(), KeepError> {
        let Some(path) = &self.results else { return Ok(()) };
        save(results, path)?;
        if let Some(Journal { path, file }) = self.journal {
            drop(file);
            fs::remove_file(&path).map_err(|source| KeepError::Write { path, source })?;
        }
        Ok(())
    }

    fn take(&mut self, simulation: Arc<Simulation>) {
        let key = (simulation.task_id.clone(), simulation.trial.unwrap_or(0));
        self.simulations.insert(key, simulation);
    }
}

impl Journal {
    /// Writes a step down.
    pub fn step(&self, simulation: &str, record: &Record) -> Result<(), KeepError> {
        let simulation = Cow::Borrowed(simulation);
        self.write(&Line::Step { simulation, record: Cow::Borrowed(record) })
    }

    fn write(&self, line: &Line<'_>) -> Result<(), KeepError> {
        let line = serde_json::to_string(line).map(|line| line + "\n");
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        line.map_err(std::io::Error::other)
            .and_then(|line| file.write_all(line.as_bytes()))
            .map_err(|source| KeepError::Write { path: self.path.clone(), source })
    }
}

/// Writes results to a file, whole or not at all.
pub fn save(results: &Results, path: &Path) -> Result<(), KeepError> {
    let unfinished = beside(path, ".new");
    let written = |source| KeepError::Write { path: path.to_owned(), source };
    let json = serde_json::to_string_pretty(results).map_err(std::io::Error::other);
    json.and_then(|json| fs::write(&unfinished, json)).map_err(written)?;
    fs::rename(&unfinished, path).map_err(written)
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(ending);
    path.with_file_name(name)
}
