//! `kill -9` at random points of a run of 20 steps: whatever the moment, the resumed run ends as
//! the unkilled one, and nothing that was done is done again.
//!
//! `DUOLOGUE_TEST_KILLS` says how often (12 otherwise; `cargo xtask kill` takes 200).

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]
#![cfg(unix)]

mod support;

use std::{
    collections::BTreeMap,
    os::unix::process::ExitStatusExt,
    process::{Child, Stdio},
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;
use support::*;

/// Twenty steps with a pure, an idempotent and a side-effecting tool each in turn, then an answer.
fn script() -> String {
    let mut text = String::from("turns:\n");
    for step in 0..20 {
        let call = match step % 3 {
            0 => "{ name: list_files, arguments: {} }".to_owned(),
            1 => format!(
                "{{ name: write_file, arguments: {{ path: out.txt, content: 'step {step}' }} }}"
            ),
            _ => format!(
                "{{ name: shell, arguments: {{ command: 'echo step {step} >> deeds.log; sleep 0.02' }} }}"
            ),
        };
        let both = if step % 4 == 1 {
            format!("{call}, {{ name: calculator, arguments: {{ expression: '{step}+1' }} }}")
        } else {
            call
        };
        text += &format!("  - text: 'Step {step} it is.'\n    delay_ms: 3\n    calls: [{both}]\n");
    }
    text + "  - text: All twenty steps are done.\n"
}

const ARGS: [&str; 8] = [
    "--model",
    "script:script.yaml",
    "--permissions",
    "full",
    "--set",
    "tools.enabled=[\"shell\"]",
    "--journal",
    "journal.db",
];

fn args<'a>(command: &[&'a str]) -> Vec<&'a str> {
    ARGS.iter().copied().chain(command.iter().copied()).collect()
}

