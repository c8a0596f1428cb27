//! Weights as the kernels want them: eight rows side by side.
//!
//! A file stores a matrix row by row. A processor multiplies best when one instruction works on
//! eight rows at once: then every lane of a register is a row, and nothing has to be added up
//! across lanes. So a matrix is read once, row group by row group, and laid out again with the same
//! bits: no weight is rounded, and a packed matrix is as large as the stored one (Q4_K and Q5_K
//! grow by a fortieth, because their 6-bit scales become bytes).
//!
//! The unit is a *cell*: eight rows by 32 columns. Its low four bits take 128 bytes: byte
//! `i * 32 + row * 4 + c` holds column `4 * i + c` in its low half and column `16 + 4 * i + c` in
//! its high half. Fifth bits (32 bytes) and fifth and sixth bits (64 bytes) follow, placed so that
//! one shift brings each above its low bits. See [`Layout`] for what surrounds the cells.

#![allow(
    clippy::indexing_slicing,
    reason = "all sizes follow from the layout, which is checked when a matrix is made"
)]

use rayon::prelude::*;

use crate::{
    gguf::{Gguf, GgufError, Kind, TensorInfo},
    half::{f16_to_f32, f32_to_f16},
};

/// How many rows lie side by side.
pub(crate) const LANES: usize = 8;

/// How a packed matrix is laid out, block after block, row group after row group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// 32 columns: eight f16 scales, 128 bytes of low bits.
    Q4_0,
    /// 32 columns: eight f16 scales, 128 bytes of low bits, 32 of high bits.
    Q5_0,
    /// 32 columns: eight f16 scales, then 256 bytes, biased by 128; byte `j * 32 + row * 4 + c` is
    /// column `4 * j + c`.
    Q8_0,
    /// 256 columns: eight f16 scales, eight f16 minimum scales, for each cell eight scale and eight
    /// minimum bytes, then eight cells of low bits.
    Q4K,
    /// The same with eight cells of low and high bits.
    Q5K,
    /// 256 columns: eight f16 scales, for each 16 columns eight signed scale bytes, then eight
    /// cells of low bits and 64 bytes of high bits.
    Q6K,
    /// One column: eight f16 numbers.
    F16,
}

impl Layout {
    fn of(kind: Kind) -> Self {
        match kind {
            Kind::F32 | Kind::F16 | Kind::Bf16 => Self::F16,
            Kind::Q4_0 => Self::Q4_0,
            Kind::Q5_0 => Self::Q5_0,
            Kind::Q8_0 => Self::Q8_0,
            Kind::Q4K => Self::Q4K,
            Kind::Q5K => Self::Q5K,
            Kind::Q6K => Self::Q6K,
        }
    }

    /// Columns and bytes of a block of eight rows.
    pub(crate) const fn block(self) -> (usize, usize) {
        match self {
            Self::Q4_0 => (32, 144),
            Self::Q5_0 => (32, 176),
            Self::Q8_0 => (32, 272),
            Self::Q4K => (256, 1184),
            Self::Q5K => (256, 1440),
            Self::Q6K => (256, 1680),
            Self::F16 => (1, 16),
        }
    }
}

/// A matrix of packed weights.
#[derive(Debug)]
pub(crate) struct Matrix {
    pub(crate) layout: Layout,
    pub(crate) rows: usize,
    pub(crate) cols: usize,
    pub(crate) bytes: Vec<u8>,
}

