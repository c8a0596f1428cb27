//! What can go wrong in a browser, told so that a person or a model can act on it.

use std::time::Duration;

use duologue_core::ToolError;

/// Why something in the browser did not work.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BrowserError {
    /// No browser is installed, or not where it was looked for.
    #[error(
        "no Chromium or Chrome was found ({looked}); install one (on Debian and Ubuntu: `apt-get \
         install chromium`) or say where it is with CHROME_PATH"
    )]
    NotInstalled {
        /// Where it was looked for.
        looked: String,
    },
    /// It is there and does not come up.
    #[error("the browser did not start: {0}")]
    NotStarted(String),
    /// It ended, or the line to it broke.
    #[error("the browser is gone: {0}; the next call starts a new one, with no page open")]
    Gone(String),
    /// It refused a command.
    #[error("{method}: {message}")]
    Refused {
        /// The command of the DevTools protocol.
        method: String,
        /// What the browser said.
        message: String,
    },
    /// It did not answer a command in time.
    #[error("the browser did not answer {method} within {after:?}")]
    Silent {
        /// The command.
        method: String,
        /// How long it was waited for.
        after: Duration,
    },
    /// An answer that is not as the protocol says.
    #[error("the browser answered {method} with something unexpected: {error}")]
    Unexpected {
        /// The command.
        method: String,
        /// What is wrong with the answer.
        error: String,
    },
    /// What was asked cannot be done, for the given reason.
    #[error("{0}")]
    Cannot(String),
}

impl BrowserError {
    /// That something cannot be done.
    pub(crate) fn cannot(reason: impl Into<String>) -> Self {
        Self::Cannot(reason.into())
    }

    /// Whether the page went away under the command, which a navigation does.
    pub(crate) fn is_page_gone(&self) -> bool {
        let Self::Refused { message, .. } = self else { return false };
        [
            "Cannot find context",
            "Execution context was destroyed",
            "context with specified id",
            "Inspected target navigated",
            "Session with given id not found",
            "Target closed",
            "frame with the given id",
            "No frame",
            "Frame was detached",
        ]
        .iter()
        .any(|sign| message.contains(sign))
    }
}

impl From<BrowserError> for ToolError {
    fn from(error: BrowserError) -> Self {
        Self(error.to_string())
    }
}

/// What a step in the browser gives.
pub(crate) type Result<T> = std::result::Result<T, BrowserError>;
