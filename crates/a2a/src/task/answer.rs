//! What a client's message says to what a task waits for.
//!
//! A text answers a question. To be exact, or to answer several things at once, a data part names
//! them: `{"answers": [{"id": "call-1", "answer": "approve"}]}`, with answers as the journal spells
//! them.

use a2a::{A2AError, PartContent};
use duologue_core::{Answer, CallId, Inquiry, InquiryKind, SessionError};
use serde::Deserialize;

use super::convert::parts_from_wire;
use crate::fault;

#[derive(Deserialize)]
struct Exact {
    answers: Vec<One>,
}

#[derive(Deserialize)]
struct One {
    id: CallId,
    #[serde(flatten)]
    answer: Answer,
}

/// The answers in a message. Never empty unless nothing waits.
pub(crate) fn answers_in(
    message: &a2a::Message,
    pending: &[Inquiry],
) -> Result<Vec<(CallId, Answer)>, A2AError> {
    for part in &message.parts {
        let PartContent::Data(value) = &part.content else { continue };
        if value.get("answers").is_none() {
            continue;
        }
        let exact: Exact = serde_json::from_value(value.clone())
            .map_err(|error| fault::invalid("message.parts.data.answers", error.to_string()))?;
        for one in &exact.answers {
            if !pending.iter().any(|inquiry| inquiry.id == one.id) {
                let wrong = format!("nothing waits for an answer to {}", one.id);
                return Err(fault::invalid("message.parts.data.answers", wrong));
            }
        }
        return Ok(exact.answers.into_iter().map(|one| (one.id, one.answer)).collect());
    }
    // What is said without a name is said to what was asked first.
    let Some(first) = pending.first() else { return Ok(Vec::new()) };
    Ok(vec![(first.id.clone(), plain_answer(&first.kind, message))])
}

fn plain_answer(kind: &InquiryKind, message: &a2a::Message) -> Answer {
    let result = || Answer::Result { content: parts_from_wire(&message.parts), is_error: false };
    match kind {
        InquiryKind::Question { .. } | InquiryKind::Execution { .. } => result(),
        InquiryKind::Credentials { .. } => match word_of(message) {
            Word::Yes | Word::Always => Answer::Approve,
            Word::No => Answer::Deny { reason: String::new() },
            Word::Other(_) => result(),
        },
        InquiryKind::Approval { .. } | InquiryKind::Budget { .. } => match word_of(message) {
            Word::Yes => Answer::Approve,
            Word::Always => Answer::ApproveAlways,
            Word::No => Answer::Deny { reason: String::new() },
            // Whatever is not plainly a yes is a no, and the agent hears what was said instead.
            Word::Other(text) => Answer::Deny { reason: text },
        },
    }
}

enum Word {
    Yes,
    Always,
    No,
    Other(String),
}

/// A message that is one agreed word, whatever its case.
fn word_of(message: &a2a::Message) -> Word {
    let texts: Vec<&str> = message.parts.iter().filter_map(a2a::Part::as_text).collect();
    let text = texts.join("\n");
    match text.trim().to_ascii_lowercase().as_str() {
        "approve" | "yes" => Word::Yes,
        "always" => Word::Always,
        "deny" | "no" => Word::No,
        _ => Word::Other(text),
    }
}

/// Why an answer was not taken.
pub(super) enum Refused {
    /// The task no longer waits for it.
    Changed,
    /// The answer itself is wrong.
    Wrong(A2AError),
}

impl Refused {
    pub(super) fn of(error: SessionError) -> Self {
        match error {
            SessionError::NotPending { .. } => Self::Changed,
            SessionError::DoesNotFit { .. } => {
                Self::Wrong(fault::invalid("message.parts", error.to_string()))
            }
            other => Self::Wrong(fault::of_session(&other)),
        }
    }
}

#[cfg(test)]
mod tests {
    use duologue_core::{RunId, ToolCall};
    use serde_json::json;

    use super::*;

    fn approval(id: &str) -> Inquiry {
        let call = ToolCall::new(id, "shell", json!({"command": "rm -r build"}));
        let kind = InquiryKind::Approval { call, reason: "it deletes".into() };
        Inquiry { id: id.into(), run: RunId::ROOT, kind }
    }

    fn said(part: a2a::Part) -> a2a::Message {
        a2a::Message::new(a2a::Role::User, vec![part])
    }

    #[test]
    fn only_a_plain_yes_approves() {
        let pending = [approval("a")];
        let answer =
            |text: &str| answers_in(&said(a2a::Part::text(text)), &pending).unwrap().remove(0).1;
        assert_eq!(answer(" Yes "), Answer::Approve);
        assert_eq!(answer("always"), Answer::ApproveAlways);
        let doubt = "yes, but only the build folder";
        assert_eq!(answer(doubt), Answer::Deny { reason: doubt.into() });
    }

    #[test]
    fn several_answers_are_told_apart_by_their_ids() {
        let pending = [approval("a"), approval("b")];
        let exact = json!({"answers": [
            {"id": "b", "answer": "approve"},
            {"id": "a", "answer": "deny", "reason": "not now"},
        ]});
        let answers = answers_in(&said(a2a::Part::data(exact)), &pending).unwrap();
        assert_eq!(answers.len(), 2);
        assert_eq!(answers[0], ("b".into(), Answer::Approve));
        let wrong = json!({"answers": [{"id": "z", "answer": "approve"}]});
        let error = answers_in(&said(a2a::Part::data(wrong)), &pending).unwrap_err();
        assert_eq!(error.code, a2a::error_code::INVALID_PARAMS);
    }
}
