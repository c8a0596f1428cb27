//! A tiny model file in the real format, made by the test: random weights, a vocabulary of bytes.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::{fs, path::Path};

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
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    F32,
    Q8_0,
}

fn matrix(numbers: &mut Numbers, len: usize, scale: f32, kind: Kind) -> (u32, Vec<u8>) {
    let values: Vec<f32> = (0..len).map(|_| numbers.float() * scale).collect();
    match kind {
        Kind::F32 => (0, values.iter().flat_map(|v| v.to_le_bytes()).collect()),
        Kind::Q8_0 => {
            // One scale for all: 2 to the power of -9, as a half.
            let step = 1.0 / 512.0;
            let block = |block: &[f32]| {
                let mut out = 0x1800_u16.to_le_bytes().to_vec();
                out.extend(
                    block.iter().map(|v| (v / step).round().clamp(-127.0, 127.0) as i8 as u8),
                );
                out
            };
            (8, values.chunks(32).flat_map(block).collect())
        }
    }
}

/// The special tokens come after the 256 bytes.
pub(crate) const END: u32 = 257;

/// Write a tiny Qwen-2-like model.
pub(crate) fn tiny(path: &Path, seed: u64, kind: Kind, context: u32) {
    let (width, hidden, layers, heads, kv_heads) = (64, 96, 2, 4, 2);
    let mut file = Writer::default();
    file.text("general.architecture", "qwen2");
    file.count("qwen2.block_count", layers);
    file.count("qwen2.context_length", context);
    file.count("qwen2.embedding_length", width as u32);
    file.count("qwen2.feed_forward_length", hidden as u32);
    file.count("qwen2.attention.head_count", heads);
    file.count("qwen2.attention.head_count_kv", kv_heads);
    file.float("qwen2.rope.freq_base", 10_000.0);
    file.float("qwen2.attention.layer_norm_rms_epsilon", 1e-6);
    file.text("tokenizer.ggml.model", "gpt2");
    file.text("tokenizer.ggml.pre", "qwen2");
    let mut tokens: Vec<String> = (0..=255_u8).map(|byte| spell(byte).to_string()).collect();
    tokens.extend(["<|im_start|>".to_owned(), "<|im_end|>".to_owned(), "ab".to_owned()]);
    let mut kinds = vec![1; 256];
    kinds.extend([3, 3, 1]);
    let vocabulary = tokens.len();
    file.texts("tokenizer.ggml.tokens", &tokens);
    file.counts("tokenizer.ggml.token_type", &kinds);
    file.texts("tokenizer.ggml.merges", &["a b".to_owned()]);
    file.count("tokenizer.ggml.eos_token_id", END);
    file.text(
        "tokenizer.chat_template",
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}\
         {% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}",
    );
    let mut numbers = Numbers::new(seed);
    let mut add = |file: &mut Writer, name: &str, cols: usize, rows: usize, scale: f32| {
        let vector = rows == 1;
        let kind = if vector { Kind::F32 } else { kind };
        let (code, data) = if vector && name.contains("norm") {
            (0, (0..cols).flat_map(|_| 1.0_f32.to_le_bytes()).collect())
        } else {
            matrix(&mut numbers, cols * rows, scale, kind)
        };
        file.tensor(name, cols, rows, code, &data);
    };
    let keys = width / heads as usize * kv_heads as usize;
    add(&mut file, "token_embd.weight", width, vocabulary, 0.2);
    for layer in 0..layers {
        let name = |part: &str| format!("blk.{layer}.{part}");
        add(&mut file, &name("attn_norm.weight"), width, 1, 1.0);
        add(&mut file, &name("attn_q.weight"), width, width, 0.2);
        add(&mut file, &name("attn_q.bias"), width, 1, 0.1);
        add(&mut file, &name("attn_k.weight"), width, keys, 0.2);
        add(&mut file, &name("attn_k.bias"), keys, 1, 0.1);
        add(&mut file, &name("attn_v.weight"), width, keys, 0.2);
        add(&mut file, &name("attn_v.bias"), keys, 1, 0.1);
        add(&mut file, &name("attn_output.weight"), width, width, 0.2);
        add(&mut file, &name("ffn_norm.weight"), width, 1, 1.0);
        add(&mut file, &name("ffn_gate.weight"), width, hidden, 0.2);
        add(&mut file, &name("ffn_up.weight"), width, hidden, 0.2);
        add(&mut file, &name("ffn_down.weight"), hidden, width, 0.2);
    }
    add(&mut file, "output_norm.weight", width, 1, 1.0);
    file.write(path);
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