impl Matrix {
    /// Read a tensor and pack it.
    pub(crate) fn load(file: &Gguf, tensor: &TensorInfo) -> Result<Self, GgufError> {
        if tensor.kind.block_len() == 1 && !tensor.cols.is_multiple_of(32) {
            return Err(file.unsupported(format!(
                "tensor {} has rows of {}, which is no multiple of 32",
                tensor.name, tensor.cols
            )));
        }
        let layout = Layout::of(tensor.kind);
        let (block_cols, block_bytes) = layout.block();
        let group_bytes = tensor.cols / block_cols * block_bytes;
        let groups = tensor.rows.div_ceil(LANES);
        let mut bytes = vec![0; groups * group_bytes];
        bytes.par_chunks_mut(group_bytes).enumerate().with_min_len(8).try_for_each_init(
            Vec::new,
            |stored, (group, packed)| {
                let first = group * LANES;
                let rows = LANES.min(tensor.rows - first);
                // Rows that are not there are zeros, which every kind reads as weights of zero.
                stored.clear();
                stored.resize(LANES * tensor.row_bytes(), 0);
                file.read_rows(tensor, first, &mut stored[..rows * tensor.row_bytes()])?;
                pack_group(tensor.kind, stored, packed, block_bytes);
                Ok(())
            },
        )?;
        Ok(Self { layout, rows: tensor.rows, cols: tensor.cols, bytes })
    }

    pub(crate) fn group_bytes(&self) -> usize {
        let (cols, bytes) = self.layout.block();
        self.cols / cols * bytes
    }
}

fn pack_group(kind: Kind, stored: &[u8], packed: &mut [u8], block_bytes: usize) {
    let row_bytes = stored.len() / LANES;
    let size = kind.block_bytes();
    for (index, block) in packed.chunks_exact_mut(block_bytes).enumerate() {
        for row in 0..LANES {
            let at = row * row_bytes + index * size;
            let from = &stored[at..at + size];
            match kind {
                Kind::F32 => {
                    let number = f32::from_le_bytes([from[0], from[1], from[2], from[3]]);
                    block[row * 2..][..2].copy_from_slice(&f32_to_f16(number).to_le_bytes());
                }
                Kind::F16 => block[row * 2..][..2].copy_from_slice(from),
                Kind::Bf16 => {
                    let number = f32::from_le_bytes([0, 0, from[0], from[1]]);
                    block[row * 2..][..2].copy_from_slice(&f32_to_f16(number).to_le_bytes());
                }
                Kind::Q4_0 => {
                    block[row * 2..][..2].copy_from_slice(&from[..2]);
                    put_cell(&mut block[16..], row, |k| nibble(&from[2..], k));
                }
                Kind::Q5_0 => {
                    block[row * 2..][..2].copy_from_slice(&from[..2]);
                    let high = u32::from_le_bytes([from[2], from[3], from[4], from[5]]);
                    let (low_part, high_part) = block[16..].split_at_mut(128);
                    put_cell(low_part, row, |k| nibble(&from[6..], k));
                    put_bits(high_part, row, |k| (high >> k & 1) as u8);
                }
                Kind::Q8_0 => {
                    block[row * 2..][..2].copy_from_slice(&from[..2]);
                    for k in 0..32 {
                        block[16 + k / 4 * 32 + row * 4 + k % 4] = from[2 + k] ^ 0x80;
                    }
                }
                Kind::Q4K | Kind::Q5K => pack_q4k_q5k(kind, from, block, row),
                Kind::Q6K => pack_q6k(from, block, row),
            }
        }
    }
}

fn pack_q4k_q5k(kind: Kind, from: &[u8], block: &mut [u8], row: usize) {
    block[row * 2..][..2].copy_from_slice(&from[..2]);
    block[16 + row * 2..][..2].copy_from_slice(&from[2..4]);
    let scales = &from[4..16];
    let (high, low, cell_bytes) = if kind == Kind::Q5K {
        (&from[16..48], &from[48..], 160)
    } else {
        (&from[..0], &from[16..], 128)
    };
    for cell in 0..8 {
        let (scale, minimum) = scale_and_minimum(scales, cell);
        block[32 + cell * 16 + row] = scale;
        block[32 + cell * 16 + 8 + row] = minimum;
        let at = 160 + cell * cell_bytes;
        // Two cells share 32 bytes: the even one has the low halves, the odd one the high halves.
        let source = &low[cell / 2 * 32..][..32];
        put_cell(&mut block[at..], row, |k| source[k] >> (cell % 2 * 4) & 15);
        if kind == Kind::Q5K {
            put_bits(&mut block[at + 128..], row, |k| high[k] >> cell & 1);
        }
    }
}

