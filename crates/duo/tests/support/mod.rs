//! The real binary, in a home and a workspace of its own.

#![allow(dead_code, unreachable_pub, reason = "each test file uses its own part of this")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "tests may"
)]

pub mod serving;
#[cfg(target_os = "linux")]
pub mod terminal;

use std::{
    path::PathBuf,
    process::{Command, Output, Stdio},
};

use serde_json::Value;
use tempfile::TempDir;

/// A machine on which `duo` was never used.
pub struct Machine {
    folder: TempDir,
}

/// What a run printed, and its exit code.
#[derive(Debug)]
pub struct Ran {
    pub out: String,
    pub err: String,
    pub code: i32,
}

impl Machine {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("work")).unwrap();
        Self { folder }
    }

    /// The folder that `duo` is started in.
    pub fn work(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.work().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    pub fn read(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.work().join(name)).ok()
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_duo"));
        command
            .args(args)
            .current_dir(self.work())
            .env_clear()
            .env("HOME", self.folder.path())
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("USER", "ada")
            // No test fetches a model by accident.
            .env("DUOLOGUE_MODELS", "/dev/null/models")
            .stdin(Stdio::null());
        command
    }

    pub fn duo(&self, args: &[&str]) -> Ran {
        ran(self.command(args).output().unwrap())
    }

    /// All entries of a session.
    pub fn journal(&self, id: &str) -> Vec<Value> {
        let shown = self.duo(&["sessions", "show", id, "--json"]);
        assert_eq!(shown.code, 0, "{}", shown.err);
        shown.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The ids of all sessions, the last used first.
    pub fn sessions(&self) -> Vec<String> {
        let listed = self.duo(&["sessions", "list", "--json", "-n", "1000"]);
        assert_eq!(listed.code, 0, "{}", listed.err);
        listed
            .out
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap()["id"].as_str().unwrap().into())
            .collect()
    }
}

pub fn ran(output: Output) -> Ran {
    Ran {
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
        code: output.status.code().unwrap_or(-1),
    }
}

/// The kinds of entries.
pub fn kinds(entries: &[Value]) -> Vec<&str> {
    entries.iter().map(|entry| entry["kind"].as_str().unwrap()).collect()
}
