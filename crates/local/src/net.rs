//! The network: what a model file says it is, and its weights.

mod attention;
mod forward;
#[cfg(test)]
mod reference;
mod sequence;

pub(crate) use forward::{Chunk, Interrupted, Workspace};
pub(crate) use sequence::{BLOCK, Sequence};

use rayon::ThreadPool;

use crate::{
    gguf::{Gguf, GgufError, TensorInfo},
    pack::{Matrix, read_row},
};

/// Which pairs of numbers a rotary embedding turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rotation {
    /// Neighbours: 0 with 1, 2 with 3.
    Neighbours,
    /// The first half with the second half.
    Halves,
}

/// The shape of a network.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    pub(crate) layers: usize,
    pub(crate) width: usize,
    pub(crate) hidden: usize,
    pub(crate) heads: usize,
    pub(crate) kv_heads: usize,
    pub(crate) head_width: usize,
    /// The longest text that the network was made for, in tokens.
    pub(crate) context: usize,
    pub(crate) vocabulary: usize,
    epsilon: f32,
    rotation: Rotation,
    /// The speed at which each pair turns.
    speeds: Vec<f32>,
}

#[derive(Debug)]
struct Layer {
    attention_norm: Vec<f32>,
    query: Linear,
    key: Linear,
    value: Linear,
    query_norm: Option<Vec<f32>>,
    key_norm: Option<Vec<f32>>,
    attention_output: Linear,
    feed_norm: Vec<f32>,
    gate: Matrix,
    up: Matrix,
    down: Matrix,
}

#[derive(Debug)]
struct Linear {
    matrix: Matrix,
    bias: Option<Vec<f32>>,
}

/// A loaded network.
#[derive(Debug)]
pub(crate) struct Net {
    pub(crate) shape: Shape,
    file: Gguf,
    /// Looked up in the file row by row: a token needs one row, so the rest need not be in memory.
    embedding: TensorInfo,
    layers: Vec<Layer>,
    output_norm: Vec<f32>,
    output: Matrix,
    pool: ThreadPool,
}

impl Net {
    /// Load a network. `progress` hears the share that is loaded, and may stop it.
    pub(crate) fn load(file: Gguf, threads: usize) -> Result<Self, GgufError> {
        let shape = Shape::read(&file)?;
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .thread_name(|index| format!("duologue-local-{index}"))
            .build()
            .map_err(|error| file.unsupported(format!("no threads to compute with: {error}")))?;
        let (layers, output_norm, output) = pool.install(|| {
            let layers: Result<Vec<_>, _> =
                (0..shape.layers).map(|index| Layer::load(&file, &shape, index)).collect();
            let output = match file.tensor("output.weight") {
                Some(tensor) => tensor,
                // Many small models use one matrix for reading and writing words.
                None => file.require_tensor("token_embd.weight")?,
            };
            check_shape(&file, output, shape.vocabulary, shape.width)?;
            Ok((
                layers?,
                vector(&file, "output_norm.weight", shape.width)?,
                Matrix::load(&file, output)?,
            ))
        })?;
        let embedding = file.require_tensor("token_embd.weight")?.clone();
        Ok(Self { shape, embedding, layers, output_norm, output, pool, file })
    }

    fn embed(&self, token: u32, into: &mut [f32]) -> Result<(), GgufError> {
        read_row(&self.file, &self.embedding, token as usize, into)
    }
}

