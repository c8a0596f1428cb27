//! The arithmetic that takes the time, for the processor that is there.
//!
//! Which instructions exist is asked when the program runs, so one build is fast on a new processor
//! and correct on an old one. All variants add in the same order for every row of a batch: what a
//! token computes does not depend on which tokens are computed with it.

#![allow(clippy::indexing_slicing, reason = "shapes are checked when a model is loaded")]

mod scalar;
#[cfg(target_arch = "x86_64")]
mod x86;

use std::sync::OnceLock;

use crate::pack::Matrix;

/// 32 activations, as bytes with a scale.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Block {
    /// The numbers, divided by the scale.
    pub(crate) bytes: [i8; 32],
    pub(crate) scale: f32,
    /// The sum of what the bytes stand for.
    pub(crate) total: f32,
    /// The sums of the first and the last 16 bytes.
    pub(crate) sums: [i32; 2],
}

/// Rows of activations that a matrix is multiplied with.
#[derive(Debug, Default)]
pub(crate) struct Activations {
    rows: usize,
    cols: usize,
    numbers: Vec<f32>,
    blocks: Vec<Block>,
}

impl Activations {
    /// Take rows of numbers in.
    pub(crate) fn set(&mut self, numbers: &[f32], cols: usize) {
        self.cols = cols;
        self.rows = numbers.len() / cols;
        self.numbers.clear();
        self.numbers.extend_from_slice(numbers);
        self.blocks.clear();
        self.blocks.reserve(numbers.len() / 32);
        quantize(numbers, &mut self.blocks);
    }

    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    fn row_blocks(&self, row: usize) -> &[Block] {
        let each = self.cols / 32;
        &self.blocks[row * each..][..each]
    }

    fn row_numbers(&self, row: usize) -> &[f32] {
        &self.numbers[row * self.cols..][..self.cols]
    }
}

/// Which instructions are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Isa {
    /// Plain Rust.
    Scalar,
    /// AVX2, FMA and F16C.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// AVX2 with the byte dot product of AVX-VNNI.
    #[cfg(target_arch = "x86_64")]
    AvxVnni,
    /// AVX2 with the byte dot product of AVX-512.
    #[cfg(target_arch = "x86_64")]
    Avx512Vnni,
}

fn isa() -> Isa {
    static ISA: OnceLock<Isa> = OnceLock::new();
    *ISA.get_or_init(detect)
}

#[cfg(target_arch = "x86_64")]
fn detect() -> Isa {
    // A way to measure and to test the other variants.
    let wanted = std::env::var("DUOLOGUE_ISA").unwrap_or_default();
    let avx2 = is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("fma")
        && is_x86_feature_detected!("f16c");
    if !avx2 || wanted == "scalar" {
        return Isa::Scalar;
    }
    if wanted == "avx2" {
        return Isa::Avx2;
    }
    if is_x86_feature_detected!("avx512vnni") && is_x86_feature_detected!("avx512vl") {
        return Isa::Avx512Vnni;
    }
    if is_x86_feature_detected!("avxvnni") {
        return Isa::AvxVnni;
    }
    Isa::Avx2
}

#[cfg(not(target_arch = "x86_64"))]
fn detect() -> Isa {
    Isa::Scalar
}

/// Multiply eight rows of a matrix with every row of activations: `out` gets eight numbers for the
/// first row of activations, eight for the second, and so on.
pub(crate) fn multiply_group(matrix: &Matrix, group: usize, x: &Activations, out: &mut [f32]) {
    multiply_group_with(isa(), matrix, group, x, out);
}

fn multiply_group_with(isa: Isa, matrix: &Matrix, group: usize, x: &Activations, out: &mut [f32]) {
    let size = matrix.group_bytes();
    let weights = &matrix.bytes[group * size..][..size];
    let (out, _) = out.as_chunks_mut::<8>();
    match isa {
        Isa::Scalar => scalar::multiply_group(matrix.layout, weights, x, out),
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => x86::avx2::multiply_group(matrix.layout, weights, x, out),
        #[cfg(target_arch = "x86_64")]
        Isa::AvxVnni => x86::avx_vnni::multiply_group(matrix.layout, weights, x, out),
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512Vnni => x86::avx512_vnni::multiply_group(matrix.layout, weights, x, out),
    }
}

/// `c[m][n] += a[m][k] * b[k][n]`, where `b` is in half precision and `n` a multiple of eight.
pub(crate) fn multiply_halves(a: &[f32], b: &[u16], c: &mut [f32], k: usize, n: usize) {
    match isa() {
        Isa::Scalar => scalar::multiply_halves(a, b, c, k, n),
        #[cfg(target_arch = "x86_64")]
        _ => x86::float::multiply_halves(a, b, c, k, n),
    }
}

