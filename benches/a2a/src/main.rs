//! What serving an agent over A2A costs: `cargo xtask bench a2a`, and whether nonsense breaks it:
//! `cargo xtask fuzz`.
//!
//! - `arms` are the servers: ours with its journal in memory and in SQLite, and a bare one.
//! - `contest` puts load on each and tells the server's CPU time per request.
//! - `crowd` holds many open tasks with subscribers at once.
//! - `fuzz` sends inputs that no client would; `nonsense` makes them, `verdict` judges the answers.
//! - `http` is a client that hides nothing.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program that talks to a person at a terminal"
)]

mod arms;
mod contest;
mod crowd;
mod fuzz;
mod http;
mod nonsense;
mod verdict;

use anyhow::Result;
use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(about = "What serving an agent over A2A costs, and whether nonsense breaks it")]
struct Program {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Put load on every server and tell what a request costs it
    Run(contest::Args),
    /// Hold many open tasks with a subscriber each, then end them all
    Crowd(crowd::Args),
    /// Send nonsense to the server and to the client
    Fuzz(fuzz::Args),
    /// Serve until standard input ends; prints the port
    Arm(arms::Args),
}

fn main() -> Result<()> {
    match Program::parse().chore {
        Chore::Run(args) => contest::run(&args),
        Chore::Crowd(args) => in_runtime(crowd::run(args)),
        Chore::Fuzz(args) => in_runtime(fuzz::run(args)),
        Chore::Arm(args) => in_runtime(arms::run(args)),
    }
}

fn in_runtime(work: impl Future<Output = Result<()>>) -> Result<()> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(work)
}
