//! Answers with a shape: offered as a tool, insisted on, taken as the end.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    missing_docs
)]

mod support;

use std::sync::Arc;

use duologue_behaviors::ReAct;
use duologue_core::{
    Agent, Behavior, ChildTurn, ChildrenMemory, Entry, Event, Expectation, Hooks, MemoryStore,
    Message, Mode, Model, Outcome, Policy, RunState, Session, SessionOptions, SessionState, Step,
    ToolChoice, Unfit, replay,
};
use schemars::JsonSchema;
use serde::Deserialize;
use support::*;

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct Grade {
    /// From 0 to 10.
    points: u8,
}

fn grade() -> Expectation {
    Expectation::of::<Grade>("grade", "Gives the grade.")
}

const SEVEN: (&str, &str, &str) = ("g1", "grade", r#"{"points":7}"#);

#[tokio::test]
async fn a_structured_answer_ends_the_task_and_what_else_was_called_does_not_run() {
    let model = Turns::new([
        calls(&[("c1", "look", r#"{"word":"a"}"#)]),
        calls(&[("c2", "act", r#"{"word":"b"}"#), SEVEN, ("c3", "act", r#"{"word":"c"}"#)]),
    ]);
    let deeds = Deeds::default();
    let agent = agent(&model, &deeds);
    let (session, store) = start(&agent);
    let reply = session.reply_expecting("How good is it?", grade()).await.unwrap();
    assert_eq!(reply.outcome, Outcome::Completed);
    assert_eq!(grade().read::<Grade>(reply.message.as_deref()), Ok(Grade { points: 7 }));
    assert_eq!(reply.structured("grade"), Some(&json(r#"{"points":7}"#)));
    assert_eq!(deeds.list().len(), 1, "only the look");
    let entries = journal(&store, session.id()).await;
    let ended = results(&entries);
    let statuses: Vec<(&str, &str)> = ended.iter().map(|r| (&*r.0, &*r.1)).collect();
    assert_eq!(statuses, [("c1", "ok"), ("c2", "skipped"), ("c3", "skipped"), ("g1", "ok")]);
    replay(&agent, &entries).unwrap();
    let requests = model.requests.lock().unwrap();
    let offered: Vec<&str> = requests[0].tools.iter().map(|spec| spec.name.as_str()).collect();
    assert_eq!(offered.last(), Some(&"grade"));
}

#[tokio::test]
async fn an_expectation_holds_for_one_task() {
    let model = Turns::new([calls(&[SEVEN]), says("free")]);
    let (session, _) = start(&agent(&model, &Deeds::default()));
    session.reply_expecting("How good is it?", grade()).await.unwrap();
    assert_eq!(session.reply("And now?").await.unwrap().text(), "free");
    let offered = model.requests.lock().unwrap()[1].tools.iter().any(|spec| spec.name == "grade");
    assert!(!offered);
    assert_eq!(model.prompt(1)[2], "ok: The answer was taken.", "the prompt has no open call");
}

#[tokio::test]
async fn a_model_that_answers_in_prose_is_made_to_give_the_structure() {
    let model = Turns::new([says("Quite good."), calls(&[SEVEN])]);
    let tight = Agent::builder("tight", ReAct { max_iterations: 1 })
        .model(Arc::clone(&model) as Arc<dyn Model>)
        .build();
    let (session, _) = start(&tight);
    let reply = session.reply_expecting("How good is it?", grade()).await.unwrap();
    assert_eq!(grade().read::<Grade>(reply.message.as_deref()), Ok(Grade { points: 7 }));
    let choice = model.requests.lock().unwrap()[1].options.tool_choice.clone();
    assert_eq!(choice, ToolChoice::One("grade".into()));
    assert_eq!(
        model.prompt(1).last().unwrap(),
        "Give your answer by calling grade; text alone does not count."
    );
}

#[tokio::test]
async fn a_model_that_never_gives_the_structure_ends_with_its_text_after_three_reminders() {
    let model = Turns::new([says("1"), says("2"), says("3"), says("4")]);
    let (session, _) = start(&agent(&model, &Deeds::default()));
    let reply = session.reply_expecting("How good is it?", grade()).await.unwrap();
    assert_eq!((reply.outcome.clone(), reply.text()), (Outcome::Completed, "4".into()));
    let read = grade().read::<Grade>(reply.message.as_deref());
    assert_eq!(read, Err(Unfit::Missing { name: "grade".into() }));
    assert_eq!(model.asked(), 4);
}

#[tokio::test]
async fn an_answer_that_is_no_object_is_given_back_and_one_that_does_not_fit_says_where() {
    let wrong = calls(&[("g1", "grade", r#"{"points": "#)]);
    let model = Turns::new([wrong, calls(&[("g2", "grade", r#"{"points":"seven"}"#)])]);
    let (session, _) = start(&agent(&model, &Deeds::default()));
    let reply = session.reply_expecting("How good is it?", grade()).await.unwrap();
    assert!(model.prompt(1)[2].starts_with("invalid: The answer must be a JSON object"));
    let Err(Unfit::Wrong { error }) = grade().read::<Grade>(reply.message.as_deref()) else {
        panic!()
    };
    assert!(error.starts_with("points: invalid type: string \"seven\""), "{error}");
}

#[tokio::test]
async fn an_agent_sent_back_before_the_end_answers_again() {
    let hooks = Hooks::new();
    hooks.before_end("critic", |_, message| async move {
        let is_seven = message.is_some_and(|m| m.structured("grade").unwrap()["points"] == 7);
        Ok(is_seven.then(|| Message::user("Be stricter.")))
    });
    let model = Turns::new([calls(&[SEVEN]), calls(&[("g2", "grade", r#"{"points":3}"#)])]);
    let agent = builder(&model, &Deeds::default()).hooks(hooks).build();
    let (session, _) = start(&agent);
    let reply = session.reply_expecting("How good is it?", grade()).await.unwrap();
    assert_eq!(reply.structured("grade"), Some(&json(r#"{"points":3}"#)));
}

/// Asks a child for a grade and says what it got.
struct Examiner;

impl Behavior for Examiner {
    type State = Option<String>;

    fn name(&self) -> &'static str {
        "examiner"
    }

    fn fold(&self, heard: &mut Self::State, entry: &Entry) {
        match &entry.event {
            Event::UserRequest { .. } => *heard = None,
            Event::ChildReplied { message, .. } => {
                let read = grade().read::<Grade>(message.as_deref());
                *heard = Some(read.map_or_else(|e| e.to_string(), |g| g.points.to_string()));
            }
            _ => {}
        }
    }

    fn decide(&self, run: &RunState, heard: &Self::State) -> Step {
        match heard {
            _ if run.last_message().is_some() => Step::End(Outcome::Completed),
            Some(heard) => Step::Say(Message::assistant(heard)),
            None => Step::Run(vec![ChildTurn {
                key: "expert".into(),
                input: Message::user(format!("Grade {}", run.request().unwrap().text())),
                expects: Some(Arc::new(grade())),
            }]),
        }
    }
}

#[tokio::test]
async fn a_parent_gets_a_structure_from_a_child_wherever_the_process_was_cut() {
    let script = || {
        [
            calls(&[("c1", "look", r#"{"word":"a"}"#)]),
            says("Quite good."),
            calls(&[("c2", "look", r#"{"word":"b"}"#), SEVEN]),
        ]
    };
    let deeds = Deeds::default();
    let make = |skip: usize| {
        let model = Turns::new(script().into_iter().skip(skip));
        Agent::builder("examiner", Examiner).child("expert", agent(&model, &deeds)).build()
    };
    let (session, _) = start(&make(0));
    assert_eq!(session.reply("it").await.unwrap().text(), "7");
    let state = session.state().await.unwrap();
    for cut in 1..state.entries.len() {
        let entries = state.entries[..=cut].to_vec();
        let said = |e: &&Arc<Entry>| e.run.0 == 1 && e.event.kind() == "agent_message";
        let agent = make(entries.iter().filter(said).count());
        let state = SessionState { schema: state.schema, entries };
        let store = Arc::new(MemoryStore::new());
        let options = SessionOptions::default();
        let session = Session::load_state(&agent, store, &state, options).unwrap();
        assert_eq!(session.resume().await.unwrap().text(), "7", "cut after entry {cut}");
        replay(&agent, &session.state().await.unwrap().entries).unwrap();
    }
}

#[tokio::test]
async fn a_child_whose_question_was_passed_over_takes_up_the_new_task() {
    let model = Turns::new([
        calls(&[("c1", "act", r#"{"word":"a"}"#)]),
        calls(&[("g1", "grade", r#"{"points":1}"#)]),
    ]);
    let child = builder(&model, &Deeds::default()).policy(Policy::new(Mode::Ask)).build();
    let agent = Agent::builder("examiner", Examiner).child("expert", child).build();
    let (session, store) = start(&agent);
    let reply = session.reply("the old").await.unwrap();
    assert!(matches!(reply.outcome, Outcome::InputRequired { .. }));
    let reply = session.reply("the new").await.unwrap();
    assert_eq!(reply.text(), "1");
    assert_eq!(model.prompt(1).last().unwrap(), "Grade the new");
    replay(&agent, &journal(&store, session.id()).await).unwrap();
}

/// Lets two children work one after the other.
struct Relay;

impl Behavior for Relay {
    type State = usize;

    fn name(&self) -> &'static str {
        "relay"
    }

    fn fold(&self, done: &mut usize, entry: &Entry) {
        if let Event::ChildReplied { .. } = entry.event {
            *done += 1;
        }
    }

    fn decide(&self, _: &RunState, done: &usize) -> Step {
        let turn = |key: &str| {
            let input = Message::user(format!("your turn, {key}"));
            Step::Run(vec![ChildTurn { key: key.into(), input, expects: None }])
        };
        match done {
            0 => turn("first"),
            1 => turn("second"),
            2 => turn("first"),
            _ => Step::End(Outcome::Completed),
        }
    }
}

#[tokio::test]
async fn children_read_each_other_only_where_they_share_their_memory() {
    for memory in [ChildrenMemory::Separate, ChildrenMemory::Shared] {
        let first = Turns::new([says("I began."), says("I ended.")]);
        let second = Turns::new([calls(&[("c1", "look", r#"{"word":"a"}"#)]), says("I went on.")]);
        let deeds = Deeds::default();
        let agent = Agent::builder("relay", Relay)
            .child("first", agent(&first, &deeds))
            .child("second", agent(&second, &deeds))
            .children_memory(memory)
            .build();
        let (session, _) = start(&agent);
        session.reply("go").await.unwrap();
        let own = ["your turn, first", "I began.", "your turn, first"];
        if memory == ChildrenMemory::Separate {
            assert_eq!(second.prompt(0), ["your turn, second"]);
            assert_eq!(first.prompt(1), own);
            continue;
        }
        assert_eq!(second.prompt(0), ["[first] I began.", "your turn, second"]);
        let expected = [
            "your turn, first",
            "I began.",
            "[second] I will. \ncalls look {\"word\":\"a\"}",
            "[second] look gave (ok): look did a",
            "[second] I went on.",
            "your turn, first",
        ];
        assert_eq!(first.prompt(1), expected);
    }
}
