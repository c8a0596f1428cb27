//! The arithmetic that takes the time, for the processor that is there.
//!
//! Which instructions exist is asked when the program runs, so one build is fast on a new processor
//! and correct on an old one. All variants add in the same order for every row of a batch: what a
//! token computes does not depend on which tokens are computed with it.

#![allow(
    clippy::indexing_slicing,
    reason = "shapes are checked when a model is loaded"
)]

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

/// The name of the instructions in use, for a report.
pub(crate) fn instructions() -> &'static str {
    match isa() {
        Isa::Scalar => "scalar",
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => "avx2",
        #[cfg(target_arch = "x86_64")]
        Isa::AvxVnni => "avx2 + avx-vnni",
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512Vnni => "avx2 + avx512-vnni",
    }
}

/// Multiply eight rows of a matrix with every row of activations: `out` gets eight numbers for the
/// first row of activations, eight for the second, and so on.
pub(crate) fn multiply_group(matrix: &Matrix, group: usize, x: &Activations, out: &mut [f32]) {
    let size = matrix.group_bytes();
    let weights = &matrix.bytes[group * size..][..size];
    let (out, _) = out.as_chunks_mut::<8>();
    match isa() {
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
