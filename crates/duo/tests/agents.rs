//! Planned and dual agents as a user meets them.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

mod support;

use support::*;

/// A planned run of two steps that a check ends, without a classification.
const COPY: &str = r#"
rules:
  - when: Make a plan
    text: '{"reasoning": "read, then write", "steps": [{"title": "Read it", "tool": "read_file"}, {"title": "Write it", "tool": "write_file"}]}'
  - when: Check the work
    text: '{"is_complete": true, "reasoning": "b.txt has what a.txt has.", "suggestions": [], "confidence": 0.9}'
  - when: '- [ ] s1'
    text: I read it first.
    calls: [{ name: read_file, arguments: { path: a.txt } }]
  - when: '- [x] s1'
    calls: [{ name: write_file, arguments: { path: b.txt, content: "hello\n" } }]
"#;

/// H continues once and then accepts.
const SUPERVISOR: &str = "
turns:
  - calls: [{ name: decide, arguments: { action: continue, reasoning: it must be counted, instruction: Count the lines of a.txt. } }]
  - calls: [{ name: decide, arguments: { action: terminate, reasoning: it was counted, answer: a.txt has 1 line. } }]
";

const WORKER: &str = "
turns:
  - calls: [{ name: read_file, arguments: { path: a.txt } }]
  - calls: [{ name: conclude, arguments: { summary: It has one line., confidence: 0.9, artifacts: { lines: 1 } } }]
";

fn machine() -> Machine {
    let machine = Machine::new();
    machine.write("a.txt", "hello\n");
    machine
}

