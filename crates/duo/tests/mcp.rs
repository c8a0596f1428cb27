//! `duo` with MCP servers that nobody here wrote, and as a server to the official client.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

mod support;

use std::{
    io::Write as _,
    path::{Path, PathBuf},
    process::Stdio,
};

use support::Machine;

/// Where something that setup installs is, if it is there.
fn installed(what: &str) -> Option<PathBuf> {
    let root = std::env::var_os("DUOLOGUE_MCP_TOOLS")
        .map(PathBuf::from)
        .unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools/mcp"));
    let found = std::path::absolute(root.join(what)).unwrap();
    if found.exists() {
        return Some(found);
    }
    let note = format!("SKIPPED: mcp/{what} is not installed; `cargo xtask setup` installs it\n");
    // Not by a macro: the test runner would keep that to itself.
    let _ = std::io::stderr().write_all(note.as_bytes());
    None
}

const SCRIPT: &str = r#"
turns:
  - calls: [{ name: time__get_current_time, arguments: { timezone: UTC } }]
  - text: It is late.
"#;

#[test]
fn an_agent_uses_the_tools_of_a_server_that_its_person_allowed() {
    let Some(server) = installed("py/bin/mcp-server-time") else { return };
    let machine = Machine::new();
    machine.write("script.yaml", SCRIPT);
    let json = serde_json::json!({"mcpServers": {"time": {"command": server}}});
    machine.write(".mcp.json", &json.to_string());

    // A project does not get to start programs just because somebody runs duo in it.
    let args = ["--model", "script:script.yaml", "-p", "full", "run", "-v", "What time is it?"];
    let ran = machine.duo(&args);
    assert!(ran.err.contains("MCP server time of this project is not used"), "{}", ran.err);
    assert!(ran.err.contains("There is no tool time__get_current_time"), "{}", ran.err);

    let tested = machine.duo(&["mcp", "test", "time", "--yes"]);
    assert!(tested.out.contains("2 tools"), "{tested:?}");
    let ran = machine.duo(&args);
    assert_eq!((ran.code, ran.out.as_str()), (0, "It is late.\n"), "{}", ran.err);
    assert!(ran.err.contains("\"timezone\": \"UTC\"") || ran.err.contains("ok"), "{}", ran.err);
    assert!(!ran.err.contains("There is no tool"), "{}", ran.err);

    let listed = machine.duo(&["tools"]);
    assert!(listed.out.contains("time__convert_time"), "{}", listed.out);
    let unknown = machine.duo(&["mcp", "call", "tyme", "x"]);
    assert_eq!(unknown.code, 2);
    assert!(unknown.err.contains("there are time"), "{}", unknown.err);
}

#[test]
fn an_agent_that_is_its_own_server_does_not_start_itself_without_end() {
    let machine = Machine::new();
    let duo = machine.command(&[]).get_program().to_owned();
    let duo = duo.to_str().unwrap();
    let args = "args = ['mcp', 'serve', '--offer', 'generic']";
    machine.write(
        "duologue.toml",
        &format!("model = 'demo'\n[mcp_servers.mirror]\ncommand = '{duo}'\n{args}\n"),
    );
    let tested = machine.duo(&["mcp", "test", "mirror", "--yes"]);
    assert!(tested.out.contains("1 tools"), "{tested:?}");
}

const GREETER: &str = r#"
turns:
  - calls: [{ name: ask_human, arguments: { question: "Which name?" } }]
  - text: Hello, Ada!
  - text: You are welcome.
"#;

#[test]
fn the_official_client_talks_to_duo_over_its_standard_streams() {
    let Some(python) = installed("py/bin/python") else { return };
    let machine = Machine::new();
    let script = machine.write("script.yaml", GREETER);
    let model = format!("script:{}", script.display());
    machine.write("duologue.toml", &format!("[agents.greeter]\nmodel = '{model}'\n"));
    let client = Path::new(env!("CARGO_MANIFEST_DIR")).join("../mcp/tests/foreign/client.py");
    for elicits in ["elicits", "plain"] {
        let duo = machine.command(&[]);
        let program = duo.get_program().to_owned();
        let mut command = std::process::Command::new(&python);
        command.arg(&client).arg(program).arg(elicits);
        command.args(["-C", machine.work().to_str().unwrap()]);
        command.args(["mcp", "serve", "--offer", "greeter", "--tool", "echo"]);
        command.current_dir(machine.work()).stdin(Stdio::null());
        command.envs(duo.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let output = command.output().unwrap();
        let (out, err) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success() && out.trim() == "ok", "{elicits}: {out}\n{err}");
    }
    let sessions = machine.duo(&["sessions", "list"]);
    assert!(sessions.out.contains("greeter"), "{}", sessions.out);
}

#[test]
fn a_server_that_finds_itself_among_its_own_servers_does_not_start_itself_without_end() {
    let machine = Machine::new();
    let duo = env!("CARGO_BIN_EXE_duo");
    let pids = machine.work().join("pids");
    // It puts itself down, and becomes duo, which needs its own servers for a tool of theirs.
    let start = format!("echo $$ >> '{}'; exec '{duo}' mcp serve --tool self__x", pids.display());
    let json =
        serde_json::json!({"mcpServers": {"self": {"command": "sh", "args": ["-c", start]}}});
    machine.write(".mcp.json", &json.to_string());
    let tested = machine.duo(&["mcp", "test", "self", "--yes"]);
    let started = std::fs::read_to_string(pids).unwrap().lines().count();
    assert_eq!(started, 2, "{tested:?}");
}
