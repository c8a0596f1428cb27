//! A session over a pair of channels: events in, events out.

use std::sync::Arc;

use serde_json::json;
use tokio::sync::mpsc;

use super::{Live, Session, SessionError};
use crate::{Answer, CallId, Entry, Event, Message, RunId};

/// What may be sent to an agent that runs over channels.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// Somebody asks for something.
    UserRequest(Message),
    /// Somebody answers an `external_action`.
    ExternalActionResult {
        /// The call or inquiry.
        id: CallId,
        /// The answer.
        answer: Answer,
    },
}

impl Session {
    /// Take inputs one after the other until the channel closes, and send every entry that they
    /// cause. An answer that nothing waits for is noted as `input_refused`. A closed output ends
    /// the loop after the turn under way.
    pub async fn run(
        &self,
        mut inputs: mpsc::Receiver<Input>,
        outputs: mpsc::Sender<Arc<Entry>>,
    ) -> Result<(), SessionError> {
        let mut events = self.events();
        while let Some(input) = inputs.recv().await {
            let turn = self.take(input);
            tokio::pin!(turn);
            let mut ended = false;
            while !ended || !events.is_caught_up() {
                tokio::select! {
                    done = &mut turn, if !ended => {
                        done?;
                        ended = true;
                    }
                    event = events.next() => {
                        let Live::Entry(entry) = event? else { continue };
                        if outputs.send(entry).await.is_err() {
                            return if ended { Ok(()) } else { turn.await };
                        }
                    }
                }
            }
        }
        Ok(())
    }

    async fn take(&self, input: Input) -> Result<(), SessionError> {
        match input {
            Input::UserRequest(message) => self.reply(message).await.map(|_| ()),
            Input::ExternalActionResult { id, answer } => match self.answer(&id, answer, None) {
                Ok(()) => self.resume().await.map(|_| ()),
                Err(
                    error @ (SessionError::NotPending { .. } | SessionError::DoesNotFit { .. }),
                ) => {
                    let data = json!({"id": id, "error": error.to_string()});
                    let note = Event::Note { topic: "input_refused".into(), data };
                    self.shared.append(RunId::ROOT, note)?;
                    Ok(())
                }
                Err(error) => Err(error),
            },
        }
    }
}
