//! A process that is listened to, and ended with whoever started it.

use std::{
    io::{BufRead, BufReader, Read},
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

use super::Outcome;

/// A process and what it has printed so far.
pub(super) struct Process {
    child: Child,
    printed: Arc<Mutex<String>>,
}

impl Process {
    pub(super) fn start(mut command: Command) -> Outcome<Self> {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let printed = Arc::new(Mutex::new(String::new()));
        let streams: [Option<Box<dyn Read + Send>>; 2] = [
            child.stdout.take().map(|stream| Box::new(stream) as _),
            child.stderr.take().map(|stream| Box::new(stream) as _),
        ];
        for stream in streams.into_iter().flatten() {
            let printed = Arc::clone(&printed);
            thread::spawn(move || {
                let mut lines = BufReader::new(stream);
                let mut line = String::new();
                while let Ok(1..) = lines.read_line(&mut line) {
                    let mut printed = printed.lock().unwrap_or_else(PoisonError::into_inner);
                    printed.push_str(&line);
                    line.clear();
                }
            });
        }
        Ok(Self { child, printed })
    }

    pub(super) fn printed(&self) -> String {
        self.printed.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Wait for a line that has this in it.
    pub(super) fn prints(&mut self, text: &str, patience: Duration) -> Outcome<String> {
        let began = Instant::now();
        loop {
            let has_ended = self.child.try_wait()?.is_some();
            let printed = self.printed();
            if let Some(line) = printed.lines().find(|line| line.contains(text)) {
                return Ok(line.to_owned());
            }
            if has_ended && began.elapsed() > Duration::from_secs(1) {
                return Err(format!("it ended before it said {text:?}:\n{printed}").into());
            }
            if began.elapsed() > patience {
                return Err(format!("it never said {text:?}:\n{printed}").into());
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Wait until it ends well.
    pub(super) fn ends(mut self, patience: Duration) -> Outcome<String> {
        let began = Instant::now();
        loop {
            match self.child.try_wait()? {
                Some(status) if status.success() => return Ok(self.printed()),
                Some(status) => return Err(format!("{status}:\n{}", self.printed()).into()),
                None if began.elapsed() > patience => {
                    return Err(format!("it does not end:\n{}", self.printed()).into());
                }
                None => thread::sleep(Duration::from_millis(20)),
            }
        }
    }

    /// End it as a crash does.
    pub(super) fn kill(mut self) -> Outcome<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
