//! Both arms in turns, and the table.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, ensure};
use bench_arm::{Bar, figure};
use clap::Args;
use duologue_local::{Catalogue, PullOptions, pull};

use crate::arm::Measured;

/// What is measured.
#[derive(Args)]
pub(crate) struct Plan {
    /// Models by name or path
    #[arg(long, value_delimiter = ',', default_value = "small,default")]
    models: Vec<String>,
    /// How often each arm runs
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Threads of each arm
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// Tokens to write
    #[arg(long, default_value_t = 64)]
    tokens: u32,
    /// Where Python tools are kept
    #[arg(long, default_value = "target/tools")]
    tools: PathBuf,
}

const LLAMA: &str = include_str!("llama.py");

pub(crate) async fn hold(plan: &Plan) -> Result<()> {
    let python = python(&plan.tools)?;
    let script = plan.tools.join("llama.py");
    fs::write(&script, LLAMA)?;
    let us = env::current_exe()?;
    for name in &plan.models {
        let path = match Catalogue::default().get(name) {
            Some(file) => pull(file, &PullOptions::default(), &|_| ()).await?,
            None => PathBuf::from(name),
        };
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for round in 0..plan.rounds.max(1) {
            let prompt = prompt(round);
            let words = [plan.threads.to_string(), prompt, plan.tokens.to_string()];
            ours.push(run(Command::new(&us).arg("arm").arg(&path).args(&words))?);
            theirs.push(run(Command::new(&python).arg(&script).arg(&path).args(&words))?);
            eprintln!("{name}: round {} of {}", round + 1, plan.rounds.max(1));
        }
        print(name, &ours, &theirs);
    }
    Ok(())
}

/// A prompt of some 600 tokens that asks for a long answer. It begins differently in every round.
fn prompt(round: usize) -> String {
    let text = "The quick brown fox jumps over the lazy dog, and then it walks home. ".repeat(36);
    format!("Text {round}: {text}\nForget the text. Count from 1 to 100, one number per line.")
}

fn run(command: &mut Command) -> Result<Measured> {
    let output = command.stderr(Stdio::null()).output()?;
    ensure!(output.status.success(), "{command:?} failed: {}", output.status);
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().find_map(|line| line.strip_prefix("RESULT "));
    Ok(serde_json::from_str(line.context("an arm gave no result")?)?)
}

/// A Python that has llama.cpp, made once.
fn python(tools: &Path) -> Result<PathBuf> {
    let venv = tools.join("llama");
    let python = venv.join("bin/python");
    let has_it = |python: &Path| {
        let mut command = Command::new(python);
        command.args(["-c", "import xllamacpp"]).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    if !has_it(&python) {
        fs::create_dir_all(tools)?;
        let made = Command::new("python3").args(["-m", "venv"]).arg(&venv).status()?;
        ensure!(made.success(), "python3 -m venv failed");
        let installed = Command::new(&python)
            .args(["-m", "pip", "install", "--quiet", "xllamacpp"])
            .status()?;
        ensure!(installed.success(), "pip install xllamacpp failed");
    }
    Ok(python)
}

fn print(name: &str, ours: &[Measured], theirs: &[Measured]) {
    let median = |all: &[Measured], of: &dyn Fn(&Measured) -> f64| {
        let mut values: Vec<f64> = all.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
    };
    println!("\n{name:<28}{:>12}{:>12}{:>9}", "duologue", "llama.cpp", "ratio");
    let row = |label: &str, of: &dyn Fn(&Measured) -> f64| {
        let (us, them) = (median(ours, of), median(theirs, of));
        println!("{label:<28}{us:>12.2}{them:>12.2}{:>9.2}", us / them);
        us / them
    };
    let what = |label: &str| format!("local: {label} × llama.cpp, {name}");
    let prompt = row("prompt tokens/s", &|m| m.prompt_per_s);
    figure(&what("prompt tokens/s"), prompt, Bar::AtLeast(1.0));
    let written = row("written tokens/s", &|m| m.written_per_s);
    figure(&what("written tokens/s"), written, Bar::AtLeast(1.0));
    row("load, s", &|m| m.load_s);
    let memory = row("peak memory, MB", &|m| m.peak_bytes as f64 / 1e6);
    figure(&what("peak memory"), memory, Bar::AtMost(1.2));
    row("processor time, s", &|m| m.cpu_s);
    row("prompt tokens", &|m| m.prompt_tokens as f64);
    row("written tokens", &|m| m.written_tokens as f64);
    let second =
        |of: fn((f64, f64)) -> f64| median(ours, &|m| m.second_turn_s.map_or(f64::NAN, of));
    println!("{:<28}{:>12.2}", "second turn, s", second(|s| s.0));
    println!("{:<28}{:>12.2}", "  without prefix cache, s", second(|s| s.1));
    let same = ours.iter().zip(theirs).filter(|(us, them)| us.text.trim() == them.text.trim());
    println!(
        "{:<28}{:>12}",
        "same text as llama.cpp",
        format!("{} of {}", same.count(), ours.len())
    );
}
