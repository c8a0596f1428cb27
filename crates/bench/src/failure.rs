//! What goes wrong inside a domain: an exception's text, as the agent is told it.

/// An exception that a tool raised; it shows as `str(exception)` would.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Failure(String);

impl Failure {
    /// A failure with this text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

/// `raise ValueError(text)`.
pub fn raise<T>(text: impl Into<String>) -> Result<T, Failure> {
    Err(Failure::new(text))
}
