//! How a planned agent is set up: strategies, bounds and intervals.

use std::{fmt, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A way to go about a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Strategy {
    /// Directly, without a plan.
    Simple,
    /// Plan, work the plan off, check, plan again.
    MultiStep,
    /// Thought and action in turn, with a plan, regular checks and re-planning.
    #[default]
    React,
    /// Begins without a plan and switches among the others as the work shows what it needs.
    Hybrid,
}

impl Strategy {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Simple, Self::MultiStep, Self::React, Self::Hybrid];

    /// Its name, as configurations and requests spell it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Simple => "simple",
            Self::MultiStep => "multi_step",
            Self::React => "react",
            Self::Hybrid => "hybrid",
        }
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A name that no strategy has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownStrategy(String);

impl fmt::Display for UnknownStrategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown strategy {:?}; there are simple, multi_step, react and hybrid", self.0)
    }
}

impl std::error::Error for UnknownStrategy {}

impl FromStr for Strategy {
    type Err = UnknownStrategy;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|strategy| strategy.name() == text);
        found.ok_or_else(|| UnknownStrategy(text.to_owned()))
    }
}

/// How a strategy is found for a task that names none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Classifier {
    /// The model is asked once; the indicator phrases are a hint to it.
    #[default]
    Model,
    /// The indicator phrases alone: `react` where one is found, `hybrid` otherwise.
    Phrases,
}

/// How a [`Planned`](crate::Planned) agent works. An interval of 0 means never.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PlannedConfig {
    /// The strategy, whatever the request says. `None` leaves the choice to the request's
    /// `execution_mode` and then to the classifier.
    pub strategy: Option<Strategy>,
    /// How a strategy is found when nobody named one.
    pub classifier: Classifier,
    /// Whether the model checks the work. Without a validator a task counts as not complete until
    /// the model calls `done`.
    pub validator: bool,
    /// Whether `done` is checked, too, while TODO items are open. Weak models call it early.
    pub check_done: bool,
    /// A tool that shows the world as it is, such as a browser's `snapshot`. It is called without
    /// arguments before a claim that the task is complete is checked.
    pub look: Option<String>,
    /// Whether there is somebody to ask.
    pub ask_human: bool,
    /// Whether lessons of earlier tasks are read and new ones written.
    pub lessons: bool,
    /// The most steps of a `simple` task.
    pub max_simple: u64,
    /// The most steps of a `react` task.
    pub max_react: u64,
    /// The most steps of a `multi_step` task.
    pub max_multi_step: u64,
    /// The most steps of a `hybrid` task.
    pub max_hybrid: u64,
    /// After how many steps of `react` the work is checked.
    pub validate_every: u64,
    /// After how many steps of `react` re-planning is considered.
    pub plan_every: u64,
    /// How often one task may be planned again.
    pub max_replans: u32,
    /// After how many steps the model looks at the run itself.
    pub meta_every: u64,
    /// What counts as being stuck.
    pub stuck: StuckLimits,
}

impl Default for PlannedConfig {
    fn default() -> Self {
        Self {
            strategy: None,
            classifier: Classifier::Model,
            validator: true,
            check_done: false,
            look: None,
            ask_human: true,
            lessons: false,
            max_simple: 10,
            max_react: 30,
            max_multi_step: 50,
            max_hybrid: 30,
            validate_every: 3,
            plan_every: 5,
            max_replans: 5,
            meta_every: 0,
            stuck: StuckLimits::default(),
        }
    }
}

impl PlannedConfig {
    /// The most steps of a task.
    pub(crate) fn most_steps(&self, strategy: Strategy) -> u64 {
        match strategy {
            Strategy::Simple => self.max_simple,
            Strategy::MultiStep => self.max_multi_step,
            Strategy::React => self.max_react,
            Strategy::Hybrid => self.max_hybrid,
        }
    }
}

/// From when on something is a sign of being stuck. 0 turns a sign off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StuckLimits {
    /// The same call with the same result, so often in a row.
    pub repeated_call: usize,
    /// The longest cycle of calls that is looked for; it must come round twice.
    pub longest_cycle: usize,
    /// The same error, so often in a row, whatever the arguments.
    pub same_error: usize,
    /// The same result, so often in a row, whatever the call.
    pub same_observation: usize,
    /// So many steps without a finished TODO item while some are open.
    pub no_todo_progress: u64,
}

impl Default for StuckLimits {
    fn default() -> Self {
        Self {
            repeated_call: 3,
            longest_cycle: 5,
            same_error: 2,
            same_observation: 4,
            no_todo_progress: 8,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_strategy_is_found_by_its_name_and_others_are_told_what_there_is() {
        for strategy in Strategy::ALL {
            assert_eq!(strategy.name().parse(), Ok(strategy));
        }
        let error = "fast".parse::<Strategy>().unwrap_err().to_string();
        assert_eq!(
            error,
            "unknown strategy \"fast\"; there are simple, multi_step, react and hybrid"
        );
    }
}
