//! A tiny model file in the real format, made by the test: random weights, a vocabulary of bytes.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::{collections::HashMap, fs, path::Path};

/// Writes GGUF.
#[derive(Default)]
pub(crate) struct Writer {
    values: Vec<u8>,
    value_count: u64,
    infos: Vec<u8>,
    tensor_count: u64,
    data: Vec<u8>,
}

fn text(out: &mut Vec<u8>, text: &str) {
    out.extend((text.len() as u64).to_le_bytes());
    out.extend(text.as_bytes());
}

impl Writer {
    fn key(&mut self, key: &str, kind: u32) -> &mut Vec<u8> {
        self.value_count += 1;
        text(&mut self.values, key);
        self.values.extend(kind.to_le_bytes());
        &mut self.values
    }

    pub(crate) fn count(&mut self, key: &str, value: u32) {
        self.key(key, 4).extend(value.to_le_bytes());
    }

    pub(crate) fn float(&mut self, key: &str, value: f32) {
        self.key(key, 6).extend(value.to_le_bytes());
    }

    pub(crate) fn text(&mut self, key: &str, value: &str) {
        let out = self.key(key, 8);
        text(out, value);
    }

    pub(crate) fn texts(&mut self, key: &str, values: &[String]) {
        let out = self.key(key, 9);
        out.extend(8_u32.to_le_bytes());
        out.extend((values.len() as u64).to_le_bytes());
        values.iter().for_each(|value| text(out, value));
    }

    pub(crate) fn counts(&mut self, key: &str, values: &[i32]) {
        let out = self.key(key, 9);
        out.extend(5_u32.to_le_bytes());
        out.extend((values.len() as u64).to_le_bytes());
        values.iter().for_each(|value| out.extend(value.to_le_bytes()));
    }

    pub(crate) fn floats(&mut self, key: &str, values: &[f32]) {
        let out = self.key(key, 9);
        out.extend(6_u32.to_le_bytes());
        out.extend((values.len() as u64).to_le_bytes());
        values.iter().for_each(|value| out.extend(value.to_le_bytes()));
    }

    pub(crate) fn tensor(&mut self, name: &str, cols: usize, rows: usize, kind: u32, data: &[u8]) {
        self.tensor_count += 1;
        text(&mut self.infos, name);
        let dimensions = if rows == 1 { 1 } else { 2_u32 };
        self.infos.extend(dimensions.to_le_bytes());
        self.infos.extend((cols as u64).to_le_bytes());
        if rows > 1 {
            self.infos.extend((rows as u64).to_le_bytes());
        }
        self.infos.extend(kind.to_le_bytes());
        self.data.resize(self.data.len().next_multiple_of(32), 0);
        self.infos.extend((self.data.len() as u64).to_le_bytes());
        self.data.extend(data);
    }

    pub(crate) fn write(&self, path: &Path) {
        let mut out = b"GGUF".to_vec();
        out.extend(3_u32.to_le_bytes());
        out.extend(self.tensor_count.to_le_bytes());
        out.extend(self.value_count.to_le_bytes());
        out.extend(&self.values);
        out.extend(&self.infos);
        out.resize(out.len().next_multiple_of(32), 0);
        out.extend(&self.data);
        fs::write(path, out).unwrap();
    }
}

/// A generator of numbers that is the same everywhere.
pub(crate) struct Numbers(u64);

impl Numbers {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Between -1 and 1.
    pub(crate) fn float(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1_u64 << 23) as f32 - 1.0
    }
}

/// How a matrix is stored: F32, or quantized to Q8_0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    F32,
    Q8_0,
}

impl Kind {
    /// The nearest number that this kind can store exactly; F32 is kept as a half by the engine.
    fn round(self, number: f32) -> f32 {
        let steps = match self {
            Self::F32 => 4096.0,
            Self::Q8_0 => 512.0,
        };
        (number * steps).round() / steps
    }

    /// The code of the kind, and a matrix in it.
    fn store(self, numbers: &[f32]) -> (u32, Vec<u8>) {
        match self {
            Self::F32 => (0, numbers.iter().flat_map(|v| v.to_le_bytes()).collect()),
            Self::Q8_0 => {
                // One scale for all: 2 to the power of -9, as a half.
                let block = |block: &[f32]| {
                    let mut out = 0x1800_u16.to_le_bytes().to_vec();
                    out.extend(block.iter().map(|v| (v * 512.0) as i8 as u8));
                    out
                };
                (8, numbers.chunks(32).flat_map(block).collect())
            }
        }
    }
}

