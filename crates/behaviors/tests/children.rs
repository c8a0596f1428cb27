//! Agents that run other agents: nested, side by side, waiting, resumed.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    missing_docs
)]

mod support;

use std::sync::Arc;

use duologue_core::{
    Agent, Answer, Behavior, Budget, CallId, ChildTurn, Entry, Event, Limit, MemoryStore, Message,
    Mode, Outcome, Policy, RunId, RunState, Session, SessionOptions, SessionState, Step, replay,
};
use support::*;

/// Gives each child its task once and tells what they said.
struct Chief(&'static [&'static str]);

#[derive(Default)]
struct Heard(Vec<(String, String)>);

impl Behavior for Chief {
    type State = Heard;

    fn name(&self) -> &'static str {
        "chief"
    }

    fn fold(&self, heard: &mut Heard, entry: &Entry) {
        match &entry.event {
            Event::UserRequest { .. } => heard.0.clear(),
            Event::ChildReplied { key, outcome, message, .. } => {
                let text = message.as_ref().map(|message| message.text()).unwrap_or_default();
                heard.0.push((key.clone(), format!("{}: {text}", outcome.name())));
            }
            _ => {}
        }
    }

    fn decide(&self, run: &RunState, heard: &Heard) -> Step {
        if run.last_message().is_some() {
            return Step::End(Outcome::Completed);
        }
        if heard.0.len() == self.0.len() {
            let said: Vec<&str> = heard.0.iter().map(|(_, text)| text.as_str()).collect();
            return Step::Say(Message::assistant(said.join(", ")));
        }
        let is_due = |key: &&&str| !heard.0.iter().any(|(done, _)| done == **key);
        let turns = self.0.iter().filter(is_due).map(|key| ChildTurn {
            key: (*key).to_owned(),
            input: Message::user(format!("work, {key}")),
            expects: None,
        });
        Step::Run(turns.collect())
    }
}

