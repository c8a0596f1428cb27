//! Ends a command when this process dies, however it dies.
//!
//! A killed process cannot kill its children, and a command that goes on would meet the resumed
//! session. So a tiny watcher holds one end of a pipe: if the other end closes without a word,
//! this process is gone and the watcher kills the group.

use std::{io, process::Stdio, time::Duration};

use rustix::process::Pid;
use tokio::{
    io::AsyncWriteExt as _,
    process::{Child, ChildStdin, Command},
};

/// `read` fails when the pipe closes without a line.
const WATCH: &str = "read -r word || kill -KILL \"-$1\"";

pub(super) struct Lifeline {
    watcher: Child,
    line: ChildStdin,
}

impl Lifeline {
    pub(super) fn for_group(leader: Pid) -> io::Result<Self> {
        let mut watcher = Command::new("/bin/sh")
            .args(["-c", WATCH, "duologue-lifeline"])
            .arg(leader.as_raw_nonzero().to_string())
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // In a group of its own, an interrupt from the terminal does not end it.
            .process_group(0)
            .spawn()?;
        let line =
            watcher.stdin.take().ok_or_else(|| io::Error::other("the watcher has no input"))?;
        Ok(Self { watcher, line })
    }

    /// The group is over: let the watcher go without a kill.
    pub(super) async fn release(mut self) {
        let _ = self.line.write_all(b"over\n").await;
        drop(self.line);
        let _ = tokio::time::timeout(Duration::from_secs(1), self.watcher.wait()).await;
    }
}
