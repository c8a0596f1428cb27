//! Exit codes: one table for every command.

use duologue_core::Outcome;

/// What the process tells whoever started it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    /// The work is done.
    Completed = 0,
    /// Something broke.
    Failed = 1,
    /// The command line or the configuration is wrong.
    Usage = 2,
    /// The session waits for an answer.
    InputRequired = 3,
    /// A bound was reached.
    LimitReached = 4,
    /// The agent declined.
    Rejected = 5,
    /// The agent found that it cannot be done.
    Impossible = 6,
    /// The agent made no progress.
    Stuck = 7,
    /// Somebody stopped it.
    Aborted = 130,
}

impl From<&Outcome> for Exit {
    fn from(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Completed => Self::Completed,
            Outcome::InputRequired { .. } => Self::InputRequired,
            Outcome::Aborted { .. } => Self::Aborted,
            Outcome::Failed { .. } => Self::Failed,
            Outcome::Rejected { .. } => Self::Rejected,
            Outcome::Impossible { .. } => Self::Impossible,
            Outcome::Stuck { .. } => Self::Stuck,
            Outcome::LimitReached { .. } => Self::LimitReached,
        }
    }
}
