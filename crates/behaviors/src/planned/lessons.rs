//! Learning from execution: what plan worked or failed for which kind of task.
//!
//! Lessons are read and written by the driver through two functions of the agent, so that what was
//! recalled stands in the journal and a replay needs no store.

mod file;

use std::collections::HashMap;

use duologue_core::Outcome;
use serde::{Deserialize, Serialize};

pub use self::file::LessonFile;
use super::config::Strategy;

/// The function that recalls lessons.
pub(crate) const RECALL: &str = "recall_lessons";
/// The function that keeps a lesson.
pub(crate) const KEEP: &str = "keep_lesson";

/// How many lessons a planner is shown.
const SHOWN: usize = 3;
/// How alike two tasks must be for a lesson to be of use.
const ALIKE: f64 = 0.3;

/// What one task taught.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lesson {
    /// The task.
    pub task: String,
    /// How it was gone about.
    pub strategy: Strategy,
    /// The last plan's steps.
    #[serde(default)]
    pub plan: Vec<String>,
    /// Whether it worked.
    pub worked: bool,
    /// How it ended, in the outcome's words.
    pub outcome: String,
}

impl Lesson {
    pub(crate) fn new(
        task: String,
        strategy: Strategy,
        plan: Vec<String>,
        outcome: &Outcome,
    ) -> Self {
        let worked = *outcome == Outcome::Completed;
        Self { task, strategy, plan, worked, outcome: outcome.to_string() }
    }
}

/// Where lessons are kept.
pub trait LessonStore: Send + Sync {
    /// All lessons, the oldest first.
    fn all(&self) -> Result<Vec<Lesson>, LessonError>;

    /// Keep one more.
    fn keep(&self, lesson: &Lesson) -> Result<(), LessonError>;

    /// Forget the lesson at a place of [`all`](Self::all); whether there was one.
    fn forget(&self, at: usize) -> Result<bool, LessonError>;

    /// The lessons of the tasks most like this one, by [`similarity`].
    fn recall(&self, task: &str) -> Result<Vec<Lesson>, LessonError> {
        let mut found: Vec<(f64, Lesson)> = self
            .all()?
            .into_iter()
            .map(|lesson| (similarity(task, &lesson.task), lesson))
            .filter(|(alike, _)| *alike >= ALIKE)
            .collect();
        // The newest of equally fitting lessons first.
        found.reverse();
        found.sort_by(|(a, _), (b, _)| b.total_cmp(a));
        Ok(found.into_iter().take(SHOWN).map(|(_, lesson)| lesson).collect())
    }
}

/// Why lessons could not be read or kept.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct LessonError(pub String);

/// How alike two texts are: the cosine of the angle between their token counts, from 0 to 1. A
/// token is a run of letters and digits, in lower case.
pub fn similarity(a: &str, b: &str) -> f64 {
    let (a, b) = (token_counts(a), token_counts(b));
    let dot: f64 = a.iter().map(|(token, n)| n * b.get(token).copied().unwrap_or(0.0)).sum();
    let length = |counts: &HashMap<String, f64>| counts.values().map(|n| n * n).sum::<f64>().sqrt();
    let lengths = length(&a) * length(&b);
    if lengths > 0.0 { (dot / lengths).min(1.0) } else { 0.0 }
}

fn token_counts(text: &str) -> HashMap<String, f64> {
    let mut counts = HashMap::new();
    for token in text.split(|c: char| !c.is_alphanumeric()).filter(|token| !token.is_empty()) {
        *counts.entry(token.to_lowercase()).or_insert(0.0) += 1.0;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_alike_by_the_cosine_of_their_token_counts() {
        assert!((similarity("Count the lines", "count THE lines!") - 1.0).abs() < 1e-9);
        assert!((similarity("a b", "a c") - 0.5).abs() < 1e-9);
        assert!(similarity("a b", "c d").abs() < 1e-9);
        assert!(similarity("", "c d").abs() < 1e-9);
    }
}
