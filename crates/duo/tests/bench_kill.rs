//! `kill -9` at random points of a run of 40 simulations: whatever the moment, the resumed run ends
//! with the results of an unkilled one, and what was said before the kill is said once.
//!
//! `DUOLOGUE_TEST_BENCH_KILLS` says how often (2 otherwise; `cargo xtask kill --bench` takes 50).

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
    os::unix::process::ExitStatusExt,
    process::Stdio,
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;
use support::*;

/// The same conversation for an agent of the reference and for a planned one of ours.
const AGENT: &str = "
turns:
  - text: (the greeting)
  - calls: [{ id: find, name: find_customer, arguments: { phone: 555-0101 } }]
    delay_ms: 1
  - text: A tune-up on Monday is 50. Shall I book it?
    delay_ms: 1
  - calls: [{ id: book, name: book_repair, arguments: { bike_id: b1, kind: tune_up, day: 2026-05-18 } }]
    delay_ms: 1
  - text: It is booked.
    delay_ms: 1
";

const PLANNED: &str = r#"
rules:
  - when: Make a plan
    text: '{"reasoning": "find, ask, book", "steps": [{"title": "Find the customer", "tool": "find_customer"}, {"title": "Ask", "tool": "ask_human"}, {"title": "Book it", "tool": "book_repair"}]}'
  - when: Check the work
    text: '{"is_complete": true, "reasoning": "It is booked for 50.", "suggestions": [], "confidence": 0.9}'
  - when: '- [ ] s1'
    calls: [{ id: find, name: find_customer, arguments: { phone: 555-0101 } }]
    delay_ms: 2
  - when: '- [ ] s2'
    calls: [{ id: ask, name: ask_human, arguments: { question: Shall I book it for 50? } }]
    delay_ms: 2
  - when: '- [ ] s3'
    calls: [{ id: book, name: book_repair, arguments: { bike_id: b1, kind: tune_up, day: 2026-05-18 } }]
    delay_ms: 2
"#;

const USER: &str = r####"
turns:
  - text: I want a tune-up for my green bike on Monday, 555-0101.
    delay_ms: 1
  - text: Yes, please.
    delay_ms: 1
  - text: "Thanks. ###STOP###"
    delay_ms: 1
"####;

const JOURNAL: &str = "results.json.unfinished.jsonl";

const AGENTS: [&str; 2] = ["llm_agent", "planned"];

fn args(agent: &'static str) -> Vec<&'static str> {
    let script = if agent == "planned" { "script:planned.yaml" } else { "script:agent.yaml" };
    let mut args = vec!["bench", "run", "--agent", agent, "--agent-llm", script];
    args.extend(["--strategy", "multi_step", "--user-llm", "script:user.yaml"]);
    args.extend(["--task-ids", "book_tune_up", "--num-trials", "40", "--max-concurrency", "4"]);
    args.extend(["--save-to", "results.json"]);
    args
}

fn machine() -> Machine {
    let machine = Machine::new();
    machine.write("agent.yaml", AGENT);
    machine.write("planned.yaml", PLANNED);
    machine.write("user.yaml", USER);
    machine
}

#[derive(Debug, Default)]
struct Tally {
    kills: usize,
    /// Kills that left conversations in the middle.
    in_the_middle: usize,
    /// Messages that were on record in the middle and are in the results.
    gone_on_with: usize,
}

#[test]
fn a_killed_run_goes_on_from_its_journals_and_ends_as_the_unkilled_one() {
    let kills = std::env::var("DUOLOGUE_TEST_BENCH_KILLS").map_or(2, |text| text.parse().unwrap());
    let mut tally = Tally::default();
    let whole: Vec<(Vec<Value>, Duration)> = AGENTS.iter().map(|agent| unkilled(agent)).collect();
    for (agent, (expected, took)) in AGENTS.iter().zip(&whole).cycle() {
        if tally.kills >= kills && tally.gone_on_with > 0 {
            break;
        }
        one(agent, expected, *took, &mut tally);
    }
    println!("{tally:?}");
    assert!(tally.in_the_middle > 0 && tally.gone_on_with > 0, "{tally:?}");
}

fn unkilled(agent: &'static str) -> (Vec<Value>, Duration) {
    let machine = machine();
    let began = Instant::now();
    let ran = machine.duo(&args(agent));
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.out.contains("40 simulations of 1 tasks, mean reward 1.000"), "{}", ran.out);
    (timeless(&machine), began.elapsed())
}

/// One run, killed once or more, and resumed until it is done.
fn one(agent: &'static str, expected: &[Value], took: Duration, tally: &mut Tally) {
    let machine = machine();
    let mut said = Vec::new();
    for _ in 0..1 + random(3) {
        let mut child = machine
            .command(&args(agent))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        thread::sleep(took.mul_f64(random(1000) as f64 / 1000.0));
        let _ = child.kill();
        if child.wait().unwrap().signal() == Some(9) {
            tally.kills += 1;
        }
        let on_record = unfinished(&machine);
        tally.in_the_middle += usize::from(!on_record.is_empty());
        said.extend(on_record);
    }
    let ran = machine.duo(&args(agent));
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_eq!(timeless(&machine), expected);
    assert!(machine.read(JOURNAL).is_none(), "nothing is left over");
    // What was said before a kill was not said again: its time is the same.
    let results = machine.read("results.json").unwrap();
    for time in &said {
        assert!(results.contains(time.as_str()), "{time} was lost");
    }
    tally.gone_on_with += said.len();
}

/// The times of what was said in conversations that are not finished.
fn unfinished(machine: &Machine) -> Vec<String> {
    let journal = machine.read(JOURNAL).unwrap_or_default();
    let mut times = std::collections::BTreeMap::<String, Vec<String>>::new();
    for line in journal.split_inclusive('\n').filter(|line| line.ends_with('\n')) {
        let line: Value = serde_json::from_str(line).unwrap();
        if let Some(done) = line.get("finished") {
            times.remove(done["id"].as_str().unwrap());
            continue;
        }
        let (id, record) = (&line["step"]["simulation"], &line["step"]["record"]);
        let messages = record["messages"].as_array().unwrap().iter();
        let new = messages.map(|message| message["timestamp"].as_str().unwrap().to_owned());
        times.entry(id.as_str().unwrap().to_owned()).or_default().extend(new);
    }
    times.into_values().flatten().collect()
}

/// The results without what depends on the clock.
fn timeless(machine: &Machine) -> Vec<Value> {
    let text = machine.read("results.json").unwrap();
    let mut results: Value = serde_json::from_str(&text).unwrap();
    forget_times(&mut results);
    vec![results]
}

fn forget_times(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for clock in
                ["timestamp", "start_time", "end_time", "duration", "generation_time_seconds"]
            {
                fields.remove(clock);
            }
            fields.values_mut().for_each(forget_times);
        }
        Value::Array(items) => items.iter_mut().for_each(forget_times),
        _ => {}
    }
}

/// A small random number: the points must differ from run to run.
fn random(below: u64) -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(0u8) % below
}
