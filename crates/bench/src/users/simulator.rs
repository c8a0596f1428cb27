//! `user_simulator`: a model that plays the user of a scenario, with tools of their own or without.

use std::sync::Arc;

use futures::future::BoxFuture;

use super::is_stop;
use crate::{
    AgentError, DataDir, DataError, Incoming, Message, Participant, Requestor, ToolMessage,
    Utterance,
    agents::LlmState,
    llm::{Choice, Llm, Prompt, ToolList},
    participant::{check_history, is_valid_user_history_message},
    read_text,
};

/// What every simulated user is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guidelines {
    /// Those who have no tools.
    pub plain: String,
    /// Those who have tools.
    pub with_tools: String,
}

impl Guidelines {
    /// The program's own.
    pub fn own() -> Self {
        Self {
            plain: include_str!("guidelines.md").to_owned(),
            with_tools: concat!(include_str!("guidelines.md"), include_str!("guidelines_tools.md"))
                .to_owned(),
        }
    }

    /// Those of a data directory.
    pub fn load(data: &DataDir) -> Result<Self, DataError> {
        let folder = data.path().join("tau2").join("user_simulator");
        let text = |name: &str| -> Result<String, DataError> {
            Ok(read_text(&folder.join(name))?.replace("<PERSONA_GUIDELINES>", ""))
        };
        Ok(Self {
            plain: text("simulation_guidelines.md")?,
            with_tools: text("simulation_guidelines_tools.md")?,
        })
    }
}

/// A model that plays a user.
#[derive(Clone)]
pub struct UserSimulator {
    llm: Arc<dyn Llm>,
    tools: Arc<ToolList>,
    system: Arc<str>,
    seed: Option<i64>,
}

impl UserSimulator {
    /// A user of a scenario; without tools the list is empty.
    pub fn new(
        llm: Arc<dyn Llm>,
        tools: ToolList,
        guidelines: &Guidelines,
        scenario: &str,
    ) -> Self {
        let guidelines = if tools.is_empty() { &guidelines.plain } else { &guidelines.with_tools };
        let system = format!("{guidelines}\n\n<scenario>\n{scenario}\n</scenario>");
        Self { llm, tools: Arc::new(tools), system: system.into(), seed: None }
    }

    /// The prompt.
    pub fn system_prompt(&self) -> &str {
        &self.system
    }
}

impl Participant for UserSimulator {
    type State = LlmState;

    fn get_init_state(&self, history: &[Message]) -> Result<LlmState, AgentError> {
        check_history(history, is_valid_user_history_message)?;
        Ok(LlmState::new(&self.system, history))
    }

    fn generate_next_message<'a>(
        &'a self,
        message: Incoming,
        mut state: LlmState,
    ) -> BoxFuture<'a, Result<(Utterance, LlmState), AgentError>> {
        Box::pin(async move {
            let is_empty = matches!(&message, Incoming::Said(said)
                if !said.has_text() && !said.is_tool_call());
            if !is_empty {
                state.messages.extend(message.into_messages(Message::Assistant));
            }
            let messages = flipped(&state.messages)?;
            let prompt = Prompt {
                system: &self.system,
                messages: &messages,
                tools: &self.tools,
                choice: Choice::Auto,
                seed: self.seed,
            };
            let said = self.llm.generate(prompt).await?.into_utterance(Requestor::User)?;
            state.messages.push(Message::User(said.clone()));
            Ok((said, state))
        })
    }

    fn is_stop(&self, message: &Utterance) -> bool {
        is_stop(message)
    }

    fn set_seed(&mut self, seed: i64) {
        self.seed = Some(seed);
    }

    fn keep(&self, _: &LlmState) -> Option<serde_json::Value> {
        None
    }
}

/// The conversation as the user's model sees it: its own words as the assistant's, and nothing of
/// the agent's tools.
fn flipped(messages: &[Message]) -> Result<Vec<Message>, AgentError> {
    let flip = |(place, message): (usize, &Message)| match message {
        Message::User(said) => Ok(Message::Assistant(Utterance {
            content: said.content.clone(),
            tool_calls: said.tool_calls.clone(),
            ..Utterance::default()
        })),
        Message::Assistant(said) if !said.is_tool_call() => {
            Ok(Message::User(Utterance { content: said.content.clone(), ..Utterance::default() }))
        }
        Message::Tool(answer) if answer.requestor == Requestor::User => {
            Ok(Message::Tool(ToolMessage {
                id: answer.id.clone(),
                content: answer.content.clone(),
                error: answer.error,
                ..ToolMessage::default()
            }))
        }
        _ => Err(AgentError::InvalidHistory { place }),
    };
    messages.iter().enumerate().map(flip).collect()
}
