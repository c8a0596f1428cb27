//! The generic pattern: receive, think, call tools, go on until there is an answer.

use duologue_core::{Ask, Behavior, Latest, Limit, Outcome, RunState, Step};

/// The generic pattern of behaviour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Generic {
    /// The most model calls of one task.
    pub max_steps: u64,
}

impl Default for Generic {
    fn default() -> Self {
        Self { max_steps: 50 }
    }
}

impl Behavior for Generic {
    type State = ();

    fn name(&self) -> &'static str {
        "generic"
    }

    fn decide(&self, run: &RunState, _: &()) -> Step {
        next_step(run, self.max_steps)
    }
}

/// Ask until the model answers without calls, and run the calls in between.
pub(crate) fn next_step(run: &RunState, max_steps: u64) -> Step {
    match run.latest() {
        Latest::Input if run.steps() >= max_steps => {
            Step::End(Outcome::LimitReached { limit: Limit::Steps })
        }
        Latest::Input => Step::Ask(Ask::default()),
        Latest::Calls => Step::Call,
        Latest::Answer => match run.reminder() {
            // A formality with a bound of its own, so it does not count against the agent's.
            Some(ask) => Step::Ask(ask),
            None => Step::End(Outcome::Completed),
        },
        Latest::Nothing => Step::End(Outcome::Completed),
    }
}
