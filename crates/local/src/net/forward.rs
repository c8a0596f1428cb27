//! The forward pass: tokens in, scores for the next token out.

#![allow(clippy::indexing_slicing, reason = "shapes are checked when a model is loaded")]

use rayon::prelude::*;

use super::{Linear, Net, Rotation, Shape, attention, sequence::Sequence};
use crate::{
    gguf::GgufError,
    kernel::{self, Activations},
    pack::{LANES, Matrix},
};

/// New tokens of one text.
#[derive(Debug)]
pub(crate) struct Chunk<'a> {
    pub(crate) sequence: &'a mut Sequence,
    pub(crate) tokens: Vec<u32>,
    /// Whether the scores after the last token are wanted.
    pub(crate) scores: bool,
}

/// Why a pass ended early. The texts are as they were.
#[derive(Debug)]
pub(crate) enum Interrupted {
    /// Nobody waits for it any more.
    Cancelled,
    /// The model file could not be read.
    File(GgufError),
}

/// Whether nobody waits any more.
type Cancelled<'a> = dyn Fn() -> bool + Sync + 'a;

/// Buffers that are kept from pass to pass.
#[derive(Debug, Default)]
pub(crate) struct Workspace {
    activations: Activations,
    /// What matrices gave: for each row group, eight numbers per token.
    grouped: Vec<f32>,
    residual: Vec<f32>,
    normed: Vec<f32>,
    query: Vec<f32>,
    key: Vec<f32>,
    value: Vec<f32>,
    attended: Vec<f32>,
    hidden: Vec<f32>,
    scratch: Vec<f32>,
}

