//! Who takes part in a conversation: agents and simulated users, and what they may say.

use futures::future::BoxFuture;
use serde::{Serialize, de::DeserializeOwned};

use crate::{Message, MultiToolMessage, Requestor, ToolMessage, Utterance, llm::LlmError};

/// An agent or a simulated user.
///
/// It is given what was said to it and its state, and gives back what it says and its next state:
/// a state is never changed, so a conversation can be taken up from any of them.
pub trait Participant: Send + Sync {
    /// What it knows of the conversation.
    type State: Clone + Serialize + DeserializeOwned + Send + Sync + 'static;

    /// The state after this history.
    fn get_init_state(&self, history: &[Message]) -> Result<Self::State, AgentError>;

    /// What it says to a message, and its state then.
    fn generate_next_message<'a>(
        &'a self,
        message: Incoming,
        state: Self::State,
    ) -> BoxFuture<'a, Result<(Utterance, Self::State), AgentError>>;

    /// Whether this message of its own ends the conversation. An agent's never does, unless it says
    /// otherwise.
    fn is_stop(&self, _message: &Utterance) -> bool {
        false
    }

    /// The conversation is over: the last message that nobody answered, and the last state.
    fn stop(&self, _message: Option<&Incoming>, _state: Option<&Self::State>) {}

    /// Makes chance repeatable.
    fn set_seed(&mut self, _seed: i64) {}

    /// What must be kept of a state for [`recall`](Self::recall): all of it, or nothing where the
    /// history tells it.
    fn keep(&self, state: &Self::State) -> Option<serde_json::Value> {
        serde_json::to_value(state).ok()
    }

    /// The state after this history, in a process that was not there, with what was kept of it.
    fn recall(
        &self,
        history: &[Message],
        kept: Option<serde_json::Value>,
    ) -> Result<Self::State, AgentError> {
        match kept {
            None => self.get_init_state(history),
            Some(kept) => serde_json::from_value(kept)
                .map_err(|error| AgentError::Other(format!("its kept state: {error}"))),
        }
    }
}

/// What is said to a participant.
#[derive(Clone, Debug, PartialEq)]
pub enum Incoming {
    /// Nothing: it begins.
    Begin,
    /// The other one says something.
    Said(Utterance),
    /// A tool answers.
    Tool(ToolMessage),
    /// Several tools answer.
    Tools(MultiToolMessage),
}

/// Why a participant cannot go on. The first five are the rules for messages, histories, tasks and
/// tools.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum AgentError {
    /// A message with nothing in it.
    #[error(
        "the message is empty: it must have text or tool calls (check what the model answered)"
    )]
    EmptyMessage,
    /// A message that speaks and acts at once.
    #[error("the message has both text and tool calls: it may have one of them only")]
    BothContentTypes,
    /// A history with messages that do not belong there.
    #[error(
        "the history has a message at {place} that this participant cannot have seen; filter it \
         with is_valid_agent_history_message or is_valid_user_history_message"
    )]
    InvalidHistory {
        /// Where, counted from 0.
        place: usize,
    },
    /// A task that this agent cannot work on.
    #[error("task {task} is not for this agent: {reason}")]
    InvalidTask {
        /// The task.
        task: String,
        /// What it lacks.
        reason: &'static str,
    },
    /// A tool that must be there.
    #[error("the tool {tool:?} is missing")]
    MissingTool {
        /// Its name.
        tool: String,
    },
    /// Text from an agent that may only call tools.
    #[error("an agent that works alone can only call tools, and this one sent text")]
    OnlyToolCalls,
    /// A message from a user to an agent that works alone.
    #[error("an agent that works alone takes no messages from a user")]
    NoUserMessages,
    /// A participant that never speaks was asked to.
    #[error("this user never speaks; it belongs to an agent that works alone")]
    NeverSpeaks,
    /// A script that is over.
    #[error("the script has no more turns")]
    ScriptOver,
    /// The model failed.
    #[error(transparent)]
    Llm(#[from] LlmError),
    /// Anything else.
    #[error("{0}")]
    Other(String),
}

/// What a message may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Text or tool calls.
    Dialogue,
    /// Tool calls only.
    Solo,
}

/// Checks that a message speaks or acts, and does not do both.
pub fn validate_message_format(message: &Utterance, format: Format) -> Result<(), AgentError> {
    match (message.has_text(), message.is_tool_call(), format) {
        (false, false, _) => Err(AgentError::EmptyMessage),
        (true, _, Format::Solo) => Err(AgentError::OnlyToolCalls),
        (true, true, Format::Dialogue) => Err(AgentError::BothContentTypes),
        _ => Ok(()),
    }
}

/// Whether an agent can have seen a message: its own, a user's words, the answers to its calls.
pub fn is_valid_agent_history_message(message: &Message) -> bool {
    match message {
        Message::Assistant(_) => true,
        Message::User(message) => !message.is_tool_call(),
        Message::Tool(message) => message.requestor == Requestor::Assistant,
        Message::System(_) => false,
    }
}

/// Whether a user can have seen a message: their own, an agent's words, the answers to their calls.
pub fn is_valid_user_history_message(message: &Message) -> bool {
    match message {
        Message::User(_) => true,
        Message::Assistant(message) => !message.is_tool_call(),
        Message::Tool(message) => message.requestor == Requestor::User,
        Message::System(_) => false,
    }
}

