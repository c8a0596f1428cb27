//! The kernels in plain Rust: for processors without a variant of their own, and the truth that the
//! others are tested against.

#![allow(clippy::indexing_slicing, reason = "shapes are checked when a model is loaded")]

use super::{Activations, Block};
use crate::{
    half::f16_to_f32,
    pack::{LANES, Layout},
};

type Lanes = [f32; LANES];

pub(super) fn multiply_group(layout: Layout, weights: &[u8], x: &Activations, out: &mut [Lanes]) {
    let (_, size) = layout.block();
    for (row, out) in out.iter_mut().enumerate().take(x.rows()) {
        *out = [0.0; LANES];
        let blocks = x.row_blocks(row);
        let numbers = x.row_numbers(row);
        for (index, weights) in weights.chunks_exact(size).enumerate() {
            match layout {
                Layout::Q4_0 => {
                    simple(weights, &low_cell(&weights[16..]), 8, &blocks[index], out);
                }
                Layout::Q5_0 => {
                    let mut cell = low_cell(&weights[16..]);
                    add_bits(&mut cell, &weights[144..]);
                    simple(weights, &cell, 16, &blocks[index], out);
                }
                Layout::Q8_0 => {
                    let mut cell = [0; 256];
                    cell.copy_from_slice(&weights[16..272]);
                    simple(weights, &cell, 128, &blocks[index], out);
                }
                Layout::Q4K | Layout::Q5K => {
                    with_minimum(layout, weights, &blocks[index * 8..][..8], out);
                }
                Layout::Q6K => six_bits(weights, &blocks[index * 8..][..8], out),
                Layout::F16 => {
                    let halves = halves(weights);
                    for (out, weight) in out.iter_mut().zip(halves) {
                        *out += weight * numbers[index];
                    }
                }
            }
        }
    }
}

/// Byte `j * 32 + row * 4 + c` is column `4 * j + c`.
type Cell = [u8; 256];

fn halves(bytes: &[u8]) -> Lanes {
    std::array::from_fn(|row| f16_to_f32(u16::from_le_bytes([bytes[row * 2], bytes[row * 2 + 1]])))
}

fn low_cell(bytes: &[u8]) -> Cell {
    std::array::from_fn(|place| bytes[place % 128] >> (place / 128 * 4) & 15)
}

fn add_bits(cell: &mut Cell, bits: &[u8]) {
    for (place, number) in cell.iter_mut().enumerate() {
        *number |= (bits[place % 32] >> ((place / 32 + 4) % 8) & 1) << 4;
    }
}

fn add_pairs(cell: &mut Cell, pairs: &[u8]) {
    for (place, number) in cell.iter_mut().enumerate() {
        let (half, quarter) = (place / 128, place / 32 % 4);
        *number |= (pairs[half * 32 + place % 32] >> [4, 6, 0, 2][quarter] & 3) << 4;
    }
}

/// The products of a quarter cell's columns, for each row.
fn dot(cell: &[u8], bytes: &[i8]) -> [i32; LANES] {
    let mut sums = [0; LANES];
    for (weights, bytes) in cell.chunks_exact(32).zip(bytes.chunks_exact(4)) {
        for (row, sum) in sums.iter_mut().enumerate() {
            for c in 0..4 {
                *sum += i32::from(weights[row * 4 + c]) * i32::from(bytes[c]);
            }
        }
    }
    sums
}

fn simple(weights: &[u8], cell: &Cell, bias: i32, block: &Block, out: &mut Lanes) {
    let scales = halves(weights);
    let sums = dot(cell, &block.bytes);
    let total = block.sums[0] + block.sums[1];
    for row in 0..LANES {
        out[row] += (sums[row] - bias * total) as f32 * (scales[row] * block.scale);
    }
}

fn with_minimum(layout: Layout, weights: &[u8], blocks: &[Block], out: &mut Lanes) {
    let scales = halves(weights);
    let minima = halves(&weights[16..]);
    let size = if layout == Layout::Q5K { 160 } else { 128 };
    for (index, block) in blocks.iter().enumerate() {
        let at = 160 + index * size;
        let mut cell = low_cell(&weights[at..]);
        if layout == Layout::Q5K {
            add_bits(&mut cell, &weights[at + 128..]);
        }
        let sums = dot(&cell, &block.bytes);
        let parts = &weights[32 + index * 16..][..16];
        for row in 0..LANES {
            let scale = scales[row] * f32::from(parts[row]);
            let minimum = minima[row] * f32::from(parts[8 + row]);
            out[row] += sums[row] as f32 * (scale * block.scale);
            out[row] -= minimum * block.total;
        }
    }
}