fn pack_q6k(from: &[u8], block: &mut [u8], row: usize) {
    let (low, rest) = from.split_at(128);
    let (high, rest) = rest.split_at(64);
    let (scales, scale) = rest.split_at(16);
    block[row * 2..][..2].copy_from_slice(scale);
    for (part, scale) in scales.iter().enumerate() {
        block[16 + part * 8 + row] = *scale;
    }
    for cell in 0..8 {
        let at = 144 + cell * 192;
        let (half, quarter) = (cell / 4, cell % 4);
        let nibbles = &low[half * 64 + quarter % 2 * 32..][..32];
        put_cell(&mut block[at..], row, |k| nibbles[k] >> (quarter / 2 * 4) & 15);
        let pairs = &high[half * 32..][..32];
        for k in 0..32 {
            let pair = pairs[k] >> (quarter * 2) & 3;
            let place = at + 128 + k / 16 * 32 + row * 4 + k % 4;
            block[place] |= pair << [4, 6, 0, 2][k % 16 / 4];
        }
    }
}

/// The scale and the minimum of a cell of a Q4_K or Q5_K block, six bits each.
fn scale_and_minimum(scales: &[u8], cell: usize) -> (u8, u8) {
    if cell < 4 {
        (scales[cell] & 63, scales[cell + 4] & 63)
    } else {
        (
            scales[cell + 4] & 15 | scales[cell - 4] >> 6 << 4,
            scales[cell + 4] >> 4 | scales[cell] >> 6 << 4,
        )
    }
}

/// Column `k` of a Q4_0 or Q5_0 block: the first 16 are low halves, the others high halves.
fn nibble(bytes: &[u8], k: usize) -> u8 {
    bytes[k % 16] >> (k / 16 * 4) & 15
}

fn put_cell(cell: &mut [u8], row: usize, column: impl Fn(usize) -> u8) {
    for k in 0..16 {
        cell[k / 4 * 32 + row * 4 + k % 4] = column(k) | column(k + 16) << 4;
    }
}

fn put_bits(bits: &mut [u8], row: usize, column: impl Fn(usize) -> u8) {
    for k in 0..32 {
        let group = k / 4;
        bits[row * 4 + k % 4] |= column(k) << ((group + 4) % 8);
    }
}

/// One row of a tensor as plain numbers.
pub(crate) fn read_row(
    file: &Gguf,
    tensor: &TensorInfo,
    row: usize,
    into: &mut [f32],
) -> Result<(), GgufError> {
    let mut stored = vec![0; tensor.row_bytes()];
    file.read_rows(tensor, row, &mut stored)?;
    for (block, out) in
        stored.chunks_exact(tensor.kind.block_bytes()).zip(into.chunks_mut(tensor.kind.block_len()))
    {
        unpack_block(tensor.kind, block, out);
    }
    Ok(())
}

fn half_at(bytes: &[u8], at: usize) -> f32 {
    f16_to_f32(u16::from_le_bytes([bytes[at], bytes[at + 1]]))
}

