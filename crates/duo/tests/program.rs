//! The program as a script meets it: arguments, streams, exit codes, other processes.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

mod support;

use std::{
    io::Write,
    process::Stdio,
    time::{Duration, Instant},
};

use support::*;

#[test]
fn a_run_without_a_terminal_prints_the_answer_alone() {
    let machine = Machine::new();
    let ran = machine.duo(&["--model", "demo", "run", "what is 37*12?"]);
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (0, "It is 444.\n", ""));
    let verbose = machine.duo(&["--model", "demo", "run", "-v", "what is 37*12?"]);
    assert_eq!(verbose.out, "It is 444.\n");
    assert!(verbose.err.contains("⚙ calculator {\"expression\":\"37*12\"}"), "{}", verbose.err);
    assert!(verbose.err.contains("↳ ok: 444"), "{}", verbose.err);
    assert!(!verbose.err.contains('\x1b'), "no colours into a pipe");
}

#[test]
fn json_prints_every_entry_and_the_journal_has_the_same() {
    let machine = Machine::new();
    let ran = machine.duo(&["--model", "demo", "run", "--json", "what is 37*12?"]);
    assert_eq!(ran.code, 0);
    let printed: Vec<serde_json::Value> =
        ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let id = machine.sessions().remove(0);
    let kept = machine.journal(&id);
    assert_eq!(printed, kept[1..], "all but the first, which was written before");
    assert_eq!(kinds(&kept).last(), Some(&"agent_response_end"));
}

