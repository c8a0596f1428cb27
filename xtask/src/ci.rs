//! `cargo xtask ci`: every check that a change must pass.

use std::fmt::Display;

use anyhow::{Result, bail};

use crate::{
    licences,
    process::{Ended, answers, cargo, run as run_program},
    setup, test,
};

/// Run every check that a change must pass
///
///   format     rustfmt agrees with every file
///   lints      clippy has no warning
///   licences   dependencies are as `deny.toml` allows (`cargo xtask licences`)
///   docs       the documentation builds without a warning
///   tests      `cargo xtask test`
///
/// All of them run, whatever the others say; the tests come last. Where rustfmt or clippy is not
/// installed, its check is left out with a warning: `rustup component add rustfmt clippy`.
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {}

pub(crate) fn run(_: &Args) -> Result<()> {
    let mut failed: Vec<(&str, anyhow::Error)> = Vec::new();
    let mut note = |check: &'static str, result: Result<()>| {
        if let Err(error) = result {
            eprintln!("error: {check}: {error:#}");
            failed.push((check, error));
        }
    };

    note("format", format());
    note("lints", lints());
    note("licences", licences::run(&licences::Args {}));
    note("docs", docs());
    note("tests", tests());

    let names: Vec<&str> = failed.iter().map(|(check, _)| *check).collect();
    let names = names.join(", ");
    match failed.into_iter().next() {
        None => Ok(()),
        Some((_, error)) if error.is::<Ended>() => Err(error.context(format!("failed: {names}"))),
        Some(_) => bail!("failed: {names}"),
    }
}

fn format() -> Result<()> {
    if !answers(cargo(["fmt", "--version"])) {
        left_out("format", "rustfmt");
        return Ok(());
    }
    run_program(cargo(["fmt", "--all", "--check"]))?;
    for beside in ["bench-rig/Cargo.toml", "bench-a2a-peers/Cargo.toml"] {
        run_program(cargo(["fmt", "--manifest-path", beside, "--check"]))?;
    }
    Ok(())
}

fn lints() -> Result<()> {
    if !answers(cargo(["clippy", "--version"])) {
        left_out("lints", "clippy");
        return Ok(());
    }
    let lints = ["clippy", "--workspace", "--all-targets", "--locked"];
    let mut command = cargo(lints);
    command.args(["--", "--deny", "warnings"]);
    run_program(command)
}

fn docs() -> Result<()> {
    let mut command = cargo(["doc", "--workspace", "--no-deps", "--locked"]);
    command.env("RUSTDOCFLAGS", "--deny warnings");
    run_program(command)
}

fn tests() -> Result<()> {
    let model = setup::MODEL.to_owned();
    let tools = setup::install(&model)?;
    tools.tell_absent();
    let tested = test::run_with(&test::Args { model, options: Vec::new() }, &tools);
    if !tools.gaps.is_empty() {
        // A green run in which tests skipped for want of a tool would hide that they were skipped.
        bail!("{}", tools.gaps.join("\n"));
    }
    tested
}

fn left_out(check: &str, component: impl Display) {
    eprintln!(
        "\nwarning: {check} is not checked, because {component} is not installed: \
         rustup component add {component}"
    );
}
