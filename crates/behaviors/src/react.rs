//! ReAct: a thought before each action, an observation after it, and a bound.

use duologue_core::{Behavior, Profile, RunState, Step};

use crate::generic::next_step;

/// The ReAct pattern: thought, action, observation, again.
///
/// Actions are native tool calls. A thought is a reasoning part where the model has them, and the
/// text before the calls where not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReAct {
    /// The most iterations of one task.
    pub max_iterations: u64,
}

impl Default for ReAct {
    fn default() -> Self {
        Self { max_iterations: 10 }
    }
}

const INSTRUCTION: &str = "\
Work in steps. In each step first think, then act:
- Thought: say in one or two sentences what you know, what is missing and what you do next.
- Action: call the tool that does it. Several independent calls may go together.
- Observation: read what the tools gave before you think again. When a call failed, find out why \
and change something; do not repeat it unchanged.
When you have what was asked for, answer without calling a tool.";

impl Behavior for ReAct {
    type State = ();

    fn name(&self) -> &'static str {
        "react"
    }

    fn system_instruction(&self, profile: &Profile) -> String {
        if profile.system.is_empty() {
            INSTRUCTION.to_owned()
        } else {
            format!("{}\n\n{INSTRUCTION}", profile.system)
        }
    }

    fn decide(&self, run: &RunState, _: &()) -> Step {
        next_step(run, self.max_iterations)
    }
}
