//! One agent in every place that there is: the example, on its scripts, with the real binary.

#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]
#![cfg(all(target_os = "linux", feature = "mcp", feature = "browser"))]

#[path = "../../../examples/everywhere/walk/mod.rs"]
mod walk;

use std::io::Write;

use walk::{Setup, Walk};

#[test]
fn one_agent_is_killed_answered_finished_and_judged_in_every_place() {
    let setup = Setup::scripted(env!("CARGO_BIN_EXE_duo").into());
    let mut walk = Walk::begin(setup, |line| println!("{line}")).unwrap();
    for left_out in walk.go().unwrap() {
        // Where the test command has set everything up, nothing is left out.
        let is_set_up = ["DUOLOGUE_BROWSER", "DUOLOGUE_MCP_TOOLS"]
            .iter()
            .any(|name| std::env::var_os(name).is_some());
        assert!(!is_set_up, "{left_out}");
        // Not by a macro: the test runner would keep that to itself.
        let _ = std::io::stderr().write_all(format!("SKIPPED: {left_out}\n").as_bytes());
    }
}
