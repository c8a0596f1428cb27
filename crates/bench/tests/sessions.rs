//! Sessions of agents as histories of simulations.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::sync::Arc;

use duologue_bench::{DataDir, Message, Mode, Registry, external_tools, history_of};
use duologue_core::{
    Agent, Answer, Effect, Execution, InquiryKind, MemoryStore, Part, Session, SessionOptions,
    Toolbox, tool,
};
use duologue_models::{Scripted, Turn, TurnCall};
use serde_json::{Value, json};

/// An agent with a domain's tools, one of its own, and somebody to ask.
fn agent(turns: impl IntoIterator<Item = Turn>) -> Agent {
    let registry = Registry::default();
    let entry = registry.domain("bike_shop").unwrap();
    let domain = (entry.load)(&DataDir::new("nowhere"), None).unwrap();
    let ask = tool("ask_human", "Asks.", Effect::Pure, |_: Value, _| async { Ok("") })
        .execution(Execution::Human);
    let look = tool("look", "Looks.", Effect::Pure, |_: Value, _| async { Ok("seen") });
    let tools = external_tools(&domain.agent_tools(Mode::Dialogue));
    let tools = tools.into_iter().fold(Toolbox::new().with(ask).with(look), Toolbox::with_shared);
    Agent::builder("worker", duologue_behaviors::Generic::default())
        .model(Arc::new(Scripted::new(turns)))
        .tools(tools)
        .build()
}

/// A conversation as its lines.
fn lines(messages: &[Message]) -> Vec<String> {
    let line = |message: &Message| {
        let who = match message {
            Message::Assistant(_) => "agent",
            Message::User(_) => "user",
            Message::Tool(_) => "tool",
            Message::System(_) => "system",
        };
        let calls = message.tool_calls().iter().map(|call| format!("[{}]", call.name));
        format!("{who}: {}{}", message.content().unwrap_or_default(), calls.collect::<String>())
    };
    messages.iter().map(line).collect()
}

#[tokio::test]
async fn what_was_said_asked_and_called_is_the_history_at_every_point() {
    let both = Turn::text("A moment.")
        .and_call(TurnCall::new("ask_human", json!({"question": "Which bike?"})))
        .and_call(TurnCall::new("get_day", json!({"day": "2026-05-18"})))
        .and_call(TurnCall::new("look", json!({})));
    let agent = agent([both, Turn::text("It is free.")]);
    let options = SessionOptions::default();
    let session = Session::start(&agent, Arc::new(MemoryStore::new()), options).unwrap();
    session.reply("Is there room on Monday?").await.unwrap();
    let waiting = session.state().await.unwrap().entries;
    assert_eq!(lines(&history_of(&waiting)), ["user: Is there room on Monday?"]);
    for inquiry in session.pending() {
        let answer = match &inquiry.kind {
            InquiryKind::Question { .. } => Answer::text("The green one."),
            _ => Answer::Result { content: vec![Part::text("room for 3")], is_error: false },
        };
        session.answer(&inquiry.id, answer, None).unwrap();
    }
    session.resume().await.unwrap();
    let entries = session.state().await.unwrap().entries;
    let whole = [
        "user: Is there room on Monday?",
        "agent: A moment.[get_day][look]",
        "tool: room for 3",
        "tool: seen",
        "agent: Which bike?",
        "user: The green one.",
        "agent: It is free.",
    ];
    assert_eq!(lines(&history_of(&entries)), whole);
    // Whatever the point, what is kept is a beginning of the whole.
    for at in 0..entries.len() {
        let part = lines(&history_of(&entries[..at]));
        assert_eq!(part, whole[..part.len()], "at {at}");
    }
}

#[tokio::test]
async fn a_question_that_waits_is_the_last_word() {
    let agent = agent([Turn::call("ask_human", json!({"question": "Which bike?"}))]);
    let options = SessionOptions::default();
    let session = Session::start(&agent, Arc::new(MemoryStore::new()), options).unwrap();
    session.reply("A tune-up, please.").await.unwrap();
    let entries = session.state().await.unwrap().entries;
    let expected = ["user: A tune-up, please.", "agent: Which bike?"];
    assert_eq!(lines(&history_of(&entries)), expected);
}
