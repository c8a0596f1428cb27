//! `cargo xtask kill`: the long form of the kill test.

use anyhow::{Result, ensure};
use clap::value_parser;

use crate::{
    house,
    process::{cargo, run as run_program},
};

/// The variable that tells the test how often to kill.
const KILLS: &str = "DUOLOGUE_TEST_KILLS";

/// Kill a running agent again and again and see it resume
///
/// A scripted run of 20 steps with tools is killed with `kill -9` at random points and resumed,
/// until it ends. Every resumed run must end as the unkilled one did, and no finished call may run
/// twice. The ordinary tests do the same with fewer kills.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// How often to kill
    #[arg(long, default_value_t = 200, value_parser = value_parser!(u32).range(1..=100_000))]
    kills: u32,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let test = house::root().join("crates/duo/tests/kill.rs");
    ensure!(test.exists(), "there is no kill test here: {} is missing", test.display());
    let mut command = cargo(["test", "--package", "duo", "--test", "kill", "--"]);
    command.arg("--nocapture").env(KILLS, args.kills.to_string());
    run_program(command)
}
