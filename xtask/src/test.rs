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
/// The small local model is fetched and run, where it can be had; `--model default` runs the default
/// one instead, `--model none` neither.
///
/// Everything after `--` goes to the test runner, such as the name of a test:
/// `cargo xtask test -- journal`
/// `cargo xtask test --model default -- --package duologue-local --test real`
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// The local model for the end-to-end tests: small, default, a GGUF file, or none
    #[arg(long, default_value = setup::MODEL)]
    pub(crate) model: String,
    /// Passed on to the test runner; the documentation's examples are then left out
    #[arg(last = true)]
    pub(crate) options: Vec<String>,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let tools = setup::install(&args.model)?;
    tools.tell_absent();
    let tested = run_with(args, &tools);
    for gap in &tools.gaps {
        eprintln!("warning: what needs this skipped, though it counts as passed: {gap}");
    }
    tested
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
    let mut command = with_tools(["nextest", "run", "--no-fail-fast"], tools);
    command.args(packages(&args.options)).args(&args.options);
    run_program(command).and(examples)
}

fn run_with_cargo(args: &Args, tools: &setup::Tools) -> Result<()> {
    eprintln!("note: cargo-nextest is not installed; running `cargo test`");
    let mut command = with_tools(["test", "--no-fail-fast"], tools);
    command.args(packages(&args.options)).args(&args.options);
    let mut totals = Totals::default();
    let ended = run_reading(command, |line| totals.add(line));
    println!("{totals}");
    ended
}

/// Which packages are tested where the options do not say.
fn packages(options: &[String]) -> &'static [&'static str] {
    let names_one = |option: &String| option.starts_with("-p") || option.starts_with("--package");
    if options.iter().any(names_one) { &[] } else { &["--workspace"] }
}

fn with_tools<const N: usize>(args: [&str; N], tools: &setup::Tools) -> Command {
    let mut command = cargo(args);
    if let Some(path) = setup::path() {
        command.env("PATH", path);
    }
    if let Some(aimock) = &tools.aimock {
        command.env(house::AIMOCK, aimock);
    }
    if let Some(sdks) = &tools.sdks {
        command.env(house::A2A_TOOLS, sdks);
    }
    if let Some(mcp) = &tools.mcp {
        command.env(house::MCP_TOOLS, mcp);
    }
    if let Some(browser) = &tools.browser {
        command.env(house::BROWSER, browser);
    }
    if let Some(miniwob) = &tools.miniwob {
        command.env(house::MINIWOB, miniwob);
    }
    if let Some(model) = &tools.model {
        command.env(house::TEST_MODEL, model);
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
    fn all_packages_are_tested_unless_one_is_named() {
        let options =
            |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        assert_eq!(packages(&options(&["journal"])), ["--workspace"]);
        assert!(packages(&options(&["--package", "duo"])).is_empty());
        assert!(packages(&options(&["-p", "duo"])).is_empty());
    }

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
