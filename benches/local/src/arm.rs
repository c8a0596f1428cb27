//! Our arm: one process, one model, measured from outside through the `Model` trait.

use std::{
    fs,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use duologue_core::{Accumulator, Completion, Message, Model, Options, Request};
use duologue_local::{LocalModel, LocalOptions};
use futures::StreamExt;
use serde::{Deserialize, Serialize};

/// What an arm measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Measured {
    pub(crate) load_s: f64,
    pub(crate) prompt_tokens: u64,
    pub(crate) prompt_per_s: f64,
    pub(crate) written_tokens: u64,
    pub(crate) written_per_s: f64,
    pub(crate) peak_bytes: u64,
    /// Processor time of the request, prompt and answer. On a machine that is busy elsewhere it says
    /// more than the clock does.
    pub(crate) cpu_s: f64,
    pub(crate) text: String,
    /// Until the first word of a second turn, with the prefix cache and without.
    #[serde(default)]
    pub(crate) second_turn_s: Option<(f64, f64)>,
}

pub(crate) async fn run(path: &Path, threads: usize, prompt: &str, tokens: u32) -> Result<()> {
    let options = LocalOptions { threads: Some(threads), ..LocalOptions::default() };
    let model = LocalModel::from_file("local/bench", path, options.clone());
    // The first request loads the model; it reads next to nothing.
    let began = Instant::now();
    ask(&model, vec![Message::user("Hi")], 1).await?;
    let load = began.elapsed();
    let question = Message::user(prompt);
    let used = cpu_seconds();
    let first = ask(&model, vec![question.clone()], tokens).await?;
    let used = cpu_seconds() - used;
    let usage = first.completion.usage;
    let peak = peak_bytes();
    let text = first.completion.message.text();
    let turns = vec![question, first.completion.message, Message::user("Thank you. And now?")];
    let with = ask(&model, turns.clone(), 1).await?;
    let without = LocalOptions { cache_bytes: 0, ..options };
    drop(model);
    let model = LocalModel::from_file("local/bench", path, without);
    ask(&model, vec![Message::user("Hi")], 1).await?;
    let cold = ask(&model, turns, 1).await?;
    let fresh = usage.input_tokens - usage.cached_tokens;
    let writing = first.total.saturating_sub(first.until_first).as_secs_f64();
    let measured = Measured {
        load_s: load.as_secs_f64(),
        prompt_tokens: fresh,
        prompt_per_s: fresh as f64 / first.until_first.as_secs_f64(),
        written_tokens: usage.output_tokens,
        written_per_s: usage.output_tokens.saturating_sub(1) as f64 / writing,
        peak_bytes: peak,
        cpu_s: used,
        text,
        second_turn_s: Some((with.total.as_secs_f64(), cold.total.as_secs_f64())),
    };
    println!("RESULT {}", serde_json::to_string(&measured)?);
    Ok(())
}

struct Asked {
    completion: Completion,
    until_first: Duration,
    total: Duration,
}

async fn ask(model: &LocalModel, messages: Vec<Message>, tokens: u32) -> Result<Asked> {
    let request = Request {
        messages: Arc::new(messages.into_iter().map(Arc::new).collect()),
        options: Options { max_tokens: Some(tokens), temperature: Some(0.0), ..Options::default() },
        ..Request::default()
    };
    let began = Instant::now();
    let mut until_first = None;
    let mut all = Accumulator::default();
    let mut deltas = model.ask(request);
    while let Some(delta) = deltas.next().await {
        until_first.get_or_insert_with(|| began.elapsed());
        all.push(delta?);
    }
    Ok(Asked {
        completion: all.finish(),
        until_first: until_first.context("the model said nothing")?,
        total: began.elapsed(),
    })
}

/// The processor time of this process, where the system tells.
fn cpu_seconds() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The program's name may have spaces; after it, the 12th and 13th fields count hundredths of a
    // second.
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    let ticks = fields.skip(11).take(2).filter_map(|field| field.parse::<f64>().ok());
    ticks.sum::<f64>() / 100.0
}

/// The most memory that this process has had, where the system tells.
fn peak_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
    kilobytes.unwrap_or(0) * 1024
}
