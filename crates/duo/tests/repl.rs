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

use support::{Machine, terminal::Chat};

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
