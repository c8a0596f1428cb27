//! The processes that a fault run started: killed at random, and ended with it.

use std::{
    fmt,
    io::{self, BufRead, BufReader},
    os::unix::process::{CommandExt, ExitStatusExt},
    process::{Child, Command, ExitStatus, Stdio},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use fastrand::Rng;
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};

/// How often a process is looked at while it is waited for.
const GLANCE: Duration = Duration::from_millis(10);

/// What a process does here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// `duo serve`.
    Server,
    /// `duo send`.
    Sender,
    /// The command of a `shell` call, in the middle of a deed.
    Shell,
    /// `duo run` with a browser.
    Surfer,
    /// Chromium's own processes.
    Chromium,
    /// `duo bench run`.
    Bench,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Server => "duo serve",
            Self::Sender => "duo send",
            Self::Shell => "the shell of a deed",
            Self::Surfer => "duo run with a browser",
            Self::Chromium => "chromium",
            Self::Bench => "duo bench run",
        })
    }
}

/// All processes that run.
#[derive(Default)]
pub(super) struct Crew(Mutex<Vec<Process>>);

/// A process that was started here. Clones are the same.
#[derive(Clone)]
pub(super) struct Process {
    kind: Kind,
    /// Asked and killed under this lock: the number of one that was waited for may be another's.
    child: Arc<Mutex<Child>>,
}

impl Crew {
    /// Start a process, the head of a group of its own: Ctrl-C is ours to hand on.
    pub(super) fn start(&self, kind: Kind, command: &mut Command) -> io::Result<Process> {
        let child = command.stdin(Stdio::null()).process_group(0).spawn()?;
        let process = Process { kind, child: Arc::new(Mutex::new(child)) };
        let mut all = self.all();
        all.retain(|other| !other.has_ended());
        all.push(process.clone());
        Ok(process)
    }

    /// Kill a random process of a kind, if there is one.
    pub(super) fn kill_one(&self, kind: Kind, rng: &mut Rng) -> bool {
        let alive: Vec<Process> = {
            let all = self.all();
            all.iter().filter(|one| one.kind == kind && !one.has_ended()).cloned().collect()
        };
        rng.choice(&alive).is_some_and(Process::kill)
    }

    /// End everything that still runs.
    pub(super) fn end_all(&self) {
        for process in self.all().drain(..) {
            process.kill();
            process.wait(Duration::from_secs(5));
        }
    }

    fn all(&self) -> MutexGuard<'_, Vec<Process>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Process {
    pub(super) fn id(&self) -> u32 {
        self.child().id()
    }

    /// Kill it with `kill -9`; whether it was alive.
    pub(super) fn kill(&self) -> bool {
        let mut child = self.child();
        matches!(child.try_wait(), Ok(None)) && child.kill().is_ok()
    }

    /// Ask it to end, as Ctrl-C does.
    pub(super) fn interrupt(&self) {
        let mut child = self.child();
        if let (Ok(None), Ok(id)) = (child.try_wait(), i32::try_from(child.id())) {
            let _ = kill(Pid::from_raw(id), Signal::SIGINT);
        }
    }

    /// Wait for its end; `None` if it takes longer.
    pub(super) fn wait(&self, most: Duration) -> Option<ExitStatus> {
        let began = Instant::now();
        loop {
            if let Ok(Some(status)) = self.child().try_wait() {
                return Some(status);
            }
            if began.elapsed() > most {
                return None;
            }
            thread::sleep(GLANCE);
        }
    }

    /// The first line that it prints; empty when it ends without one.
    pub(super) fn first_line(&self) -> String {
        let output = self.child().stdout.take();
        let mut line = String::new();
        if let Some(output) = output {
            let mut output = BufReader::new(output);
            // What is no text is no line that is waited for.
            let _ = output.read_line(&mut line);
            self.child().stdout = Some(output.into_inner());
        }
        line
    }

    fn has_ended(&self) -> bool {
        !matches!(self.child().try_wait(), Ok(None))
    }

    fn child(&self) -> MutexGuard<'_, Child> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a process ended by `kill -9`.
pub(super) fn was_killed(status: ExitStatus) -> bool {
    status.signal() == Some(9)
}

/// The processes of this machine whose command line has all of these words.
pub(super) fn with_words(words: &[&str]) -> Vec<Pid> {
    let Ok(all) = std::fs::read_dir("/proc") else { return Vec::new() };
    let ids = all.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    ids.filter(|id| {
        let line = std::fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line);
        *id != std::process::id().cast_signed() && words.iter().all(|word| line.contains(word))
    })
    .map(Pid::from_raw)
    .collect()
}

/// Kill a process that one of ours started.
pub(super) fn kill_stranger(id: Pid) -> bool {
    kill(id, Signal::SIGKILL).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_random_one_of_a_kind_is_killed_and_others_live() {
        let crew = Crew::default();
        let start = |kind| crew.start(kind, Command::new("sleep").arg("60")).unwrap();
        let (server, sender) = (start(Kind::Server), start(Kind::Sender));
        assert!(crew.kill_one(Kind::Sender, &mut Rng::with_seed(1)));
        assert!(was_killed(sender.wait(Duration::from_secs(5)).unwrap()));
        assert!(!crew.kill_one(Kind::Sender, &mut Rng::with_seed(1)), "none is left");
        assert!(!server.has_ended());
        crew.end_all();
        assert!(server.has_ended());
    }
}
