//! Why a session did not do what it was asked.

use crate::{CallId, SCHEMA_VERSION, StoreError};

/// Why a session did not do what it was asked.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SessionError {
    /// Another turn is under way.
    #[error("the session is busy with another turn")]
    Busy,
    /// No turn is under way that could be joined.
    #[error("no turn is under way")]
    NotUnderWay,
    /// The session was put down by [`Session::suspend`](crate::Session::suspend).
    #[error("the session was suspended; open it again to go on")]
    Suspended,
    /// Nothing waits for this answer.
    #[error("nothing waits for an answer to {id}{}", waiting_for(.waiting))]
    NotPending {
        /// What was answered.
        id: CallId,
        /// What waits.
        waiting: Vec<CallId>,
    },
    /// The answer does not fit the question.
    #[error("{id} cannot be answered like that: {expected}")]
    DoesNotFit {
        /// What was answered.
        id: CallId,
        /// What would fit.
        expected: &'static str,
    },
    /// The journal is of a later version than this program.
    #[error(
        "the session was written by a later version (schema {found}; this one knows {SCHEMA_VERSION}); update duologue to open it"
    )]
    NewerSchema {
        /// The journal's version.
        found: u32,
    },
    /// The journal could not be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The turn died of a defect.
    #[error("the turn ended by a defect: {0}")]
    Defect(String),
}

fn waiting_for(ids: &[CallId]) -> String {
    if ids.is_empty() {
        return "; nothing waits at all".into();
    }
    let ids: Vec<&str> = ids.iter().map(CallId::as_str).collect();
    format!("; these wait: {}", ids.join(", "))
}