fn quantize(numbers: &[f32], into: &mut Vec<Block>) {
    match isa() {
        Isa::Scalar => scalar::quantize(numbers, into),
        #[cfg(target_arch = "x86_64")]
        _ => x86::float::quantize(numbers, into),
    }
}

/// `gate = gate * sigmoid(gate) * up`, the activation of the feed-forward part.
pub(crate) fn swiglu(gate: &mut [f32], up: &[f32]) {
    match isa() {
        Isa::Scalar => scalar::swiglu(gate, up),
        #[cfg(target_arch = "x86_64")]
        _ => x86::float::swiglu(gate, up),
    }
}

/// Replace each number by `exp(number - max)` and return the sum.
pub(crate) fn exponentials(numbers: &mut [f32], max: f32) -> f32 {
    match isa() {
        Isa::Scalar => scalar::exponentials(numbers, max),
        #[cfg(target_arch = "x86_64")]
        _ => x86::float::exponentials(numbers, max),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{gguf::Kind, pack::tests::random_matrix};

    /// All variants that this processor has.
    fn variants() -> Vec<Isa> {
        let mut all = vec![Isa::Scalar];
        #[cfg(target_arch = "x86_64")]
        {
            if isa() != Isa::Scalar {
                all.push(Isa::Avx2);
            }
            if isa() == Isa::Avx512Vnni {
                all.push(Isa::Avx512Vnni);
            }
            if is_x86_feature_detected!("avxvnni") && isa() != Isa::Scalar {
                all.push(Isa::AvxVnni);
            }
        }
        all
    }

    #[test]
    fn every_layout_and_variant_multiplies_what_the_file_says() {
        let mut random = fastrand::Rng::with_seed(5);
        let kinds = [
            Kind::F32,
            Kind::F16,
            Kind::Bf16,
            Kind::Q4_0,
            Kind::Q5_0,
            Kind::Q8_0,
            Kind::Q4K,
            Kind::Q5K,
            Kind::Q6K,
        ];
        for kind in kinds {
            let cols = 512;
            let (matrix, rows) = random_matrix(kind, cols, &mut random);
            let numbers: Vec<f32> = (0..cols * 6).map(|_| random.f32() * 4.0 - 2.0).collect();
            let mut x = Activations::default();
            x.set(&numbers, cols);
            for isa in variants() {
                let mut together = vec![0.0; 6 * 8];
                multiply_group_with(isa, &matrix, 0, &x, &mut together);
                for (token, numbers) in numbers.chunks(cols).enumerate() {
                    let mut alone = vec![0.0; 8];
                    let mut one = Activations::default();
                    one.set(numbers, cols);
                    multiply_group_with(isa, &matrix, 0, &one, &mut alone);
                    // Bit for bit: a batch must not change what a token computes.
                    assert_eq!(alone, together[token * 8..][..8], "{kind:?} {isa:?}");
                    for (row, weights) in rows.iter().enumerate() {
                        let exact: f32 = weights.iter().zip(numbers).map(|(w, x)| w * x).sum();
                        let size: f32 =
                            weights.iter().zip(numbers).map(|(w, x)| (w * x).abs()).sum();
                        let error = (alone[row] - exact).abs() / size;
                        assert!(error < 2e-3, "{kind:?} {isa:?} row {row}: {} {exact}", alone[row]);
                    }
                }
            }
        }
    }

    #[test]
    fn half_precision_products_are_right_for_any_number_of_rows() {
        let mut random = fastrand::Rng::with_seed(6);
        let (k, n) = (24, 16);
        for rows in 1..7 {
            let a: Vec<f32> = (0..rows * k).map(|_| random.f32() - 0.5).collect();
            let b: Vec<f32> = (0..k * n).map(|_| random.f32() - 0.5).collect();
            let halves: Vec<u16> = b.iter().map(|b| crate::half::f32_to_f16(*b)).collect();
            let mut c = vec![1.0; rows * n];
            multiply_halves(&a, &halves, &mut c, k, n);
            for (row, c) in c.chunks(n).enumerate() {
                for (column, c) in c.iter().enumerate() {
                    let sum: f32 = (0..k).map(|i| a[row * k + i] * b[i * n + column]).sum();
                    assert!((c - 1.0 - sum).abs() < 1e-3, "{c} {sum}");
                }
            }
        }
    }
}
