//! `llm_agent`: a model with the domain's rules and tools.

use std::sync::Arc;

use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};

use crate::{
    AgentError, Incoming, Message, Participant, Requestor, SystemMessage, Utterance,
    llm::{Choice, Llm, Prompt, ToolList},
    participant::{check_history, is_valid_agent_history_message},
};

/// What every agent that talks to a user is told.
const INSTRUCTIONS: &str = "\
You serve the customers of a company. Help the user with what they ask for, and keep to the rules \
in <policy> in everything you do.
At each turn do one of two things: write to the user, or call tools. Never do both in one turn.
Be friendly and to the point. The arguments of a tool call are always valid JSON.";

/// An agent that is a model with the domain's rules and tools.
#[derive(Clone)]
pub struct LlmAgent {
    llm: Arc<dyn Llm>,
    tools: Arc<ToolList>,
    system: Arc<str>,
    seed: Option<i64>,
}

/// What a model-based participant knows of the conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LlmState {
    /// The instructions.
    pub system_messages: Vec<SystemMessage>,
    /// The conversation.
    pub messages: Vec<Message>,
}

impl LlmAgent {
    /// An agent for a domain.
    pub fn new(llm: Arc<dyn Llm>, tools: ToolList, policy: &str) -> Self {
        Self::with_system(llm, tools, prompt(INSTRUCTIONS, &[("policy", policy)]))
    }

    /// An agent with another prompt.
    pub(crate) fn with_system(llm: Arc<dyn Llm>, tools: ToolList, system: String) -> Self {
        Self { llm, tools: Arc::new(tools), system: system.into(), seed: None }
    }

    /// The prompt.
    pub fn system_prompt(&self) -> &str {
        &self.system
    }

    /// The tools.
    pub fn tools(&self) -> &ToolList {
        &self.tools
    }

    /// Asks the model for the next message.
    pub(crate) async fn ask(
        &self,
        state: &LlmState,
        choice: Choice,
    ) -> Result<Utterance, AgentError> {
        let prompt = Prompt {
            system: &self.system,
            messages: &state.messages,
            tools: &self.tools,
            choice,
            seed: self.seed,
        };
        let generated = self.llm.generate(prompt).await?;
        Ok(generated.into_utterance(Requestor::Assistant)?)
    }
}

impl Participant for LlmAgent {
    type State = LlmState;

    fn get_init_state(&self, history: &[Message]) -> Result<LlmState, AgentError> {
        check_history(history, is_valid_agent_history_message)?;
        Ok(LlmState::new(&self.system, history))
    }

    fn generate_next_message<'a>(
        &'a self,
        message: Incoming,
        mut state: LlmState,
    ) -> BoxFuture<'a, Result<(Utterance, LlmState), AgentError>> {
        Box::pin(async move {
            state.messages.extend(message.into_messages(Message::User));
            let said = self.ask(&state, Choice::Auto).await?;
            state.messages.push(Message::Assistant(said.clone()));
            Ok((said, state))
        })
    }

    fn set_seed(&mut self, seed: i64) {
        self.seed = Some(seed);
    }

    fn keep(&self, _: &LlmState) -> Option<serde_json::Value> {
        None
    }
}

impl LlmState {
    /// The state after a history.
    pub fn new(system: &str, history: &[Message]) -> Self {
        let system = SystemMessage { content: Some(system.to_owned()), ..SystemMessage::default() };
        Self { system_messages: vec![system], messages: history.to_vec() }
    }
}

/// A prompt of sections: `<instructions>…</instructions>` and the others in their order.
pub(super) fn prompt(instructions: &str, sections: &[(&str, &str)]) -> String {
    let mut out = format!("<instructions>\n{instructions}\n</instructions>");
    for (name, content) in sections {
        out.push_str(&format!("\n<{name}>\n{content}\n</{name}>"));
    }
    out
}
