//! `duo bench` as a user meets it, on the embedded domain.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

mod support;

use support::*;

/// The first turn is never given: the greeting counts as what the agent said first.
const AGENT: &str = "
turns:
  - text: (the greeting)
  - calls: [{ name: find_customer, arguments: { phone: 555-0101 } }]
  - text: A tune-up on Monday is 50. Shall I book it?
  - calls: [{ name: book_repair, arguments: { bike_id: b1, kind: tune_up, day: 2026-05-18 } }]
  - text: It is booked.
";

const USER: &str = r####"
turns:
  - text: I want a tune-up for my green bike on Monday, 555-0101.
  - text: Yes, please.
  - text: "Thanks. ###STOP###"
"####;

const ORACLE: [&str; 6] = ["bench", "run", "--agent", "oracle", "--user", "oracle_user"];

#[test]
fn a_fresh_machine_runs_judges_scores_and_reads_the_embedded_domain() {
    let machine = Machine::new();
    let ran = machine.duo(&[&ORACLE[..], &["--save-to", "a.json"]].concat());
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.out.contains("8 simulations of 8 tasks, mean reward 1.000"), "{}", ran.out);
    assert!(machine.read("a.json").unwrap().contains("\"termination_reason\": \"user_stop\""));

    let again = machine.duo(&[&ORACLE[..], &["--save-to", "a.json"]].concat());
    assert_eq!(again.code, 0, "{}", again.err);
    assert!(again.err.contains("8 of 8 simulations are there already"), "{}", again.err);
    let other = machine.duo(&[
        "bench",
        "run",
        "--agent",
        "idle",
        "--user",
        "oracle_user",
        "--save-to",
        "a.json",
    ]);
    assert_eq!(other.code, 2);
    assert!(other.err.contains("a.json is of another run"), "{}", other.err);

    let idle = machine.duo(&[
        "bench",
        "run",
        "--agent",
        "idle",
        "--user",
        "oracle_user",
        "--save-to",
        "b.json",
    ]);
    assert!(idle.err.contains("doing_nothing_passes"), "{}", idle.err);
    let compared = machine.duo(&["bench", "compare", "b.json", "a.json"]);
    assert!(compared.out.starts_with("on 8 tasks: 0.125 → 1.000"), "{}", compared.out);
    let judged = machine.duo(&["bench", "evaluate", "a.json", "b.json"]);
    assert!(judged.out.contains("0 of 8 rewards differ"), "{}", judged.out);
    let viewed = machine.duo(&["bench", "view", "a.json", "--task", "real_puncture"]);
    assert!(viewed.out.contains("the air hisses out again"), "{}", viewed.out);
    let exported = machine.duo(&["bench", "export", "--html", "r.html", "a.json"]);
    assert_eq!(exported.code, 0, "{}", exported.err);
    assert!(machine.read("r.html").unwrap().contains("pass^1"));
    let domain = machine.duo(&["bench", "domain", "bike_shop"]);
    assert!(domain.out.contains("book_repair(bike_id, kind, day)"), "{}", domain.out);
}

#[test]
fn the_references_agent_and_ours_solve_a_task_with_the_same_script() {
    let machine = Machine::new();
    machine.write("agent.yaml", AGENT);
    machine.write("user.yaml", USER);
    for agent in ["llm_agent", "generic", "react"] {
        let file = format!("{agent}.json");
        let args = [
            "bench",
            "run",
            "--agent",
            agent,
            "--agent-llm",
            "script:agent.yaml",
            "--user-llm",
            "script:user.yaml",
            "--task-ids",
            "book_tune_up",
            "--save-to",
            &file,
        ];
        let ran = machine.duo(&args);
        assert_eq!(ran.code, 0, "{agent}: {}", ran.err);
        assert!(ran.out.contains("mean reward 1.000"), "{agent}: {}{}", ran.out, ran.err);
    }
}

#[test]
fn a_recorded_conversation_goes_on_with_another_agent() {
    let machine = Machine::new();
    machine.duo(&[&ORACLE[..], &["--save-to", "a.json", "--task-ids", "full_day"]].concat());
    let args = [
        "bench",
        "run",
        "--from",
        "a.json",
        "--at",
        "4",
        "--agent",
        "idle",
        "--user",
        "oracle_user",
        "--save-to",
        "b.json",
    ];
    let ran = machine.duo(&args);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let viewed = machine.duo(&["bench", "view", "b.json", "--task", "full_day"]);
    assert!(viewed.out.contains("get_day("), "{}", viewed.out);
    assert!(viewed.out.contains("I cannot help with that."), "{}", viewed.out);
}

#[test]
fn what_is_missing_or_unknown_is_told_with_what_there_is() {
    let machine = Machine::new();
    let ran = machine.duo(&["bench", "run", "--domain", "airline", "--agent", "oracle"]);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("TAU2_DATA_DIR"), "{}", ran.err);
    let ran = machine.duo(&["bench", "run", "--domain", "moon"]);
    assert!(ran.err.contains("unknown domain \"moon\"; there are airline"), "{}", ran.err);
    let ran = machine.duo(&["bench", "run", "--agent", "nobody", "--agent-llm", "demo"]);
    assert!(ran.err.contains("llm_agent_solo") && ran.err.contains("planned"), "{}", ran.err);
    let ran = machine.duo(&["bench", "run", "--task-ids", "none"]);
    assert!(ran.err.contains("no task \"none\""), "{}", ran.err);
}