/// Checks a whole history.
pub(crate) fn check_history(
    history: &[Message],
    valid: fn(&Message) -> bool,
) -> Result<(), AgentError> {
    match history.iter().position(|message| !valid(message)) {
        Some(place) => Err(AgentError::InvalidHistory { place }),
        None => Ok(()),
    }
}

impl Incoming {
    /// The messages in it, as an agent or a user keeps them.
    pub fn into_messages(self, said: fn(Utterance) -> Message) -> Vec<Message> {
        match self {
            Self::Begin => Vec::new(),
            Self::Said(message) => vec![said(message)],
            Self::Tool(message) => vec![Message::Tool(message)],
            Self::Tools(messages) => {
                messages.tool_messages.into_iter().map(Message::Tool).collect()
            }
        }
    }
}

/// A participant in its seat, with its state: what an orchestrator sees, whatever the state is.
pub trait Seat: Send {
    /// Takes the seat after this history.
    fn begin(&mut self, history: &[Message]) -> Result<(), AgentError>;
    /// Says something.
    fn next(&mut self, message: Incoming) -> BoxFuture<'_, Result<Utterance, AgentError>>;
    /// Whether a message of its own ends the conversation.
    fn is_stop(&self, message: &Utterance) -> bool;
    /// Leaves the seat.
    fn stop(&mut self, message: Option<&Incoming>);
    /// Makes chance repeatable.
    fn set_seed(&mut self, seed: i64);
    /// What is new about its state since this was last asked, to be kept through a kill.
    fn keep(&mut self) -> BoxFuture<'_, Option<serde_json::Value>> {
        Box::pin(async { None })
    }
    /// Takes the seat again after this history, with all that was kept, in its order.
    fn resume(
        &mut self,
        history: &[Message],
        _kept: Vec<serde_json::Value>,
    ) -> Result<(), AgentError> {
        self.begin(history)
    }
}

/// A participant and its state.
pub struct Seated<P: Participant> {
    participant: P,
    state: Option<P::State>,
}

impl<P: Participant> Seated<P> {
    /// Not begun yet.
    pub fn new(participant: P) -> Self {
        Self { participant, state: None }
    }
}

impl<P: Participant> Seat for Seated<P> {
    fn begin(&mut self, history: &[Message]) -> Result<(), AgentError> {
        self.state = Some(self.participant.get_init_state(history)?);
        Ok(())
    }

    fn next(&mut self, message: Incoming) -> BoxFuture<'_, Result<Utterance, AgentError>> {
        Box::pin(async move {
            let state = match self.state.take() {
                Some(state) => state,
                None => self.participant.get_init_state(&[])?,
            };
            let (said, state) = self.participant.generate_next_message(message, state).await?;
            self.state = Some(state);
            Ok(said)
        })
    }

    fn is_stop(&self, message: &Utterance) -> bool {
        self.participant.is_stop(message)
    }

    fn stop(&mut self, message: Option<&Incoming>) {
        self.participant.stop(message, self.state.as_ref());
    }

    fn set_seed(&mut self, seed: i64) {
        self.participant.set_seed(seed);
    }

    fn keep(&mut self) -> BoxFuture<'_, Option<serde_json::Value>> {
        let kept = self.state.as_ref().and_then(|state| self.participant.keep(state));
        Box::pin(async move { kept })
    }

    fn resume(
        &mut self,
        history: &[Message],
        mut kept: Vec<serde_json::Value>,
    ) -> Result<(), AgentError> {
        // Each is the whole state.
        self.state = Some(self.participant.recall(history, kept.pop())?);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ToolCall;

    fn call() -> Vec<ToolCall> {
        vec![ToolCall {
            id: "1".into(),
            name: "f".into(),
            arguments: crate::Value::empty_dict(),
            requestor: Requestor::Assistant,
        }]
    }

    #[test]
    fn a_message_speaks_or_acts() {
        let both = Utterance { content: Some("x".into()), ..Utterance::calls(call()) };
        let check = validate_message_format;
        assert_eq!(check(&Utterance::text("hi"), Format::Dialogue), Ok(()));
        assert_eq!(check(&Utterance::calls(call()), Format::Dialogue), Ok(()));
        assert_eq!(check(&Utterance::text(" \n"), Format::Dialogue), Err(AgentError::EmptyMessage));
        assert_eq!(check(&both, Format::Dialogue), Err(AgentError::BothContentTypes));
        assert_eq!(check(&both, Format::Solo), Err(AgentError::OnlyToolCalls));
        assert_eq!(check(&Utterance::calls(call()), Format::Solo), Ok(()));
    }

    #[test]
    fn each_side_has_its_own_history() {
        let user_call = Message::User(Utterance::calls(call()));
        let agent_call = Message::Assistant(Utterance::calls(call()));
        assert!(!is_valid_agent_history_message(&user_call));
        assert!(is_valid_user_history_message(&user_call));
        assert!(is_valid_agent_history_message(&agent_call));
        assert!(!is_valid_user_history_message(&agent_call));
        let history = [agent_call, user_call];
        assert_eq!(
            check_history(&history, is_valid_agent_history_message),
            Err(AgentError::InvalidHistory { place: 1 })
        );
    }
}
