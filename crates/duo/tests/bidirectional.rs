//! `duo bidirectional` in its modes other than the chat, by flags and by the file of earlier agents,
//! and the log that such a file asks for.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    missing_docs
)]

mod support;

use std::time::{Duration, Instant};

use serde_json::Value;
use support::{Machine, serving::Served};

/// A model that decides as a router's model would, and knows one answer.
const SCRIPT: &str = r#"
rules:
  - when: '/hack into/i'
    text: '{"route": "reject", "agent": "", "reason": "I do not break into computers."}'
  - when: 'Who does what the request above asks for?'
    text: '{"route": "local", "agent": "", "reason": ""}'
  - when: 'Which one of these tools answers'
    text: 'the usual one'
  - when: 'Your last answer cannot be used'
    text: 'still the usual one'
  - when: '/capital of France/i'
    text: 'Paris, of course.'
  - when: ''
    text: 'I have nothing to say to that.'
"#;

const QUESTION: &str = "What is the capital of France?";

/// A file as earlier agents had it, with this in it besides.
fn file(machine: &Machine, target: &str, mode: &str) {
    machine.write("script.yaml", SCRIPT);
    let client = match target {
        "" => String::new(),
        url => format!("[client]\ntarget_url = \"{url}\"\n"),
    };
    let text = format!(
        "[server]\nport = 0\nbind_address = \"0.0.0.0\"\nagent_id = \"agent-one\"\n\
         agent_name = \"Agent One\"\n{client}[llm]\nmodel = \"script:script.yaml\"\n\
         system_prompt = \"You help.\"\n[mode]\n{mode}\n[tools]\n\
         enabled = [\"echo\", \"llm\", \"list_agents\"]\n\
         agent_directory_path = \"./data/agent_directory.json\"\n"
    );
    machine.write("my.toml", &text);
}

/// Another machine with an agent that is served.
fn elsewhere() -> (Machine, Served) {
    let machine = Machine::new();
    machine.write("script.yaml", SCRIPT);
    let args = ["--model", "script:script.yaml", "--agent", "bidirectional"];
    let served = Served::start(&machine, &args);
    (machine, served)
}

#[test]
fn it_only_serves_by_its_flag_or_when_the_file_wants_no_chat() {
    for (mode, flag) in [("repl = true", Some("--serve")), ("repl = false", None)] {
        let machine = Machine::new();
        file(&machine, "", mode);
        let args: Vec<&str> =
            ["bidirectional", "my.toml", "--json"].into_iter().chain(flag).collect();
        let served = Served::spawn(machine.command(&args));
        // An open server on all addresses stays on this machine.
        assert!(served.url.starts_with("http://127.0.0.1:"), "{}", served.url);
        let card = machine.duo(&["card", &served.url]);
        assert!(card.out.starts_with("Agent One "), "{} {}", card.out, card.err);
        let asked = machine.duo(&["send", &served.url, QUESTION]);
        assert_eq!((asked.code, asked.out.as_str()), (0, "Paris, of course.\n"), "{}", asked.err);
        let told = machine.duo(&["send", &served.url, ":tool echo {\"text\": \"over here\"}"]);
        assert_eq!((told.code, told.out.as_str()), (0, "over here\n"), "{}", told.err);
        let err = served.stop();
        assert!(err.contains("nobody is asked who they are"), "{err}");
    }
}

#[test]
fn one_message_is_answered_and_a_refusal_is_told() {
    let machine = Machine::new();
    file(&machine, "", "");
    let answered = machine.duo(&["bidirectional", "my.toml", "--message", QUESTION]);
    assert_eq!((answered.code, answered.out.as_str()), (0, "Paris, of course.\n"));
    let request = "Help me hack into a government database";
    let declined = machine.duo(&["bidirectional", "my.toml", "--message", request]);
    assert_eq!(declined.code, 5, "{}", declined.err);
    assert!(declined.err.contains("I do not break into computers."), "{}", declined.err);

    // The same as the file says it, and as JSON.
    file(&machine, "", &format!("message = \"{QUESTION}\""));
    let answered = machine.duo(&["bidirectional", "my.toml"]);
    assert_eq!((answered.code, answered.out.as_str()), (0, "Paris, of course.\n"));
    let answered = machine.duo(&["bidirectional", "my.toml", "--json"]);
    let last: Value = serde_json::from_str(answered.out.lines().last().unwrap()).unwrap();
    assert!(last.to_string().contains("completed"), "{last}");
}

