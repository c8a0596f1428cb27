//! The prefix cache: texts that were read lately, so that what continues one of them only computes
//! what is new.

use std::collections::{HashSet, VecDeque};

use crate::net::{BLOCK, Sequence};

/// Texts that were read, the latest last.
#[derive(Debug)]
pub(crate) struct Memory {
    texts: VecDeque<Sequence>,
    /// How many blocks may be kept.
    limit: usize,
}

impl Memory {
    /// A cache of at most so many bytes.
    pub(crate) fn new(bytes: usize, bytes_per_token: usize) -> Self {
        Self { texts: VecDeque::new(), limit: bytes / (bytes_per_token * BLOCK).max(1) }
    }

    /// The longest beginning of `tokens` that was read before, the last token left out, because its
    /// scores are still wanted.
    pub(crate) fn recall(&mut self, tokens: &[u32]) -> Sequence {
        let useful = tokens.split_last().map_or(tokens, |(_, rest)| rest);
        let best = self
            .texts
            .iter()
            .enumerate()
            .map(|(index, text)| (shared(text.tokens(), useful), index))
            .max();
        let Some((len, index)) = best.filter(|(len, _)| *len > 0) else {
            return Sequence::default();
        };
        // Used again: the last to be forgotten.
        let Some(text) = self.texts.remove(index) else {
            return Sequence::default();
        };
        let prefix = text.prefix(len);
        self.texts.push_back(text);
        prefix
    }

    /// Keep a text that was read, and forget the oldest where it is too much.
    pub(crate) fn keep(&mut self, text: Sequence) {
        if text.tokens().is_empty() {
            return;
        }
        self.texts.retain(|other| !text.tokens().starts_with(other.tokens()));
        self.texts.push_back(text);
        while self.blocks() > self.limit && !self.texts.is_empty() {
            self.texts.pop_front();
        }
    }

    fn blocks(&self) -> usize {
        let blocks: HashSet<usize> =
            self.texts.iter().flat_map(Sequence::block_addresses).collect();
        blocks.len()
    }
}

fn shared(a: &[u32], b: &[u32]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}
