//! Which state of the protocol an outcome is, and back.

use a2a::TaskState;
use duologue_core::{FailureCause, InquiryKind, Outcome};

/// The state of a task whose turn ended so.
pub(crate) fn state_of(outcome: &Outcome) -> TaskState {
    match outcome {
        Outcome::Completed => TaskState::Completed,
        Outcome::InputRequired { inquiries } => {
            let wants_credentials =
                |kind: &InquiryKind| matches!(kind, InquiryKind::Credentials { .. });
            if inquiries.iter().any(|inquiry| wants_credentials(&inquiry.kind)) {
                TaskState::AuthRequired
            } else {
                TaskState::InputRequired
            }
        }
        Outcome::Aborted { .. } => TaskState::Canceled,
        Outcome::Rejected { .. } => TaskState::Rejected,
        Outcome::Failed { .. }
        | Outcome::Impossible { .. }
        | Outcome::Stuck { .. }
        | Outcome::LimitReached { .. } => TaskState::Failed,
    }
}

/// The outcome that a state of a remote task stands for, with the words that came with it.
/// `None` while it works or waits.
pub(crate) fn outcome_of(state: &TaskState, words: &str) -> Option<Outcome> {
    let words_or = |other: &str| {
        if words.is_empty() { other.to_owned() } else { words.to_owned() }
    };
    match state {
        TaskState::Completed => Some(Outcome::Completed),
        TaskState::Canceled => {
            Some(Outcome::Aborted { reason: words_or("the remote agent's task was cancelled") })
        }
        TaskState::Rejected => {
            Some(Outcome::Rejected { reason: words_or("the remote agent declined the task") })
        }
        TaskState::Failed => Some(Outcome::Failed {
            error: words_or("the remote agent's task failed"),
            cause: FailureCause::Internal,
        }),
        TaskState::Unspecified
        | TaskState::Submitted
        | TaskState::Working
        | TaskState::InputRequired
        | TaskState::AuthRequired => None,
    }
}

/// Whether nothing happens until somebody does something: the task is over, or waits.
pub(crate) fn is_settled(state: &TaskState) -> bool {
    state.is_terminal() || matches!(state, TaskState::InputRequired | TaskState::AuthRequired)
}

/// The state's name as JSON spells it.
pub(crate) fn name_of(state: &TaskState) -> &'static str {
    match state {
        TaskState::Unspecified => "TASK_STATE_UNSPECIFIED",
        TaskState::Submitted => "TASK_STATE_SUBMITTED",
        TaskState::Working => "TASK_STATE_WORKING",
        TaskState::Completed => "TASK_STATE_COMPLETED",
        TaskState::Failed => "TASK_STATE_FAILED",
        TaskState::Canceled => "TASK_STATE_CANCELED",
        TaskState::InputRequired => "TASK_STATE_INPUT_REQUIRED",
        TaskState::Rejected => "TASK_STATE_REJECTED",
        TaskState::AuthRequired => "TASK_STATE_AUTH_REQUIRED",
    }
}
