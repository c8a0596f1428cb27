//! Why a command gave up, in words for a person.

use std::fmt::{self, Display};

use crate::exit::Exit;

/// What went wrong and with which code the program ends.
#[derive(Debug)]
pub(crate) struct Failure {
    text: String,
    exit: Exit,
}

/// How a command ends.
pub(crate) type Done = Result<Exit, Failure>;

impl Failure {
    /// Something broke.
    pub(crate) fn new(text: impl Display) -> Self {
        Self { text: text.to_string(), exit: Exit::Failed }
    }

    /// The user has to change what they typed or configured.
    pub(crate) fn usage(text: impl Display) -> Self {
        Self { text: text.to_string(), exit: Exit::Usage }
    }

    /// The same failure, and what to do about it.
    #[cfg(feature = "local")]
    pub(crate) fn with_advice(mut self, advice: &str) -> Self {
        self.text = format!("{}\n{advice}", self.text);
        self
    }

    /// Whoever read the output has seen enough, as `head` does: nothing went wrong.
    fn reader_left() -> Self {
        Self { text: String::new(), exit: Exit::Completed }
    }

    /// The code to end with.
    pub(crate) fn exit(&self) -> Exit {
        self.exit
    }
}

impl Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

macro_rules! failure_from {
    ($($error:ty),* $(,)?) => {$(
        impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                Self::new(error)
            }
        }
    )*};
}

failure_from!(
    serde_json::Error,
    duologue_core::SessionError,
    duologue_core::StoreError,
    duologue_store::OpenError,
);

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        if error.kind() == std::io::ErrorKind::BrokenPipe {
            return Self::reader_left();
        }
        Self::new(error)
    }
}

impl From<crate::config::ConfigError> for Failure {
    fn from(error: crate::config::ConfigError) -> Self {
        Self::usage(error)
    }
}
