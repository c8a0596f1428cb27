//! `cargo xtask test`: every test, with what they need in place.

use std::{fmt, process::Command};

use anyhow::Result;

use crate::{
    house,
    process::{answers, cargo, run as run_program, run_reading},
    setup,
};

/// Run all tests
///
/// Installs first what the tests need (see `cargo xtask setup`). Then runs the documentation's
/// examples, and all tests with cargo-nextest, or with `cargo test` where nextest is not installed.
///
/// Everything after `--` goes to the test runner, such as the name of a test:
/// `cargo xtask test -- journal`
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Passed on to the test runner; the documentation's examples are then left out
    #[arg(last = true)]
    pub(crate) options: Vec<String>,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let tools = setup::install()?;
    for gap in &tools.gaps {
        eprintln!("warning: {gap}\nwarning: the tests that need it will say that they skip");
    }
    run_with(args, &tools)
}

/// Run the tests with the tools that are there.
pub(crate) fn run_with(args: &Args, tools: &setup::Tools) -> Result<()> {
    if !answers(cargo(["nextest", "--version"])) {
        return run_with_cargo(args, tools);
    }
    // The runner that counts goes last, so that its closing lines close the output. A failure
    // among the examples must not keep anyone from seeing the tests.
    let examples = match args.options.as_slice() {
        [] => run_program(with_tools(["test", "--workspace", "--doc"], tools)),
        _ => Ok(()),
    };
    let mut command = with_tools(["nextest", "run", "--workspace"], tools);
    command.args(&args.options);
    run_program(command).and(examples)
}

fn run_with_cargo(args: &Args, tools: &setup::Tools) -> Result<()> {
    eprintln!("note: cargo-nextest is not installed; running `cargo test`");
    let mut command = with_tools(["test", "--workspace", "--no-fail-fast"], tools);
    command.args(&args.options);
    let mut totals = Totals::default();
    let ended = run_reading(command, |line| totals.add(line));
    println!("{totals}");
    ended
}

fn with_tools<const N: usize>(args: [&str; N], tools: &setup::Tools) -> Command {
    let mut command = cargo(args);
    if let Some(aimock) = &tools.aimock {
        command.env(house::AIMOCK, aimock);
    }
    command
}

/// The sum of cargo's closing lines: it prints one per test program, the last of which may well
/// have no test.
#[derive(Debug, Default, PartialEq, Eq)]
struct Totals {
    passed: u64,
    failed: u64,
    skipped: u64,
}

impl Totals {
    fn add(&mut self, line: &str) {
        let Some(counts) = line.strip_prefix("test result: ") else {
            return;
        };
        let counts = counts.split_once(". ").map_or("", |(_, counts)| counts);
        for count in counts.split("; ") {
            let Some((number, kind)) = count.split_once(' ') else {
                continue;
            };
            let number: u64 = number.parse().unwrap_or(0);
            match kind {
                "passed" => self.passed += number,
                "failed" => self.failed += number,
                "ignored" => self.skipped += number,
                _ => {}
            }
        }
    }
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { passed, failed, skipped } = self;
        write!(f, "{passed} passed, {failed} failed, {skipped} skipped")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closing_lines_are_summed() {
        let mut totals = Totals::default();
        for line in [
            "running 3 tests",
            "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s",
            "test result: FAILED. 4 passed; 2 failed; 0 ignored; 0 measured; 9 filtered out; finished in 0.10s",
        ] {
            totals.add(line);
        }
        assert_eq!(totals.to_string(), "7 passed, 2 failed, 1 skipped");
    }
}
