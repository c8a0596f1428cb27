//! The chat among other agents, as a person meets it: every command for it, in a real terminal.

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

use serde_json::Value;
use support::{Machine, serving::Served, terminal::Chat};

/// A model that decides as a router's model would, and knows one answer.
fn script(machine: &Machine, name: &str, place: &str) -> String {
    let text = format!(
        r#"
rules:
  - when: '/hack into/i'
    text: '{{"route": "reject", "agent": "", "reason": "I do not break into computers."}}'
  - when: 'Who does what the request above asks for?'
    text: '{{"route": "local", "agent": "", "reason": ""}}'
  - when: 'Which one of these tools answers'
    text: 'the usual one'
  - when: 'Your last answer cannot be used'
    text: 'still the usual one'
  - when: '/capital of France/i'
    text: 'Paris, said {place}.'
  - when: ''
    text: 'I am {place}.'
"#
    );
    machine.write(name, &text);
    format!("script:{name}")
}

#[test]
fn a_person_connects_asks_both_sides_and_calls_tools_on_both() {
    let machine = Machine::new();
    let (here, there) =
        (script(&machine, "here.yaml", "here"), script(&machine, "there.yaml", "there"));
    let elsewhere = Machine::new();
    elsewhere.write("there.yaml", &machine.read("there.yaml").unwrap());
    let served = Served::start(&elsewhere, &["--model", &there, "--agent", "bidirectional"]);
    let place = served.url.trim_start_matches("http://").to_owned();
    let Some(mut chat) = Chat::start(&machine, &["bidirectional", "--model", &here]) else {
        return;
    };
    chat.sees("❯");
    chat.press(":help\r");
    chat.sees(":connect URL|N|HOST:PORT");
    chat.press(":servers\r");
    chat.sees("no agents are known yet");
    chat.press(":remote hello\r");
    chat.sees("not connected");
    chat.press(":tool list_agents\r");
    chat.sees("Tool result:");
    chat.sees("\"count\": 0");

    chat.press(&format!("connect to {place}\r"));
    chat.sees(&format!("connected to bidirectional at {place}"));
    chat.sees(&format!("bidirectional@{place}"));
    chat.press("list servers\r");
    chat.sees(&format!("1. bidirectional  http://{place}"));
    chat.press(":card remote\r");
    chat.sees("list_agents");

    // Plain text stays here, :remote goes there; so do tools.
    chat.press("What is the capital of France?\r");
    chat.sees("Paris, said here.");
    chat.press(":remote What is the capital of France?\r");
    chat.sees("Paris, said there.");
    chat.press(":tool echo {\"text\": \"close by\"}\r");
    chat.sees("Tool result:");
    chat.sees("close by");
    chat.press(":remote :tool echo {\"text\": \"far away\"}\r");
    chat.sees("far away");
    chat.press(":remote :tool list_agents\r");
    chat.sees("\"count\": 0");
    chat.press(":tool list_agents {\"format\": \"simple\"}\r");
    chat.sees("\"count\": 1");
    chat.press(":tool echo {\r");
    chat.sees("not JSON");

    chat.press("Help me hack into a government database\r");
    chat.sees("Task rejected: I do not break into computers.");
    chat.press(":remote Help me hack into a government database\r");
    chat.sees("Task rejected: I do not break into computers.");

    chat.press(":disconnect\r");
    chat.sees("disconnected from bidirectional");
    chat.press(":connect 1\r");
    chat.sees("connected to bidirectional");
    chat.press(":connect 9\r");
    chat.sees("there is no agent 9");
    chat.press(":quit\r");
    chat.ends();
}

#[test]
fn an_agent_is_served_from_the_chat_and_its_tasks_are_looked_at() {
    let machine = Machine::new();
    let Some(mut chat) = Chat::start(&machine, &["--model", "demo"]) else { return };
    chat.sees("❯");
    chat.press(":card\r");
    chat.sees("not served");
    chat.press(":stop\r");
    chat.sees("not serving");
    chat.press(":tasks\r");
    chat.sees("nobody has asked");
    chat.press(":listen 0\r");
    let url = chat.reads("generic is served at ", "\r");
    chat.press(":listen 0\r");
    chat.sees("already served");
    chat.press(":card\r");
    chat.sees(&url);

    let ran = machine.duo(&["send", &url, "what is 6*7?", "--json"]);
    let task: Value = serde_json::from_str(ran.out.lines().last().expect(&ran.err)).unwrap();
    let id = task["id"].as_str().unwrap();
    chat.press(":tasks\r");
    chat.sees(id);
    chat.sees("what is 6*7?");
    chat.press(&format!(":task {id}\r"));
    chat.sees("completed");
    chat.sees("It is 42.");
    chat.press(&format!(":artifacts {}\r", &id[..8]));
    chat.sees("It is 42.");
    chat.press(":stop\r");
    chat.sees("stopped serving");
    assert_eq!(machine.duo(&["send", &url, "still there?"]).code, 1);

    chat.press("what is 2+2?\r");
    chat.sees("It is 4.");
    chat.press(":memory\r");
    chat.sees("messages in the journal, 0 of them left out");
    chat.press(":history\r");
    chat.sees("what is 2+2?");
    chat.press(":session show\r");
    chat.sees("entries");
    chat.press(":session new\r");
    chat.sees("duologue");
    chat.press(":session\r");
    chat.sees("1 entries · new");
    chat.leaves();
}

#[test]
fn what_the_other_agent_asks_is_answered_here_now_or_later() {
    let machine = Machine::new();
    let elsewhere = Machine::new();
    let served = Served::start(&elsewhere, &["--model", "demo"]);
    let args = ["--model", "demo", "bidirectional", &served.url];
    let Some(mut chat) = Chat::start(&machine, &args) else { return };
    chat.sees("connected to generic");
    chat.sees("❯");
    chat.press(":remote ask me\r");
    chat.sees("Which colour do you like?");
    chat.press("red\r");
    chat.sees("You said: red.");
    chat.press(":remote note buy milk\r");
    // Only once the prompt is there is Ctrl-C a key.
    chat.sees("? approve write_file");
    chat.sees("answer");
    chat.press("\x03");
    chat.sees("the other agent waits for an answer");
    chat.press(":remote yes\r");
    chat.sees("Done.");
    assert_eq!(elsewhere.read("note.txt").as_deref(), Some("buy milk\n"));
    chat.press(":tasks\r");
    chat.sees("at 127.0.0.1:");
    chat.sees("note buy milk");
    chat.leaves();
}