fn chief(children: &[(&'static str, Agent)], keys: &'static [&'static str]) -> Agent {
    let mut builder = Agent::builder("chief", Chief(keys));
    for (key, agent) in children {
        builder = builder.child(*key, agent.clone());
    }
    builder.build()
}

#[tokio::test]
async fn children_run_side_by_side_in_one_journal_and_keep_their_own_conversations() {
    let left = Turns::new([says("left 1"), says("left 2")]);
    let right =
        Turns::new([calls(&[("c1", "look", r#"{"word":"a"}"#)]), says("right 1"), says("right 2")]);
    let deeds = Deeds::default();
    let children = [("left", agent(&left, &deeds)), ("right", agent(&right, &deeds))];
    let chief = chief(&children, &["left", "right"]);
    let (session, store) = start(&chief);
    let reply = session.reply("go").await.unwrap();
    assert_eq!(reply.outcome, Outcome::Completed);
    assert_eq!(reply.text(), "completed: left 1, completed: right 1");
    assert_eq!(reply.usage.input_tokens, 300, "the parent's task counts its children's use");
    session.reply("again").await.unwrap();
    assert_eq!(left.prompt(1), ["work, left", "left 1", "work, left"]);
    let entries = journal(&store, session.id()).await;
    let runs: Vec<u32> = entries.iter().map(|entry| entry.run.0).collect();
    assert_eq!(runs.iter().max(), Some(&2), "the second turn uses the same runs");
    assert!(replay(&chief, &entries).unwrap() > 8);
}

#[tokio::test]
async fn what_a_child_waits_for_travels_up_and_the_answer_back_down_across_a_restart() {
    let deeds = Deeds::default();
    let model = Turns::new([calls(&[("c1", "act", r#"{"word":"a"}"#)]), says("did it")]);
    let child = builder(&model, &deeds).policy(Policy::new(Mode::Ask)).build();
    let chief = chief(&[("worker", child)], &["worker"]);
    let (session, store) = start(&chief);
    let reply = session.reply("go").await.unwrap();
    let Outcome::InputRequired { inquiries } = reply.outcome else { panic!() };
    assert_eq!(inquiries[0].run, RunId(1), "it says who asks");

    let id = session.id().clone();
    drop(session);
    let options = SessionOptions::default();
    let session = Session::open(&chief, Arc::new(store), &id, options).await.unwrap();
    session.answer(&CallId::from("c1"), Answer::Approve, None).unwrap();
    assert_eq!(session.resume().await.unwrap().text(), "completed: did it");
    assert_eq!((model.asked(), deeds.list().len()), (2, 1));
}

#[tokio::test]
async fn a_run_cut_off_after_any_entry_ends_as_the_whole_one_did() {
    let turns = || {
        let tool = calls(&[("c1", "look", r#"{"word":"a"}"#)]);
        (Turns::new([tool, says("right 1")]), Turns::new([says("left 1")]))
    };
    let (right, left) = turns();
    let deeds = Deeds::default();
    let make = |left: &Arc<Turns>, right: &Arc<Turns>| {
        let children = [("left", agent(left, &deeds)), ("right", agent(right, &deeds))];
        chief(&children, &["left", "right"])
    };
    let (session, _) = start(&make(&left, &right));
    let whole = session.reply("go").await.unwrap();
    let state = session.state().await.unwrap();

    for cut in 1..state.entries.len() {
        let entries = state.entries[..=cut].to_vec();
        let said = |run: u32| {
            entries
                .iter()
                .filter(|e| e.run.0 == run && matches!(e.event, Event::AgentMessage { .. }))
                .count()
        };
        let key_run = |key: &str| {
            entries.iter().find_map(|entry| match &entry.event {
                Event::ChildStarted { child, key: found, .. } if found == key => Some(child.0),
                _ => None,
            })
        };
        // The models go on where the journal leaves off, as a resumed process's would.
        let left_said = key_run("left").map_or(0, said);
        let right_said = key_run("right").map_or(0, said);
        let left = Turns::new([says("left 1")].into_iter().skip(left_said));
        let tool = calls(&[("c1", "look", r#"{"word":"a"}"#)]);
        let right = Turns::new([tool, says("right 1")].into_iter().skip(right_said));
        let state = SessionState { schema: state.schema, entries };
        let store = Arc::new(MemoryStore::new());
        let options = SessionOptions::default();
        let session = Session::load_state(&make(&left, &right), store, &state, options).unwrap();
        let reply = session.resume().await.unwrap();
        let mut said: Vec<String> = reply.text().split(", ").map(str::to_owned).collect();
        said.sort();
        assert_eq!(said.join(", "), whole.text(), "cut after entry {cut}");
        assert_eq!(reply.outcome, Outcome::Completed, "cut after entry {cut}");
    }
}

#[tokio::test]
async fn a_child_is_held_to_what_is_left_of_its_parents_budget() {
    let again = || calls(&[("", "look", r#"{"word":"a"}"#)]);
    let model = Turns::new([again(), again(), again()]);
    let deeds = Deeds::default();
    let chief = Agent::builder("chief", Chief(&["worker"]))
        .child("worker", agent(&model, &deeds))
        .budget(Budget { steps: Some(2), ..Budget::default() })
        .build();
    let (session, store) = start(&chief);
    let reply = session.reply("go").await.unwrap();
    assert_eq!(reply.text(), "limit_reached: I will. ");
    assert_eq!(model.asked(), 2);
    let entries = journal(&store, session.id()).await;
    let limit = Outcome::LimitReached { limit: Limit::Steps };
    assert!(entries.iter().any(|entry| {
        entry.run == RunId(1)
            && matches!(&entry.event, Event::AgentResponseEnd { outcome, .. } if *outcome == limit)
    }));
}

#[tokio::test]
async fn cancelling_reaches_children() {
    let model = Turns::new([Turn::Hangs("thinking")]);
    let chief = chief(&[("worker", agent(&model, &Deeds::default()))], &["worker"]);
    let (session, _) = start(&chief);
    let turn = tokio::spawn({
        let session = session.clone();
        async move { session.reply("go").await }
    });
    while model.asked() == 0 {
        tokio::task::yield_now().await;
    }
    session.cancel("stop");
    let reply = turn.await.unwrap().unwrap();
    assert_eq!(reply.outcome, Outcome::Aborted { reason: "stop".into() });
}
