//! A real terminal with somebody at it: keys go in, and the screen is looked at.

use std::{
    fs,
    io::{Read, Write},
    path::PathBuf,
    process::{Child, ChildStdin, Command, Stdio},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use super::Outcome;

/// A program in a pseudo-terminal, which `script` provides.
pub(super) struct Terminal {
    child: Child,
    /// Where the program's own number stands: `script` has another.
    number: PathBuf,
    keys: Arc<Mutex<ChildStdin>>,
    screen: Arc<Mutex<String>>,
    seen: usize,
}

impl Terminal {
    /// Open one for a command, as it was made ready.
    pub(super) fn open(command: &Command, number: PathBuf) -> Outcome<Self> {
        let quoted =
            |word: &std::ffi::OsStr| format!("'{}'", word.to_string_lossy().replace('\'', r"'\''"));
        let words = std::iter::once(command.get_program()).chain(command.get_args()).map(quoted);
        let words = words.collect::<Vec<_>>().join(" ");
        let line = format!("echo $$ > '{}'; stty cols 110 rows 40; exec {words}", number.display());
        let mut script = Command::new("script");
        script.args(["-qefc", &line, "/dev/null"]);
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => script.env(name, value),
                None => script.env_remove(name),
            };
        }
        if let Some(folder) = command.get_current_dir() {
            script.current_dir(folder);
        }
        let mut child = script
            .env("SHELL", "/bin/sh")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("there is no `script` program here: {error}"))?;
        let keys = child.stdin.take().ok_or("a terminal without keys")?;
        let mut output = child.stdout.take().ok_or("a terminal without a screen")?;
        let (keys, screen) = (Arc::new(Mutex::new(keys)), Arc::new(Mutex::new(String::new())));
        thread::spawn({
            let (keys, screen) = (Arc::clone(&keys), Arc::clone(&screen));
            move || {
                let mut bytes = [0; 4096];
                while let Ok(count @ 1..) = output.read(&mut bytes) {
                    let text = String::from_utf8_lossy(bytes.get(..count).unwrap_or_default());
                    // The line editor asks the terminal where its cursor is.
                    for _ in text.matches("\x1b[6n") {
                        let _ = lock(&keys).write_all(b"\x1b[1;1R");
                    }
                    lock(&screen).push_str(&text);
                }
            }
        });
        Ok(Self { child, number, keys, screen, seen: 0 })
    }

    pub(super) fn press(&self, keys: &str) -> Outcome<()> {
        let mut stdin = lock(&self.keys);
        stdin.write_all(keys.as_bytes())?;
        Ok(stdin.flush()?)
    }

    /// Wait until a text comes up that was not waited for before; what came up to it.
    pub(super) fn sees(&mut self, text: &str, patience: Duration) -> Outcome<String> {
        let began = Instant::now();
        loop {
            let screen = lock(&self.screen).clone();
            let rest = screen.get(self.seen..).unwrap_or_default();
            if let Some(at) = rest.find(text) {
                let shown = rest.get(..at + text.len()).unwrap_or_default();
                self.seen += shown.len();
                return Ok(plain(shown));
            }
            if began.elapsed() > patience || self.child.try_wait()?.is_some() {
                return Err(format!("{text:?} never came:\n{}", plain(&screen)).into());
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// End the program as a crash does.
    pub(super) fn kill(mut self) -> Outcome<()> {
        let number = fs::read_to_string(&self.number)?;
        let ended = Command::new("kill").args(["-9", number.trim()]).status()?;
        self.child.wait()?;
        match ended.success() {
            true => Ok(()),
            false => Err("it had ended already".into()),
        }
    }

    /// Leave by Ctrl-D, which only a prompt takes.
    pub(super) fn leaves(mut self, patience: Duration) -> Outcome<()> {
        let began = Instant::now();
        while self.child.try_wait()?.is_none() {
            if began.elapsed() > patience {
                return Err(format!("nobody gets out:\n{}", plain(&lock(&self.screen))).into());
            }
            // It may be gone by now.
            let _ = self.press("\x04");
            thread::sleep(Duration::from_millis(200));
        }
        Ok(())
    }

    /// Wait until the program ends by itself.
    pub(super) fn ends(mut self, patience: Duration) -> Outcome<()> {
        let began = Instant::now();
        while self.child.try_wait()?.is_none() {
            if began.elapsed() > patience {
                return Err(format!("it does not end:\n{}", plain(&lock(&self.screen))).into());
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a screen shows, without what moves its cursor.
fn plain(screen: &str) -> String {
    let mut text = String::new();
    let mut characters = screen.chars();
    while let Some(character) = characters.next() {
        match character {
            '\x1b' if characters.next() == Some('[') => {
                let _ = characters.find(char::is_ascii_alphabetic);
            }
            '\n' | ' '.. => text.push(character),
            _ => {}
        }
    }
    let lines = text.lines().map(str::trim_end).filter(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join("\n")
}
