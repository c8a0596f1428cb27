//! The kernels for x86-64 processors with AVX2, in three variants that differ in one instruction:
//! how bytes are multiplied and added.
//!
//! This is the one module of the crate with unsafe code. Two things need it: loading registers from
//! memory, where the array types say that the bytes are there, and calling a function that is
//! compiled for instructions which not every processor has, which `super::isa` has asked for.

#![allow(unsafe_code, reason = "see above")]
#![allow(clippy::indexing_slicing, reason = "shapes are checked when a model is loaded")]

use std::arch::x86_64::*;

use super::{Activations, Block, scalar};
use crate::pack::Layout;

/// How many rows of activations are multiplied together.
const TILE: usize = 4;

#[target_feature(enable = "avx2")]
#[inline]
fn load(bytes: &[u8], at: usize) -> __m256i {
    let bytes: &[u8; 32] = bytes[at..at + 32].as_array().unwrap_or(&[0; 32]);
    // SAFETY: the array has the 32 bytes that are read; the load needs no alignment.
    unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
}

/// Eight half-precision numbers.
#[target_feature(enable = "avx2,f16c")]
#[inline]
fn load_halves(bytes: &[u8], at: usize) -> __m256 {
    let bytes: &[u8; 16] = bytes[at..at + 16].as_array().unwrap_or(&[0; 16]);
    // SAFETY: the array has the 16 bytes that are read; the load needs no alignment.
    _mm256_cvtph_ps(unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) })
}

/// Eight bytes.
#[target_feature(enable = "avx2")]
#[inline]
fn load_eight(bytes: &[u8], at: usize) -> __m128i {
    let bytes: &[u8; 8] = bytes[at..at + 8].as_array().unwrap_or(&[0; 8]);
    _mm_cvtsi64_si128(i64::from_le_bytes(*bytes))
}

#[target_feature(enable = "avx2")]
#[inline]
fn store(numbers: __m256, into: &mut [f32; 8]) {
    // SAFETY: the array has the 32 bytes that are written; the store needs no alignment.
    unsafe { _mm256_storeu_ps(into.as_mut_ptr(), numbers) }
}

/// Four activations in every lane.
#[target_feature(enable = "avx2")]
#[inline]
fn spread(bytes: &[i8; 32], group: usize) -> __m256i {
    let four = &bytes[group * 4..group * 4 + 4];
    // SAFETY: the slice has the four bytes that are read; the read needs no alignment.
    _mm256_set1_epi32(unsafe { four.as_ptr().cast::<i32>().read_unaligned() })
}

/// The same block of several rows. A loop, because a closure given to the standard library would be
/// compiled without the instructions of its surroundings.
#[inline(always)]
fn pick<'a, const T: usize>(rows: &[&'a [Block]; T], index: usize) -> [&'a Block; T] {
    let mut blocks = [&rows[0][index]; T];
    for t in 1..T {
        blocks[t] = &rows[t][index];
    }
    blocks
}

