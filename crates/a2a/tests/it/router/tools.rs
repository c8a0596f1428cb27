//! The tools by their commands, here and from elsewhere.

use std::sync::Arc;

use duologue_a2a::{BidirectionalAgent, Directory, ToolSetupError};
use duologue_core::{Answer, Effect, InquiryKind, MemoryStore, Outcome, Part, Tool};
use schemars::JsonSchema;
use serde::Deserialize;

use super::stage::*;
use crate::support::{Client, Turn};

#[derive(Deserialize, JsonSchema)]
struct CommandLine {
    /// The command.
    command: String,
}

/// Something that runs commands.
fn commands() -> Arc<dyn Tool> {
    let run = |line: CommandLine, _| async move { Ok(format!("ran {}", line.command)) };
    Arc::new(duologue_core::tool("shell", "Runs a command.", Effect::SideEffect, run))
}

fn everything(model: &Decider, directory: &Directory) -> BidirectionalAgent {
    let builder = described(model, directory).enabled(duologue_a2a::TOOL_NAMES);
    builder.commands(commands()).build().unwrap()
}

/// What a command gave, as JSON where it is.
async fn gives(talk: &Talk, text: &str) -> Value {
    let reply = talk.say(text).await;
    assert_eq!(reply.outcome, Outcome::Completed, "{text}");
    match &reply.message.unwrap().parts[0] {
        Part::Data { value } => value.clone(),
        Part::Text { text } => json!(text),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn agents_discover_each_other_as_in_the_seed() {
    let directory = Directory::in_memory();
    let model = Decider::new();
    let talk = Talk::new(everything(&model, &directory).agent());
    let nobody = json!({"count": 0, "message": "No agents found in the directory"});
    assert_eq!(gives(&talk, ":tool list_agents").await, nobody);
    let two = other(&directory, "Agent Two", [Turn::text("x")]).await;
    let _three = other(&directory, "Agent Three", [Turn::text("x")]).await;
    let simple = json!({"count": 2, "agents": [
        {"id": "agent-three", "name": "Agent Three"},
        {"id": "agent-two", "name": "Agent Two"},
    ]});
    assert_eq!(gives(&talk, r#":tool list_agents {"format":"simple"}"#).await, simple);
    assert_eq!(gives(&talk, ":tool list_agents").await, simple);
    let detailed = gives(&talk, r#":tool list_agents {"format":"detailed"}"#).await;
    assert_eq!(detailed["agents"][1]["url"], two.url());
    assert_eq!(detailed["agents"][1]["health"], "up");
    let servers = gives(&talk, ":servers").await;
    assert_eq!(servers["servers"][1]["number"], 2);
    assert_eq!(gives(&talk, ":card").await["name"], "Front");
    let card = gives(&talk, r#":tool show_agent_card {"agent":"agent-two"}"#).await;
    assert_eq!(card["name"], "Agent Two");
    assert_eq!(gives(&talk, r#":tool echo {"text":"hi"}"#).await, "hi");
    // No command needed a decision.
    assert!(model.points().is_empty());
}

#[tokio::test]
async fn the_llm_tools_answer_in_the_open() {
    let model = Decider::new().answer("42").answer("It is short.");
    let talk = Talk::new(everything(&model, &Directory::in_memory()).agent());
    assert_eq!(gives(&talk, r#":tool llm {"prompt":"6 times 7?"}"#).await, "42");
    assert_eq!(gives(&talk, r#":tool summarize {"text":"A long text."}"#).await, "It is short.");
    assert!(model.asked("answer")[1].contains("Summarize this text"));
    talk.replays().await;
}

#[tokio::test]
async fn remember_agent_asks_and_then_knows_the_agent_and_its_friends() {
    let directory = Directory::in_memory();
    let model = Decider::new();
    let friend = everything(&model, &Directory::in_memory());
    let second = Directory::in_memory();
    let other_model = Decider::new();
    let two = BidirectionalAgent::new("two", "Two", Arc::new(other_model), second).build().unwrap();
    let serving = two.serve(Arc::new(MemoryStore::new()), |server| server).await.unwrap();
    let _third = other(two.directory(), "Third", [Turn::text("x")]).await;
    let talk = Talk::new(everything(&model, &directory).agent());
    let reply = talk.say(&format!(":tool remember_agent {{\"url\":\"{}\"}}", serving.url())).await;
    let Outcome::InputRequired { inquiries } = &reply.outcome else { panic!("{reply:?}") };
    assert!(matches!(inquiries[0].kind, InquiryKind::Approval { .. }), "{inquiries:?}");
    let reply = talk.answer(Answer::Approve).await;
    assert_eq!(reply.outcome, Outcome::Completed);
    let ids: Vec<String> = directory.list().into_iter().map(|agent| agent.id).collect();
    assert_eq!(ids, ["third", "two"]);
    drop(friend);
}

#[tokio::test]
async fn commands_run_only_after_a_yes() {
    let directory = Directory::in_memory();
    let model = Decider::new()
        .at("route", local())
        .at("tool", tool("execute_command", json!({"command": "ls"})));
    let talk = Talk::new(everything(&model, &directory).agent());
    let reply = talk.say("List the files").await;
    assert!(matches!(reply.outcome, Outcome::InputRequired { .. }), "{reply:?}");
    assert_eq!(talk.answer(Answer::Approve).await.text(), "ran ls");
    let reply = talk.say(r#":tool execute_command {"command":"rm"}"#).await;
    assert!(matches!(reply.outcome, Outcome::InputRequired { .. }), "{reply:?}");
    let reply = talk.answer(Answer::Deny { reason: "no".into() }).await;
    assert!(matches!(reply.outcome, Outcome::Rejected { .. }), "{reply:?}");
    talk.replays().await;
}

#[tokio::test]
async fn other_agents_reach_only_what_is_exposed_to_them() {
    let model = Decider::new();
    let agent = everything(&model, &Directory::in_memory());
    let serving = agent.serve(Arc::new(MemoryStore::new()), |server| server).await.unwrap();
    let skills: Vec<&str> = serving.card().skills.iter().map(|skill| skill.id.as_str()).collect();
    let exposed = [
        "echo",
        "llm",
        "summarize",
        "list_agents",
        "human_input",
        "list_servers",
        "show_agent_card",
    ];
    assert_eq!(skills, exposed);
    let client = Client::new(&serving);
    let task = client.send(r#":tool echo {"text":"hi"}"#).await;
    assert_eq!(task["artifacts"][0]["parts"][0]["text"], "hi");
    for hidden in ["execute_command", "remember_agent", "confirm_action", "nonsense"] {
        let task = client.send(&format!(":tool {hidden} {{\"command\":\"ls\"}}")).await;
        assert_eq!(task["status"]["state"], "TASK_STATE_REJECTED", "{task}");
    }
    let task = client.send(":tool echo {").await;
    let why = task["status"]["message"]["parts"][0]["text"].as_str().unwrap();
    assert!(why.contains("not JSON"), "{why}");
}

#[tokio::test]
async fn tools_that_cannot_be_had_are_named() {
    let build = |names: &[&str]| {
        described(&Decider::new(), &Directory::in_memory()).enabled(names.iter().copied()).build()
    };
    let error = build(&["ehco"]).unwrap_err();
    assert_eq!(error, ToolSetupError::Unknown("ehco".into()));
    assert!(error.to_string().contains("echo"), "{error}");
    assert_eq!(build(&["execute_command"]).unwrap_err(), ToolSetupError::NoCommands);
    let exposed = described(&Decider::new(), &Directory::in_memory()).expose(["list_servers"]);
    assert_eq!(exposed.build().unwrap_err(), ToolSetupError::NotEnabled("list_servers".into()));
}
