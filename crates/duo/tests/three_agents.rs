//! The example with three agents, on its scripts, with the real binary.

#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]

#[path = "../../../examples/three-agents/walk.rs"]
mod walk;

use walk::{Setup, Walk};

#[test]
fn three_agents_discover_delegate_decline_and_remember() {
    let setup = Setup::scripted(env!("CARGO_BIN_EXE_duo").into());
    let mut walk = Walk::begin(setup, |line| println!("{line}")).unwrap();
    walk.go().unwrap();
}