macro_rules! variant {
    ($name:ident, $features:literal, $about:literal, $dot:item, $dot_wide:item) => {
        #[doc = $about]
        pub(super) mod $name {
            use super::*;

            $dot

            $dot_wide

            pub(in crate::kernel) fn multiply_group(
                layout: Layout,
                weights: &[u8],
                x: &Activations,
                out: &mut [[f32; 8]],
            ) {
                // SAFETY: this variant is only chosen where the processor has its instructions.
                unsafe { group(layout, weights, x, out) }
            }

            #[target_feature(enable = $features)]
            fn group(layout: Layout, weights: &[u8], x: &Activations, out: &mut [[f32; 8]]) {
                let rows = x.rows();
                let mut row = 0;
                while row < rows {
                    if rows - row >= TILE {
                        let rows: [usize; TILE] = std::array::from_fn(|t| row + t);
                        tile::<TILE>(layout, weights, x, rows, &mut out[row..row + TILE]);
                        row += TILE;
                    } else {
                        tile::<1>(layout, weights, x, [row], &mut out[row..row + 1]);
                        row += 1;
                    }
                }
            }

            #[target_feature(enable = $features)]
            #[inline]
            fn tile<const T: usize>(
                layout: Layout,
                weights: &[u8],
                x: &Activations,
                rows: [usize; T],
                out: &mut [[f32; 8]],
            ) {
                let sums = if layout == Layout::F16 {
                    floats(weights, rows.map(|row| x.row_numbers(row)))
                } else {
                    let blocks = rows.map(|row| x.row_blocks(row));
                    match layout {
                        Layout::Q4_0 => simple::<144, 4, T>(weights, blocks, -8),
                        Layout::Q5_0 => simple::<176, 5, T>(weights, blocks, -16),
                        Layout::Q8_0 => simple::<272, 8, T>(weights, blocks, -128),
                        Layout::Q4K => with_minimum::<1184, 4, T>(weights, blocks),
                        Layout::Q5K => with_minimum::<1440, 5, T>(weights, blocks),
                        Layout::Q6K | Layout::F16 => six_bits(weights, blocks),
                    }
                };
                for (sum, out) in sums.iter().zip(out) {
                    store(*sum, out);
                }
            }

            /// Add the products of 16 columns: half a cell.
            #[target_feature(enable = $features)]
            #[inline]
            fn half_cell<const BITS: u32, const HALF: usize, const T: usize>(
                cell: &[u8],
                blocks: &[&Block; T],
                sums: &mut [__m256i; T],
            ) {
                let nibbles = _mm256_set1_epi8(15);
                let mut high = _mm256_setzero_si256();
                if BITS == 5 {
                    high = load(cell, 128);
                    if HALF == 1 {
                        high = _mm256_slli_epi16(high, 4);
                    }
                }
                if BITS == 6 {
                    high = load(cell, 128 + HALF * 32);
                }
                for i in 0..4 {
                    let mut weights = if BITS == 8 {
                        load(cell, (HALF * 4 + i) * 32)
                    } else {
                        let both = load(cell, i * 32);
                        let low = if HALF == 0 { both } else { _mm256_srli_epi16(both, 4) };
                        _mm256_and_si256(low, nibbles)
                    };
                    if BITS == 5 {
                        let bit = _mm256_and_si256(high, _mm256_set1_epi8(16));
                        weights = _mm256_or_si256(weights, bit);
                        high = _mm256_srli_epi16(high, 1);
                    }
                    if BITS == 6 {
                        let pair = match i {
                            0 => high,
                            1 => _mm256_srli_epi16(high, 2),
                            2 => _mm256_slli_epi16(high, 4),
                            _ => _mm256_slli_epi16(high, 2),
                        };
                        weights = _mm256_or_si256(
                            weights,
                            _mm256_and_si256(pair, _mm256_set1_epi8(48)),
                        );
                    }
                    for t in 0..T {
                        let bytes = spread(&blocks[t].bytes, HALF * 4 + i);
                        sums[t] = if BITS == 8 {
                            dot_wide(sums[t], weights, bytes)
                        } else {
                            dot(sums[t], weights, bytes)
                        };
                    }
                }
            }

            #[target_feature(enable = $features)]
            #[inline]
            fn simple<const SIZE: usize, const BITS: u32, const T: usize>(
                weights: &[u8],
                x: [&[Block]; T],
                bias: i32,
            ) -> [__m256; T] {
                let mut out = [_mm256_setzero_ps(); T];
                for (index, weights) in weights.as_chunks::<SIZE>().0.iter().enumerate() {
                    let blocks = pick(&x, index);
                    let scales = load_halves(weights, 0);
                    let mut sums = [_mm256_setzero_si256(); T];
                    for t in 0..T {
                        let total = blocks[t].sums[0] + blocks[t].sums[1];
                        sums[t] = _mm256_set1_epi32(bias * total);
                    }
                    half_cell::<BITS, 0, T>(&weights[16..], &blocks, &mut sums);
                    half_cell::<BITS, 1, T>(&weights[16..], &blocks, &mut sums);
                    for t in 0..T {
                        let scale = _mm256_mul_ps(scales, _mm256_set1_ps(blocks[t].scale));
                        out[t] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sums[t]), scale, out[t]);
                    }
                }
                out
            }

            #[target_feature(enable = $features)]
            #[inline]
            fn with_minimum<const SIZE: usize, const BITS: u32, const T: usize>(
                weights: &[u8],
                x: [&[Block]; T],
            ) -> [__m256; T] {
                let mut out = [_mm256_setzero_ps(); T];
                for (index, weights) in weights.as_chunks::<SIZE>().0.iter().enumerate() {
                    let scales = load_halves(weights, 0);
                    let minima = load_halves(weights, 16);
                    for cell in 0..8 {
                        let blocks = pick(&x, index * 8 + cell);
                        let scale = load_eight(weights, 32 + cell * 16);
                        let scale = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(scale));
                        let scale = _mm256_mul_ps(scales, scale);
                        let minimum = load_eight(weights, 40 + cell * 16);
                        let minimum = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(minimum));
                        let minimum = _mm256_mul_ps(minima, minimum);
                        let at = 160 + cell * ((SIZE - 160) / 8);
                        let mut sums = [_mm256_setzero_si256(); T];
                        half_cell::<BITS, 0, T>(&weights[at..], &blocks, &mut sums);
                        half_cell::<BITS, 1, T>(&weights[at..], &blocks, &mut sums);
                        for t in 0..T {
                            let scale = _mm256_mul_ps(scale, _mm256_set1_ps(blocks[t].scale));
                            out[t] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sums[t]), scale, out[t]);
                            let total = _mm256_set1_ps(blocks[t].total);
                            out[t] = _mm256_fnmadd_ps(minimum, total, out[t]);
                        }
                    }
                }
                out
            }

            #[target_feature(enable = $features)]
            #[inline]
            fn six_bits<const T: usize>(weights: &[u8], x: [&[Block]; T]) -> [__m256; T] {
                let mut out = [_mm256_setzero_ps(); T];
                for (index, weights) in weights.as_chunks::<1680>().0.iter().enumerate() {
                    let scales = load_halves(weights, 0);
                    for cell in 0..8 {
                        let blocks = pick(&x, index * 8 + cell);
                        let at = 144 + cell * 192;
                        for half in 0..2 {
                            let scale = load_eight(weights, 16 + (cell * 2 + half) * 8);
                            let scale = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(scale));
                            let scale = _mm256_mul_ps(scales, scale);
                            let mut sums = [_mm256_setzero_si256(); T];
                            for t in 0..T {
                                sums[t] = _mm256_set1_epi32(-32 * blocks[t].sums[half]);
                            }
                            if half == 0 {
                                half_cell::<6, 0, T>(&weights[at..], &blocks, &mut sums);
                            } else {
                                half_cell::<6, 1, T>(&weights[at..], &blocks, &mut sums);
                            }
                            for t in 0..T {
                                let scale = _mm256_mul_ps(scale, _mm256_set1_ps(blocks[t].scale));
                                out[t] =
                                    _mm256_fmadd_ps(_mm256_cvtepi32_ps(sums[t]), scale, out[t]);
                            }
                        }
                    }
                }
                out
            }

            #[target_feature(enable = $features)]
            #[inline]
            fn floats<const T: usize>(weights: &[u8], x: [&[f32]; T]) -> [__m256; T] {
                let mut out = [_mm256_setzero_ps(); T];
                for (index, weights) in weights.as_chunks::<16>().0.iter().enumerate() {
                    let weights = load_halves(weights, 0);
                    for t in 0..T {
                        out[t] = _mm256_fmadd_ps(weights, _mm256_set1_ps(x[t][index]), out[t]);
                    }
                }
                out
            }
        }
    };
}