impl Shape {
    fn read(file: &Gguf) -> Result<Self, GgufError> {
        let arch = file.text("general.architecture").unwrap_or_default().to_owned();
        let rotation = match arch.as_str() {
            "llama" => Rotation::Neighbours,
            "qwen2" | "qwen3" => Rotation::Halves,
            other => {
                return Err(file.unsupported(format!(
                    "the architecture {other:?} is not supported (llama, qwen2 and qwen3 are)"
                )));
            }
        };
        if file.count(&format!("{arch}.expert_count")).unwrap_or(0) > 0 {
            return Err(file.unsupported("mixtures of experts are not supported"));
        }
        let count = |name: &str| {
            let key = format!("{arch}.{name}");
            let number = file.require_count(&key)?;
            if number == 0 || number > 1 << 24 {
                return Err(file.invalid(format!("metadata {key} is {number}")));
            }
            Ok(number)
        };
        let width = count("embedding_length")?;
        let heads = count("attention.head_count")?;
        let kv_heads = file.count(&format!("{arch}.attention.head_count_kv")).unwrap_or(heads);
        let head_width =
            file.count(&format!("{arch}.attention.key_length")).unwrap_or(width / heads);
        let turned = file.count(&format!("{arch}.rope.dimension_count")).unwrap_or(head_width);
        let fits = kv_heads > 0
            && heads.is_multiple_of(kv_heads)
            && head_width.is_multiple_of(8)
            && head_width > 0;
        if !fits || !width.is_multiple_of(32) || turned > head_width || !turned.is_multiple_of(2) {
            return Err(file.unsupported(format!(
                "its shape is not supported: width {width}, {heads} heads of {head_width} with \
                 {kv_heads} for keys, {turned} of them turned"
            )));
        }
        let base = file.float(&format!("{arch}.rope.freq_base")).unwrap_or(10_000.0);
        let mut speeds: Vec<f32> =
            (0..turned / 2).map(|pair| base.powf(-2.0 * pair as f32 / turned as f32)).collect();
        match file.text(&format!("{arch}.rope.scaling.type")) {
            None | Some("none") => {}
            Some("linear") => {
                let factor = file.float(&format!("{arch}.rope.scaling.factor")).unwrap_or(1.0);
                speeds.iter_mut().for_each(|speed| *speed /= factor);
            }
            Some(other) => {
                return Err(file.unsupported(format!("rope scaling {other:?} is not supported")));
            }
        }
        if file.tensor("rope_freqs.weight").is_some() {
            let factors = vector(file, "rope_freqs.weight", turned / 2)?;
            for (speed, factor) in speeds.iter_mut().zip(factors) {
                *speed /= factor;
            }
        }
        Ok(Self {
            layers: count("block_count")?,
            width,
            hidden: count("feed_forward_length")?,
            heads,
            kv_heads,
            head_width,
            context: count("context_length")?,
            vocabulary: file.require_tensor("token_embd.weight")?.rows,
            epsilon: file
                .float(&format!("{arch}.attention.layer_norm_rms_epsilon"))
                .unwrap_or(1e-5),
            rotation,
            speeds,
        })
    }

    /// How many bytes of cache one token takes.
    pub(crate) fn cache_bytes_per_token(&self) -> usize {
        self.layers * self.kv_heads * self.head_width * 2 * size_of::<u16>()
    }
}

impl Layer {
    fn load(file: &Gguf, shape: &Shape, index: usize) -> Result<Self, GgufError> {
        let name = |part: &str| format!("blk.{index}.{part}");
        let queries = shape.heads * shape.head_width;
        let keys = shape.kv_heads * shape.head_width;
        let linear = |part: &str, rows: usize, cols: usize| {
            let bias = name(&format!("{part}.bias"));
            let bias = match file.tensor(&bias) {
                Some(_) => Some(vector(file, &bias, rows)?),
                None => None,
            };
            let matrix = matrix(file, &name(&format!("{part}.weight")), rows, cols)?;
            Ok::<_, GgufError>(Linear { matrix, bias })
        };
        let head_norm = |part: &str| match file.tensor(&name(part)) {
            Some(_) => vector(file, &name(part), shape.head_width).map(Some),
            None => Ok(None),
        };
        Ok(Self {
            attention_norm: vector(file, &name("attn_norm.weight"), shape.width)?,
            query: linear("attn_q", queries, shape.width)?,
            key: linear("attn_k", keys, shape.width)?,
            value: linear("attn_v", keys, shape.width)?,
            query_norm: head_norm("attn_q_norm.weight")?,
            key_norm: head_norm("attn_k_norm.weight")?,
            attention_output: linear("attn_output", shape.width, queries)?,
            feed_norm: vector(file, &name("ffn_norm.weight"), shape.width)?,
            gate: matrix(file, &name("ffn_gate.weight"), shape.hidden, shape.width)?,
            up: matrix(file, &name("ffn_up.weight"), shape.hidden, shape.width)?,
            down: matrix(file, &name("ffn_down.weight"), shape.width, shape.hidden)?,
        })
    }
}

fn matrix(file: &Gguf, name: &str, rows: usize, cols: usize) -> Result<Matrix, GgufError> {
    let tensor = file.require_tensor(name)?;
    check_shape(file, tensor, rows, cols)?;
    Matrix::load(file, tensor)
}

fn vector(file: &Gguf, name: &str, len: usize) -> Result<Vec<f32>, GgufError> {
    let tensor = file.require_tensor(name)?;
    check_shape(file, tensor, 1, len)?;
    let mut numbers = vec![0.0; len];
    read_row(file, tensor, 0, &mut numbers)?;
    Ok(numbers)
}

fn check_shape(
    file: &Gguf,
    tensor: &TensorInfo,
    rows: usize,
    cols: usize,
) -> Result<(), GgufError> {
    if (tensor.rows, tensor.cols) == (rows, cols) && (cols.is_multiple_of(32) || rows == 1) {
        return Ok(());
    }
    Err(file.invalid(format!(
        "tensor {} has {} rows of {}, where {rows} of {cols} were expected",
        tensor.name, tensor.rows, tensor.cols
    )))
}
