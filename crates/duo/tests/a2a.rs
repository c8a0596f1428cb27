//! A2A from the command line: servers, clients and the journal between them.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

mod support;

use std::{
    process::Stdio,
    time::{Duration, Instant},
};

use serde_json::Value;
use support::{Machine, Ran, ran, serving::Served};

/// The command that is printed for a task that waits, with an answer in it.
fn printed_command(ran: &Ran, answer: &str) -> Vec<String> {
    let line = ran.err.lines().find(|line| line.contains("duo send")).expect(&ran.err);
    let words = line.split_whitespace().skip(1);
    words.map(|word| if word == "\"…\"" { answer } else { word }.to_owned()).collect()
}

fn run(machine: &Machine, words: &[String]) -> Ran {
    machine.duo(&words.iter().map(String::as_str).collect::<Vec<_>>())
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_served_agent_has_a_card_answers_and_keeps_its_tasks() {
    let machine = Machine::new();
    let served = Served::start(&machine, &["--model", "demo"]);
    let ran = machine.duo(&["send", &served.url, "what is 37*12?"]);
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (0, "It is 444.\n", ""));
    let host = served.url.trim_start_matches("http://");
    let streamed = machine.duo(&["send", host, "--stream", "what is 6*7?"]);
    assert_eq!((streamed.code, streamed.out.as_str()), (0, "It is 42.\n"), "{}", streamed.err);

    let card = machine.duo(&["card", &served.url]);
    assert!(card.out.starts_with("generic "), "{}", card.out);
    assert!(card.out.contains("calculator"), "{}", card.out);
    let card = machine.duo(&["card", &served.url, "--json"]);
    let card: Value = serde_json::from_str(&card.out).unwrap();
    assert_eq!(card["supportedInterfaces"][0]["url"], served.url.as_str());

    // The same tasks, by way of the server and in the journal.
    let there = machine.duo(&["tasks", "list", "--url", &served.url, "--json"]);
    let here = machine.duo(&["tasks", "list", "--json"]);
    let ids = |ran: &Ran| -> Vec<String> {
        lines(&ran.out).iter().map(|task| task["id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(ids(&there), ids(&here), "{}", here.err);
    let id = &ids(&here)[1];
    for shown in [
        machine.duo(&["tasks", "show", id]),
        machine.duo(&["tasks", "show", id, "--url", &served.url]),
    ] {
        assert!(shown.out.contains("❯ what is 37*12?"), "{}", shown.out);
        assert!(shown.out.contains("It is 444."), "{}", shown.out);
    }
    let none = machine.duo(&["tasks", "list", "--status", "rejected"]);
    assert_eq!((none.out.as_str(), none.err.as_str()), ("", "no tasks\n"));
    assert_eq!(served.stop(), "");
}

#[test]
fn a_task_that_waits_is_answered_by_the_printed_command_also_after_a_crash() {
    let machine = Machine::new();
    let served = Served::start(&machine, &["--model", "demo"]);
    let asked = machine.duo(&["send", &served.url, "ask me"]);
    assert_eq!((asked.code, asked.out.as_str()), (3, ""), "{}", asked.err);
    assert!(asked.err.starts_with("? Which colour do you like?"), "{}", asked.err);
    let command = printed_command(&asked, "blue");
    let waiting = machine.duo(&["tasks", "list", "--status", "input-required"]);
    assert!(waiting.out.contains("ask me"), "{}", waiting.out);
    let port = served.port();
    served.kill();
    let gone = run(&machine, &command);
    assert_eq!(gone.code, 1, "{}", gone.err);

    let served = Served::start(&machine, &["--model", "demo", "--port", &port]);
    let answered = run(&machine, &command);
    let expected = (0, "You said: blue. Thank you.\n");
    assert_eq!((answered.code, answered.out.as_str()), expected, "{}", answered.err);
    let again = run(&machine, &command);
    assert_eq!(again.code, 1);
    assert!(again.err.contains("is over"), "{}", again.err);
    drop(served);
}

#[test]
fn an_approval_goes_to_the_caller_and_only_a_plain_yes_is_one() {
    let machine = Machine::new();
    let served = Served::start(&machine, &["--model", "demo"]);
    let asked = machine.duo(&["send", &served.url, "note buy milk"]);
    assert_eq!(asked.code, 3, "{}", asked.err);
    assert!(asked.err.contains("write_file"), "{}", asked.err);
    let denied = run(&machine, &printed_command(&asked, "rather not"));
    assert_eq!(denied.out, "Understood, I leave it.\n", "{}", denied.err);
    assert_eq!(machine.read("note.txt"), None);
    let asked = machine.duo(&["send", &served.url, "note buy milk"]);
    let done = run(&machine, &printed_command(&asked, "yes"));
    assert_eq!(done.code, 0, "{}", done.err);
    assert_eq!(machine.read("note.txt").as_deref(), Some("buy milk\n"));
}

#[test]
fn tasks_are_watched_and_cancelled_from_here_and_through_the_server() {
    let machine = Machine::new();
    let served = Served::start(&machine, &["--model", "demo"]);
    let begin = || {
        let asked = machine.duo(&["send", &served.url, "ask me"]);
        printed_command(&asked, "x")[4].clone()
    };
    for through in [vec![], vec!["--url", served.url.as_str()]] {
        let id = begin();
        let watch = [&["tasks", "watch", id.as_str()], through.as_slice()].concat();
        let watching =
            machine.command(&watch).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(500));
        let cancel = [&["tasks", "cancel", id.as_str()], through.as_slice()].concat();
        let cancelled = machine.duo(&cancel);
        assert!(cancelled.out.contains("canceled"), "{} {}", cancelled.out, cancelled.err);
        let watched = ran(watching.wait_with_output().unwrap());
        assert_eq!(watched.code, 130, "{}", watched.err);
        assert!(watched.out.starts_with("input-required: "), "{}", watched.out);
        assert!(watched.out.contains("· canceled ·"), "{}", watched.out);
        let again = machine.duo(&cancel);
        assert_ne!(again.code, 0);
        assert!(again.err.contains("is over"), "{}", again.err);
    }
}

#[test]
fn a_task_in_the_middle_goes_on_when_the_agent_is_served_again() {
    let machine = Machine::new();
    let script = "turns:\n  - text: Too slow.\n    delay_ms: 60000\n";
    machine.write("slow.yaml", script);
    let served = Served::start(&machine, &["--model", "script:slow.yaml"]);
    let mut sending = machine
        .command(&["send", &served.url, "take your time"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let deadline = Instant::now() + Duration::from_secs(20);
    let id = loop {
        let listed = machine.duo(&["tasks", "list", "--json", "--status", "working"]);
        if let Some(task) = lines(&listed.out).first() {
            break task["id"].as_str().unwrap().to_owned();
        }
        assert!(Instant::now() < deadline, "it never works");
    };
    let in_hand = machine.duo(&["tasks", "cancel", &id]);
    assert!(in_hand.err.contains("a server has task"), "{}", in_hand.err);
    let _ = sending.kill();
    let _ = sending.wait();
    served.kill();
    machine.write("slow.yaml", "turns:\n  - text: Here it is.\n");
    let _served = Served::start(&machine, &["--model", "script:slow.yaml"]);
    let watched = machine.duo(&["tasks", "watch", &id]);
    assert_eq!(watched.code, 0, "{}", watched.err);
    assert!(watched.out.contains("Here it is."), "{}", watched.out);
}

#[test]
fn callers_are_told_apart_by_their_keys() {
    let machine = Machine::new();
    machine.write(
        "duologue.toml",
        "model = 'demo'\n[server]\nport = 0\ncallers = { ada = 'ADA_KEY', bob = 'BOB_KEY' }\n",
    );
    let unset = machine.duo(&["serve"]);
    assert_eq!(unset.code, 2);
    assert!(unset.err.contains("ADA_KEY is not set"), "{}", unset.err);
    let mut command = machine.command(&["serve", "--json"]);
    command.env("ADA_KEY", "s3cret-a").env("BOB_KEY", "s3cret-b");
    let served = Served::spawn(command);
    let refused = machine.duo(&["send", &served.url, "what is 1+1?"]);
    assert_eq!(refused.code, 1, "{}", refused.out);
    let with_key = |args: &[&str], key: &str| {
        let mut command = machine.command(args);
        ran(command.env("KEY", key).output().unwrap())
    };
    let send = ["send", &served.url, "what is 1+1?", "--key-env", "KEY"];
    let wrong = with_key(&send, "s3cret-c");
    assert_eq!(wrong.code, 1);
    assert!(!wrong.err.contains("s3cret"), "{}", wrong.err);
    let ada = with_key(&send, "s3cret-a");
    assert_eq!((ada.code, ada.out.as_str()), (0, "It is 2.\n"), "{}", ada.err);
    let list = ["tasks", "list", "--url", &served.url, "--key-env", "KEY", "--json"];
    assert_eq!(lines(&with_key(&list, "s3cret-a").out).len(), 1);
    assert_eq!(lines(&with_key(&list, "s3cret-b").out).len(), 0, "somebody else's is not seen");
    // The same by configuration, under a name.
    machine.write(
        "duologue.toml",
        &format!("[remotes.calc]\nurl = '{}'\ncredentials.apiKey = 'KEY'\n", served.url),
    );
    let named = with_key(&["send", "calc", "what is 2+1?"], "s3cret-b");
    assert_eq!(named.out, "It is 3.\n", "{}", named.err);
    let by_address = with_key(&["send", &served.url, "what is 2+2?"], "s3cret-b");
    assert_eq!(by_address.out, "It is 4.\n", "{}", by_address.err);
}

#[test]
fn an_open_server_stays_on_this_machine_unless_told_otherwise() {
    let machine = Machine::new();
    let open = ["--model", "demo", "serve", "--json", "--port", "0", "--host", "0.0.0.0"];
    let served = Served::spawn(machine.command(&open));
    assert!(served.url.starts_with("http://127.0.0.1:"), "{}", served.url);
    let err = served.stop();
    assert!(err.contains("nobody is asked who they are"), "{err}");
    let wrong = machine.duo(&["--model", "demo", "serve", "--host", "no.such.host.invalid"]);
    assert_eq!(wrong.code, 2, "{}", wrong.err);
}

#[test]
fn what_cannot_be_reached_is_told_with_its_address() {
    let machine = Machine::new();
    let gone = machine.duo(&["send", "127.0.0.1:1", "hello"]);
    assert_eq!(gone.code, 1);
    assert!(gone.err.contains("http://127.0.0.1:1/.well-known"), "{}", gone.err);
    let wrong = machine.duo(&["card", "ftp://x"]);
    assert_eq!(wrong.code, 2);
    assert!(wrong.err.contains("https:// or http://"), "{}", wrong.err);
    let empty = machine.duo(&["send", "127.0.0.1:1", " "]);
    assert_eq!((empty.code, empty.err.as_str()), (2, "duo: the message is empty\n"));
}

#[test]
fn agents_elsewhere_are_added_pinged_and_forgotten() {
    let machine = Machine::new();
    let served = Served::start(&machine, &["--model", "demo", "--agent", "react"]);
    let added = machine.duo(&["agents", "add", &served.url]);
    assert_eq!(added.code, 0, "{}", added.err);
    let listed = machine.duo(&["agents", "list", "--json"]);
    let agent = &lines(&listed.out)[0];
    assert_eq!((&agent["id"], &agent["health"]["state"]), (&"react".into(), &"up".into()));
    assert_eq!(machine.duo(&["agents", "ping"]).code, 0);
    served.kill();
    let down = machine.duo(&["agents", "ping", "react"]);
    assert_eq!(down.code, 1);
    assert!(down.out.contains("down: "), "{}", down.out);
    let forgot = machine.duo(&["agents", "remove", "react"]);
    assert_eq!(forgot.code, 0, "{}", forgot.err);
    let unknown = machine.duo(&["agents", "remove", "react"]);
    assert_eq!(unknown.code, 2, "{}", unknown.err);
    assert!(machine.duo(&["agents", "list"]).err.contains("no agents yet"));
}
