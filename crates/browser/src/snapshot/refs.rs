//! References to nodes, such as `f2:e47`: a document and a node in it.
//!
//! Every document gets a number of its own when it is loaded, and its nodes get theirs when they
//! are first shown. Numbers are never used again, so a reference to a page that is gone is known
//! to be stale instead of meaning something else.

use std::{collections::HashMap, fmt, str::FromStr};

use super::page::Item;
use crate::error::{BrowserError, Result};

/// A reference as it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Reference {
    pub(crate) document: u32,
    pub(crate) node: u32,
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "f{}:e{}", self.document, self.node)
    }
}

impl FromStr for Reference {
    type Err = BrowserError;

    fn from_str(text: &str) -> Result<Self> {
        let wrong = || {
            BrowserError::cannot(format!(
                "{text:?} is no reference; write it as a snapshot shows it, such as f1:e7"
            ))
        };
        let inner = text.trim().trim_start_matches('[').trim_end_matches(']');
        let (document, node) = inner.split_once(':').ok_or_else(wrong)?;
        let number = |part: &str, letter| {
            part.strip_prefix(letter).and_then(|digits: &str| digits.parse().ok()).ok_or_else(wrong)
        };
        Ok(Self { document: number(document, 'f')?, node: number(node, 'e')? })
    }
}

/// What was shown under a reference.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Known {
    pub(crate) backend: i64,
    pub(crate) role: String,
    pub(crate) name: String,
    /// Where pressing it sends a form to.
    pub(crate) submits: Option<String>,
    pub(crate) href: Option<String>,
}

/// The references of one document.
#[derive(Clone, Debug, Default)]
pub(crate) struct Refs {
    numbers: HashMap<i64, u32>,
    known: Vec<Known>,
}

impl Refs {
    /// The number of a node; the next one if it was never shown.
    pub(crate) fn number(&mut self, backend: i64) -> u32 {
        if let Some(number) = self.numbers.get(&backend) {
            return *number;
        }
        self.known.push(Known { backend, ..Known::default() });
        let number = u32::try_from(self.known.len()).unwrap_or(u32::MAX);
        self.numbers.insert(backend, number);
        number
    }

    /// The number of something to act on, and keep what is known of it.
    pub(crate) fn number_of(&mut self, item: &Item) -> u32 {
        let number = self.number(item.node);
        let place = usize::try_from(number).unwrap_or(usize::MAX).saturating_sub(1);
        if let Some(known) = self.known.get_mut(place) {
            known.role.clone_from(&item.role);
            known.name.clone_from(&item.name);
            known.submits.clone_from(&item.submits);
            known.href.clone_from(&item.href);
        }
        number
    }

    pub(crate) fn get(&self, number: u32) -> Option<&Known> {
        self.known.get(usize::try_from(number).ok()?.checked_sub(1)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_is_read_as_it_is_written() {
        let reference = Reference { document: 2, node: 47 };
        assert_eq!(reference.to_string(), "f2:e47");
        assert_eq!("f2:e47".parse(), Ok(reference));
        assert_eq!(" [f2:e47] ".parse(), Ok(reference));
        for wrong in ["", "e47", "f2", "f2:47", "2:e47", "f2:e", "button"] {
            assert!(wrong.parse::<Reference>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_node_keeps_its_number() {
        let mut refs = Refs::default();
        assert_eq!([refs.number(900), refs.number(7), refs.number(900)], [1, 2, 1]);
        assert_eq!(refs.get(2).map(|known| known.backend), Some(7));
        assert_eq!((refs.get(0), refs.get(3)), (None, None));
    }
}
