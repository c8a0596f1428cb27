//! What the network remembers of a text: its tokens and, for each, keys and values.
//!
//! The memory is cut into blocks of 64 tokens, which are shared: a text that continues another one
//! holds the same blocks, and a block is copied only when two texts part ways in its middle.

#![allow(clippy::indexing_slicing, reason = "shapes are checked when a model is loaded")]

use std::{ops::Range, sync::Arc};

use super::Shape;
use crate::half::f32_to_f16;

/// How many tokens a block holds.
pub(crate) const BLOCK: usize = 64;

/// Keys and values of up to 64 tokens, for all layers, in half precision.
///
/// For each layer and head: the keys, number by number (64 tokens each), then the values, token by
/// token. That is how attention reads them.
#[derive(Clone, Debug)]
struct KeysAndValues(Vec<u16>);

/// A text that the network has read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sequence {
    tokens: Vec<u32>,
    blocks: Vec<Arc<KeysAndValues>>,
}

impl Sequence {
    /// The tokens that were read.
    pub(crate) fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    /// The beginning of the same text.
    pub(crate) fn prefix(&self, len: usize) -> Self {
        Self {
            tokens: self.tokens[..len].to_vec(),
            blocks: self.blocks[..len.div_ceil(BLOCK)].to_vec(),
        }
    }

    /// Names for the blocks, equal where two texts share one.
    pub(crate) fn block_addresses(&self) -> impl Iterator<Item = usize> {
        self.blocks.iter().map(|block| Arc::as_ptr(block) as usize)
    }

    /// Make room for more tokens.
    pub(super) fn reserve(&mut self, shape: &Shape, more: usize) {
        let size = shape.layers * shape.kv_heads * shape.head_width * 2 * BLOCK;
        let blocks = (self.tokens.len() + more).div_ceil(BLOCK);
        while self.blocks.len() < blocks {
            self.blocks.push(Arc::new(KeysAndValues(vec![0; size])));
        }
    }

    /// Count tokens as read, now that all their keys and values are there.
    pub(super) fn commit(&mut self, tokens: &[u32]) {
        self.tokens.extend_from_slice(tokens);
    }

    /// Write the keys and values of a layer for one token.
    pub(super) fn write(
        &mut self,
        shape: &Shape,
        layer: usize,
        position: usize,
        keys: &[f32],
        values: &[f32],
    ) {
        let width = shape.head_width;
        let block = &mut Arc::make_mut(&mut self.blocks[position / BLOCK]).0;
        let place = position % BLOCK;
        for head in 0..shape.kv_heads {
            let from = (layer * shape.kv_heads + head) * 2 * BLOCK * width;
            for (index, number) in keys[head * width..][..width].iter().enumerate() {
                block[from + index * BLOCK + place] = f32_to_f16(*number);
            }
            let from = from + BLOCK * width + place * width;
            let values = &values[head * width..][..width];
            for (half, number) in block[from..from + width].iter_mut().zip(values) {
                *half = f32_to_f16(*number);
            }
        }
    }

    /// The keys and the values of a block.
    pub(super) fn read(
        &self,
        shape: &Shape,
        layer: usize,
        head: usize,
        block: usize,
    ) -> (&[u16], &[u16]) {
        let size = BLOCK * shape.head_width;
        let from = (layer * shape.kv_heads + head) * 2 * size;
        let range: Range<usize> = from..from + 2 * size;
        self.blocks[block].0[range].split_at(size)
    }
}
