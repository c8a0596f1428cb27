//! Keys of dictionaries: names that the program knows, and names from data.

use std::{
    borrow::Borrow,
    fmt,
    hash::{Hash, Hasher},
    ops::Deref,
    sync::Arc,
};

/// A key of a dictionary. Field names of models cost nothing to copy.
#[derive(Clone)]
pub enum Key {
    /// A name that the program knows.
    Static(&'static str),
    /// A name from data.
    Shared(Arc<str>),
}

impl Deref for Key {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Self::Static(name) => name,
            Self::Shared(name) => name,
        }
    }
}

impl Borrow<str> for Key {
    fn borrow(&self) -> &str {
        self
    }
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Key {}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

impl From<&'static str> for Key {
    fn from(name: &'static str) -> Self {
        Self::Static(name)
    }
}

impl From<String> for Key {
    fn from(name: String) -> Self {
        Self::Shared(name.into())
    }
}

impl From<Arc<str>> for Key {
    fn from(name: Arc<str>) -> Self {
        Self::Shared(name)
    }
}
