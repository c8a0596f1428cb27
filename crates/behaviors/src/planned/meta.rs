//! Meta-reasoning: a look at the run itself.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::config::Strategy;

/// The longest interval that a look may set.
const LONGEST: u64 = 20;

/// What a look at the run found, and what changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MetaLook {
    /// How the run goes, in one or two sentences.
    pub assessment: String,
    /// The strategy to go on with.
    pub strategy: MetaStrategy,
    /// After how many steps to check the work from now on; 0 leaves it as it is.
    #[serde(default)]
    pub validate_every: u64,
    /// After how many steps to consider re-planning from now on; 0 leaves it as it is.
    #[serde(default)]
    pub plan_every: u64,
}

/// What a look at the run says about the strategy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MetaStrategy {
    /// Go on as before.
    #[default]
    Keep,
    /// Directly.
    Simple,
    /// By a plan.
    MultiStep,
    /// Thought and action in turn.
    React,
}

impl MetaLook {
    pub(crate) fn check(&self) -> Result<(), String> {
        let fields = [("validate_every", self.validate_every), ("plan_every", self.plan_every)];
        match fields.into_iter().find(|(_, value)| *value > LONGEST) {
            Some((name, value)) => Err(format!("{name}: {value} is more than {LONGEST}")),
            None => Ok(()),
        }
    }

    /// The strategy to switch to, if any.
    pub(crate) fn switch(&self) -> Option<Strategy> {
        match self.strategy {
            MetaStrategy::Keep => None,
            MetaStrategy::Simple => Some(Strategy::Simple),
            MetaStrategy::MultiStep => Some(Strategy::MultiStep),
            MetaStrategy::React => Some(Strategy::React),
        }
    }
}
