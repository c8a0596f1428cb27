//! Tool batches: every call gets exactly one result, whatever happens to it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, missing_docs)]

mod support;

use std::{sync::Arc, time::Duration};

use duologue_core::{
    Answer, CallId, Effect, Event, InquiryKind, Mode, Outcome, Part, Policy, Session, SessionError,
    SessionOptions, SessionState, Tool, ToolError, ToolResult, ToolStatus, tool,
};
use support::*;

fn mixed() -> Vec<Turn> {
    let batch = [
        ("c1", "look", r#"{"word":"a"}"#),
        ("c2", "act", r#"{"word":"b"}"#),
        ("c3", "look", r#"{"wrd":"c"}"#),
        ("c4", "fail", r#"{"word":"d"}"#),
        ("c5", "nothing", "{}"),
        ("c6", "look", "{\"word\": "),
    ];
    vec![calls(&batch), says("done")]
}

#[tokio::test]
async fn a_mixed_batch_ends_with_one_result_per_call_and_the_model_is_asked_once_more() {
    let deeds = Deeds::default();
    let model = Turns::new(mixed());
    let careful = builder(&model, &deeds).policy(Policy::new(Mode::Ask)).build();
    let (session, store) = start(&careful);

    let reply = session.reply("go").await.unwrap();
    let Outcome::InputRequired { inquiries } = &reply.outcome else { panic!("{reply:?}") };
    assert_eq!(inquiries.len(), 1);
    assert!(matches!(&inquiries[0].kind, InquiryKind::Approval { call, .. } if call.name == "act"));
    assert_eq!(model.asked(), 1, "the model is not asked while a call has no result");
    assert_eq!(deeds.list().len(), 1, "only the automatic call ran");

    // The process is gone; another one takes the session up and answers.
    let id = session.id().clone();
    drop(session);
    let options = SessionOptions::default();
    let session = Session::open(&careful, Arc::new(store.clone()), &id, options).await.unwrap();
    session.answer(&CallId::from("c2"), Answer::Approve, Some("ada".into())).unwrap();
    let reply = session.resume().await.unwrap();
    assert_eq!((reply.outcome.clone(), reply.text()), (Outcome::Completed, "done".to_owned()));
    assert_eq!(model.asked(), 2);

    let mut found = results(&journal(&store, &id).await);
    found.sort();
    let brief: Vec<(&str, &str)> =
        found.iter().map(|(id, status, _)| (id.as_str(), status.as_str())).collect();
    let expected = [
        ("c1", "ok"),
        ("c2", "ok"),
        ("c3", "invalid"),
        ("c4", "error"),
        ("c5", "invalid"),
        ("c6", "invalid"),
    ];
    assert_eq!(brief, expected);
    assert!(found[2].2.contains("missing field `word`"), "{}", found[2].2);
    assert!(found[4].2.contains("The tools are: look, put, act, fail, slow"), "{}", found[4].2);
    assert!(found[5].2.contains("not valid JSON"), "{}", found[5].2);
    assert_eq!(model.prompt(1).len(), 3, "request, calls, and all results together");
}

#[tokio::test]
async fn denied_edited_and_outside_results_reach_the_model_in_the_order_of_the_calls() {
    let deeds = Deeds::default();
    let batch = [
        ("c1", "act", r#"{"word":"a"}"#),
        ("c2", "act", r#"{"word":"b"}"#),
        ("c3", "act", r#"{"word":"c"}"#),
    ];
    let model = Turns::new([calls(&batch), says("done")]);
    let careful = builder(&model, &deeds).policy(Policy::new(Mode::Ask)).build();
    let (session, _) = start(&careful);
    session.reply("go").await.unwrap();
    let answer = |id: &str, answer| session.answer(&CallId::from(id), answer, None);
    answer("c3", Answer::Edit { arguments: Box::new(json(r#"{"word":"other"}"#)) }).unwrap();
    answer("c2", Answer::text("from outside")).unwrap();
    answer("c1", Answer::Deny { reason: "not today".into() }).unwrap();
    let again = answer("c1", Answer::Approve).unwrap_err();
    assert!(matches!(again, SessionError::NotPending { .. }), "an answer counts once");
    session.resume().await.unwrap();
    assert_eq!(
        model.prompt(1)[2],
        "denied: The user denied this call: not today | ok: from outside | ok: act did other"
    );
    assert_eq!(deeds.list().len(), 1);
}

#[tokio::test]
async fn approve_always_is_remembered_for_the_session_also_after_a_restart() {
    let deeds = Deeds::default();
    let one = |id| calls(&[(id, "act", r#"{"word":"x"}"#)]);
    let model = Turns::new([one("c1"), says("1"), one("c2"), says("2")]);
    let careful = builder(&model, &deeds).policy(Policy::new(Mode::Ask)).build();
    let (session, store) = start(&careful);
    session.reply("go").await.unwrap();
    session.answer(&CallId::from("c1"), Answer::ApproveAlways, None).unwrap();
    session.resume().await.unwrap();
    let id = session.id().clone();
    drop(session);
    let options = SessionOptions::default();
    let session = Session::open(&careful, Arc::new(store), &id, options).await.unwrap();
    assert_eq!(session.reply("again").await.unwrap().text(), "2");
}

#[tokio::test(start_paused = true)]
async fn calls_without_side_effects_run_side_by_side_and_others_in_their_order() {
    let deeds = Deeds::default();
    let batch = [
        ("c1", "slow", r#"{"word":"a"}"#),
        ("c2", "slow", r#"{"word":"b"}"#),
        ("c3", "act", r#"{"word":"c"}"#),
        ("c4", "act", r#"{"word":"d"}"#),
    ];
    let model = Turns::new([calls(&batch), says("done")]);
    let (session, store) = start(&agent(&model, &deeds));
    let began = tokio::time::Instant::now();
    session.reply("go").await.unwrap();
    assert!(began.elapsed() < Duration::from_millis(1500), "{:?}", began.elapsed());
    let order: Vec<String> = deeds.list().iter().map(|deed| deed[..5].to_owned()).collect();
    assert_eq!(order, ["act c", "act d"]);
    let entries = journal(&store, session.id()).await;
    let tools: Vec<&str> =
        kinds(&entries).into_iter().filter(|kind| kind.starts_with("tool_")).collect();
    assert_eq!(tools[..4], ["tool_started", "tool_started", "tool_ended", "tool_ended"]);
    assert_eq!(tools[4..], ["tool_started", "tool_ended", "tool_started", "tool_ended"]);
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_takes_too_long_or_breaks_down_gives_a_result_like_any_other() {
    let deeds = Deeds::default();
    let batch = [("c1", "sleeper", r#"{"word":"a"}"#), ("c2", "panics", r#"{"word":"b"}"#)];
    let model = Turns::new([calls(&batch), says("done")]);
    let sleeper = duologue_core::tool(
        "sleeper",
        "Sleeps.",
        duologue_core::Effect::Pure,
        |_: Word, cx: duologue_core::ToolContext| async move {
            cx.cancel.cancelled().await;
            Ok("half of it")
        },
    );
    let panics = duologue_core::tool(
        "panics",
        "Panics.",
        duologue_core::Effect::Pure,
        |word: Word, _| async move {
            assert!(word.word.is_empty(), "a tool's own defect");
            Ok("never")
        },
    );
    let tools = toolbox(&deeds).with(sleeper.timeout(Duration::from_secs(2))).with(panics);
    let (session, store) = start(&builder(&model, &deeds).tools(tools).build());
    assert_eq!(session.reply("go").await.unwrap().outcome, Outcome::Completed);
    let mut found = results(&journal(&store, session.id()).await);
    found.sort();
    assert_eq!(found[0].1, "timed out");
    assert_eq!(found[0].2, "Stopped: it took longer than 2s.\nhalf of it");
    assert_eq!(found[1].1, "error");
}

/// The state of a session whose process died right after the tools had been started.
async fn killed_while_running(turns: Vec<Turn>) -> SessionState {
    let deeds = Deeds::default();
    let (session, _) = start(&agent(&Turns::new(turns), &deeds));
    session.reply("go").await.unwrap();
    let mut state = session.state().await.unwrap();
    let is_start = |event: &Event| matches!(event, Event::ToolStarted { .. });
    let first = state.entries.iter().position(|entry| is_start(&entry.event)).unwrap();
    let last = state.entries[first..].iter().take_while(|entry| is_start(&entry.event)).count();
    state.entries.truncate(first + last);
    state
}

#[tokio::test]
async fn after_a_crash_harmless_calls_run_again_with_the_same_key() {
    let batch = [("c1", "look", r#"{"word":"a"}"#), ("c2", "put", r#"{"word":"b"}"#)];
    let state = killed_while_running(vec![calls(&batch), says("done")]).await;
    let deeds = Deeds::default();
    let model = Turns::new([says("done")]);
    let store = Arc::new(duologue_core::MemoryStore::new());
    let options = SessionOptions { id: Some("same".into()), ..SessionOptions::default() };
    let session = Session::load_state(&agent(&model, &deeds), store, &state, options).unwrap();
    assert!(session.is_unfinished());
    assert_eq!(session.resume().await.unwrap().text(), "done");
    let mut done = deeds.list();
    done.sort();
    assert_eq!(done, ["look a same/c1", "put b same/c2"]);
}

#[tokio::test]
async fn after_a_crash_a_side_effect_is_not_repeated_but_marked_as_interrupted() {
    let batch = [("c1", "act", r#"{"word":"a"}"#)];
    let state = killed_while_running(vec![calls(&batch), says("done")]).await;
    let deeds = Deeds::default();
    let model = Turns::new([says("I check first.")]);
    let store = Arc::new(duologue_core::MemoryStore::new());
    let options = SessionOptions::default();
    let session = Session::load_state(&agent(&model, &deeds), store, &state, options).unwrap();
    assert_eq!(session.resume().await.unwrap().text(), "I check first.");
    assert!(deeds.list().is_empty(), "it did not run again");
    assert!(model.prompt(0)[2].starts_with("interrupted: Interrupted: the process ended"));
}

#[tokio::test]
async fn a_new_request_passes_over_what_waited_for_an_answer() {
    let deeds = Deeds::default();
    let model = Turns::new([calls(&[("c1", "act", r#"{"word":"a"}"#)]), says("fine")]);
    let careful = builder(&model, &deeds).policy(Policy::new(Mode::Ask)).build();
    let (session, _) = start(&careful);
    session.reply("go").await.unwrap();
    assert_eq!(session.reply("never mind").await.unwrap().text(), "fine");
    let prompt = model.prompt(1);
    assert_eq!(prompt[2], "skipped: The user did not answer and asked for something else.");
    assert_eq!(prompt[3], "never mind");
    assert!(session.pending().is_empty());
}

#[tokio::test]
async fn a_model_that_repeats_its_call_ids_does_not_confuse_results() {
    let deeds = Deeds::default();
    let twice = [("x", "look", r#"{"word":"a"}"#), ("x", "look", r#"{"word":"b"}"#)];
    let model = Turns::new([calls(&twice), calls(&twice[..1]), says("done")]);
    let (session, store) = start(&agent(&model, &deeds));
    assert_eq!(session.reply("go").await.unwrap().outcome, Outcome::Completed);
    let found = results(&journal(&store, session.id()).await);
    let mut ids: Vec<&String> = found.iter().map(|(id, _, _)| id).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 3, "{found:?}");
}

/// A tool that asks twice before it acts.
fn books(deeds: &Deeds) -> impl Tool + use<> {
    let deeds = deeds.clone();
    tool("book", "Books a seat.", Effect::SideEffect, move |_: Nothing, context| {
        let deeds = deeds.clone();
        async move {
            let questions = &context.questions;
            match questions.answers() {
                [] => Err(questions.ask("Which seat?", ["window", "aisle"])),
                [_] => Err(questions.ask("Under which name?", Vec::<String>::new())),
                [Some(seat), name, ..] => {
                    let text = |parts: &[Part]| {
                        ToolResult::prompt_text(&ToolResult {
                            call_id: context.call_id.clone(),
                            name: String::new(),
                            status: ToolStatus::Ok,
                            content: parts.to_vec(),
                        })
                    };
                    let name = name.as_deref().map_or_else(|| "nobody".to_owned(), text);
                    let booked = format!("{} for {name}", text(seat));
                    deeds.add(booked.clone());
                    Ok(booked)
                }
                _ => Err(ToolError::new("no seat was chosen")),
            }
        }
    })
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

#[tokio::test]
async fn a_tool_asks_in_the_middle_of_its_call_and_goes_on_with_the_answers_after_restarts() {
    let deeds = Deeds::default();
    let model = Turns::new([calls(&[("c1", "book", "{}")]), says("done")]);
    let agent = builder(&model, &deeds).tools(toolbox(&deeds).with(books(&deeds))).build();
    let (session, store) = start(&agent);
    let reply = session.reply("go").await.unwrap();
    let Outcome::InputRequired { inquiries } = &reply.outcome else { panic!("{reply:?}") };
    let InquiryKind::Question { text, choices } = &inquiries[0].kind else { panic!() };
    assert_eq!((text.as_str(), choices.len()), ("Which seat?", 2));
    let first = inquiries[0].id.clone();

    let id = session.id().clone();
    drop(session);
    let options = SessionOptions::default();
    let session = Session::open(&agent, Arc::new(store.clone()), &id, options).await.unwrap();
    session.answer(&first, Answer::text("window"), None).unwrap();
    let reply = session.resume().await.unwrap();
    let Outcome::InputRequired { inquiries } = &reply.outcome else { panic!("{reply:?}") };
    let second = inquiries[0].id.clone();
    assert_ne!(first, second);
    let again = session.answer(&first, Answer::text("aisle"), None);
    assert!(matches!(again, Err(SessionError::NotPending { .. })), "{again:?}");
    assert_eq!(deeds.list(), Vec::<String>::new());

    session.answer(&second, Answer::Deny { reason: String::new() }, None).unwrap();
    let reply = session.resume().await.unwrap();
    assert_eq!(reply.outcome, Outcome::Completed);
    assert_eq!(deeds.list(), ["window for nobody"]);
    let found = results(&journal(&store, &id).await);
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].1.as_str(), found[0].2.as_str()), ("ok", "window for nobody"));
}

#[tokio::test]
async fn a_call_that_waits_for_its_own_question_is_passed_over_like_any_other() {
    let deeds = Deeds::default();
    let model = Turns::new([calls(&[("c1", "book", "{}")]), says("done")]);
    let agent = builder(&model, &deeds).tools(toolbox(&deeds).with(books(&deeds))).build();
    let (session, store) = start(&agent);
    session.reply("go").await.unwrap();
    let reply = session.reply("never mind").await.unwrap();
    assert_eq!(reply.outcome, Outcome::Completed);
    assert!(session.pending().is_empty());
    let found = results(&journal(&store, session.id()).await);
    assert_eq!(found[0].1, "skipped");
    assert_eq!(deeds.list(), Vec::<String>::new());
}
