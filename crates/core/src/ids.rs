//! The ids of the one id space: a chat, a task and a simulation are all sessions.

use std::{borrow::Borrow, fmt, sync::Arc};

use serde::{Deserialize, Serialize};

/// Crockford's base 32 without the letters that are read as digits.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// Random characters that a person can read out and type.
fn random_letters<const LENGTH: usize>() -> [u8; LENGTH] {
    let mut chance = 0_u64;
    std::array::from_fn(|at| {
        // One number is good for twelve characters of five bits.
        if at % 12 == 0 {
            chance = fastrand::u64(..);
        }
        let letter = ALPHABET.get((chance % 32) as usize).copied().unwrap_or(b'0');
        chance /= 32;
        letter
    })
}

/// Letters of the alphabet as text, which they always are.
fn text_of(letters: &[u8]) -> &str {
    std::str::from_utf8(letters).unwrap_or_default()
}

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            /// The id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.into())
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(text.into())
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        // Hashed and compared as the text that it is.
        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

text_id! {
    /// A session: one conversation with one journal.
    SessionId
}

text_id! {
    /// A message inside a session.
    MessageId
}

text_id! {
    /// A tool call, and whatever else waits for an answer from outside. Unique in its session.
    CallId
}

impl SessionId {
    /// A new random id, 60 bits in 12 characters.
    pub fn random() -> Self {
        Self(text_of(&random_letters::<12>()).into())
    }
}

impl MessageId {
    /// A new random id.
    pub fn random() -> Self {
        Self(text_of(&random_letters::<10>()).into())
    }
}

impl CallId {
    /// A new random id, for models that do not name their calls.
    pub fn random() -> Self {
        Self(format!("call-{}", text_of(&random_letters::<10>())).into())
    }
}

/// A run inside a session. The root run is 0; an agent that runs another starts a child run.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct RunId(pub u32);

impl RunId {
    /// The run that the session itself is.
    pub const ROOT: Self = Self(0);
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
