//! A real terminal: keys go in, and the screen is looked at.

use std::{
    io::{Read, Write},
    process::{Child, ChildStdin, Command, Stdio},
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};

use super::Machine;

/// A chat in a pseudo-terminal, which `script` (of every Debian) provides.
pub struct Chat {
    child: Child,
    keys: Arc<Mutex<ChildStdin>>,
    screen: Arc<Mutex<String>>,
    seen: usize,
}

impl Chat {
    pub fn start(machine: &Machine, args: &[&str]) -> Option<Self> {
        let program = env!("CARGO_BIN_EXE_duo");
        let line = std::iter::once(program).chain(args.iter().copied()).collect::<Vec<_>>();
        // A shell in between would answer to Ctrl-C as well.
        let line = format!("exec {}", line.join(" "));
        let plain = machine.command(&[]);
        let mut command = Command::new("script");
        command
            .args(["-qefc", &line, "/dev/null"])
            .current_dir(machine.work())
            .env_clear()
            .envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))))
            .env("TERM", "xterm-256color")
            .env("NO_COLOR", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = match command.spawn() {
            Ok(child) => child,
            Err(error) => {
                let note = format!("SKIPPED: there is no `script` program here ({error})\n");
                let _ = std::io::Write::write_all(&mut std::io::stderr(), note.as_bytes());
                return None;
            }
        };
        let keys = Arc::new(Mutex::new(child.stdin.take().unwrap()));
        let screen = Arc::new(Mutex::new(String::new()));
        let mut output = child.stdout.take().unwrap();
        thread::spawn({
            let (keys, screen) = (Arc::clone(&keys), Arc::clone(&screen));
            move || {
                let mut bytes = [0; 4096];
                while let Ok(count @ 1..) = output.read(&mut bytes) {
                    let text = String::from_utf8_lossy(&bytes[..count]).into_owned();
                    // The line editor asks the terminal where its cursor is.
                    for _ in text.matches("\x1b[6n") {
                        let _ = keys.lock().unwrap().write_all(b"\x1b[1;1R");
                    }
                    screen.lock().unwrap().push_str(&text);
                }
            }
        });
        Some(Self { child, keys, screen, seen: 0 })
    }

    pub fn press(&self, keys: &str) {
        let mut stdin = self.keys.lock().unwrap();
        stdin.write_all(keys.as_bytes()).unwrap();
        stdin.flush().unwrap();
    }

    /// Wait until a text comes up that was not waited for before.
    pub fn sees(&mut self, text: &str) {
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            let screen = self.screen.lock().unwrap().clone();
            if let Some(at) = screen.get(self.seen..).and_then(|rest| rest.find(text)) {
                self.seen += at + text.len();
                return;
            }
            assert!(Instant::now() < deadline, "{text:?} never came:\n{screen}");
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Wait for a text, and read on up to another.
    pub fn reads(&mut self, text: &str, end: &str) -> String {
        self.sees(text);
        let from = self.seen;
        self.sees(end);
        let screen = self.screen.lock().unwrap();
        screen[from..self.seen - end.len()].to_owned()
    }

    /// Leaves by Ctrl-D at the next prompt.
    pub fn leaves(mut self) {
        self.sees("❯");
        self.press("\x04");
        self.ends();
    }

    /// Comes to a good end by itself.
    pub fn ends(mut self) {
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                assert_eq!(status.code(), Some(0));
                return;
            }
            assert!(Instant::now() < deadline, "it does not end:\n{}", self.screen.lock().unwrap());
            thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Chat {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
