//! What the official reward does not tell: how far a run came that stopped early, and passes that
//! nobody worked for. Shown beside the reward, never instead of it.

use crate::{
    Message, Simulation, Task, Value,
    evaluate::{EvaluateError, Evaluator},
    metrics::is_success,
};

/// What a simulation's file keeps of it, under `duologue`.
pub const KEY: &str = "duologue";

impl Evaluator<'_> {
    /// Remarks on a judged simulation, where there are any.
    pub fn remarks(
        &self,
        simulation: &Simulation,
        task: &Task,
    ) -> Result<Option<Value>, EvaluateError> {
        let mut remarks = Value::empty_dict();
        if !simulation.termination_reason.is_regular()
            && let Some(criteria) = &task.evaluation_criteria
            && !simulation.messages().is_empty()
        {
            let judgement =
                self.components(complete_part(simulation.messages()), task, criteria)?;
            let info = self.complete(judgement, task, None);
            let parts: crate::Dict = info
                .reward_breakdown
                .iter()
                .flatten()
                .map(|(kind, part)| (kind.name(), Value::Float(*part)))
                .collect();
            remarks.set("parts_when_stopped", parts);
        }
        let flags = suspicions(simulation, task);
        if !flags.is_empty() {
            remarks.set("flags", Value::list(flags.into_iter().map(Value::from)));
        }
        Ok(remarks.truthy().then_some(remarks))
    }
}

/// Why a pass is suspicious.
pub fn suspicions(simulation: &Simulation, task: &Task) -> Vec<&'static str> {
    let passed = simulation.reward_info.as_ref().is_some_and(|info| is_success(info.reward));
    if !passed {
        return Vec::new();
    }
    let mut flags = Vec::new();
    let messages = simulation.messages();
    let agent_called =
        messages.iter().any(|m| matches!(m, Message::Assistant(said) if said.tool_calls.is_some()));
    if !agent_called {
        flags.push("agent_called_no_tool");
    }
    let expects_nothing = task.actions().is_empty();
    if expects_nothing && !agent_called {
        flags.push("doing_nothing_passes");
    }
    flags
}

/// A trajectory up to the last call that was answered: one that stopped in the middle of a batch can
/// be replayed to there.
pub fn complete_part(messages: &[Message]) -> &[Message] {
    let mut open = 0;
    let mut end = 0;
    for (at, message) in messages.iter().enumerate() {
        match message {
            Message::Tool(_) => open -= open.min(1),
            other => open = other.tool_calls().len(),
        }
        if open == 0 {
            end = at + 1;
        }
    }
    messages.get(..end).unwrap_or_default()
}
