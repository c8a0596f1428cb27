//! Attention: what each token takes over from the tokens before it.

#![allow(clippy::indexing_slicing, reason = "shapes are checked when a model is loaded")]

use rayon::prelude::*;

use super::{
    Shape,
    sequence::{BLOCK, Sequence},
};
use crate::kernel;

/// How many tokens are worked on together; their heads share what is read of keys and values.
const TILE: usize = 16;

/// Tokens of one text, and where their queries are.
struct Task<'a> {
    sequence: &'a Sequence,
    /// The head whose keys and values are read.
    head: usize,
    /// The first token's row in the batch.
    row: usize,
    /// The first token's position in its text.
    position: usize,
    tokens: usize,
}

/// The texts of a batch: each with the number of its new tokens.
pub(super) type Batch<'a> = [(&'a Sequence, usize)];

/// Compute attention for all rows of a batch. `queries` and `out` have a row of all heads for each
/// token; the keys and values of the new tokens are already in their texts.
pub(super) fn attend(
    shape: &Shape,
    layer: usize,
    batch: &Batch<'_>,
    queries: &[f32],
    scratch: &mut Vec<f32>,
    out: &mut [f32],
) {
    let mut tasks = Vec::new();
    let mut row = 0;
    for (sequence, count) in batch {
        for first in (0..*count).step_by(TILE) {
            for head in 0..shape.kv_heads {
                tasks.push(Task {
                    sequence,
                    head,
                    row: row + first,
                    position: sequence.tokens().len() + first,
                    tokens: TILE.min(count - first),
                });
            }
        }
        row += count;
    }
    let group = shape.heads / shape.kv_heads;
    let size = TILE * group * shape.head_width;
    scratch.resize(tasks.len() * size, 0.0);
    tasks
        .par_iter()
        .zip(scratch.par_chunks_mut(size))
        .for_each(|(task, out)| run(shape, layer, task, queries, out));
    let width = shape.heads * shape.head_width;
    let part = group * shape.head_width;
    for (task, done) in tasks.iter().zip(scratch.chunks_exact(size)) {
        for (token, done) in done.chunks_exact(part).enumerate().take(task.tokens) {
            let at = (task.row + token) * width + task.head * part;
            out[at..at + part].copy_from_slice(done);
        }
    }
}

/// One task, block by block, with the running maximum and sum of each row: the whole row of scores
/// never exists.
fn run(shape: &Shape, layer: usize, task: &Task<'_>, queries: &[f32], out: &mut [f32]) {
    let width = shape.head_width;
    let group = shape.heads / shape.kv_heads;
    let rows = task.tokens * group;
    let scale = 1.0 / (width as f32).sqrt();
    let row_width = shape.heads * width;
    let mut query = Vec::with_capacity(rows * width);
    for token in 0..task.tokens {
        let at = (task.row + token) * row_width + task.head * group * width;
        query.extend(queries[at..at + group * width].iter().map(|q| q * scale));
    }
    let out = &mut out[..rows * width];
    out.fill(0.0);
    let mut maxima = vec![f32::NEG_INFINITY; rows];
    let mut sums = vec![0.0_f32; rows];
    let mut scores = vec![0.0; rows * BLOCK];
    let last = task.position + task.tokens - 1;
    for block in 0..=last / BLOCK {
        let (keys, values) = task.sequence.read(shape, layer, task.head, block);
        scores.fill(0.0);
        kernel::multiply_halves(&query, keys, &mut scores, width, BLOCK);
        for (row, scores) in scores.chunks_exact_mut(BLOCK).enumerate() {
            let position = task.position + row / group;
            // Tokens see themselves and what came before them.
            let visible = (position + 1).saturating_sub(block * BLOCK).min(BLOCK);
            let (seen, hidden) = scores.split_at_mut(visible);
            hidden.fill(0.0);
            if seen.is_empty() {
                continue;
            }
            let max = seen.iter().fold(maxima[row], |max, score| max.max(*score));
            if max > maxima[row] {
                let shrink = (maxima[row] - max).exp();
                sums[row] *= shrink;
                for number in &mut out[row * width..][..width] {
                    *number *= shrink;
                }
                maxima[row] = max;
            }
            sums[row] += kernel::exponentials(seen, max);
        }
        kernel::multiply_halves(&scores, values, out, BLOCK, width);
    }
    for (out, sum) in out.chunks_exact_mut(width).zip(sums) {
        out.iter_mut().for_each(|number| *number /= sum);
    }
}
