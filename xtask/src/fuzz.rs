//! `cargo xtask fuzz`: nonsense for the A2A server and client.

use anyhow::Result;

use crate::{bench::bench_a2a, process::run as run_program};

/// Send nonsense to the A2A server and client and see that nothing breaks
///
/// JSON-RPC bodies, HTTP+JSON requests and streams of events, made from right ones with something
/// wrong in them, and from noise. Whatever is sent, nothing may panic, and every answer must be a
/// valid one. The seed is printed with what was found, and gives the same inputs again.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// How many inputs in all
    #[arg(long, default_value_t = 1_000_000)]
    inputs: usize,
    /// Where chance begins; another seed sends other nonsense
    #[arg(long, default_value_t = 0)]
    seed: u64,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let mut command = bench_a2a("fuzz")?;
    command.arg(format!("--inputs={}", args.inputs)).arg(format!("--seed={}", args.seed));
    run_program(command)
}
