//! All processes of one command, and their end.
//!
//! They are a process group, which one signal reaches. A process can leave its group, so each
//! also inherits a mark in its environment, and on Linux those that carry it are looked for.

use std::{io, time::Duration};

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use tokio::{process::Child, time::Instant};

use super::lifeline::Lifeline;

/// How long processes have to clean up after they were asked to end.
const GRACE: Duration = Duration::from_millis(250);
/// How long a killed process may take to be gone.
const LAST_BREATH: Duration = Duration::from_secs(1);

/// The environment variable that marks the processes of a command.
pub(super) const MARK_VARIABLE: &str = "DUOLOGUE_SHELL";

/// A mark for a new command. Inside another command it keeps that one's mark too, so that ending
/// the outer one finds these processes as well.
pub(super) fn new_mark() -> String {
    let own = format!("{:016x}", fastrand::u64(..));
    match std::env::var(MARK_VARIABLE) {
        Ok(outer) => format!("{outer}:{own}"),
        Err(_) => own,
    }
}

/// The processes of a command. Dropping it kills them.
pub(super) struct Group {
    leader: Pid,
    mark: String,
    lifeline: Option<Lifeline>,
    over: bool,
}

impl Group {
    /// The group that a child leads, which was started with `process_group(0)`.
    pub(super) fn of(child: &Child, mark: String) -> io::Result<Self> {
        let leader = child
            .id()
            .and_then(|id| Pid::from_raw(id.cast_signed()))
            .ok_or_else(|| io::Error::other("the process has no id"))?;
        Ok(Self { leader, mark, lifeline: Lifeline::for_group(leader).ok(), over: false })
    }

    /// Ask all to end, then make them.
    pub(super) async fn end(&mut self, child: &mut Child) {
        // An error means that none is left, here and below. The leader may have been waited for a
        // moment ago; the system does not give its number away again that soon.
        if kill_process_group(self.leader, Signal::TERM).is_ok() {
            let patience = Instant::now() + GRACE;
            while Instant::now() < patience {
                // Until it is waited for, a dead leader still counts as one of the group.
                let _ = child.try_wait();
                if test_kill_process_group(self.leader).is_err() {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
        let _ = kill_process_group(self.leader, Signal::KILL);
        let mark = self.mark.clone();
        let _ = tokio::task::spawn_blocking(move || kill_marked(&mark)).await;
        let _ = tokio::time::timeout(LAST_BREATH, child.wait()).await;
        self.over = true;
        if let Some(lifeline) = self.lifeline.take() {
            lifeline.release().await;
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if !self.over {
            let _ = kill_process_group(self.leader, Signal::KILL);
            kill_marked(&self.mark);
        }
    }
}

/// Kill every process that carries the mark, whatever group it is in.
#[cfg(target_os = "linux")]
fn kill_marked(mark: &str) {
    use rustix::process::kill_process;

    /// A killed process may have started another just before; a few looks find those.
    const MOST_LOOKS: usize = 20;
    for _ in 0..MOST_LOOKS {
        let marked = marked_processes(mark);
        if marked.is_empty() {
            return;
        }
        for process in marked {
            let _ = kill_process(process, Signal::KILL);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[cfg(not(target_os = "linux"))]
fn kill_marked(_mark: &str) {}

/// The processes whose environment has the mark. Those of other users cannot be read, nor killed.
#[cfg(target_os = "linux")]
fn marked_processes(mark: &str) -> Vec<Pid> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    entries
        .filter_map(|entry| {
            let name = entry.ok()?.file_name();
            let pid = Pid::from_raw(name.to_str()?.parse().ok()?)?;
            let path = std::path::Path::new("/proc").join(&name).join("environ");
            carries(&std::fs::read(path).ok()?, mark).then_some(pid)
        })
        .collect()
}

#[cfg(target_os = "linux")]
fn carries(environment: &[u8], mark: &str) -> bool {
    environment.split(|byte| *byte == 0).any(|variable| {
        variable
            .strip_prefix(MARK_VARIABLE.as_bytes())
            .and_then(|rest| rest.strip_prefix(b"="))
            .and_then(|value| value.strip_prefix(mark.as_bytes()))
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(b":"))
    })
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_found_also_under_an_inner_one() {
        assert!(carries(b"A=1\0DUOLOGUE_SHELL=abc\0", "abc"));
        assert!(carries(b"DUOLOGUE_SHELL=abc:def\0B=2", "abc"));
        assert!(carries(b"DUOLOGUE_SHELL=abc:def\0B=2", "abc:def"));
        assert!(!carries(b"DUOLOGUE_SHELL=abc:def\0", "def"));
        assert!(!carries(b"DUOLOGUE_SHELL=abcd\0X=abc\0", "abc"));
        assert!(!carries(b"", "abc"));
    }
}
