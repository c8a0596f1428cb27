//! Judging natural-language assertions: whoever can tell whether they hold of a conversation.

use futures::future::BoxFuture;

use crate::Message;

/// Whether an assertion holds, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Whether it holds.
    pub met: bool,
    /// Why.
    pub reasoning: String,
}

/// Why assertions could not be judged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the judge gave no usable verdict: {0}")]
pub struct JudgeError(pub String);

/// Whoever judges natural-language assertions.
pub trait Judge: Send + Sync {
    /// One verdict for each assertion, in their order.
    fn judge<'a>(
        &'a self,
        trajectory: &'a [Message],
        assertions: &'a [String],
    ) -> BoxFuture<'a, Result<Vec<Verdict>, JudgeError>>;
}
