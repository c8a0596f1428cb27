//! Turns: how they meet, how they end, and what they do about a model that fails.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    missing_docs
)]

mod support;

use std::{sync::Arc, time::Duration};

use duologue_behaviors::{Generic, ReAct};
use duologue_core::{
    Agent, Answer, Attendance, Budget, Effect, ErrorClass, Event, FailureCause, InquiryKind, Limit,
    Memory, MemoryStore, Model, ModelError, OnFull, Outcome, Retry, Session, SessionError,
    SessionOptions, ToolContext, WhenBusy, WindowLimit, tool,
};
use support::*;

#[tokio::test(start_paused = true)]
async fn a_second_request_is_queued_refused_or_steers_as_the_caller_chooses() {
    let deeds = Deeds::default();
    let slow = calls(&[("c1", "slow", r#"{"word":"a"}"#)]);
    let model = Turns::new([slow, says("first"), says("second")]);
    let (session, _) = start(&agent(&model, &deeds));

    let first = tokio::spawn({
        let session = session.clone();
        async move { session.reply("one").await }
    });
    tokio::time::sleep(Duration::from_millis(100)).await;
    let refused = session.reply_when_busy("x", WhenBusy::Refuse).await;
    assert_eq!(refused.unwrap_err(), SessionError::Busy);
    let queued = tokio::spawn({
        let session = session.clone();
        async move { session.reply("two").await }
    });
    let steered = session.reply_when_busy("hurry", WhenBusy::Steer).await.unwrap();
    assert_eq!(steered.text(), "first", "a steering request shares the turn's reply");
    assert_eq!(first.await.unwrap().unwrap(), steered);
    assert_eq!(queued.await.unwrap().unwrap().text(), "second");
    assert_eq!(model.prompt(1), ["one", "I will. ", "ok: a", "hurry"]);
    assert_eq!(model.prompt(2).last().unwrap(), "two");
}

#[tokio::test(start_paused = true)]
async fn cancelling_stops_a_model_in_mid_stream_and_keeps_what_it_said() {
    let model = Turns::new([Turn::Hangs("half an ans"), says("whole")]);
    let (session, store) = start(&agent(&model, &Deeds::default()));
    let turn = tokio::spawn({
        let session = session.clone();
        async move { session.reply("go").await }
    });
    tokio::time::sleep(Duration::from_millis(50)).await;
    session.cancel("enough");
    let reply = turn.await.unwrap().unwrap();
    assert_eq!(reply.outcome, Outcome::Aborted { reason: "enough".into() });
    assert_eq!(reply.text(), "half an ans");
    assert_eq!(session.reply("go on").await.unwrap().text(), "whole");
    assert_eq!(model.prompt(1), ["go", "half an ans", "go on"]);
    let ends = journal(&store, session.id()).await;
    let ends = ends.iter().filter(|e| matches!(e.event, Event::AgentResponseEnd { .. })).count();
    assert_eq!(ends, 2, "every turn ends once");
}

#[tokio::test]
async fn cancelling_reaches_a_running_tool_within_a_second_and_it_gets_its_result() {
    let model = Turns::new([calls(&[("c1", "stubborn", r#"{"word":"a"}"#)])]);
    let deeds = Deeds::default();
    let stubborn = tool(
        "stubborn",
        "Ignores everything.",
        Effect::SideEffect,
        |_: Word, _: ToolContext| async move {
            std::future::pending::<()>().await;
            Ok("never")
        },
    );
    let tools = toolbox(&deeds).with(stubborn);
    let (session, store) = start(&builder(&model, &deeds).tools(tools).build());
    let turn = tokio::spawn({
        let session = session.clone();
        async move { session.reply("go").await }
    });
    tokio::time::sleep(Duration::from_millis(50)).await;
    let began = std::time::Instant::now();
    session.cancel("stop");
    let reply = turn.await.unwrap().unwrap();
    assert!(began.elapsed() < Duration::from_secs(1));
    assert!(matches!(reply.outcome, Outcome::Aborted { .. }));
    assert_eq!(results(&journal(&store, session.id()).await)[0].1, "cancelled");
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_goes_away_does_not_end_the_turn() {
    let deeds = Deeds::default();
    let model = Turns::new([calls(&[("c1", "slow", r#"{"word":"a"}"#)]), says("done")]);
    let (session, _) = start(&agent(&model, &deeds));
    let gone = tokio::time::timeout(Duration::from_millis(10), session.reply("go")).await;
    assert!(gone.is_err());
    let reply = session.resume().await.unwrap();
    assert_eq!(reply.text(), "done");
}

fn failing(class: ErrorClass) -> Turn {
    Turn::Fails(ModelError::new(class, "it failed"))
}

#[tokio::test(start_paused = true)]
async fn a_model_that_fails_for_the_moment_is_asked_again_with_patience() {
    let asked = ModelError::new(ErrorClass::RateLimited, "slow down");
    let model = Turns::new([
        Turn::Fails(asked.retry_after(Duration::from_secs(7))),
        failing(ErrorClass::Server),
        Turn::BreaksOff("half"),
        says("done"),
    ]);
    let (session, store) = start(&agent(&model, &Deeds::default()));
    let began = tokio::time::Instant::now();
    let reply = session.reply("go").await.unwrap();
    assert_eq!(reply.text(), "done", "what a broken answer said does not count");
    assert!(began.elapsed() >= Duration::from_secs(7), "retry-after is honoured");
    let entries = journal(&store, session.id()).await;
    let retried: Vec<&str> =
        kinds(&entries).into_iter().filter(|kind| *kind == "model_retried").collect();
    assert_eq!(retried.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_model_that_keeps_failing_or_asks_for_too_much_patience_ends_the_turn() {
    let three = || Turns::new((0..4).map(|_| failing(ErrorClass::Timeout)));
    let (session, _) = start(&agent(&three(), &Deeds::default()));
    let reply = session.reply("go").await.unwrap();
    let Outcome::Failed { error, cause } = reply.outcome else { panic!() };
    assert_eq!(cause, FailureCause::Model);
    assert_eq!(error, "test/turns: timeout after 4 tries: it failed");

    let long = ModelError::new(ErrorClass::RateLimited, "come back").retry_after(Duration::MAX);
    let model = Turns::new([Turn::Fails(long)]);
    let (session, _) = start(&agent(&model, &Deeds::default()));
    assert!(matches!(session.reply("go").await.unwrap().outcome, Outcome::Failed { .. }));

    let model = Turns::new([failing(ErrorClass::Authentication)]);
    let (session, _) = start(&agent(&model, &Deeds::default()));
    let reply = session.reply("go").await.unwrap();
    let Outcome::Failed { cause, .. } = reply.outcome else { panic!() };
    assert_eq!((cause, model.asked()), (FailureCause::Authentication, 1), "no second try");
}

#[tokio::test]
async fn a_prompt_that_is_too_long_for_the_model_is_halved_until_it_fits() {
    let model = Turns::new([says("1"), says("2"), failing(ErrorClass::ContextOverflow), says("3")]);
    let (session, store) = start(&agent(&model, &Deeds::default()));
    session.reply("a".repeat(400)).await.unwrap();
    session.reply("b".repeat(400)).await.unwrap();
    assert_eq!(session.reply("the task").await.unwrap().text(), "3");
    assert_eq!(model.prompt(3).last().unwrap(), "the task");
    assert!(model.prompt(3).len() < model.prompt(2).len());
    let entries = journal(&store, session.id()).await;
    assert!(kinds(&entries).contains(&"memory_trimmed"));
}

#[tokio::test]
async fn an_overflowing_window_is_summarised_where_that_is_wanted() {
    let turns = [says("one"), says("two"), says("They counted."), says("three")];
    let model = Turns::new(turns);
    let memory = Memory {
        window: WindowLimit::Messages(4),
        trim_to: 0.5,
        on_full: OnFull::Summarize,
        ..Memory::default()
    };
    let agent = builder(&model, &Deeds::default()).memory(memory).build();
    let (session, _) = start(&agent);
    for text in ["1", "2", "3"] {
        session.reply(text).await.unwrap();
    }
    let summary = "Summary of the conversation before this:\nThey counted.";
    assert_eq!(model.prompt(2), ["user: 1\nassistant: one\nuser: 2\n"]);
    assert_eq!(model.prompt(3), [summary, "two", "3"]);
}

#[tokio::test]
async fn react_stops_at_its_bound_and_generic_at_its_own() {
    let again = || calls(&[("", "look", r#"{"word":"a"}"#)]);
    let model = Turns::new((0..10).map(|_| again()));
    let deeds = Deeds::default();
    let react = Agent::builder("r", ReAct::default())
        .model(Arc::clone(&model) as Arc<dyn Model>)
        .tools(toolbox(&deeds))
        .build();
    let (session, _) = start(&react);
    let reply = session.reply("go").await.unwrap();
    assert_eq!(reply.outcome, Outcome::LimitReached { limit: Limit::Steps });
    assert_eq!((model.asked(), deeds.list().len()), (10, 10), "the last batch has its results");

    let model = Turns::new((0..3).map(|_| again()));
    let generic = Agent::builder("g", Generic { max_steps: 3 })
        .model(Arc::clone(&model) as Arc<dyn Model>)
        .tools(toolbox(&deeds))
        .build();
    let (session, _) = start(&generic);
    let outcome = session.reply("go").await.unwrap().outcome;
    assert_eq!(outcome, Outcome::LimitReached { limit: Limit::Steps });
}

fn attended() -> SessionOptions {
    SessionOptions { attendance: Attendance::Attended, ..SessionOptions::default() }
}

#[tokio::test]
async fn a_used_up_budget_pauses_and_asks_and_goes_on_when_it_is_granted_again() {
    let again = || calls(&[("", "look", r#"{"word":"a"}"#)]);
    let model = Turns::new([again(), again(), says("done")]);
    let budget = Budget { tokens: Some(200), ..Budget::default() };
    let agent = builder(&model, &Deeds::default()).budget(budget).build();
    let store = Arc::new(MemoryStore::new());
    let session = Session::start(&agent, store, attended()).unwrap();
    let reply = session.reply("go").await.unwrap();
    let Outcome::InputRequired { inquiries } = reply.outcome else { panic!("{reply:?}") };
    let InquiryKind::Budget { limit, used } = &inquiries[0].kind else { panic!() };
    assert_eq!((*limit, used.as_str()), (Limit::Tokens, "220 of 200 tokens"));
    session.answer(&inquiries[0].id, Answer::Approve, None).unwrap();
    assert_eq!(session.resume().await.unwrap().text(), "done");
}

#[tokio::test]
async fn a_used_up_budget_ends_the_turn_when_it_is_refused_or_nobody_is_there() {
    let again = || calls(&[("", "look", r#"{"word":"a"}"#)]);
    let budget = Budget { steps: Some(1), ..Budget::default() };
    let limit = Outcome::LimitReached { limit: Limit::Steps };

    let model = Turns::new([again()]);
    let agent = builder(&model, &Deeds::default()).budget(budget).build();
    let (alone, _) = start(&agent);
    assert_eq!(alone.reply("go").await.unwrap().outcome, limit);

    let model = Turns::new([again(), says("next task")]);
    let agent = builder(&model, &Deeds::default()).budget(budget).build();
    let session = Session::start(&agent, Arc::new(MemoryStore::new()), attended()).unwrap();
    session.reply("go").await.unwrap();
    let id = session.pending()[0].id.clone();
    session.answer(&id, Answer::Deny { reason: String::new() }, None).unwrap();
    assert_eq!(session.resume().await.unwrap().outcome, limit);
    assert_eq!(session.reply("other").await.unwrap().text(), "next task", "a task has its own");
}

#[tokio::test(start_paused = true)]
async fn a_time_budget_stops_a_model_that_hangs() {
    let model = Turns::new([Turn::Hangs("well")]);
    let budget = Budget { time: Some(Duration::from_millis(80)), ..Budget::default() };
    let agent = builder(&model, &Deeds::default()).budget(budget).retry(Retry::default()).build();
    let (session, _) = start(&agent);
    // The journal's clock is the wall clock, which a paused test does not move by itself.
    tokio::time::resume();
    let reply = session.reply("go").await.unwrap();
    assert_eq!(reply.outcome, Outcome::LimitReached { limit: Limit::Time });
    assert_eq!(reply.text(), "well");
}

#[tokio::test]
async fn an_agent_without_a_model_says_so() {
    let (session, _) = start(&Agent::builder("mute", Generic::default()).build());
    let reply = session.reply("go").await.unwrap();
    assert_eq!(reply.outcome.to_string(), "failed: the agent mute has no model");
}