#[test]
fn a_task_can_come_from_standard_input() {
    let machine = Machine::new();
    let mut child = machine
        .command(&["--model", "demo", "run", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"what is 2+2?\n").unwrap();
    assert_eq!(ran(child.wait_with_output().unwrap()).out, "It is 4.\n");
    let empty = machine.duo(&["--model", "demo", "run", "-"]);
    assert_eq!((empty.code, empty.err.as_str()), (2, "duo: the task is empty\n"));
}

#[test]
fn without_a_model_three_ways_to_get_one_are_told() {
    let ran = Machine::new().duo(&["run", "hello"]);
    assert_eq!((ran.code, ran.out.as_str()), (1, ""), "{}", ran.err);
    for way in ["ANTHROPIC_API_KEY", "ollama/", "--model demo"] {
        assert!(ran.err.contains(way), "{}", ran.err);
    }
}

/// The command that a run without a terminal prints for an open question, with a choice made.
fn printed_command(err: &str, choice: &str) -> Vec<String> {
    let line = err.lines().find(|line| line.contains("duo sessions answer")).unwrap();
    let mut words: Vec<String> = line.split_whitespace().skip(1).map(str::to_owned).collect();
    words.truncate(4);
    words.push(choice.to_owned());
    words
}

#[test]
fn an_approval_exits_with_its_code_and_is_given_by_the_printed_command() {
    let machine = Machine::new();
    let ran = machine.duo(&["--model", "demo", "run", "note buy milk"]);
    assert_eq!((ran.code, ran.out.as_str()), (3, ""));
    assert_eq!(machine.read("note.txt"), None);
    let command = printed_command(&ran.err, "approve");
    let command: Vec<&str> = command.iter().map(String::as_str).collect();
    let answered = machine.duo(&command);
    assert_eq!(answered.out, "Done. Look at it with: read note.txt\n", "{}", answered.err);
    assert_eq!((answered.code, machine.read("note.txt").as_deref()), (0, Some("buy milk\n")));
    let again = machine.duo(&command);
    assert_eq!(again.code, 2, "an answer counts once");
    assert!(again.err.contains("nothing waits"), "{}", again.err);
}

const MIXED: &str = "
turns:
  - calls:
      - { id: auto, name: calculator, arguments: { expression: '6*7' } }
      - { id: confirmed, name: shell, arguments: { command: 'echo did it >> deeds.log' } }
      - { id: invalid, name: read_file, arguments: { path: 7 } }
      - { id: failing, name: read_file, arguments: { path: nowhere.txt } }
  - text: All four have results.
";

/// Runs until the approval waits, in a process that then hangs on: it is killed there.
fn killed_while_waiting(machine: &Machine, shared: &[&str]) {
    let mut args = shared.to_vec();
    args.extend(["run", "go"]);
    let mut child =
        machine.command(&args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let mut list = shared.to_vec();
        list.extend(["sessions", "list", "--json", "--status", "input_required"]);
        if !machine.duo(&list).out.is_empty() {
            break;
        }
        assert!(Instant::now() < deadline, "the approval never waits");
    }
    let _ = child.kill();
    child.wait().unwrap();
}

#[test]
fn a_mixed_batch_killed_while_the_approval_waits_is_finished_from_another_process() {
    let machine = Machine::new();
    machine.write("script.yaml", MIXED);
    let shared = ["--model", "script:script.yaml", "--set", "tools.enabled=[\"shell\"]"];
    killed_while_waiting(&machine, &shared);
    let id = machine.sessions().remove(0);
    let mut args = shared.to_vec();
    args.extend(["sessions", "answer", &id, "confirmed", "approve"]);
    let ran = machine.duo(&args);
    assert_eq!((ran.code, ran.out.as_str()), (0, "All four have results.\n"), "{}", ran.err);
    assert_eq!(machine.read("deeds.log").as_deref(), Some("did it\n"));

    let entries = machine.journal(&id);
    let mut results: Vec<(&str, &str)> = entries
        .iter()
        .filter(|entry| entry["kind"] == "tool_ended")
        .map(|entry| (entry["call_id"].as_str().unwrap(), entry["status"].as_str().unwrap()))
        .collect();
    results.sort_unstable();
    let expected =
        [("auto", "ok"), ("confirmed", "ok"), ("failing", "error"), ("invalid", "invalid")];
    assert_eq!(results, expected, "exactly one result per call");
    let asked = kinds(&entries).iter().filter(|kind| **kind == "agent_message").count();
    assert_eq!(asked, 2, "the model was asked once more, when all results were there");
    let answered = entries.iter().find(|e| e["kind"] == "external_action_result").unwrap();
    assert_eq!(answered["by"], "ada");
}

#[test]
fn sessions_are_listed_shown_forked_replayed_exported_and_deleted() {
    let machine = Machine::new();
    machine.duo(&["--model", "demo", "run", "what is 1+1?"]);
    let id = machine.sessions().remove(0);
    let start = &id[..5];

    let shown = machine.duo(&["sessions", "show", start]);
    assert!(
        shown.out.contains("❯ what is 1+1?") && shown.out.contains("It is 2."),
        "{}",
        shown.out
    );
    let replayed = machine.duo(&["sessions", "replay", start]);
    assert!(replayed.out.ends_with("replayed 8 entries; 4 decisions the same\n"), "{replayed:?}");
    let other = machine.duo(&["sessions", "replay", start, "--agent", "missing"]);
    assert_eq!(other.code, 2, "{other:?}");

    let copy = machine.duo(&["sessions", "fork", start, "--at", "1"]).out.trim().to_owned();
    let resumed = machine.duo(&["chat", "--session", &copy, "--model", "demo"]);
    assert_eq!(resumed.code, 0, "{resumed:?}");
    assert_eq!(machine.journal(&copy)[0]["forked_from"]["session"], id.as_str());

    let exported = machine.duo(&["sessions", "export", start, "--format", "markdown"]);
    assert!(exported.out.contains("## User\n\nwhat is 1+1?"), "{}", exported.out);
    let lines = machine.duo(&["sessions", "export", start]);
    assert_eq!(lines.out.lines().count(), 8);

    let careful = machine.duo(&["sessions", "delete", start]);
    assert_eq!((careful.code, machine.sessions().len()), (2, 2), "nothing goes without a yes");
    let deleted = machine.duo(&["sessions", "delete", start, "--yes"]);
    assert_eq!(deleted.code, 0, "{}", deleted.err);
    assert_eq!(machine.sessions(), [copy]);
    let gone = machine.duo(&["sessions", "show", &id]);
    assert_eq!(gone.code, 2);
    assert!(gone.err.contains("there is no session"), "{}", gone.err);
}

#[test]
fn mistakes_in_the_configuration_are_told_with_their_places() {
    let machine = Machine::new();
    machine.write("duologue.toml", "agent = \"react\"\n[tools]\nenabled = [\"shel\"]\n");
    let ran = machine.duo(&["tools"]);
    assert_eq!(ran.code, 2);
    let wanted = "duologue.toml:3: tools.enabled: unknown tool \"shel\" (did you mean \"shell\"?)";
    assert!(ran.err.contains(wanted), "{}", ran.err);
}

#[test]
fn an_agent_of_the_project_is_used_by_its_name_with_its_tools_alone() {
    let machine = Machine::new();
    machine.write(
        "duologue.toml",
        "agent = \"clerk\"\n[agents.clerk]\nbehavior = \"react\"\ntools = [\"echo\"]\n",
    );
    let tools = machine.duo(&["tools", "--json"]);
    let list: Vec<serde_json::Value> = serde_json::from_str(&tools.out).unwrap();
    assert_eq!(list.len(), 1);
    assert_eq!(list[0]["spec"]["name"], "echo");
    let ran = machine.duo(&["--model", "demo", "run", "-v", "what is 1+1?"]);
    assert!(ran.err.contains("There is no tool calculator. The tools are: echo."), "{}", ran.err);
}

#[test]
fn a_bound_ends_in_its_own_exit_code() {
    let machine = Machine::new();
    let turn = "  - calls: [{ name: echo, arguments: { text: again } }]\n";
    machine.write("script.yaml", &format!("turns:\n{}", turn.repeat(12)));
    let ran = machine.duo(&["--model", "script:script.yaml", "--agent", "react", "run", "go"]);
    assert_eq!((ran.code, ran.err.as_str()), (4, "duo: limit reached: steps\n"));
    let broke = machine.duo(&["--model", "script:missing.yaml", "run", "go"]);
    assert_eq!(broke.code, 2, "{broke:?}");
}

#[test]
fn what_was_recorded_is_replayed_and_anything_else_fails_loudly() {
    let machine = Machine::new();
    let recorded =
        machine.duo(&["--model", "demo", "run", "--record", "tape.jsonl", "what is 6*7?"]);
    assert_eq!(recorded.out, "It is 42.\n", "{}", recorded.err);
    let replayed = machine.duo(&["--model", "replay:tape.jsonl", "run", "what is 6*7?"]);
    assert_eq!(replayed.out, "It is 42.\n", "{}", replayed.err);
    let other = machine.duo(&["--model", "replay:tape.jsonl", "run", "what is 6*8?"]);
    assert_eq!(other.code, 1);
    assert!(
        other.err.contains("what is 6*8?") && other.err.contains("what is 6*7?"),
        "{}",
        other.err
    );
}

#[test]
fn chat_reads_lines_from_a_pipe() {
    let machine = Machine::new();
    let mut child = machine
        .command(&["--model", "demo", "chat"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"what is 1+1?\n\nwhat is 2+2?\n").unwrap();
    let ran = ran(child.wait_with_output().unwrap());
    assert_eq!((ran.code, ran.out.as_str()), (0, "It is 2.\nIt is 4.\n"), "{}", ran.err);
    assert_eq!(machine.sessions().len(), 1, "one conversation");
}

#[test]
fn a_reader_that_leaves_early_is_not_an_error() {
    let machine = Machine::new();
    machine.duo(&["--model", "demo", "run", "what is 1+1?"]);
    let program = env!("CARGO_BIN_EXE_duo");
    let line = format!("{program} config --reference | head -n 1; echo ${{PIPESTATUS[0]}}");
    let mut command = std::process::Command::new("bash");
    let plain = machine.command(&[]);
    command.args(["-c", &line]).current_dir(machine.work()).env_clear();
    command.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let ran = ran(command.output().unwrap());
    assert_eq!((ran.err.as_str(), ran.out.lines().last()), ("", Some("0")), "{ran:?}");
}
