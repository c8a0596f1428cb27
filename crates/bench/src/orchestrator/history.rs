//! Messages as they are written down, and histories as they must be.

use std::time::{Duration, SystemTime};

use super::SimulationError;
use crate::{AgentError, Message, Requestor, Utterance, clock};

/// A message must say or do something.
pub(super) fn complete(said: Utterance) -> Result<Utterance, AgentError> {
    if !said.has_text() && !said.is_tool_call() {
        return Err(AgentError::EmptyMessage);
    }
    Ok(stamped(said))
}

pub(super) fn stamped(mut said: Utterance) -> Utterance {
    if said.timestamp.is_none() {
        said.timestamp = Some(clock::now());
    }
    said
}

/// A history as if it had just happened, a second for each message: trajectories are ordered by
/// time.
pub(super) fn restamped(history: &[Message]) -> Vec<Message> {
    let count = u64::try_from(history.len()).unwrap_or_default();
    let begin = SystemTime::now().checked_sub(Duration::from_secs(count));
    let begin = begin.unwrap_or(SystemTime::UNIX_EPOCH);
    let stamp = |(at, message): (u64, &Message)| {
        let time = Some(clock::at(begin + Duration::from_secs(at)));
        let mut message = message.clone();
        match &mut message {
            Message::System(message) => (message.timestamp, message.turn_idx) = (time, None),
            Message::Assistant(message) | Message::User(message) => {
                (message.timestamp, message.turn_idx) = (time, None);
            }
            Message::Tool(message) => (message.timestamp, message.turn_idx) = (time, None),
        }
        message
    };
    (0..).zip(history).map(stamp).collect()
}

/// Calls must be followed by their answers, and answers by nothing they do not belong to.
pub(super) fn check_history(history: &[Message]) -> Result<(), SimulationError> {
    let wrong = |what: String| Err(SimulationError::History(what));
    let mut expected = 0;
    let mut requestor = None;
    for (at, message) in history.iter().enumerate() {
        match message {
            Message::Assistant(said) | Message::User(said) => {
                if !said.has_text() && !said.is_tool_call() {
                    return wrong(format!("message {at} has neither text nor tool calls"));
                }
                let who = if matches!(message, Message::Assistant(_)) {
                    Requestor::Assistant
                } else {
                    Requestor::User
                };
                requestor = None;
                if let Some(calls) = &said.tool_calls {
                    if expected > 0 {
                        return wrong(format!(
                            "{expected} tool messages are missing before message {at}"
                        ));
                    }
                    expected = calls.len();
                    requestor = Some(who);
                }
            }
            Message::Tool(answer) => {
                let Some(requestor) = requestor.filter(|_| expected > 0) else {
                    return wrong(format!("message {at} answers no call"));
                };
                if answer.requestor != requestor {
                    return wrong(format!(
                        "message {at} answers {}, but {} called",
                        answer.requestor.name(),
                        requestor.name()
                    ));
                }
                expected -= 1;
            }
            Message::System(_) => return wrong(format!("message {at} is a system message")),
        }
    }
    Ok(())
}