fn unpack_block(kind: Kind, from: &[u8], out: &mut [f32]) {
    match kind {
        Kind::F32 => out[0] = f32::from_le_bytes([from[0], from[1], from[2], from[3]]),
        Kind::F16 => out[0] = half_at(from, 0),
        Kind::Bf16 => out[0] = f32::from_le_bytes([0, 0, from[0], from[1]]),
        Kind::Q4_0 => {
            let scale = half_at(from, 0);
            for (k, out) in out.iter_mut().enumerate() {
                *out = scale * (f32::from(nibble(&from[2..], k)) - 8.0);
            }
        }
        Kind::Q5_0 => {
            let scale = half_at(from, 0);
            let high = u32::from_le_bytes([from[2], from[3], from[4], from[5]]);
            for (k, out) in out.iter_mut().enumerate() {
                let number = nibble(&from[6..], k) | ((high >> k & 1) as u8) << 4;
                *out = scale * (f32::from(number) - 16.0);
            }
        }
        Kind::Q8_0 => {
            let scale = half_at(from, 0);
            for (k, out) in out.iter_mut().enumerate() {
                *out = scale * f32::from(i8::from_le_bytes([from[2 + k]]));
            }
        }
        Kind::Q4K | Kind::Q5K => {
            let (scale, minimum) = (half_at(from, 0), half_at(from, 2));
            let (high, low) = if kind == Kind::Q5K {
                (&from[16..48], &from[48..])
            } else {
                (&from[..0], &from[16..])
            };
            for (index, out) in out.iter_mut().enumerate() {
                let (cell, k) = (index / 32, index % 32);
                let (cell_scale, cell_minimum) = scale_and_minimum(&from[4..16], cell);
                let mut number = low[cell / 2 * 32 + k] >> (cell % 2 * 4) & 15;
                if kind == Kind::Q5K {
                    number |= (high[k] >> cell & 1) << 4;
                }
                *out = scale * f32::from(cell_scale) * f32::from(number)
                    - minimum * f32::from(cell_minimum);
            }
        }
        Kind::Q6K => {
            let scale = half_at(from, 208);
            for (index, out) in out.iter_mut().enumerate() {
                let (cell, k) = (index / 32, index % 32);
                let (half, quarter) = (cell / 4, cell % 4);
                let low = from[half * 64 + quarter % 2 * 32 + k] >> (quarter / 2 * 4) & 15;
                let high = from[128 + half * 32 + k] >> (quarter * 2) & 3;
                let part = i8::from_le_bytes([from[192 + index / 16]]);
                *out = scale * f32::from(part) * (f32::from(low | high << 4) - 32.0);
            }
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Eight rows of random stored bytes, packed, and as the plain numbers that they stand for.
    pub(crate) fn random_matrix(
        kind: Kind,
        cols: usize,
        random: &mut fastrand::Rng,
    ) -> (Matrix, Vec<Vec<f32>>) {
        let count = cols / kind.block_len();
        let mut stored = Vec::new();
        for _ in 0..LANES * count {
            let mut block: Vec<u8> = (0..kind.block_bytes()).map(|_| random.u8(..)).collect();
            // Scales must be numbers of a sensible size; all other bits may be anything.
            let number = random.f32() * 0.1 - 0.05;
            let half = f32_to_f16(number).to_le_bytes();
            match kind {
                Kind::F32 => block.copy_from_slice(&number.to_le_bytes()),
                Kind::Bf16 => block.copy_from_slice(&number.to_le_bytes()[2..]),
                Kind::Q6K => block[208..].copy_from_slice(&half),
                Kind::Q4K | Kind::Q5K => {
                    block[..2].copy_from_slice(&half);
                    block[2..4].copy_from_slice(&half);
                }
                _ => block[..2].copy_from_slice(&half),
            }
            stored.extend(block);
        }
        let layout = Layout::of(kind);
        let (block_cols, block_bytes) = layout.block();
        let mut bytes = vec![0; cols / block_cols * block_bytes];
        pack_group(kind, &stored, &mut bytes, block_bytes);
        let rows = stored.chunks(stored.len() / LANES).map(|row| {
            let mut numbers = vec![0.0; cols];
            for (block, out) in
                row.chunks(kind.block_bytes()).zip(numbers.chunks_mut(kind.block_len()))
            {
                unpack_block(kind, block, out);
            }
            numbers
        });
        let rows = rows.collect();
        let matrix = Matrix { layout, rows: LANES, cols, bytes };
        (matrix, rows)
    }
}