fn six_bits(weights: &[u8], blocks: &[Block], out: &mut Lanes) {
    let scales = halves(weights);
    for (index, block) in blocks.iter().enumerate() {
        let at = 144 + index * 192;
        let mut cell = low_cell(&weights[at..]);
        add_pairs(&mut cell, &weights[at + 128..]);
        for half in 0..2 {
            let sums = dot(&cell[half * 128..][..128], &block.bytes[half * 16..][..16]);
            let parts = &weights[16 + (index * 2 + half) * 8..][..8];
            for row in 0..LANES {
                let scale = scales[row] * f32::from(i8::from_le_bytes([parts[row]]));
                let sum = sums[row] - 32 * block.sums[half];
                out[row] += sum as f32 * (scale * block.scale);
            }
        }
    }
}

pub(super) fn multiply_halves(a: &[f32], b: &[u16], c: &mut [f32], k: usize, n: usize) {
    let mut row = vec![0.0; n];
    for (b, index) in b.chunks_exact(n).zip(0..k) {
        for (number, bits) in row.iter_mut().zip(b) {
            *number = f16_to_f32(*bits);
        }
        for (a, c) in a.chunks_exact(k).zip(c.chunks_exact_mut(n)) {
            for (c, b) in c.iter_mut().zip(&row) {
                *c += a[index] * b;
            }
        }
    }
}

#[inline(always)]
pub(super) fn quantize(numbers: &[f32], into: &mut Vec<Block>) {
    for numbers in numbers.as_chunks::<32>().0 {
        let mut largest = 0.0_f32;
        for number in numbers {
            largest = largest.max(number.abs());
        }
        let scale = largest / 127.0;
        let factor = if largest > 0.0 { 127.0 / largest } else { 0.0 };
        let mut bytes = [0_i8; 32];
        for (byte, number) in bytes.iter_mut().zip(numbers) {
            *byte = (number * factor).round_ties_even() as i8;
        }
        let sums =
            [0, 16].map(|first| bytes[first..first + 16].iter().map(|b| i32::from(*b)).sum());
        let total: i32 = sums.iter().sum();
        into.push(Block { bytes, scale, total: scale * total as f32, sums });
    }
}

#[inline(always)]
pub(super) fn swiglu(gate: &mut [f32], up: &[f32]) {
    for (gate, up) in gate.iter_mut().zip(up) {
        *gate = *gate / (1.0 + exp(-*gate)) * up;
    }
}

#[inline(always)]
pub(super) fn exponentials(numbers: &mut [f32], max: f32) -> f32 {
    // Eight sums, so that the order of additions is the same whatever the processor can do at once.
    let mut sums = [0.0_f32; LANES];
    let (chunks, rest) = numbers.as_chunks_mut::<LANES>();
    for chunk in chunks {
        for (number, sum) in chunk.iter_mut().zip(&mut sums) {
            *number = exp(*number - max);
            *sum += *number;
        }
    }
    for (number, sum) in rest.iter_mut().zip(&mut sums) {
        *number = exp(*number - max);
        *sum += *number;
    }
    sums.iter().sum()
}

/// e to the power of a number, good to about one part in five million; a polynomial, so that a
/// compiler can do eight at once.
#[inline(always)]
fn exp(number: f32) -> f32 {
    let number = number.clamp(-87.0, 88.0);
    let power = (number * std::f32::consts::LOG2_E).round_ties_even();
    // ln 2 in two parts keeps the rest exact.
    let rest = number - power * 0.693_359_4 - power * -2.121_944_4e-4;
    let series = 1.0
        + rest
            * (1.0
                + rest
                    * (0.5
                        + rest
                            * (0.166_666_67
                                + rest
                                    * (0.041_666_67
                                        + rest * (0.008_333_334 + rest * 0.001_388_9)))));
    series * f32::from_bits(((power as i32 + 127) << 23).cast_unsigned())
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_exponential_is_close_to_the_real_one() {
        for step in -8_000..8_000 {
            let number = step as f32 / 100.0;
            let (ours, real) = (super::exp(number), number.exp());
            assert!(((ours - real) / real).abs() < 1e-6, "exp({number}) = {ours}, not {real}");
        }
    }
}
