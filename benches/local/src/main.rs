//! How fast the local model is, beside llama.cpp on the same file.
//!
//! Each arm runs in a process of its own, so that its peak memory is its own, and the arms take
//! turns, so that a machine that is busy for a while slows both. The table shows medians.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it is a program that prints")]

mod arm;
mod choices;
mod contest;

use std::path::PathBuf;

use anyhow::Result;
use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(about = "How fast the local model is, beside llama.cpp on the same file")]
struct Program {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measure both arms in turns and print the table
    Run(contest::Plan),
    /// See how well a model chooses among tools: what the prompt's wording is tuned on
    Choices(choices::Plan),
    /// Our arm's process (started by `run`)
    #[command(hide = true)]
    Arm { path: PathBuf, threads: usize, prompt: String, tokens: u32 },
}

#[tokio::main]
async fn main() -> Result<()> {
    match Program::parse().command {
        Command::Run(plan) => contest::hold(&plan).await,
        Command::Choices(plan) => choices::judge(&plan).await,
        Command::Arm { path, threads, prompt, tokens } => {
            arm::run(&path, threads, &prompt, tokens).await
        }
    }
}
