//! The benchmarks themselves, in small, so that they still run when somebody wants a figure.

#![allow(clippy::unwrap_used, missing_docs)]

use std::process::{Command, Output};

fn bench(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_bench-loop"))
        .args(args)
        .env_remove("RUST_BACKTRACE")
        .output()
        .unwrap()
}

#[test]
fn every_arm_holds_the_same_conversation_and_gets_a_row() {
    let output = bench(&[
        "loop",
        "--agents=10",
        "--at-once=4",
        "--repeats=1",
        "--crowds=8",
        "--crowd-repeats=1",
    ]);
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{errors}");
    let table = String::from_utf8(output.stdout).unwrap();
    let rows: Vec<&str> =
        table.lines().take(4).filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(rows, ["arm", "raw", "memory", "sqlite"], "{table}");
}

#[test]
fn an_arm_that_fails_fails_the_benchmark_by_name() {
    let output = bench(&["loop", "--agents=1", "--repeats=1", "--extra=broken=false"]);
    assert_eq!(output.status.code(), Some(1));
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(errors.contains("error: arm broken ended with exit status: 1"), "{errors}");
}

#[test]
fn growth_measures_every_journal() {
    let output = bench(&["growth", "--turns=20", "--window=5", "--repeats=1"]);
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{errors}");
    let table = String::from_utf8(output.stdout).unwrap();
    let rows: Vec<&str> =
        table.lines().take(4).filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(rows, ["journal", "Memory", "Memory", "Sqlite"], "{table}");
}
