//! Merging neighbours, the best pair first, until none is left to merge.

use std::{cmp::Ordering, collections::BinaryHeap};

/// A piece of a word: a token, or a character that is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Symbol {
    pub(super) id: Option<u32>,
    /// In bytes of the word.
    pub(super) len: usize,
}

/// A pair that could merge. The one with the lowest order goes first, then the leftmost.
struct Candidate {
    order: f64,
    left: usize,
    right: usize,
    /// Of the pair, to see whether either has merged since.
    len: usize,
    id: u32,
}

impl Ord for Candidate {
    fn cmp(&self, other: &Self) -> Ordering {
        // Reversed: the heap gives the greatest first.
        let order = other.order.total_cmp(&self.order);
        order.then_with(|| other.left.cmp(&self.left))
    }
}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Candidate {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Candidate {}

struct Node {
    symbol: Symbol,
    start: usize,
    previous: Option<usize>,
    next: Option<usize>,
}

/// Merge the symbols of a word. `pair` tells for two neighbours and their bytes how early they
/// merge and into what. The time grows with the word's length, not with its square.
pub(super) fn merge(
    symbols: Vec<Symbol>,
    word: &[u8],
    pair: impl Fn(&Symbol, &Symbol, &[u8]) -> Option<(f64, u32)>,
) -> Vec<Symbol> {
    let count = symbols.len();
    let mut nodes = Vec::with_capacity(count);
    let mut start = 0;
    for (index, symbol) in symbols.into_iter().enumerate() {
        nodes.push(Node {
            symbol,
            start,
            previous: index.checked_sub(1),
            next: (index + 1 < count).then_some(index + 1),
        });
        start += symbol.len;
    }
    let mut heap = BinaryHeap::new();
    let offer = |heap: &mut BinaryHeap<Candidate>, nodes: &[Node], left: usize, right: usize| {
        let (Some(first), Some(second)) = (nodes.get(left), nodes.get(right)) else {
            return;
        };
        let len = first.symbol.len + second.symbol.len;
        let bytes = word.get(first.start..first.start + len).unwrap_or_default();
        if let Some((order, id)) = pair(&first.symbol, &second.symbol, bytes) {
            heap.push(Candidate { order, left, right, len, id });
        }
    };
    for left in 1..count {
        offer(&mut heap, &nodes, left - 1, left);
    }
    while let Some(found) = heap.pop() {
        let (Some(left), Some(right)) = (nodes.get(found.left), nodes.get(found.right)) else {
            continue;
        };
        // A symbol that merged into its neighbour has no bytes left.
        if left.symbol.len == 0
            || right.symbol.len == 0
            || left.symbol.len + right.symbol.len != found.len
        {
            continue;
        }
        let (previous, next) = (left.previous, right.next);
        if let Some(right) = nodes.get_mut(found.right) {
            right.symbol.len = 0;
        }
        if let Some(left) = nodes.get_mut(found.left) {
            left.symbol = Symbol { id: Some(found.id), len: found.len };
            left.next = next;
        }
        if let Some(next) = next {
            if let Some(node) = nodes.get_mut(next) {
                node.previous = Some(found.left);
            }
            offer(&mut heap, &nodes, found.left, next);
        }
        if let Some(previous) = previous {
            offer(&mut heap, &nodes, previous, found.left);
        }
    }
    nodes.into_iter().map(|node| node.symbol).filter(|symbol| symbol.len > 0).collect()
}
