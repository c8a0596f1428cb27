//! Checking the work.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a look at the work found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Validation {
    /// What was asked for, which results show that it is done, and what is missing.
    pub reasoning: String,
    /// Whether everything that was asked for is done, as the results show it.
    pub is_complete: bool,
    /// What to do next, if it is not complete.
    #[serde(default)]
    pub suggestions: Vec<String>,
    /// How sure, from 0 to 1.
    #[serde(default)]
    pub confidence: f64,
}

impl Validation {
    pub(crate) fn check(&self) -> Result<(), String> {
        if (0.0..=1.0).contains(&self.confidence) {
            Ok(())
        } else {
            Err(format!("confidence: {} is not between 0 and 1", self.confidence))
        }
    }

    /// What is taken when nobody could say: not complete.
    pub(crate) fn unknown(why: &str) -> Self {
        Self {
            is_complete: false,
            reasoning: why.to_owned(),
            suggestions: Vec::new(),
            confidence: 0.0,
        }
    }
}

/// Why the work is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Occasion {
    /// It is time again.
    Interval,
    /// The model asked for it.
    Asked,
    /// The model answered without calling a tool.
    Answer,
    /// No TODO item is left.
    AllFinished,
    /// The model called `done` while TODO items were open.
    Done,
}

impl Occasion {
    /// Whether the work is said to be complete, so that a "no" calls for another plan.
    pub(crate) fn is_claim(self) -> bool {
        matches!(self, Self::Answer | Self::AllFinished | Self::Done)
    }
}
