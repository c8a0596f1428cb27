//! Holds the bench against what the reference computed: every golden file, every case.
//!
//! `TAU2_DATA_DIR`, `TAU2_GOLDEN_DIR` and `TAU2_RESULTS_DIR` say where data, goldens and recorded
//! runs are. Without them there is nothing to compare with, and a line says so.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    missing_docs,
    unreachable_pub
)]

#[path = "conformance/calls.rs"]
mod calls;
#[path = "conformance/conversations.rs"]
mod conversations;
#[path = "conformance/hashes.rs"]
mod hashes;
#[path = "conformance/knowledge.rs"]
mod knowledge;
#[path = "conformance/rewards.rs"]
mod rewards;
#[path = "conformance/schemas.rs"]
mod schemas;
#[path = "conformance/support.rs"]
mod support;

#[path = "conformance/texts.rs"]
mod texts;

use std::process::ExitCode;

use support::{Check, Goldens};

/// The one test of this program. It has no harness, so that its lines are always shown; it answers
/// what `cargo test` and `cargo nextest` ask of one.
const NAME: &str = "conformance";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let has = |name: &str| arguments.iter().any(|argument| argument == name);
    if has("--list") {
        if !has("--ignored") {
            println!("{NAME}: test");
        }
        return ExitCode::SUCCESS;
    }
    let mut filters = arguments.iter().filter(|argument| !argument.starts_with('-')).peekable();
    if has("--ignored") || (filters.peek().is_some() && !filters.any(|f| NAME.contains(&**f))) {
        return ExitCode::SUCCESS;
    }
    compare()
}

fn compare() -> ExitCode {
    let goldens = match Goldens::from_env() {
        Ok(goldens) => goldens,
        Err(missing) => {
            println!("conformance: skipped, {missing} is not set");
            return ExitCode::SUCCESS;
        }
    };
    let checks: [fn(&Goldens) -> Check; 13] = [
        hashes::gold_hashes,
        hashes::gold_diffs,
        hashes::initial_databases,
        calls::tool_calls,
        schemas::tool_schemas,
        schemas::policies,
        rewards::rewards,
        conversations::replays,
        conversations::edges,
        texts::prompts,
        texts::tasks,
        texts::metrics,
        knowledge::kb_search,
    ];
    let failed = checks.iter().filter(|check| !check(&goldens).report()).count();
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