variant!(
    avx2,
    "avx2,fma,f16c",
    "AVX2 alone: pairs of products are added in 16 bits first.",
    /// Add four products per lane; the first factor is below 128, so 16 bits hold a pair.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn dot(sum: __m256i, weights: __m256i, bytes: __m256i) -> __m256i {
        let pairs = _mm256_maddubs_epi16(weights, bytes);
        _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)))
    },
    /// Add four products per lane of any bytes: even and odd ones apart, in 16 bits each.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn dot_wide(sum: __m256i, weights: __m256i, bytes: __m256i) -> __m256i {
        let even = _mm256_madd_epi16(
            _mm256_and_si256(weights, _mm256_set1_epi16(255)),
            _mm256_srai_epi16(_mm256_slli_epi16(bytes, 8), 8),
        );
        let odd = _mm256_madd_epi16(_mm256_srli_epi16(weights, 8), _mm256_srai_epi16(bytes, 8));
        _mm256_add_epi32(sum, _mm256_add_epi32(even, odd))
    }
);

variant!(
    avx_vnni,
    "avx2,fma,f16c,avxvnni",
    "AVX2 with the byte dot product of AVX-VNNI.",
    #[target_feature(enable = "avx2,avxvnni")]
    #[inline]
    fn dot(sum: __m256i, weights: __m256i, bytes: __m256i) -> __m256i {
        _mm256_dpbusd_avx_epi32(sum, weights, bytes)
    },
    #[target_feature(enable = "avx2,avxvnni")]
    #[inline]
    fn dot_wide(sum: __m256i, weights: __m256i, bytes: __m256i) -> __m256i {
        _mm256_dpbusd_avx_epi32(sum, weights, bytes)
    }
);

variant!(
    avx512_vnni,
    "avx2,fma,f16c,avx512f,avx512vl,avx512vnni",
    "AVX2 with the byte dot product of AVX-512, on registers of the same width.",
    #[target_feature(enable = "avx2,avx512f,avx512vl,avx512vnni")]
    #[inline]
    fn dot(sum: __m256i, weights: __m256i, bytes: __m256i) -> __m256i {
        _mm256_dpbusd_epi32(sum, weights, bytes)
    },
    #[target_feature(enable = "avx2,avx512f,avx512vl,avx512vnni")]
    #[inline]
    fn dot_wide(sum: __m256i, weights: __m256i, bytes: __m256i) -> __m256i {
        _mm256_dpbusd_epi32(sum, weights, bytes)
    }
);

