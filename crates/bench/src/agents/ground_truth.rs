//! `llm_agent_gt`: an agent that is told the expected actions, to try a simulated user out.

use std::sync::Arc;

use futures::future::BoxFuture;

use super::llm::{LlmAgent, LlmState, prompt};
use crate::{
    Action, AgentError, Incoming, Message, Participant, Requestor, Task, Utterance,
    llm::{Llm, ToolList},
};

const INSTRUCTIONS: &str = "\
You help to find out whether a simulated customer behaves well. The customer comes with a problem; \
solve it and keep to the rules in <policy>.
<resolution_steps> lists what solves it, step by step: each is something you do, or something you \
ask the user to do.
At each turn do one of two things: write to the user, or call tools. Never do both in one turn.
Be friendly and to the point. The arguments of a tool call are always valid JSON.";

/// How much the steps tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StepDetail {
    /// The tools and their arguments.
    #[default]
    WithArguments,
    /// The tools only.
    NamesOnly,
}

/// An agent that is told the expected actions.
#[derive(Clone)]
pub struct GroundTruthAgent(LlmAgent);

impl GroundTruthAgent {
    /// An agent for a task, which must expect actions.
    pub fn new(
        llm: Arc<dyn Llm>,
        tools: ToolList,
        policy: &str,
        task: &Task,
        detail: StepDetail,
    ) -> Result<Self, AgentError> {
        if task.actions().is_empty() {
            let reason = "it expects no actions, so there are no steps to tell";
            return Err(AgentError::InvalidTask { task: task.id.clone(), reason });
        }
        let steps = steps(task.actions(), detail);
        let system = prompt(INSTRUCTIONS, &[("policy", policy), ("resolution_steps", &steps)]);
        Ok(Self(LlmAgent::with_system(llm, tools, system)))
    }

    /// The prompt.
    pub fn system_prompt(&self) -> &str {
        self.0.system_prompt()
    }
}

impl Participant for GroundTruthAgent {
    type State = LlmState;

    fn get_init_state(&self, history: &[Message]) -> Result<LlmState, AgentError> {
        self.0.get_init_state(history)
    }

    fn generate_next_message<'a>(
        &'a self,
        message: Incoming,
        state: LlmState,
    ) -> BoxFuture<'a, Result<(Utterance, LlmState), AgentError>> {
        self.0.generate_next_message(message, state)
    }

    fn set_seed(&mut self, seed: i64) {
        self.0.set_seed(seed);
    }

    fn keep(&self, _: &LlmState) -> Option<serde_json::Value> {
        None
    }
}

fn steps(actions: &[Action], detail: StepDetail) -> String {
    let step = |(at, action): (usize, &Action)| {
        let (call, name) = (action.function_format(), &action.name);
        let told = match (action.requestor, detail) {
            (Requestor::User, StepDetail::WithArguments) => {
                format!("Instruct the user to perform the following action: {call}.")
            }
            (Requestor::User, StepDetail::NamesOnly) => format!("User action: {name}."),
            (Requestor::Assistant, StepDetail::WithArguments) => {
                format!("Perform the following action: {call}.")
            }
            (Requestor::Assistant, StepDetail::NamesOnly) => format!("Assistant action: {name}."),
        };
        format!("[Step {}] {told}", at + 1)
    };
    actions.iter().enumerate().map(step).collect::<Vec<_>>().join("\n")
}
