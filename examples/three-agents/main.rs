//! Three agents that discover each other, delegate, decline and remember:
//!
//! ```text
//! cargo run -p examples --example three-agents                    the default model
//! cargo run -p examples --example three-agents -- --scripted      a script instead of a model
//! cargo run -p examples --example three-agents -- --ports 5200,5201,5202 --model ollama/qwen3
//! cargo run -p examples --example three-agents -- --stay          and keep them running afterwards
//! ```
//!
//! Each is a `duo serve` of its own, with a folder of its own. What the walk types is what you can
//! type as well; `walk.rs` has it.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program that talks to a person at a terminal"
)]

#[path = "../program.rs"]
mod program;
mod walk;

use std::{error::Error, path::PathBuf, process::ExitCode};

use walk::{Setup, Walk};

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
    let mut setup = Setup { ports: [4200, 4201, 4202], ..Setup::scripted(program::built()?) };
    setup.model = None;
    let mut stay = false;
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
        match argument.as_str() {
            "--scripted" => setup.model = Setup::scripted(PathBuf::new()).model,
            "--model" => setup.model = Some(value()?),
            "--ports" => {
                let text = value()?;
                let ports: Result<Vec<u16>, _> = text.split(',').map(str::parse).collect();
                setup.ports = ports?.try_into().map_err(|_| "--ports needs three of them")?;
            }
            "--stay" => stay = true,
            other => return Err(format!("unknown argument {other}").into()),
        }
    }
    let mut walk = Walk::begin(setup, |line| println!("{line}"))?;
    walk.go()?;
    if stay {
        println!("\nThe agents keep running. Enter ends them.");
        std::io::stdin().read_line(&mut String::new())?;
    }
    Ok(())
}
