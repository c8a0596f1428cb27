//! Plays the scenarios in `tests/scenarios/*.yaml`. `SCENARIO=dual-` plays those whose names hold
//! that text.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    unreachable_pub,
    missing_docs
)]

mod scenario_runner;

use std::path::PathBuf;

use scenario_runner::play::play;

fn files() -> Vec<PathBuf> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios");
    let wanted = std::env::var("SCENARIO").unwrap_or_default();
    let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = paths
        .filter(|path| path.extension().is_some_and(|ext| ext == "yaml"))
        .filter(|path| path.file_name().unwrap().to_string_lossy().contains(&wanted))
        .collect();
    files.sort();
    files
}

#[tokio::test]
async fn every_scenario_comes_out_as_its_file_says() {
    let files = files();
    assert!(!files.is_empty(), "no scenario was found");
    let mut failures = Vec::new();
    for file in &files {
        if let Err(problem) = play(file).await {
            let name = file.file_name().unwrap().to_string_lossy().into_owned();
            failures.push(format!("── {name}\n{problem}\n"));
        }
    }
    let failed = failures.len();
    assert!(failed == 0, "{failed} of {} scenarios failed\n\n{}", files.len(), failures.join("\n"));
}