impl Net {
    /// Read tokens. Returns the scores of every token of the vocabulary, for each chunk that wants
    /// them, in order. `cancelled` is asked all the time; once true it must stay so.
    pub(crate) fn forward(
        &self,
        space: &mut Workspace,
        chunks: &mut [Chunk<'_>],
        cancelled: &Cancelled<'_>,
    ) -> Result<Vec<Vec<f32>>, Interrupted> {
        self.pool.install(|| self.pass(space, chunks, cancelled))
    }

    fn pass(
        &self,
        space: &mut Workspace,
        chunks: &mut [Chunk<'_>],
        cancelled: &Cancelled<'_>,
    ) -> Result<Vec<Vec<f32>>, Interrupted> {
        let shape = &self.shape;
        let rows: usize = chunks.iter().map(|chunk| chunk.tokens.len()).sum();
        space.residual.resize(rows * shape.width, 0.0);
        let mut positions = Vec::with_capacity(rows);
        for chunk in chunks.iter_mut() {
            let first = chunk.sequence.tokens().len();
            chunk.sequence.reserve(shape, chunk.tokens.len());
            for (index, token) in chunk.tokens.iter().enumerate() {
                let at = positions.len() * shape.width;
                self.embed(*token, &mut space.residual[at..at + shape.width])
                    .map_err(Interrupted::File)?;
                positions.push(first + index);
            }
        }
        let turns = Turns::new(shape, &positions);
        for index in 0..shape.layers {
            if cancelled() {
                return Err(Interrupted::Cancelled);
            }
            self.attention_part(space, index, chunks, &positions, &turns, cancelled);
            if cancelled() {
                return Err(Interrupted::Cancelled);
            }
            self.feed_part(space, index, cancelled);
        }
        // What was left out of the last layer must not be taken for its result.
        if cancelled() {
            return Err(Interrupted::Cancelled);
        }
        for chunk in chunks.iter_mut() {
            chunk.sequence.commit(&chunk.tokens);
        }
        Ok(self.scores(space, chunks))
    }

    fn attention_part(
        &self,
        space: &mut Workspace,
        index: usize,
        chunks: &mut [Chunk<'_>],
        positions: &[usize],
        turns: &Turns,
        cancelled: &Cancelled<'_>,
    ) {
        let (shape, layer) = (&self.shape, &self.layers[index]);
        let Workspace {
            activations,
            grouped,
            residual,
            normed,
            query,
            key,
            value,
            attended,
            scratch,
            ..
        } = space;
        norm(residual, &layer.attention_norm, shape.epsilon, normed);
        activations.set(normed, shape.width);
        let linears = [&layer.query, &layer.key, &layer.value];
        multiply(&linears.map(|linear| &linear.matrix), activations, grouped, cancelled);
        let mut rest = grouped.as_slice();
        for (linear, out) in linears.into_iter().zip([&mut *query, &mut *key, &mut *value]) {
            rest = ungroup(rest, &linear.matrix, positions.len(), out);
            add_bias(linear, out);
        }
        turns.apply(shape, query, layer.query_norm.as_deref());
        turns.apply(shape, key, layer.key_norm.as_deref());
        let keys = shape.kv_heads * shape.head_width;
        let mut row = 0;
        for chunk in chunks.iter_mut() {
            for _ in 0..chunk.tokens.len() {
                let (key, value) = (&key[row * keys..][..keys], &value[row * keys..][..keys]);
                chunk.sequence.write(shape, index, positions[row], key, value);
                row += 1;
            }
        }
        let batch: Vec<_> =
            chunks.iter().map(|chunk| (&*chunk.sequence, chunk.tokens.len())).collect();
        attended.resize(query.len(), 0.0);
        attention::attend(shape, index, &batch, query, scratch, attended);
        let linear = &layer.attention_output;
        activations.set(attended, shape.heads * shape.head_width);
        multiply(&[&linear.matrix], activations, grouped, cancelled);
        ungroup(grouped, &linear.matrix, positions.len(), normed);
        add_bias(linear, normed);
        add(residual, normed);
    }

    fn feed_part(&self, space: &mut Workspace, index: usize, cancelled: &Cancelled<'_>) {
        let (shape, layer) = (&self.shape, &self.layers[index]);
        let Workspace { activations, grouped, residual, normed, hidden, .. } = space;
        let rows = residual.len() / shape.width;
        norm(residual, &layer.feed_norm, shape.epsilon, normed);
        activations.set(normed, shape.width);
        multiply(&[&layer.gate, &layer.up], activations, grouped, cancelled);
        let (gate, up) = grouped.split_at_mut(groups(&layer.gate) * rows * LANES);
        // Both halves lie the same way, so they are joined before they are put in order.
        let part = (gate.len() / rayon::current_num_threads()).next_multiple_of(1024).max(1024);
        gate.par_chunks_mut(part)
            .zip(up.par_chunks(part))
            .for_each(|(gate, up)| kernel::swiglu(gate, up));
        ungroup(gate, &layer.gate, rows, hidden);
        activations.set(hidden, shape.hidden);
        multiply(&[&layer.down], activations, grouped, cancelled);
        ungroup(grouped, &layer.down, rows, normed);
        add(residual, normed);
    }

    fn scores(&self, space: &mut Workspace, chunks: &[Chunk<'_>]) -> Vec<Vec<f32>> {
        let width = self.shape.width;
        let mut end = 0;
        let mut last = Vec::new();
        for chunk in chunks {
            end += chunk.tokens.len() * width;
            if chunk.scores {
                last.extend_from_slice(&space.residual[end - width..end]);
            }
        }
        if last.is_empty() {
            return Vec::new();
        }
        norm(&last, &self.output_norm, self.shape.epsilon, &mut space.normed);
        space.activations.set(&space.normed, width);
        multiply(&[&self.output], &space.activations, &mut space.grouped, &|| false);
        let rows = last.len() / width;
        ungroup(&space.grouped, &self.output, rows, &mut space.hidden);
        space.hidden.chunks_exact(self.shape.vocabulary).map(<[f32]>::to_vec).collect()
    }
}

fn groups(matrix: &Matrix) -> usize {
    matrix.rows.div_ceil(LANES)
}

/// Multiply matrices with the same activations, in parallel over row groups. When it is cancelled,
/// what is not done yet is left out.
fn multiply(matrices: &[&Matrix], x: &Activations, out: &mut Vec<f32>, cancelled: &Cancelled<'_>) {
    let size = x.rows() * LANES;
    let total: usize = matrices.iter().map(|matrix| groups(matrix)).sum();
    out.resize(total * size, 0.0);
    // Enough parts that a thread which was held up elsewhere does not hold up the others.
    let parts = rayon::current_num_threads() * 8;
    let per_part = total.div_ceil(parts).max(4);
    out.par_chunks_mut(size * per_part).enumerate().for_each(|(part, out)| {
        if cancelled() {
            return;
        }
        for (index, out) in out.chunks_exact_mut(size).enumerate() {
            let mut group = part * per_part + index;
            for matrix in matrices {
                if group < groups(matrix) {
                    kernel::multiply_group(matrix, group, x, out);
                    break;
                }
                group -= groups(matrix);
            }
        }
    });
}

/// Put what [`multiply`] gave for a matrix into rows, one per token. Returns what follows.
fn ungroup<'a>(grouped: &'a [f32], matrix: &Matrix, rows: usize, out: &mut Vec<f32>) -> &'a [f32] {
    let (mine, rest) = grouped.split_at(groups(matrix) * rows * LANES);
    let width = matrix.rows;
    out.resize(rows * width, 0.0);
    if rows == 1 {
        out.copy_from_slice(&mine[..width]);
        return rest;
    }
    const TOKENS: usize = 8;
    out.par_chunks_mut(TOKENS * width).enumerate().for_each(|(part, out)| {
        for (group, numbers) in mine.chunks_exact(rows * LANES).enumerate() {
            let lanes = LANES.min(width - group * LANES);
            let numbers = &numbers[part * TOKENS * LANES..];
            for (out, numbers) in out.chunks_exact_mut(width).zip(numbers.chunks_exact(LANES)) {
                out[group * LANES..][..lanes].copy_from_slice(&numbers[..lanes]);
            }
        }
    });
    rest
}

fn add(numbers: &mut [f32], more: &[f32]) {
    for (number, more) in numbers.iter_mut().zip(more) {
        *number += more;
    }
}

fn add_bias(linear: &Linear, rows: &mut [f32]) {
    if let Some(bias) = &linear.bias {
        for row in rows.chunks_exact_mut(bias.len()) {
            add(row, bias);
        }
    }
}

/// Root-mean-square normalisation of each row.
fn norm(rows: &[f32], weights: &[f32], epsilon: f32, out: &mut Vec<f32>) {
    out.clear();
    for row in rows.chunks_exact(weights.len()) {
        let scale = norm_scale(row, epsilon);
        out.extend(row.iter().zip(weights).map(|(number, weight)| number * scale * weight));
    }
}

fn norm_scale(row: &[f32], epsilon: f32) -> f32 {
    let mut sums = [0.0_f32; LANES];
    for part in row.chunks(LANES) {
        for (sum, number) in sums.iter_mut().zip(part) {
            *sum += number * number;
        }
    }
    let mean = sums.iter().sum::<f32>() / row.len() as f32;
    1.0 / (mean + epsilon).sqrt()
}

/// The angles by which the rows of a batch are turned, as sines and cosines.
struct Turns(Vec<(f32, f32)>);

impl Turns {
    fn new(shape: &Shape, positions: &[usize]) -> Self {
        let turns = positions.iter().flat_map(|position| {
            shape.speeds.iter().map(move |speed| (*position as f32 * speed).sin_cos())
        });
        Self(turns.collect())
    }

    /// Normalise heads where the network does that, then turn them.
    fn apply(&self, shape: &Shape, rows: &mut [f32], weights: Option<&[f32]>) {
        let pairs = shape.speeds.len();
        let per_row = rows.len() / (self.0.len() / pairs).max(1);
        for (row, turns) in rows.chunks_exact_mut(per_row).zip(self.0.chunks_exact(pairs)) {
            for head in row.chunks_exact_mut(shape.head_width) {
                if let Some(weights) = weights {
                    let scale = norm_scale(head, shape.epsilon);
                    for (number, weight) in head.iter_mut().zip(weights) {
                        *number *= scale * weight;
                    }
                }
                for (pair, (sin, cos)) in turns.iter().enumerate() {
                    let (first, second) = match shape.rotation {
                        Rotation::Neighbours => (2 * pair, 2 * pair + 1),
                        Rotation::Halves => (pair, pair + pairs),
                    };
                    let (x, y) = (head[first], head[second]);
                    head[first] = x * cos - y * sin;
                    head[second] = x * sin + y * cos;
                }
            }
        }
    }
}