pub(super) mod float {
    //! What all variants share: the work on plain numbers.

    use super::*;

    pub(in crate::kernel) fn multiply_halves(
        a: &[f32],
        b: &[u16],
        c: &mut [f32],
        k: usize,
        n: usize,
    ) {
        // SAFETY: called only where the processor has AVX2, FMA and F16C.
        unsafe { halves(a, b, c, k, n) }
    }

    pub(in crate::kernel) fn quantize(numbers: &[f32], into: &mut Vec<Block>) {
        #[target_feature(enable = "avx2,fma,f16c")]
        fn fast(numbers: &[f32], into: &mut Vec<Block>) {
            scalar::quantize(numbers, into);
        }
        // SAFETY: called only where the processor has AVX2, FMA and F16C.
        unsafe { fast(numbers, into) }
    }

    pub(in crate::kernel) fn swiglu(gate: &mut [f32], up: &[f32]) {
        #[target_feature(enable = "avx2,fma,f16c")]
        fn fast(gate: &mut [f32], up: &[f32]) {
            scalar::swiglu(gate, up);
        }
        // SAFETY: called only where the processor has AVX2, FMA and F16C.
        unsafe { fast(gate, up) }
    }

    pub(in crate::kernel) fn exponentials(numbers: &mut [f32], max: f32) -> f32 {
        #[target_feature(enable = "avx2,fma,f16c")]
        fn fast(numbers: &mut [f32], max: f32) -> f32 {
            scalar::exponentials(numbers, max)
        }
        // SAFETY: called only where the processor has AVX2, FMA and F16C.
        unsafe { fast(numbers, max) }
    }

    #[target_feature(enable = "avx2,fma,f16c")]
    fn halves(a: &[f32], b: &[u16], c: &mut [f32], k: usize, n: usize) {
        let mut a_rows = a.chunks_exact(k);
        let mut c_rows = c.chunks_exact_mut(n);
        loop {
            let a: [Option<&[f32]>; TILE] = std::array::from_fn(|_| a_rows.next());
            let c: [Option<&mut [f32]>; TILE] = std::array::from_fn(|_| c_rows.next());
            match (a, c) {
                (
                    [Some(a0), Some(a1), Some(a2), Some(a3)],
                    [Some(c0), Some(c1), Some(c2), Some(c3)],
                ) => {
                    panel([a0, a1, a2, a3], b, [c0, c1, c2, c3], n);
                }
                (a, c) => {
                    for (a, c) in a.into_iter().zip(c) {
                        if let (Some(a), Some(c)) = (a, c) {
                            panel([a], b, [c], n);
                        }
                    }
                    return;
                }
            }
        }
    }

    #[target_feature(enable = "avx2,fma,f16c")]
    #[inline]
    fn panel<const T: usize>(a: [&[f32]; T], b: &[u16], c: [&mut [f32]; T], n: usize) {
        for column in (0..n).step_by(8) {
            let mut sums = [_mm256_setzero_ps(); T];
            for t in 0..T {
                sums[t] = load_floats(&c[t][column..column + 8]);
            }
            for (k, b) in b.chunks_exact(n).enumerate().take(a[0].len()) {
                let b = load_half_slice(&b[column..column + 8]);
                for t in 0..T {
                    sums[t] = _mm256_fmadd_ps(_mm256_set1_ps(a[t][k]), b, sums[t]);
                }
            }
            for t in 0..T {
                if let Some(out) = c[t][column..column + 8].as_mut_array() {
                    store(sums[t], out);
                }
            }
        }
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    fn load_floats(numbers: &[f32]) -> __m256 {
        let numbers: &[f32; 8] = numbers.as_array().unwrap_or(&[0.0; 8]);
        // SAFETY: the array has the 32 bytes that are read; the load needs no alignment.
        unsafe { _mm256_loadu_ps(numbers.as_ptr()) }
    }

    #[target_feature(enable = "avx2,f16c")]
    #[inline]
    fn load_half_slice(halves: &[u16]) -> __m256 {
        let halves: &[u16; 8] = halves.as_array().unwrap_or(&[0; 8]);
        // SAFETY: the array has the 16 bytes that are read; the load needs no alignment.
        _mm256_cvtph_ps(unsafe { _mm_loadu_si128(halves.as_ptr().cast()) })
    }
}