/// What a tiny model is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Architecture {
    /// Biases for queries, keys and values; words are read and written with one matrix.
    Qwen2,
    /// Norms for queries and keys, heads wider than the network's share of them.
    Qwen3,
    /// Neither biases nor norms, pairs turned as neighbours at scaled speeds, a matrix of its own
    /// for writing words, and a vocabulary of characters.
    Llama,
}

impl Architecture {
    pub(crate) const ALL: [Self; 3] = [Self::Qwen2, Self::Qwen3, Self::Llama];

    fn name(self) -> &'static str {
        match self {
            Self::Qwen2 => "qwen2",
            Self::Qwen3 => "qwen3",
            Self::Llama => "llama",
        }
    }

    pub(crate) fn head_width(self) -> usize {
        match self {
            Self::Qwen3 => 32,
            Self::Qwen2 | Self::Llama => WIDTH / HEADS,
        }
    }
}

pub(crate) const WIDTH: usize = 64;
pub(crate) const HIDDEN: usize = 96;
pub(crate) const LAYERS: usize = 2;
pub(crate) const HEADS: usize = 4;
pub(crate) const KV_HEADS: usize = 2;
pub(crate) const ROPE_BASE: f32 = 10_000.0;
pub(crate) const EPSILON: f32 = 1e-6;

/// What was written, tensor by tensor, as the network's makers lay it out.
pub(crate) type Weights = HashMap<String, Vec<f32>>;

/// The special tokens come after the 256 bytes.
pub(crate) const END: u32 = 257;

/// Write a tiny Qwen-2-like model.
pub(crate) fn tiny(path: &Path, seed: u64, kind: Kind, context: u32) {
    write(path, Architecture::Qwen2, seed, kind, context);
}

/// Write a tiny model, and tell its weights.
pub(crate) fn write(
    path: &Path,
    architecture: Architecture,
    seed: u64,
    kind: Kind,
    context: u32,
) -> Weights {
    let mut file = Writer::default();
    let name = architecture.name();
    let key = |key: &str| format!("{name}.{key}");
    file.text("general.architecture", name);
    file.count(&key("block_count"), LAYERS as u32);
    file.count(&key("context_length"), context);
    file.count(&key("embedding_length"), WIDTH as u32);
    file.count(&key("feed_forward_length"), HIDDEN as u32);
    file.count(&key("attention.head_count"), HEADS as u32);
    file.count(&key("attention.head_count_kv"), KV_HEADS as u32);
    if architecture == Architecture::Qwen3 {
        file.count(&key("attention.key_length"), architecture.head_width() as u32);
    }
    file.float(&key("rope.freq_base"), ROPE_BASE);
    file.float(&key("attention.layer_norm_rms_epsilon"), EPSILON);
    let vocabulary = match architecture {
        Architecture::Llama => characters(&mut file),
        Architecture::Qwen2 | Architecture::Qwen3 => bytes(&mut file),
    };
    let mut tensors = Tensors { file, kind, numbers: Numbers::new(seed), weights: HashMap::new() };
    tensors.all(architecture, vocabulary);
    tensors.file.write(path);
    tensors.weights
}

/// A vocabulary of bytes, as Qwen's. Returns its size.
fn bytes(file: &mut Writer) -> usize {
    file.text("tokenizer.ggml.model", "gpt2");
    file.text("tokenizer.ggml.pre", "qwen2");
    let mut tokens: Vec<String> = (0..=255_u8).map(|byte| spell(byte).to_string()).collect();
    tokens.extend(["<|im_start|>".to_owned(), "<|im_end|>".to_owned(), "ab".to_owned()]);
    let mut kinds = vec![1; 256];
    kinds.extend([3, 3, 1]);
    file.texts("tokenizer.ggml.tokens", &tokens);
    file.counts("tokenizer.ggml.token_type", &kinds);
    file.texts("tokenizer.ggml.merges", &["a b".to_owned()]);
    file.count("tokenizer.ggml.eos_token_id", END);
    file.text(
        "tokenizer.chat_template",
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}\
         {% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}",
    );
    tokens.len()
}

