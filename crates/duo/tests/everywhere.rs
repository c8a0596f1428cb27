//! One agent in every place that there is: the example, on its scripts, with the real binary.

#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]
#![cfg(all(target_os = "linux", feature = "mcp", feature = "browser"))]

#[path = "../../../examples/everywhere/walk/mod.rs"]
mod walk;

use walk::{Setup, Walk};

#[test]
fn one_agent_is_killed_answered_finished_and_judged_in_every_place() {
    let setup = Setup::scripted(env!("CARGO_BIN_EXE_duo").into());
    let mut walk = Walk::begin(setup, |line| println!("{line}")).unwrap();
    walk.go().unwrap();
}