#[test]
fn a_planned_run_shows_plan_list_and_check_and_answers_alone_on_standard_output() {
    let machine = machine();
    machine.write("copy.yaml", COPY);
    let args = ["-m", "script:copy.yaml", "-p", "auto-edit", "-a", "planned"];
    let ran =
        machine.duo(&[&args[..], &["--strategy", "multi_step", "run", "-v", "Copy"]].concat());
    assert_eq!((ran.code, ran.out.as_str()), (0, "b.txt has what a.txt has.\n"), "{}", ran.err);
    assert_eq!(machine.read("b.txt").as_deref(), Some("hello\n"));
    let expected = "\
❯ Copy
· strategy multi_step: the agent is set to it
· plan with 2 steps: read, then write
  ☐ Read it
  ☐ Write it
I read it first.
⚙ read_file {\"path\":\"a.txt\"}
  ↳ ok (3 lines): The whole file, 1 line:…
  ☑ Read it
⚙ write_file {\"path\":\"b.txt\",\"content\":\"hello\\n\"}
  ↳ ok: created b.txt (6 bytes)
  ☑ Write it
✔ checked: complete · b.txt has what a.txt has.
b.txt has what a.txt has.
· todo: 2 of 2 finished
";
    assert_eq!(ran.err, expected);
    let id = machine.sessions().remove(0);
    let replayed = machine.duo(&["sessions", "replay", "-q", &id]);
    assert_eq!(replayed.code, 0, "the flags are remembered: {}", replayed.err);
}

#[test]
fn a_dual_run_tells_who_decides_and_who_works() {
    let machine = machine();
    machine.write("h.yaml", SUPERVISOR);
    machine.write("r.yaml", WORKER);
    let models = ["-m", "demo", "--model-h", "script:h.yaml", "--model-r", "script:r.yaml"];
    let ran = machine.duo(&[&models[..], &["-a", "dual", "run", "-v", "How many lines?"]].concat());
    assert_eq!((ran.code, ran.out.as_str()), (0, "a.txt has 1 line.\n"), "{}", ran.err);
    for line in [
        "◆ H decides: continue: Count the lines of a.txt.\n  it must be counted\n",
        "R │ ⚙ read_file {\"path\":\"a.txt\"}\n",
        "◇ R concludes (90 % sure): It has one line.\n  + lines\n",
        "◆ H decides: terminate: a.txt has 1 line.\n",
    ] {
        assert!(ran.err.contains(line), "{line}\nis not in\n{}", ran.err);
    }
    let id = machine.sessions().remove(0);
    let shown = machine.duo(&["sessions", "show", &id]);
    assert!(shown.out.contains("R │ ⚙ read_file"), "{}", shown.out);
    let replayed = machine.duo(&["sessions", "replay", "-q", &id]);
    assert_eq!(replayed.code, 0, "{}", replayed.err);
}

#[test]
fn loops_are_bounded_by_the_flag_and_the_file_defines_agents_of_agents() {
    let machine = machine();
    machine.write(
        "duologue.toml",
        "[agents.pair]\nbehavior = 'dual'\n\
         dual.human = 'boss'\ndual.reactive = ['hand']\ndual.model_r = 'script:r.yaml'\n\
         [agents.boss]\nmodel = 'script:h.yaml'\nsystem = 'You decide.'\n\
         [agents.hand]\nbehavior = 'react'\ntools = ['read_file']\n",
    );
    machine.write("h.yaml", SUPERVISOR);
    machine.write("r.yaml", WORKER);
    let ran = machine.duo(&["-a", "pair", "run", "How many lines?"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "a.txt has 1 line.\n"), "{}", ran.err);
    let always = "
rules:
  - when: ''
    calls: [{ name: decide, arguments: { action: continue, reasoning: more, instruction: Go on. } }]
";
    machine.write("h.yaml", always);
    let worker = "
rules:
  - when: ''
    calls: [{ name: conclude, arguments: { summary: Not yet. } }]
";
    machine.write("r.yaml", worker);
    let ran = machine.duo(&["-a", "pair", "--max-hr-loops", "2", "run", "--json", "Go"]);
    assert_eq!(ran.code, 4, "{}", ran.err);
    let conclusions = ran.out.lines().filter(|line| line.contains("\"topic\":\"conclusion\""));
    assert_eq!(conclusions.count(), 2);
    let none = machine.duo(&["-a", "pair", "--max-hr-loops", "0", "run", "Go"]);
    assert_eq!(none.code, 2, "{}", none.err);
    let odd = machine.duo(&["-a", "planned", "--strategy", "fast", "run", "Go"]);
    assert!(odd.err.contains("auto, simple, multi_step, react, hybrid"), "{}", odd.err);
}

#[test]
fn an_approval_in_the_working_half_is_given_from_another_process() {
    let machine = machine();
    let h = SUPERVISOR.replace("Count the lines of a.txt.", "Write b.txt.");
    machine.write("h.yaml", &h);
    machine.write(
        "r.yaml",
        "
turns:
  - calls: [{ id: w1, name: write_file, arguments: { path: b.txt, content: x } }]
  - calls: [{ name: conclude, arguments: { summary: Written. } }]
",
    );
    let models = ["--model-h", "script:h.yaml", "--model-r", "script:r.yaml", "-m", "demo"];
    let ran = machine.duo(&[&models[..], &["-a", "dual", "run", "Write"]].concat());
    assert_eq!((ran.code, ran.out.as_str()), (3, ""), "{}", ran.err);
    let line = ran.err.lines().find(|line| line.contains("duo sessions answer")).unwrap();
    let words: Vec<&str> = line.split_whitespace().skip(1).take(4).collect();
    let answered = machine.duo(&[&words[..], &["approve"]].concat());
    assert_eq!(
        (answered.code, answered.out.as_str()),
        (0, "a.txt has 1 line.\n"),
        "{}",
        answered.err
    );
    assert_eq!(machine.read("b.txt").as_deref(), Some("x"), "the models are remembered");
}

#[test]
fn lessons_are_kept_shown_and_deleted_only_where_wanted() {
    let machine = machine();
    machine.write("copy.yaml", COPY);
    let run = |more: &[&str]| {
        let args = ["-m", "script:copy.yaml", "-p", "auto-edit", "-a", "planned"];
        let rest = ["--strategy", "multi_step", "run", "Copy a.txt to b.txt"];
        machine.duo(&[&args[..], more, &rest[..]].concat())
    };
    assert_eq!(run(&[]).code, 0);
    assert!(machine.duo(&["lessons", "list"]).out.contains("planned.lessons=true"));
    assert_eq!(run(&["--set", "planned.lessons=true"]).code, 0);
    let listed = machine.duo(&["lessons", "list"]);
    let expected =
        "  1 ✔ Copy a.txt to b.txt (multi_step: completed)\n      1. Read it\n      2. Write it\n";
    assert_eq!(listed.out, expected);
    let like = machine.duo(&["lessons", "list", "--like", "sing a song"]);
    assert!(!like.out.contains("Copy"), "{}", like.out);
    assert_eq!(machine.duo(&["lessons", "delete", "1"]).code, 2, "nobody said yes");
    assert_eq!(machine.duo(&["lessons", "delete", "2", "--yes"]).code, 2, "there is none");
    assert_eq!(machine.duo(&["lessons", "delete", "1", "--yes"]).out, "deleted one lesson\n");
    assert!(!machine.duo(&["lessons", "list"]).out.contains("Copy"));
}