/// A vocabulary of characters, as Llama 2's. Returns its size.
fn characters(file: &mut Writer) -> usize {
    file.text("tokenizer.ggml.model", "llama");
    let mut tokens = ["<unk>", "<s>", "</s>"].map(str::to_owned).to_vec();
    tokens.extend((0..=255_u8).map(|byte| format!("<0x{byte:02X}>")));
    tokens.extend(["▁", "a", "b", "ab"].map(str::to_owned));
    let mut kinds = vec![2, 3, 3];
    kinds.extend([6; 256]);
    kinds.extend([1; 4]);
    let mut scores = vec![0.0; 259];
    scores.extend([-1.0, -2.0, -3.0, -0.5]);
    file.texts("tokenizer.ggml.tokens", &tokens);
    file.counts("tokenizer.ggml.token_type", &kinds);
    file.floats("tokenizer.ggml.scores", &scores);
    file.count("tokenizer.ggml.bos_token_id", 1);
    file.count("tokenizer.ggml.eos_token_id", 2);
    file.text(
        "tokenizer.chat_template",
        "{{ bos_token }}{% for m in messages %}[{{ m.role }}] {{ m.content }}\n{% endfor %}[it]",
    );
    tokens.len()
}

struct Tensors {
    file: Writer,
    kind: Kind,
    numbers: Numbers,
    weights: Weights,
}

impl Tensors {
    fn all(&mut self, architecture: Architecture, vocabulary: usize) {
        let head = architecture.head_width();
        let (queries, keys) = (HEADS * head, KV_HEADS * head);
        self.matrix("token_embd.weight", WIDTH, vocabulary);
        for layer in 0..LAYERS {
            let name = |part: &str| format!("blk.{layer}.{part}");
            self.norm(&name("attn_norm.weight"), WIDTH);
            for (part, rows) in [("attn_q", queries), ("attn_k", keys), ("attn_v", keys)] {
                let weight = name(&format!("{part}.weight"));
                if architecture == Architecture::Llama && part != "attn_v" {
                    self.turned(&weight, WIDTH, rows, head);
                } else {
                    self.matrix(&weight, WIDTH, rows);
                }
                if architecture == Architecture::Qwen2 {
                    self.vector(&name(&format!("{part}.bias")), rows, 0.0, 0.1);
                }
            }
            if architecture == Architecture::Qwen3 {
                self.norm(&name("attn_q_norm.weight"), head);
                self.norm(&name("attn_k_norm.weight"), head);
            }
            self.matrix(&name("attn_output.weight"), queries, WIDTH);
            self.norm(&name("ffn_norm.weight"), WIDTH);
            self.matrix(&name("ffn_gate.weight"), WIDTH, HIDDEN);
            self.matrix(&name("ffn_up.weight"), WIDTH, HIDDEN);
            self.matrix(&name("ffn_down.weight"), HIDDEN, WIDTH);
        }
        self.norm("output_norm.weight", WIDTH);
        if architecture == Architecture::Llama {
            self.matrix("output.weight", WIDTH, vocabulary);
            self.vector("rope_freqs.weight", head / 2, 2.0, 1.0);
        }
    }

    fn random(&mut self, len: usize) -> Vec<f32> {
        (0..len).map(|_| self.kind.round(self.numbers.float() * 0.2)).collect()
    }

    fn matrix(&mut self, name: &str, cols: usize, rows: usize) {
        let numbers = self.random(cols * rows);
        let (code, data) = self.kind.store(&numbers);
        self.file.tensor(name, cols, rows, code, &data);
        self.weights.insert(name.to_owned(), numbers);
    }

    /// A matrix whose rows a Llama file has in another order: of each head, first one half and then
    /// the other become pairs of neighbours.
    fn turned(&mut self, name: &str, cols: usize, rows: usize, head: usize) {
        let numbers = self.random(cols * rows);
        let mut stored = Vec::with_capacity(numbers.len());
        for row in 0..rows {
            let (first, place) = (row / head * head, row % head);
            let from = first + place % 2 * (head / 2) + place / 2;
            stored.extend(&numbers[from * cols..][..cols]);
        }
        let (code, data) = self.kind.store(&stored);
        self.file.tensor(name, cols, rows, code, &data);
        self.weights.insert(name.to_owned(), numbers);
    }

    fn norm(&mut self, name: &str, len: usize) {
        self.vector(name, len, 1.0, 0.25);
    }

    /// Numbers around one, which are stored as they are.
    fn vector(&mut self, name: &str, len: usize, middle: f32, spread: f32) {
        let numbers: Vec<f32> = (0..len).map(|_| middle + self.numbers.float() * spread).collect();
        let (code, data) = Kind::F32.store(&numbers);
        self.file.tensor(name, len, 1, code, &data);
        self.weights.insert(name.to_owned(), numbers);
    }
}

/// The character by which byte vocabularies spell a byte.
fn spell(byte: u8) -> char {
    let visible = |byte: &u8| matches!(byte, 0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff);
    if visible(&byte) {
        return char::from(byte);
    }
    let before = (0..byte).filter(|byte| !visible(byte)).count() as u32;
    char::from_u32(256 + before).unwrap()
}
