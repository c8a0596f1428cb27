//! Simulated users.

mod simulator;

use futures::future::BoxFuture;

pub use simulator::{Guidelines, UserSimulator};

use crate::{AgentError, Incoming, Message, Participant, Utterance};

/// The user is content.
pub const STOP: &str = "###STOP###";
/// The user was handed over to a person.
pub const TRANSFER: &str = "###TRANSFER###";
/// The scenario does not say how to go on.
pub const OUT_OF_SCOPE: &str = "###OUT-OF-SCOPE###";

/// Whether a user's message ends the conversation.
pub fn is_stop(message: &Utterance) -> bool {
    !message.is_tool_call()
        && message.content.as_deref().is_some_and(|content| {
            [STOP, TRANSFER, OUT_OF_SCOPE].iter().any(|token| content.contains(token))
        })
}

/// `dummy_user`: nobody, beside an agent that works alone.
#[derive(Clone, Copy, Debug, Default)]
pub struct DummyUser;

impl Participant for DummyUser {
    type State = ();

    fn get_init_state(&self, _history: &[Message]) -> Result<(), AgentError> {
        Ok(())
    }

    fn generate_next_message<'a>(
        &'a self,
        _message: Incoming,
        _state: (),
    ) -> BoxFuture<'a, Result<(Utterance, ()), AgentError>> {
        Box::pin(async { Err(AgentError::NeverSpeaks) })
    }
}

/// Somebody who says what a script says, whatever is said to them. For tests.
#[derive(Debug)]
pub struct ScriptedParticipant {
    turns: Vec<Utterance>,
}

impl ScriptedParticipant {
    /// A script.
    pub fn new(turns: impl IntoIterator<Item = Utterance>) -> Self {
        Self { turns: turns.into_iter().collect() }
    }
}

impl Participant for ScriptedParticipant {
    /// How many turns were given.
    type State = usize;

    fn get_init_state(&self, _history: &[Message]) -> Result<usize, AgentError> {
        Ok(0)
    }

    fn generate_next_message<'a>(
        &'a self,
        _message: Incoming,
        given: usize,
    ) -> BoxFuture<'a, Result<(Utterance, usize), AgentError>> {
        let turn = self.turns.get(given).cloned().ok_or(AgentError::ScriptOver);
        Box::pin(async move { turn.map(|turn| (turn, given + 1)) })
    }

    fn is_stop(&self, message: &Utterance) -> bool {
        is_stop(message)
    }
}
