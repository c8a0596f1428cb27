//! A second opinion on the forward pass: the same networks computed the plain way, one token after
//! the other with every number in full, from weights as the makers of the networks lay them out.

use super::*;

#[path = "../../tests/support/mod.rs"]
mod support;

use support::{
    Architecture, EPSILON, HEADS, HIDDEN, KV_HEADS, Kind, LAYERS, ROPE_BASE, WIDTH, Weights,
};

/// A row for each token.
type Rows = Vec<Vec<f32>>;

struct Reference {
    architecture: Architecture,
    weights: Weights,
    /// For each layer: the keys and the values of all tokens so far.
    past: Vec<(Rows, Rows)>,
}

impl Reference {
    fn weights(&self, name: &str) -> &[f32] {
        &self.weights[name]
    }

    fn multiply(&self, name: &str, x: &[f32]) -> Vec<f32> {
        let dot = |row: &[f32]| row.iter().zip(x).map(|(w, x)| w * x).sum();
        self.weights(name).chunks(x.len()).map(dot).collect()
    }

    fn linear(&self, name: &str, x: &[f32]) -> Vec<f32> {
        let mut out = self.multiply(&format!("{name}.weight"), x);
        if let Some(bias) = self.weights.get(&format!("{name}.bias")) {
            out.iter_mut().zip(bias).for_each(|(out, bias)| *out += bias);
        }
        out
    }

    fn norm(&self, name: &str, x: &[f32]) -> Vec<f32> {
        let mean = x.iter().map(|x| x * x).sum::<f32>() / x.len() as f32;
        let scale = 1.0 / (mean + EPSILON).sqrt();
        x.iter().zip(self.weights(name)).map(|(x, w)| x * scale * w).collect()
    }

    /// Norm, where there is one, and turn every head: the first half of it against the second.
    fn turn(&self, norm: &str, heads: Vec<f32>, position: usize) -> Vec<f32> {
        let width = self.architecture.head_width();
        let mut out = Vec::with_capacity(heads.len());
        for head in heads.chunks(width) {
            let head = match self.weights.contains_key(norm) {
                true => self.norm(norm, head),
                false => head.to_vec(),
            };
            let angle = |pair: usize| {
                let slower = self.weights.get("rope_freqs.weight").map_or(1.0, |all| all[pair]);
                let speed = ROPE_BASE.powf(-2.0 * pair as f32 / width as f32);
                position as f32 * speed / slower
            };
            let half = width / 2;
            for at in 0..width {
                let angle = angle(at % half);
                let other = if at < half { -head[at + half] } else { head[at - half] };
                out.push(head[at] * angle.cos() + other * angle.sin());
            }
        }
        out
    }

    /// Read one token; the scores of what may follow it.
    fn read(&mut self, token: u32) -> Vec<f32> {
        let width = self.architecture.head_width();
        let mut x = self.weights("token_embd.weight")[token as usize * WIDTH..][..WIDTH].to_vec();
        for layer in 0..LAYERS {
            let name = |part: &str| format!("blk.{layer}.{part}");
            let normed = self.norm(&name("attn_norm.weight"), &x);
            let position = self.past[layer].0.len();
            let query = self.linear(&name("attn_q"), &normed);
            let query = self.turn(&name("attn_q_norm.weight"), query, position);
            let key = self.linear(&name("attn_k"), &normed);
            let key = self.turn(&name("attn_k_norm.weight"), key, position);
            let value = self.linear(&name("attn_v"), &normed);
            self.past[layer].0.push(key);
            self.past[layer].1.push(value);
            let (keys, values) = &self.past[layer];
            let mut attended = vec![0.0; HEADS * width];
            for head in 0..HEADS {
                let theirs = head / (HEADS / KV_HEADS) * width;
                let query = &query[head * width..][..width];
                let scores = keys.iter().map(|key| {
                    let dot: f32 = query.iter().zip(&key[theirs..]).map(|(q, k)| q * k).sum();
                    (dot / (width as f32).sqrt()).exp()
                });
                let scores: Vec<f32> = scores.collect();
                let total: f32 = scores.iter().sum();
                for (score, value) in scores.iter().zip(values) {
                    for at in 0..width {
                        attended[head * width + at] += score / total * value[theirs + at];
                    }
                }
            }
            let out = self.linear(&name("attn_output"), &attended);
            x.iter_mut().zip(out).for_each(|(x, out)| *x += out);
            let normed = self.norm(&name("ffn_norm.weight"), &x);
            let gate = self.multiply(&name("ffn_gate.weight"), &normed);
            let up = self.multiply(&name("ffn_up.weight"), &normed);
            let hidden = gate.iter().zip(up).map(|(gate, up)| gate / (1.0 + (-gate).exp()) * up);
            let hidden: Vec<f32> = hidden.collect();
            assert_eq!(hidden.len(), HIDDEN);
            let out = self.multiply(&name("ffn_down.weight"), &hidden);
            x.iter_mut().zip(out).for_each(|(x, out)| *x += out);
        }
        let normed = self.norm("output_norm.weight", &x);
        match self.weights.contains_key("output.weight") {
            true => self.multiply("output.weight", &normed),
            false => self.multiply("token_embd.weight", &normed),
        }
    }
}

/// How far scores are from the right ones, as a share of how far these are from each other.
fn distance(scores: &[f32], right: &[f32]) -> f32 {
    let mean = right.iter().sum::<f32>() / right.len() as f32;
    let spread: f32 = right.iter().map(|right| (right - mean).powi(2)).sum();
    let error: f32 = scores.iter().zip(right).map(|(score, right)| (score - right).powi(2)).sum();
    (error / spread).sqrt()
}

#[test]
fn every_architecture_computes_what_its_makers_say() {
    let folder = tempfile::tempdir().unwrap();
    for architecture in Architecture::ALL {
        // Bytes for weights mean bytes for activations, which are less exact.
        for (kind, near) in [(Kind::F32, 0.005), (Kind::Q8_0, 0.05)] {
            let path = folder.path().join(format!("{architecture:?}-{kind:?}.gguf"));
            let weights = support::write(&path, architecture, 3, kind, 256);
            let past = vec![(Vec::new(), Vec::new()); LAYERS];
            let mut reference = Reference { architecture, weights, past };
            let net = Net::load(Gguf::open(&path).unwrap(), 2).unwrap();
            let (mut space, mut sequence) = (Workspace::default(), Sequence::default());
            // Longer than a block of the cache; the last ones are read one by one.
            let tokens: Vec<u32> = (0..90).map(|n| (n * 37 + n * n) % 256).collect();
            let (first, rest) = tokens.split_at(70);
            let pieces = [first].into_iter().chain(rest.chunks(1));
            for piece in pieces {
                let right = piece.iter().map(|token| reference.read(*token)).last().unwrap();
                let mut chunks =
                    [Chunk { sequence: &mut sequence, tokens: piece.to_vec(), scores: true }];
                let scores = net.forward(&mut space, &mut chunks, &|| false).unwrap();
                let distance = distance(&scores[0], &right);
                assert!(distance < near, "{architecture:?} {kind:?}: {distance}");
            }
        }
    }
}
