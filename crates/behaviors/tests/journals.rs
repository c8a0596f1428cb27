//! The journal as a stream, a checkpoint, a fixture and a thing to fork.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    missing_docs
)]

mod support;

use std::sync::Arc;

use duologue_behaviors::Generic;
use duologue_core::{
    Agent, Answer, CallId, Delta, Event, Input, Live, Mail, MemoryStore, Message, Mode, Model,
    Outcome, Policy, Session, SessionError, SessionOptions, Store, fork, replay,
};
use support::*;
use tokio::sync::mpsc;

fn one_tool_turn() -> Vec<Turn> {
    vec![calls(&[("c1", "look", r#"{"word":"a"}"#)]), says("done")]
}

#[tokio::test]
async fn a_turn_reads_like_the_generic_patterns_events() {
    let model = Turns::new(one_tool_turn());
    let (session, store) = start(&agent(&model, &Deeds::default()));
    session.reply("go").await.unwrap();
    let entries = journal(&store, session.id()).await;
    let expected = [
        "session_started",
        "user_request",
        "agent_response_start",
        "agent_message",
        "tool_started",
        "tool_ended",
        "agent_message",
        "agent_response_end",
    ];
    assert_eq!(kinds(&entries), expected);
    let seqs: Vec<u64> = entries.iter().map(|entry| entry.seq).collect();
    assert_eq!(seqs, (0..8).collect::<Vec<u64>>());
}

#[tokio::test]
async fn a_listener_hears_deltas_and_every_entry_once_however_late_it_comes() {
    let model = Turns::new(one_tool_turn());
    let (session, _) = start(&agent(&model, &Deeds::default()));
    let mut early = session.events();
    session.reply("go").await.unwrap();
    let mut late = session.events_from(0);
    let mut heard = Vec::new();
    let mut text = String::new();
    while heard.len() < 7 {
        match early.next().await.unwrap() {
            Live::Entry(entry) => heard.push(entry.seq),
            Live::Delta { delta, .. } => {
                if let Delta::Text(more) = &*delta {
                    text.push_str(more);
                }
            }
            Live::Restart { .. } => {}
        }
    }
    assert_eq!(heard, (1..8).collect::<Vec<u64>>());
    assert_eq!(text, "I will. done");
    for expected in 0..8 {
        let Live::Entry(entry) = late.next().await.unwrap() else { panic!() };
        assert_eq!(entry.seq, expected);
    }
}

#[tokio::test]
async fn a_slow_listener_is_caught_up_from_the_journal_and_holds_up_nobody() {
    let model = Turns::new((0..400).map(|n| says(&n.to_string())));
    let (session, store) = start(&agent(&model, &Deeds::default()));
    let mut slow = session.events();
    for _ in 0..400 {
        session.reply("go").await.unwrap();
    }
    let all = journal(&store, session.id()).await;
    let mut seq = 1;
    while seq < all.len() as u64 {
        if let Live::Entry(entry) = slow.next().await.unwrap() {
            assert_eq!(entry.seq, seq, "no entry is missed and none comes twice");
            seq += 1;
        }
    }
}

#[tokio::test]
async fn a_session_runs_over_channels_as_the_generic_pattern_does() {
    let deeds = Deeds::default();
    let model = Turns::new([calls(&[("c1", "act", r#"{"word":"a"}"#)]), says("done")]);
    let careful = builder(&model, &deeds).policy(Policy::new(Mode::Ask)).build();
    let (session, _) = start(&careful);
    let (inputs, receiver) = mpsc::channel(4);
    let (sender, mut outputs) = mpsc::channel(64);
    let loop_ = tokio::spawn(async move { session.run(receiver, sender).await });
    inputs.send(Input::UserRequest(Message::user("go"))).await.unwrap();
    let wrong = Input::ExternalActionResult { id: "c9".into(), answer: Answer::Approve };
    inputs.send(wrong).await.unwrap();
    let right = Input::ExternalActionResult { id: "c1".into(), answer: Answer::Approve };
    inputs.send(right).await.unwrap();
    drop(inputs);
    let mut heard = Vec::new();
    while let Some(entry) = outputs.recv().await {
        heard.push(entry);
    }
    loop_.await.unwrap().unwrap();
    let expected = [
        "user_request",
        "agent_response_start",
        "agent_message",
        "external_action",
        "agent_response_end",
        "note",
        "external_action_result",
        "agent_response_start",
        "tool_started",
        "tool_ended",
        "agent_message",
        "agent_response_end",
    ];
    assert_eq!(kinds(&heard), expected);
    let Event::Note { data, .. } = &heard[5].event else { panic!() };
    assert_eq!(data["error"], "nothing waits for an answer to c9; these wait: c1");
}

#[tokio::test]
async fn a_fork_goes_its_own_way_and_leaves_the_original_alone() {
    let deeds = Deeds::default();
    let model = Turns::new([says("one"), says("two"), says("other")]);
    let agent = agent(&model, &deeds);
    let (session, store) = start(&agent);
    session.reply("first").await.unwrap();
    session.reply("second").await.unwrap();
    let before = journal(&store, session.id()).await;
    // The fork keeps the first turn alone.
    let copy = fork(&store, session.id(), Some(4)).await.unwrap();
    let options = SessionOptions::default();
    let forked = Session::open(&agent, Arc::new(store.clone()), &copy, options).await.unwrap();
    forked.reply("elsewhere").await.unwrap();
    assert_eq!(model.prompt(2), ["first", "one", "elsewhere"]);
    assert_eq!(journal(&store, session.id()).await, before);
    let summary = store.summary(&copy).await.unwrap().unwrap();
    assert_eq!(summary.forked_from.unwrap().session, *session.id());
}

#[tokio::test]
async fn a_replay_comes_to_the_same_decisions_and_shows_where_another_agent_would_not() {
    let model = Turns::new(one_tool_turn());
    let deeds = Deeds::default();
    let recorded = agent(&model, &deeds);
    let (session, store) = start(&recorded);
    session.reply("go").await.unwrap();
    let entries = journal(&store, session.id()).await;
    assert_eq!(replay(&recorded, &entries), Ok(4), "two answers, one call, one end");
    assert_eq!(model.asked(), 2, "a replay asks no model");

    let hasty = Agent::builder("hasty", Generic { max_steps: 1 }).build();
    let error = replay(&hasty, &entries).unwrap_err();
    assert_eq!(
        error.to_string(),
        "entry 6 (agent_message): the journal says that the agent asked the model; now it would \
         end: limit reached: steps"
    );
}

#[tokio::test]
async fn two_processes_cannot_write_one_session_and_mail_reaches_the_one_that_does() {
    let deeds = Deeds::default();
    let model = Turns::new([calls(&[("c1", "act", r#"{"word":"a"}"#)]), says("done"), says("hi")]);
    let careful = builder(&model, &deeds).policy(Policy::new(Mode::Ask)).build();
    let (session, store) = start(&careful);
    session.reply("go").await.unwrap();
    let options = SessionOptions::default();
    let shared: Arc<dyn Store> = Arc::new(store.clone());
    let second = Session::open(&careful, Arc::clone(&shared), session.id(), options).await;
    assert!(matches!(second.unwrap_err(), SessionError::Store(_)));

    let id = CallId::from("c1");
    let answer = Mail::Answer { id, answer: Answer::Approve, by: Some("ada".into()) };
    store.post(session.id(), answer.clone()).await.unwrap();
    let message = Message::user("and then?");
    store.post(session.id(), Mail::Request { message: message.clone() }).await.unwrap();
    let requests = session.collect_mail().await.unwrap();
    assert_eq!(session.resume().await.unwrap().text(), "done");
    assert_eq!(requests, std::slice::from_ref(&message));
    session.reply(message.clone()).await.unwrap();
    // Mail that was taken in but not acknowledged before a crash comes again and does nothing.
    store.post(session.id(), answer).await.unwrap();
    store.post(session.id(), Mail::Request { message }).await.unwrap();
    assert!(session.collect_mail().await.unwrap().is_empty());
    assert_eq!(deeds.list().len(), 1);
}

#[tokio::test]
async fn a_posted_request_waits_until_it_is_in_the_journal_and_a_cancellation_counts_once() {
    let model = Turns::new([says("one"), says("two")]);
    let agent = agent(&model, &Deeds::default());
    let (session, store) = start(&agent);
    let first = Message::user("first");
    let second = Message::user("second");
    store.post(session.id(), Mail::Request { message: first.clone() }).await.unwrap();
    store.post(session.id(), Mail::Cancel { reason: "enough".into() }).await.unwrap();
    store.post(session.id(), Mail::Request { message: second.clone() }).await.unwrap();
    let both = [first.clone(), second.clone()];
    assert_eq!(session.collect_mail().await.unwrap(), both);
    // Whoever took them falls before it replies.
    let id = session.id().clone();
    drop(session);
    let shared: Arc<dyn Store> = Arc::new(store.clone());
    let session = Session::open(&agent, shared, &id, SessionOptions::default()).await.unwrap();
    assert_eq!(session.collect_mail().await.unwrap(), both);

    assert_eq!(session.reply(first).await.unwrap().text(), "one");
    assert_eq!(session.collect_mail().await.unwrap(), std::slice::from_ref(&second));
    let reply = session.reply(second).await.unwrap();
    assert_eq!((reply.text().as_str(), reply.outcome), ("two", Outcome::Completed));
    assert!(session.collect_mail().await.unwrap().is_empty());
    assert!(store.mail(&id).await.unwrap().is_empty());
}

#[tokio::test]
async fn state_is_carried_to_another_store_and_goes_on_there() {
    let model = Turns::new([says("one"), says("two")]);
    let agent = agent(&model, &Deeds::default());
    let (session, _) = start(&agent);
    session.reply("first").await.unwrap();
    let text = serde_json::to_string(&session.state().await.unwrap()).unwrap();
    let state = serde_json::from_str(&text).unwrap();
    let store = Arc::new(MemoryStore::new());
    let moved = Session::load_state(&agent, store, &state, SessionOptions::default()).unwrap();
    moved.reply("second").await.unwrap();
    assert_eq!(model.prompt(1), ["first", "one", "second"]);
}

#[tokio::test]
async fn a_journal_of_a_later_version_is_refused_with_a_reason() {
    let model = Turns::new([]);
    let agent = agent(&model, &Deeds::default());
    let (session, _) = start(&agent);
    let mut state = session.state().await.unwrap();
    state.schema = 99;
    let store = Arc::new(MemoryStore::new());
    let error = Session::load_state(&agent, store, &state, SessionOptions::default()).unwrap_err();
    assert_eq!(error, SessionError::NewerSchema { found: 99 });
}

#[tokio::test]
async fn an_observed_message_is_in_the_next_prompt_without_a_turn_of_its_own() {
    let model = Turns::new([says("ok")]);
    let (session, _) = start(&agent(&model, &Deeds::default()));
    session.observe(Message::user("The door is open.").with_name("sensor")).unwrap();
    assert_eq!(session.last_outcome(), None);
    let reply = session.reply("Is it?").await.unwrap();
    assert_eq!(reply.outcome, Outcome::Completed);
    assert_eq!(model.prompt(0), ["The door is open.", "Is it?"]);
    assert_eq!(model.name(), "test/turns");
}
