//! `llm_agent_solo`: an agent that gets a ticket and works on it alone.

use std::sync::Arc;

use duologue_core::ToolSpec;
use futures::future::BoxFuture;
use serde_json::json;

use super::llm::{LlmAgent, LlmState, prompt};
use crate::{
    AgentError, Incoming, Message, Participant, Task, Utterance,
    llm::{Choice, Llm, ToolList},
    users::STOP,
};

const INSTRUCTIONS: &str = "\
You serve the customers of a company. <ticket> says what a customer needs; work out which tools \
solve it, call them, and keep to the rules in <policy>.
There is nobody to talk to: every message is a call of tools.
When the ticket is solved, call `done`, alone in its message. The arguments of a tool call are \
always valid JSON.";

/// The tool that ends the work.
const DONE: &str = "done";

/// An agent that works alone.
#[derive(Clone)]
pub struct SoloAgent(LlmAgent);

impl SoloAgent {
    /// An agent for a task with a ticket; the tools get `done` added.
    pub fn new(
        llm: Arc<dyn Llm>,
        tools: ToolList,
        policy: &str,
        task: &Task,
    ) -> Result<Self, AgentError> {
        let parameters = json!({"properties": {}, "title": "parameters", "type": "object"});
        let done = ToolSpec::new(DONE, "Say that the ticket is solved.", parameters);
        Self::with_tools(llm, tools.with(done), policy, task)
    }

    /// An agent with exactly these tools, of which one must be `done`.
    pub fn with_tools(
        llm: Arc<dyn Llm>,
        tools: ToolList,
        policy: &str,
        task: &Task,
    ) -> Result<Self, AgentError> {
        if let Err(reason) = check_task(task) {
            return Err(AgentError::InvalidTask { task: task.id.clone(), reason });
        }
        if !tools.contains(DONE) {
            return Err(AgentError::MissingTool { tool: DONE.to_owned() });
        }
        // A task with an initial state need not have one; the reference then shows `None`.
        let ticket = task.ticket.as_deref().unwrap_or("None");
        let system = prompt(INSTRUCTIONS, &[("policy", policy), ("ticket", ticket)]);
        Ok(Self(LlmAgent::with_system(llm, tools, system)))
    }

    /// The prompt.
    pub fn system_prompt(&self) -> &str {
        self.0.system_prompt()
    }

    /// The tools.
    pub fn tools(&self) -> &ToolList {
        self.0.tools()
    }
}

/// A task for an agent alone has a ticket and expects actions. Where it starts from messages, they
/// are tool calls and their answers only.
fn check_task(task: &Task) -> Result<(), &'static str> {
    if let Some(state) = &task.initial_state {
        let talks = |message: &Message| match message {
            Message::User(_) => true,
            Message::Assistant(message) => !message.is_tool_call(),
            Message::System(_) | Message::Tool(_) => false,
        };
        return match state.message_history.iter().flatten().any(talks) {
            true => Err("it starts from a conversation with a user"),
            false => Ok(()),
        };
    }
    if task.ticket.is_none() {
        return Err("it has no ticket");
    }
    if task.actions().is_empty() {
        return Err("it expects no actions");
    }
    Ok(())
}

impl Participant for SoloAgent {
    type State = LlmState;

    fn get_init_state(&self, history: &[Message]) -> Result<LlmState, AgentError> {
        self.0.get_init_state(history)
    }

    fn generate_next_message<'a>(
        &'a self,
        message: Incoming,
        mut state: LlmState,
    ) -> BoxFuture<'a, Result<(Utterance, LlmState), AgentError>> {
        Box::pin(async move {
            if matches!(message, Incoming::Said(_)) {
                return Err(AgentError::NoUserMessages);
            }
            state.messages.extend(message.into_messages(Message::User));
            let mut said = self.0.ask(&state, Choice::Required).await?;
            let Some(calls) = &said.tool_calls else { return Err(AgentError::OnlyToolCalls) };
            // What else it calls together with `done` is dropped.
            if calls.iter().any(|call| call.name == DONE) {
                said.content = Some(STOP.to_owned());
                said.tool_calls = None;
            }
            state.messages.push(Message::Assistant(said.clone()));
            Ok((said, state))
        })
    }

    fn is_stop(&self, message: &Utterance) -> bool {
        message.content.as_deref().is_some_and(|content| content.contains(STOP))
    }

    fn set_seed(&mut self, seed: i64) {
        self.0.set_seed(seed);
    }

    fn keep(&self, _: &LlmState) -> Option<serde_json::Value> {
        None
    }
}
