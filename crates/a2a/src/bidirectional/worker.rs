//! Whoever works on a plan's local steps: asks the model, which may call tools, until it answers.

use duologue_core::{Ask, Behavior, Latest, Limit, Outcome, RunState, Step};

/// The most model calls of one step.
const MOST_CALLS: u64 = 12;

/// The behaviour.
pub(super) struct Worker;

impl Behavior for Worker {
    type State = ();

    fn name(&self) -> &'static str {
        "worker"
    }

    fn decide(&self, run: &RunState, (): &()) -> Step {
        match run.latest() {
            Latest::Input if run.steps() >= MOST_CALLS => {
                Step::End(Outcome::LimitReached { limit: Limit::Steps })
            }
            Latest::Input => Step::Ask(Ask::default()),
            Latest::Calls => Step::Call,
            Latest::Answer | Latest::Nothing => Step::End(Outcome::Completed),
        }
    }
}
