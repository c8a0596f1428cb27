//! `cargo xtask bench`: the benchmarks, built for release and run.

mod all;

use std::{
    path::Path,
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail};
use clap::Subcommand;

use crate::{
    house, packages,
    process::{cargo, run as run_program, with_version},
    setup,
};

/// Measure how fast and how small we are
#[derive(clap::Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    bench: Bench,
}

#[derive(Subcommand)]
enum Bench {
    /// Every benchmark that has a bar, and one table of all figures
    ///
    /// Runs loop, growth, a2a, browser and local one after the other, prints one table with every
    /// figure and its bar, and writes it into docs/performance.md. It takes about half an hour;
    /// anything else that runs falsifies it. A benchmark that cannot run here is named at the end.
    #[command(verbatim_doc_comment)]
    All {
        /// Shorter: fewer repeats, 1,000 agents and no local model
        #[arg(long)]
        quick: bool,
    },
    /// What an agent costs over a bare client
    ///
    /// A mock OpenAI server in its own process holds the same streamed conversation of 11 steps
    /// with every arm: a raw `reqwest` client that only parses, our agent with its journal in
    /// memory, and our agent with its journal in SQLite. Each arm runs in its own process. The table shows CPU time per step, the wait for the first event, and memory
    /// per agent with 1,000 and 10,000 agents in flight, as medians of interleaved repeats.
    ///
    /// Further options go after `--`, and `cargo xtask bench loop -- --help` explains them:
    /// `cargo xtask bench loop -- --repeats 3 --crowds 1000`
    #[command(verbatim_doc_comment)]
    Loop {
        /// Add an arm that runs the same conversation with rig; builds a workspace of its own
        #[arg(long)]
        rig: bool,
        /// Options of the benchmark itself
        #[arg(last = true)]
        options: Vec<String>,
    },
    /// Whether a step costs more at the end of a long conversation
    ///
    /// A conversation of 2,000 turns with one tool call each, with a model that answers at once.
    /// The table shows the CPU time of the first 100 turns and of the last 100, with the journal in
    /// memory and in SQLite. The last may cost at most 1.3 times the first.
    ///
    /// Further options go after `--`, and `cargo xtask bench growth -- --help` explains them.
    #[command(verbatim_doc_comment)]
    Growth {
        /// Options of the benchmark itself
        #[arg(last = true)]
        options: Vec<String>,
    },
    /// How fast the local model is, beside llama.cpp on the same file
    ///
    /// Our engine and llama.cpp (the PyPI package xllamacpp, put into `target/tools/llama`) take
    /// turns, each in a process of its own, with the same file, the same prompt and as many threads.
    /// The table shows medians: prompt and written tokens per second, time to load, peak memory,
    /// processor time, and how long a second turn takes with and without the prefix cache.
    /// It must be at least as fast in both, with at most 1.2 times the memory. Needs Python with pip;
    /// models that are not here yet are fetched. Anything else that runs falsifies it.
    ///
    /// Further options go after `--`, and `cargo xtask bench local -- --help` explains them:
    /// `cargo xtask bench local -- --models small --rounds 1`
    #[command(verbatim_doc_comment)]
    Local {
        /// Options of the benchmark itself
        #[arg(last = true)]
        options: Vec<String>,
    },
    /// Our browser tools beside Playwright's, in the same Chromium
    ///
    /// Both look at the same pages and act on them, in turns: the table shows medians of how long a
    /// snapshot, a click and a fill take, and how many tokens a snapshot of the same information is.
    /// A snapshot of 20,000 nodes must be there within 300 ms. Installs playwright-core (npm) into
    /// `target/tools/playwright`, and Chromium where it is missing.
    ///
    /// Further options go after `--`: `cargo xtask bench browser -- --rounds 10`
    #[command(verbatim_doc_comment)]
    Browser {
        /// Options of the benchmark itself
        #[arg(last = true)]
        options: Vec<String>,
    },
    /// What serving an agent over A2A costs
    ///
    /// An echo agent is served by a bare axum server that only parses and writes the same JSON, by
    /// our server with its journal in memory, and by our server with its journal in SQLite, each in
    /// a process of its own. `wrk`, which is installed where it is missing and you are root, puts load
    /// on one after the other, 16 connections. The table shows the server's CPU time per SendMessage
    /// and per streamed task, and how many there were in a second. Then 10,000 tasks wait at once, each
    /// with a subscriber: the memory of each, and whether every subscriber hears the end.
    ///
    /// Further options go after `--`: `cargo xtask bench a2a -- --seconds 2 --repeats 1`
    #[command(verbatim_doc_comment)]
    A2a {
        /// Add a2a-server-lf and a2a-protocol-server; builds a workspace of its own
        #[arg(long)]
        peers: bool,
        /// Leave out the many open tasks
        #[arg(long)]
        no_crowd: bool,
        /// Options of the benchmark itself
        #[arg(last = true)]
        options: Vec<String>,
    },
    /// What judging a recorded τ² simulation costs
    ///
    /// Reads every file of results in `TAU2_RESULTS_DIR` and judges its simulations, with the data in
    /// `TAU2_DATA_DIR`. The table shows CPU time: loading a domain once, reading and judging each
    /// simulation; then the memory that 1,000 environments of a domain take.
    #[command(verbatim_doc_comment)]
    Tau2 {
        /// Options of the benchmark itself
        #[arg(last = true)]
        options: Vec<String>,
    },
}

