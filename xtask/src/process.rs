//! Starting other programs, so that they end when this one is told to.
//!
//! Every child is the head of a process group. A signal to this process is handed on to the group;
//! whoever has not ended some seconds later is killed.

use std::{
    env,
    ffi::OsStr,
    fmt,
    io::{BufRead, BufReader, Write},
    os::unix::process::{CommandExt, ExitStatusExt},
    process::{Child, Command, ExitStatus, Stdio},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicI32, Ordering},
    },
    thread,
    time::Duration,
};

use anyhow::{Context, Result};
use nix::{
    sys::signal::{Signal, killpg},
    unistd::Pid,
};
use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM},
    iterator::Signals,
};

/// How long a child may take to end by itself.
const GRACE: Duration = Duration::from_secs(10);

static RUNNING: Mutex<Option<Pid>> = Mutex::new(None);
static SIGNALLED: AtomicI32 = AtomicI32::new(0);
/// Whether a chore ends in its own way when it is told to.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// A program ended in another way than it should. Its exit code becomes ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    program: String,
    status: ExitStatus,
}

impl Ended {
    /// What this process exits with: the program's own code, or 128 and the signal, as shells do.
    pub(crate) fn exit_code(&self) -> u8 {
        let signal = self.status.signal().map(|signal| 128 + signal);
        let code = self.status.code().or(signal).unwrap_or(1);
        u8::try_from(code).unwrap_or(1).max(1)
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` ended with {}", self.program, self.status)
    }
}

impl std::error::Error for Ended {}

/// Hand signals on to the running child from now on.
pub(crate) fn watch_signals() -> Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).context("watching for signals")?;
    thread::spawn(move || {
        for number in &mut signals {
            let before = SIGNALLED.swap(number, Ordering::SeqCst);
            if before == 0 && TAKEN.load(Ordering::SeqCst) {
                continue;
            }
            let group = *RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(group) = group else {
                std::process::exit(128 + number);
            };
            let signal = Signal::try_from(number).unwrap_or(Signal::SIGTERM);
            // It may have ended this moment, which is what we want.
            let _ = killpg(group, signal);
            thread::spawn(move || {
                thread::sleep(GRACE);
                let _ = killpg(group, Signal::SIGKILL);
                std::process::exit(128 + number);
            });
        }
    });
    Ok(())
}

/// From now on a first signal ends nothing: the chore asks for it with [`signal_taken`], ends what
/// it started, and exits. A second one does not wait for that.
pub(crate) fn take_signals() {
    TAKEN.store(true, Ordering::SeqCst);
}

/// The signal that this process was sent, if it was.
pub(crate) fn signal_taken() -> Option<i32> {
    Some(SIGNALLED.load(Ordering::SeqCst)).filter(|number| *number != 0)
}

/// The cargo that runs us, in the repository's top folder.
pub(crate) fn cargo<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Command {
    let program = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.current_dir(crate::house::root()).args(args);
    // Cargo set these for us, not for the packages that we have it build: some of them are built
    // anew whenever these change.
    let is_ours = |name: &OsStr| {
        name.to_str().is_some_and(|name| {
            name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")
        })
    };
    for (name, _) in env::vars_os().filter(|(name, _)| is_ours(name)) {
        command.env_remove(name);
    }
    command
}

/// Run a program to its end, showing what it prints. Fails unless it succeeds.
pub(crate) fn run(mut command: Command) -> Result<()> {
    announce(&command);
    let child = start(command.stdin(Stdio::null()))?;
    finish(&command, child)
}

/// The same, and give every line of its standard output to `look` as well.
pub(crate) fn run_reading(mut command: Command, mut look: impl FnMut(&str)) -> Result<()> {
    announce(&command);
    let mut child = start(command.stdin(Stdio::null()).stdout(Stdio::piped()))?;
    if let Some(output) = child.stdout.take() {
        for line in BufReader::new(output).lines() {
            let line = line.context("reading what it printed")?;
            look(&line);
            println!("{line}");
        }
    }
    finish(&command, child)
}

/// What a program prints on standard output. Fails unless it succeeds.
pub(crate) fn output_of(mut command: Command) -> Result<String> {
    let output = command
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("starting `{}`", words(&command)))?;
    if !output.status.success() {
        return Err(failure(&command, output.status));
    }
    String::from_utf8(output.stdout).with_context(|| format!("`{}`", words(&command)))
}

/// A program that is asked for its version.
pub(crate) fn with_version(program: &str) -> Command {
    let mut command = Command::new(program);
    command.arg("--version");
    command
}

/// Whether a program is there and says its version.
pub(crate) fn answers(mut command: Command) -> bool {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

fn start(command: &mut Command) -> Result<Child> {
    // Held over the start, so that a signal cannot fall between the start and the note of it.
    let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
    let child = command
        .process_group(0)
        .spawn()
        .with_context(|| format!("starting `{}`", words(command)))?;
    *running = i32::try_from(child.id()).ok().map(Pid::from_raw);
    Ok(child)
}

fn finish(command: &Command, mut child: Child) -> Result<()> {
    let status = child.wait();
    let signal = SIGNALLED.load(Ordering::SeqCst);
    if signal != 0 {
        std::process::exit(128 + signal);
    }
    *RUNNING.lock().unwrap_or_else(PoisonError::into_inner) = None;
    let status = status.with_context(|| format!("waiting for `{}`", words(command)))?;
    if status.success() {
        return Ok(());
    }
    Err(failure(command, status))
}

fn failure(command: &Command, status: ExitStatus) -> anyhow::Error {
    let program = words(command);
    Ended { program, status }.into()
}

fn announce(command: &Command) {
    eprintln!("\n$ {}", words(command));
    let _ = std::io::stderr().flush();
}

/// A command as a person would type it.
fn words(command: &Command) -> String {
    let program = std::path::Path::new(command.get_program());
    let name = program.file_name().unwrap_or(command.get_program());
    let mut words = name.to_string_lossy().into_owned();
    for argument in command.get_args() {
        words.push(' ');
        words.push_str(&argument.to_string_lossy());
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn the_exit_code_of_a_program_becomes_ours() {
        let error = run(shell("exit 7")).unwrap_err();
        let ended = error.downcast_ref::<Ended>().unwrap();
        assert_eq!(ended.exit_code(), 7);
        assert_eq!(ended.to_string(), "`sh -c exit 7` ended with exit status: 7");
    }

    #[test]
    fn a_killed_program_gives_the_code_that_shells_give() {
        let error = output_of(shell("kill -9 $$")).unwrap_err();
        assert_eq!(error.downcast_ref::<Ended>().unwrap().exit_code(), 137);
    }

    #[test]
    fn a_missing_program_is_named() {
        let error = run(Command::new("no-such-program-here")).unwrap_err();
        assert!(error.to_string().contains("no-such-program-here"));
    }

    #[test]
    fn what_a_program_prints_is_read_line_by_line() {
        let mut lines = Vec::new();
        run_reading(shell("echo one; echo two"), |line| lines.push(line.to_owned())).unwrap();
        assert_eq!(lines, ["one", "two"]);
    }
}