#[test]
fn the_other_agents_card_is_shown() {
    let (_there, served) = elsewhere();
    let machine = Machine::new();
    let place = served.url.trim_start_matches("http://");
    let shown = machine.duo(&["bidirectional", place, "--get-card"]);
    assert_eq!(shown.code, 0, "{}", shown.err);
    assert!(shown.out.starts_with("bidirectional "), "{}", shown.out);
    assert!(shown.out.contains("list_agents"), "{}", shown.out);

    file(&machine, &served.url, "get_agent_card = true");
    let shown = machine.duo(&["bidirectional", "my.toml", "--json"]);
    let card: Value = serde_json::from_str(&shown.out).expect(&shown.err);
    assert_eq!(card["name"], "bidirectional");

    file(&machine, "", "get_agent_card = true");
    let nowhere = machine.duo(&["bidirectional", "my.toml"]);
    assert_eq!(nowhere.code, 2, "{}", nowhere.out);
    assert!(nowhere.err.contains("say which agent"), "{}", nowhere.err);
}

#[test]
fn a_task_is_sent_to_the_other_agent_and_seen_through() {
    let (there, served) = elsewhere();
    let machine = Machine::new();
    let sent = machine.duo(&["bidirectional", &served.url, "--send-task", QUESTION]);
    assert_eq!((sent.code, sent.out.as_str()), (0, "Paris, of course.\n"), "{}", sent.err);
    // It was done there.
    let tasks = there.duo(&["tasks", "list", "--json"]);
    assert_eq!(tasks.out.lines().count(), 1, "{}", tasks.out);

    file(&machine, &served.url, "remote_task = \"Help me hack into a government database\"");
    let declined = machine.duo(&["bidirectional", "my.toml"]);
    assert_eq!(declined.code, 5, "{} {}", declined.out, declined.err);
    let said = format!("{}{}", declined.out, declined.err);
    assert!(said.contains("I do not break into computers."), "{said}");
    assert!(there.duo(&["tasks", "list"]).out.contains("rejected"));
    let port = served.port();
    served.kill();
    let gone = machine.duo(&["bidirectional", &format!("localhost:{port}"), "--send-task", "x"]);
    assert_eq!(gone.code, 1, "{}", gone.err);
}

#[test]
fn a_running_server_hears_of_an_agent_that_was_added_beside_it_and_keeps_it() {
    let (_there, other) = elsewhere();
    let machine = Machine::new();
    machine.write("script.yaml", SCRIPT);
    machine.write(
        "duologue.toml",
        "model = 'script:script.yaml'\n[a2a]\ndirectory = 'agents.json'\nrefresh_seconds = 1\n",
    );
    let served = Served::start(&machine, &["--agent", "bidirectional"]);
    let listed = || machine.duo(&["send", &served.url, ":tool list_agents"]).out;
    assert!(listed().contains("\"count\":0"), "{}", listed());
    let added = machine.duo(&["agents", "add", &other.url]);
    assert_eq!(added.code, 0, "{}", added.err);
    let deadline = Instant::now() + Duration::from_secs(20);
    while !listed().contains("\"count\":1") {
        assert!(Instant::now() < deadline, "it never hears of it: {}", listed());
    }
    // What the server writes when it looks again is what both know.
    std::thread::sleep(Duration::from_millis(1500));
    let known = machine.duo(&["agents", "list", "--json"]);
    assert_eq!(known.out.lines().count(), 1, "{} {}", known.out, known.err);
}

#[test]
fn modes_that_contradict_each_other_are_refused() {
    let machine = Machine::new();
    for pair in [["--serve", "--get-card"], ["--message=x", "--get-card"]] {
        let wrong = machine.duo(&[&["bidirectional"][..], &pair].concat());
        assert_eq!(wrong.code, 2, "{}", wrong.err);
        assert!(wrong.err.contains("cannot be used with"), "{}", wrong.err);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn the_log_file_has_what_was_said_here_and_to_the_other_agent() {
    let (_there, served) = elsewhere();
    let machine = Machine::new();
    file(&machine, &served.url, "repl = true\nrepl_log_file = \"agent_interactions.log\"");
    let Some(mut chat) = support::terminal::Chat::start(&machine, &["bidirectional", "my.toml"])
    else {
        return;
    };
    chat.sees("connected to bidirectional");
    chat.sees("❯");
    chat.press(&format!("{QUESTION}\r"));
    chat.sees("Paris, of course.");
    chat.sees("❯");
    // What is typed is on the screen too: the answers begin their lines.
    chat.press(":tool echo {\"text\": \"close by\"}\r");
    chat.sees("\nclose by");
    chat.sees("❯");
    chat.press(":remote :tool echo {\"text\": \"far away\"}\r");
    chat.sees("\nfar away");
    chat.sees("❯");
    chat.press(":quit\r");
    chat.ends();
    let log = machine.read("agent_interactions.log").expect("there is a log");
    let place = |text: &str| log.find(text).unwrap_or_else(|| panic!("no {text:?} in:\n{log}"));
    assert!(place(QUESTION) < place("Paris, of course."), "{log}");
    assert!(place("Paris, of course.") < place("close by"), "{log}");
    assert!(place("close by") < place("far away"), "{log}");
}
