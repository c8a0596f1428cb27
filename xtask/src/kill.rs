//! `cargo xtask kill`: the long form of the kill test.

use anyhow::{Result, ensure};
use clap::value_parser;

use crate::{
    house,
    process::{cargo, run as run_program},
};

/// Kill a running agent again and again and see it resume
///
/// A scripted run of 20 steps with tools is killed with `kill -9` at random points and resumed,
/// until it ends. Every resumed run must end as the unkilled one did, and no finished call may run
/// twice. With `--bench` it is a run of 40 simulations, whose results must be those of an unkilled
/// one. With `--chain` it is one of three agents that serve each other: every task that was accepted
/// must end rightly. The ordinary tests do the same with fewer kills.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// How often to kill; 200 times otherwise, a benchmark 50 times
    #[arg(long, value_parser = value_parser!(u32).range(1..=100_000))]
    kills: Option<u32>,

    /// Kill a benchmark instead of an agent
    #[arg(long)]
    bench: bool,

    /// Kill the servers of a chain of agents instead
    #[arg(long, conflicts_with = "bench")]
    chain: bool,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    // The variable tells the test how often to kill.
    let (name, variable, usual) = if args.bench {
        ("bench_kill", "DUOLOGUE_TEST_BENCH_KILLS", 50)
    } else if args.chain {
        ("chain_kill", "DUOLOGUE_TEST_CHAIN_KILLS", 200)
    } else {
        ("kill", "DUOLOGUE_TEST_KILLS", 200)
    };
    let test = house::root().join(format!("crates/duo/tests/{name}.rs"));
    ensure!(test.exists(), "there is no kill test here: {} is missing", test.display());
    let mut command = cargo(["test", "--package", "duo", "--test", name, "--"]);
    command.arg("--nocapture").env(variable, args.kills.unwrap_or(usual).to_string());
    run_program(command)
}