pub(crate) fn run(args: &Args) -> Result<()> {
    match &args.bench {
        Bench::All { quick } => all::run(&every(*quick)),
        one => measure(one, None),
    }
}

/// What `all` runs.
fn every(quick: bool) -> Vec<Bench> {
    let options = |long: &[&str], short: &[&str]| -> Vec<String> {
        let chosen = if quick { short } else { long };
        chosen.iter().map(ToString::to_string).collect()
    };
    let crowds = options(&[], &["--repeats", "1", "--crowds", "1000"]);
    let mut every = vec![
        Bench::Loop { rig: false, options: crowds },
        Bench::Growth { options: Vec::new() },
        Bench::A2a {
            peers: false,
            no_crowd: quick,
            options: options(&[], &["--seconds", "2", "--repeats", "1"]),
        },
        Bench::Browser { options: Vec::new() },
    ];
    if !quick {
        every.push(Bench::Local { options: Vec::new() });
    }
    every
}

/// Run one. Its figures are noted in the file, if there is one.
fn measure(bench: &Bench, figures: Option<&Path>) -> Result<()> {
    let run_program = |mut command: Command| {
        if let Some(figures) = figures {
            command.env(all::FIGURES, figures);
        }
        run_program(command)
    };
    match bench {
        Bench::All { quick } => all::run(&every(*quick)),
        Bench::Loop { rig, options } => {
            let mut command = bench_loop("loop")?;
            if *rig {
                command.arg(build_rig()?);
            }
            command.args(options);
            run_program(command)
        }
        Bench::Growth { options } => {
            let mut command = bench_loop("growth")?;
            command.args(options);
            run_program(command)
        }
        Bench::A2a { peers, no_crowd, options } => {
            need("wrk", "which puts load on the servers")?;
            need("curl", "which looks at their answers")?;
            let mut command = bench_a2a("run")?;
            if *peers {
                command.args(build_peers()?);
            }
            command.args(options);
            run_program(command)?;
            if *no_crowd {
                return Ok(());
            }
            run_program(bench_a2a("crowd")?)
        }
        Bench::Tau2 { options } => {
            let mut command = program("bench-tau2")?;
            command.args(options);
            run_program(command)
        }
        Bench::Browser { options } => {
            let browser = setup::browser()?;
            let playwright = setup::playwright()?;
            let mut command = program("bench-browser")?;
            command.envs(setup::path().map(|path| ("PATH", path)));
            command.env("CHROME_PATH", browser).arg("--playwright").arg(playwright).args(options);
            run_program(command)
        }
        Bench::Local { options } => {
            let mut command = program("bench-local")?;
            command.arg("run").arg("--tools").arg(house::target().join("tools"));
            command.args(options);
            run_program(command)
        }
    }
}

/// The loop's benchmark with one of its commands.
fn bench_loop(what: &str) -> Result<Command> {
    let mut command = program("bench-loop")?;
    command.arg(what);
    Ok(command)
}

/// The A2A benchmark with one of its commands.
pub(crate) fn bench_a2a(what: &str) -> Result<Command> {
    let mut command = program("bench-a2a")?;
    command.arg(what);
    Ok(command)
}

/// All programs that are measured with. They are built together: each alone would want other
/// features of the crates that they share, and have those built anew, for minutes.
const PROGRAMS: [&str; 6] =
    ["bench-a2a", "bench-browser", "bench-decisions", "bench-local", "bench-loop", "bench-tau2"];

/// One of the programs, built.
fn program(name: &str) -> Result<Command> {
    build()?;
    Ok(Command::new(house::target().join("release").join(name)))
}

/// Build all of them, and `duo`.
pub(crate) fn build() -> Result<()> {
    let mut command = cargo(["build", "--release", "--package", "duo"]);
    for program in PROGRAMS {
        command.args(["--package", program]);
    }
    run_program(command).context("building the benchmarks")
}

/// See to it before anything is built that a program is there.
fn need(program: &str, what: &str) -> Result<()> {
    // wrk says its version and fails; that it can be started is enough.
    let is_there = || with_version(program).stdin(Stdio::null()).output().is_ok();
    if is_there() || (packages::install(&[program])? && is_there()) {
        return Ok(());
    }
    bail!("{program}, {what}, is not here; on Debian: apt-get install {program}")
}

/// Build the servers of others and say how the benchmark finds them.
fn build_peers() -> Result<Vec<String>> {
    let target = house::target().join("bench-a2a-peers");
    let mut command = cargo(["build", "--release", "--locked"]);
    command
        .arg("--manifest-path")
        .arg(house::root().join("bench-a2a-peers/Cargo.toml"))
        .arg("--target-dir")
        .arg(&target);
    run_program(command).context("building the servers of others")?;
    let names = ["a2a-server-lf", "a2a-protocol-server"];
    let program = |name| format!("--extra={name}={}", target.join("release").join(name).display());
    Ok(names.map(program).into())
}

/// Build the rig arm and say how the benchmark finds it.
fn build_rig() -> Result<String> {
    let target = house::target().join("bench-rig");
    let mut command = cargo(["build", "--release", "--locked"]);
    command
        .arg("--manifest-path")
        .arg(house::root().join("bench-rig/Cargo.toml"))
        .arg("--target-dir")
        .arg(&target);
    run_program(command).context("building the rig arm")?;
    let program = target.join("release/bench-rig");
    Ok(format!("--extra=rig={}", program.display()))
}
