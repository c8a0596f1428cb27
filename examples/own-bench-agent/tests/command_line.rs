//! The example as a user runs it.
#![allow(clippy::unwrap_used, missing_docs)]

use std::process::{Command, Output};

fn example(folder: &std::path::Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_own-bench-agent"))
        .args(args)
        .current_dir(folder)
        .env_clear()
        .env("HOME", folder)
        .output()
        .unwrap()
}

#[test]
fn an_agent_of_ones_own_has_the_whole_command_line() {
    let folder = tempfile::tempdir().unwrap();
    let ran = |args: &[&str]| {
        let output = example(folder.path(), args);
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    };
    let run = ["run", "--agent", "calendar", "--user", "oracle_user", "--save-to", "a.json"];
    let (code, out, err) = ran(&run);
    assert_eq!(code, Some(0), "{err}");
    assert!(out.contains("8 simulations of 8 tasks"), "{out}");
    let (_, out, err) = ran(&["view", "a.json", "--task", "full_day"]);
    assert!(out.contains("get_day("), "{out}{err}");
    assert!(out.contains("2026-05-15: "), "{out}{err}");
    let (code, out, err) = ran(&["metrics", "a.json"]);
    assert_eq!(code, Some(0), "{err}");
    assert!(out.contains("pass^1"), "{out}");
    let (_, _, err) = ran(&["run", "--agent", "calender"]);
    assert!(err.contains("calendar"), "what there is is told: {err}");
}
