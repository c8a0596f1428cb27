//! One agent, everywhere: the same entry of a `duologue.toml` in a chat, for one task, served to
//! another agent, as a tool of a foreign client, on a benchmark and in a browser. In each place it
//! is killed while it waits for a yes, taken up again, answered from another process, and judged.
//!
//! ```text
//! cargo run --release -p examples --example everywhere                  the default model
//! cargo run -p examples --example everywhere -- --scripted              a script instead of a model
//! cargo run -p examples --example everywhere -- --only chat,bench --model ollama/qwen3
//! ```
//!
//! What the walk types is what you can type as well. `shop/duologue.toml` is the entry; `walk` goes
//! from place to place.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program that talks to a person at a terminal"
)]

#[path = "../program.rs"]
mod program;
mod walk;

use std::{error::Error, path::PathBuf, process::ExitCode};

use walk::{Place, Setup, Walk};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let mut setup = Setup { model: None, ..Setup::scripted(program::built()?) };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
        match argument.as_str() {
            "--scripted" => setup.model = Setup::scripted(PathBuf::new()).model,
            "--model" => setup.model = Some(value()?),
            "--only" => {
                setup.places = value()?.split(',').map(Place::named).collect::<Result<_, _>>()?;
            }
            other => return Err(format!("unknown argument {other}").into()),
        }
    }
    Walk::begin(setup, |line| println!("{line}"))?.go()?;
    Ok(())
}
