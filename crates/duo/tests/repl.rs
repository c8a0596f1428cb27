//! The chat as a person meets it: a real terminal, keys, and a look at the screen.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    missing_docs
)]
#![cfg(target_os = "linux")]

mod support;

use std::{
    io::{Read, Write},
    process::{Child, ChildStdin, Command, Stdio},
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};

use support::*;

/// A chat in a pseudo-terminal, which `script` (of every Debian) provides.
struct Chat {
    child: Child,
    keys: Arc<Mutex<ChildStdin>>,
    screen: Arc<Mutex<String>>,
    seen: usize,
}

impl Chat {
    fn start(machine: &Machine, args: &[&str]) -> Option<Self> {
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
                println!("skipped: there is no `script` program here ({error})");
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

    fn press(&self, keys: &str) {
        let mut stdin = self.keys.lock().unwrap();
        stdin.write_all(keys.as_bytes()).unwrap();
        stdin.flush().unwrap();
    }

    /// Wait until a text comes up that was not waited for before.
    fn sees(&mut self, text: &str) {
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

    /// Leaves by Ctrl-D at the next prompt.
    fn leaves(mut self) {
        self.sees("❯");
        self.press("\x04");
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

#[test]
fn a_person_talks_approves_edits_and_leaves() {
    let machine = Machine::new();
    let Some(mut chat) = Chat::start(&machine, &["--model", "demo"]) else { return };
    chat.sees("this is a script with real tools");
    chat.sees("❯");
    chat.press("what is 37*12?\r");
    chat.sees("↳ ok: 444");
    chat.sees("It is 444.");
    chat.press("note buy milk\r");
    chat.sees("write_file wants to run with");
    chat.sees("Run it?");
    chat.press("w");
    chat.sees("It asks because");
    chat.sees("Run it?");
    chat.press("y");
    chat.sees("Done.");
    assert_eq!(machine.read("note.txt").as_deref(), Some("buy milk\n"));
    chat.press("note something else\r");
    chat.sees("Run it?");
    chat.press("n");
    chat.sees("why not");
    chat.press("no need\r");
    chat.sees("denied: The user denied this call: no need");
    chat.press("ask me\r");
    chat.sees("Which colour do you like?");
    chat.sees("2. blue");
    chat.press("2\r");
    chat.sees("You said: blue");
    chat.press(":he\r");
    chat.sees(":permissions [MODE]");
    chat.press(":quti\r");
    chat.sees("did you mean :quit?");
    chat.leaves();
    assert_eq!(machine.sessions().len(), 1);
}

#[test]
fn ctrl_c_stops_the_turn_and_keeps_the_conversation() {
    let machine = Machine::new();
    let words = "word ".repeat(400);
    let script = format!("turns:\n  - text: '{words}'\n    delay_ms: 50\n  - text: Still here.\n");
    machine.write("slow.yaml", &script);
    let Some(mut chat) = Chat::start(&machine, &["--model", "script:slow.yaml"]) else { return };
    chat.sees("❯");
    chat.press("tell me\r");
    chat.sees("word word word");
    chat.press("\x03");
    chat.sees("■ aborted: Ctrl-C");
    chat.press("are you there?\r");
    chat.sees("Still here.");
    chat.leaves();
}

#[test]
fn an_approval_that_waits_at_one_terminal_is_answered_from_another() {
    let machine = Machine::new();
    let Some(mut chat) = Chat::start(&machine, &["--model", "demo"]) else { return };
    chat.sees("❯");
    chat.press("note from afar\r");
    chat.sees("Run it?");
    let id = machine.sessions().remove(0);
    let entries = machine.journal(&id);
    let asked = entries.iter().find(|entry| entry["kind"] == "external_action").unwrap();
    let call = asked["id"].as_str().unwrap();
    let ran = machine.duo(&["sessions", "answer", &id, call, "approve"]);
    assert!(ran.err.contains("left the answer for session"), "{ran:?}");
    chat.sees("answered elsewhere");
    chat.sees("Done.");
    assert_eq!(machine.read("note.txt").as_deref(), Some("from afar\n"));
    chat.leaves();
}