fn start(machine: &Machine, command: &[&str]) -> Child {
    machine.command(&args(command)).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

fn machine() -> Machine {
    let machine = Machine::new();
    machine.write("script.yaml", &script());
    machine
}

fn session(machine: &Machine) -> Option<String> {
    let listed = machine.duo(&args(&["sessions", "list", "--json"]));
    assert_eq!(listed.code, 0, "{}", listed.err);
    let line = listed.out.lines().next()?;
    Some(serde_json::from_str::<Value>(line).unwrap()["id"].as_str().unwrap().to_owned())
}

fn journal(machine: &Machine, id: &str) -> Vec<Value> {
    let shown = machine.duo(&args(&["sessions", "show", id, "--json"]));
    shown.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A run without a kill: its answer, what the side effects left, and how long it took.
fn unkilled() -> (String, String, Duration) {
    let machine = machine();
    let began = Instant::now();
    let ran = machine.duo(&args(&["run", "go"]));
    assert_eq!(ran.code, 0, "{}", ran.err);
    (ran.out, machine.read("deeds.log").unwrap(), began.elapsed())
}

#[test]
fn a_run_killed_at_a_random_point_ends_as_the_unkilled_one_and_repeats_no_side_effect() {
    let kills: usize =
        std::env::var("DUOLOGUE_TEST_KILLS").map_or(12, |text| text.parse().unwrap());
    let (answer, deeds, took) = unkilled();
    let mut tally = Tally::default();
    while tally.kills < kills {
        one(&answer, &deeds, took, &mut tally);
    }
    println!("{tally:?}");
    assert!(tally.in_the_middle > 0, "no kill hit the middle of a run: {tally:?}");
}

#[derive(Debug, Default)]
struct Tally {
    kills: usize,
    in_the_middle: usize,
    harmless_repeated: usize,
    interrupted: usize,
}

/// One run, killed once or more, and resumed until it is done.
fn one(answer: &str, deeds: &str, took: Duration, tally: &mut Tally) {
    let machine = machine();
    let mut child = start(&machine, &["run", "go"]);
    kill_sometime(&mut child, took, tally);
    // Killed before there was a session: begin again, as a person would.
    let Some(id) = session(&machine) else { return };
    tally.in_the_middle += 1;
    // Some runs are killed a second time while they resume.
    if fastrand(3) == 0 {
        let mut child = start(&machine, &["sessions", "resume", &id]);
        kill_sometime(&mut child, took, tally);
    }
    let ran = machine.duo(&args(&["sessions", "resume", &id]));
    let entries = journal(&machine, &id);
    if !kinds(&entries).contains(&"user_request") {
        return;
    }
    assert_eq!((ran.code, ran.out.as_str()), (0, answer), "{}", ran.err);
    check(&entries, tally);

    // Each deed was done once, except those that were under way when the process was killed:
    // whether they were done is unknown, but never twice.
    let done = machine.read("deeds.log").unwrap_or_default();
    let mut last = "";
    for line in done.lines() {
        assert!(line != last, "a side effect was done twice:\n{done}");
        last = line;
    }
    let interrupted =
        results(&entries, "shell").filter(|result| result["status"] == "interrupted").count();
    assert!(deeds.lines().count() - done.lines().count() <= interrupted, "a deed is missing");
    assert_eq!(machine.read("out.txt").as_deref(), Some("step 19"));
    let replayed = machine.duo(&args(&["sessions", "replay", &id, "--quiet"]));
    assert_eq!(replayed.code, 0, "{}", replayed.err);
}

fn kill_sometime(child: &mut Child, took: Duration, tally: &mut Tally) {
    thread::sleep(took.mul_f64(fastrand(1000) as f64 / 1000.0));
    let _ = child.kill();
    let status = child.wait().unwrap();
    if status.signal() == Some(9) {
        tally.kills += 1;
    }
}

/// What the journal must look like, whenever the process was killed.
fn check(entries: &[Value], tally: &mut Tally) {
    let mut effects: BTreeMap<String, (usize, String)> = BTreeMap::new();
    let mut ended: BTreeMap<String, usize> = BTreeMap::new();
    for (place, entry) in entries.iter().enumerate() {
        assert_eq!(entry["seq"], place, "the journal has no gaps");
        let id = || entry["call_id"].as_str().unwrap().to_owned();
        match entry["kind"].as_str().unwrap() {
            "tool_started" => {
                assert!(!ended.contains_key(&id()), "a finished call ran again: {entry}");
                let known =
                    effects.entry(id()).or_insert((0, entry["effect"].as_str().unwrap().into()));
                known.0 += 1;
                if known.0 > 1 {
                    assert_ne!(known.1, "side_effect", "a side effect was started again: {entry}");
                    tally.harmless_repeated += 1;
                }
            }
            "tool_ended" => {
                *ended.entry(id()).or_default() += 1;
                if entry["status"] == "interrupted" {
                    assert_eq!(effects[&id()].1, "side_effect");
                    tally.interrupted += 1;
                }
            }
            _ => {}
        }
    }
    let calls = entries.iter().filter(|entry| entry["kind"] == "agent_message").flat_map(|entry| {
        let parts = entry["message"]["parts"].as_array().unwrap();
        parts.iter().filter(|part| part["type"] == "tool_call").map(|part| part["id"].clone())
    });
    for call in calls {
        assert_eq!(ended.get(call.as_str().unwrap()), Some(&1), "one result for {call}");
    }
    let ends = entries.iter().filter(|entry| entry["kind"] == "agent_response_end").count();
    assert_eq!(ends, 1, "every turn ends once");
    assert_eq!(entries.last().unwrap()["outcome"], "completed");
}

fn results<'a>(entries: &'a [Value], tool: &'a str) -> impl Iterator<Item = &'a Value> {
    entries.iter().filter(move |entry| entry["kind"] == "tool_ended" && entry["name"] == tool)
}

/// A small random number, from the clock: the points must differ from run to run.
fn fastrand(below: u64) -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(0u8) % below
}
