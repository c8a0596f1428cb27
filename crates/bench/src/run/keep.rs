//! Finished simulations on disk: appended one by one while a plan runs, put in order at its end.

use std::{
    collections::HashMap,
    fs::{self, File, OpenOptions},
    io::Write,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::Job;
use crate::{DataError, Results, Simulation, Termination};

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

/// The finished simulations of a run.
#[derive(Debug, Default)]
pub struct Keep {
    simulations: HashMap<(String, u32), Arc<Simulation>>,
    journal: Option<(PathBuf, File)>,
    results: Option<PathBuf>,
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
        let mut whole = String::new();
        if let Ok(text) = fs::read_to_string(&journal) {
            // A line that a kill cut off is not a simulation.
            for line in text.split_inclusive('\n').filter(|line| line.ends_with('\n')) {
                let Ok(simulation) = serde_json::from_str::<Simulation>(line) else { continue };
                if simulation.termination_reason != Termination::InfrastructureError {
                    keep.take(Arc::new(simulation));
                    whole.push_str(line);
                }
            }
        }
        let written = |source| KeepError::Write { path: journal.clone(), source };
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(written)?;
        }
        fs::write(&journal, whole).map_err(written)?;
        let file = OpenOptions::new().append(true).open(&journal).map_err(written)?;
        keep.journal = Some((journal, file));
        keep.results = Some(path.to_owned());
        Ok(keep)
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
        if let Some((path, file)) = &mut self.journal {
            let line = serde_json::to_string(&**simulation).map(|line| line + "\n");
            let line = line.map_err(std::io::Error::other);
            line.and_then(|line| file.write_all(line.as_bytes()))
                .map_err(|source| KeepError::Write { path: path.clone(), source })?;
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
        if let Some((journal, file)) = self.journal {
            drop(file);
            let gone = fs::remove_file(&journal);
            gone.map_err(|source| KeepError::Write { path: journal, source })?;
        }
        Ok(())
    }

    fn take(&mut self, simulation: Arc<Simulation>) {
        let key = (simulation.task_id.clone(), simulation.trial.unwrap_or(0));
        self.simulations.insert(key, simulation);
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
