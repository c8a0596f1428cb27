//! The project's own chores, as `cargo xtask`.
//!
//! One file per chore: [`setup`], [`mod@test`], [`ci`], [`licences`], [`mod@bench`], [`kill`],
//! [`chaos`], [`miniwob`], [`fuzz`]. They start other programs through [`process`], which ends them when this
//! one is interrupted, and install what the system lacks through [`packages`].

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program that talks to a person at a terminal"
)]

mod bench;
mod chaos;
mod ci;
mod fuzz;
mod house;
mod kill;
mod licences;
mod miniwob;
mod packages;
mod process;
mod setup;
mod test;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::process::Ended;

/// The project's own chores
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", arg_required_else_help = true)]
struct Program {
    #[command(subcommand)]
    chore: Chore,
}

// Each says in its own file what it is.
#[derive(Subcommand)]
enum Chore {
    Setup(setup::Args),
    Test(test::Args),
    Ci(ci::Args),
    #[command(alias = "licenses")]
    Licences(licences::Args),
    Bench(bench::Args),
    Kill(kill::Args),
    Chaos(chaos::Args),
    Miniwob(miniwob::Args),
    Fuzz(fuzz::Args),
}

fn main() -> ExitCode {
    let chore = Program::parse().chore;
    let done = process::watch_signals().and_then(|()| match chore {
        Chore::Setup(args) => setup::run(&args),
        Chore::Test(args) => test::run(&args),
        Chore::Ci(args) => ci::run(&args),
        Chore::Licences(args) => licences::run(&args),
        Chore::Bench(args) => bench::run(&args),
        Chore::Kill(args) => kill::run(&args),
        Chore::Chaos(args) => chaos::run(&args),
        Chore::Miniwob(args) => miniwob::run(&args),
        Chore::Fuzz(args) => fuzz::run(&args),
    });
    let Err(error) = done else {
        return ExitCode::SUCCESS;
    };
    eprintln!("error: {error:#}");
    let code = error.downcast_ref::<Ended>().map_or(1, Ended::exit_code);
    ExitCode::from(code)
}
