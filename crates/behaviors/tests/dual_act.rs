//! Dual act from code: how it is made, the functions it takes, and what it is to its callers. How
//! its loops end is told in `scenarios/dual-*.yaml`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    missing_docs
)]

mod support;

use std::sync::Arc;

use duologue_behaviors::{
    Accepted, Conclusion, Decision, DualAct, DualActConfig, DualActError, ReAct,
};
use duologue_core::{
    Agent, Entry, Event, Expectation, FailureCause, Hooks, Limit, MemoryStore, Message, Model,
    Outcome, Part, Session, SessionOptions, SessionState, replay,
};
use schemars::JsonSchema;
use serde::Deserialize;
use support::*;

fn decides(decision: &str) -> Turn {
    calls(&[("", "decide", decision)])
}

fn continues(instruction: &str) -> Turn {
    let form =
        serde_json::json!({"action": "continue", "reasoning": "r", "instruction": instruction});
    decides(&form.to_string())
}

fn terminates(answer: &str) -> Turn {
    let form = serde_json::json!({"action": "terminate", "reasoning": "r", "answer": answer});
    decides(&form.to_string())
}

fn concludes(summary: &str) -> Turn {
    calls(&[("", "conclude", &serde_json::json!({"summary": summary}).to_string())])
}

fn of(model: &Arc<Turns>) -> Agent {
    Agent::builder("one", ReAct::default()).model(Arc::clone(model) as Arc<dyn Model>).build()
}

struct Pair {
    human: Arc<Turns>,
    reactive: Arc<Turns>,
}

impl Pair {
    fn new(
        human: impl IntoIterator<Item = Turn>,
        reactive: impl IntoIterator<Item = Turn>,
    ) -> Self {
        Self { human: Turns::new(human), reactive: Turns::new(reactive) }
    }

    fn config(&self) -> DualActConfig {
        DualActConfig::new(of(&self.human), of(&self.reactive))
    }

    fn dual(&self) -> DualAct {
        DualAct::new(self.config()).unwrap()
    }
}

/// What the notes of a topic say in one field.
fn noted(entries: &[Arc<Entry>], of: &str, field: &str) -> Vec<String> {
    let found = entries.iter().filter_map(|entry| match &entry.event {
        Event::Note { topic, data } if topic == of => Some(data[field].to_string()),
        _ => None,
    });
    found.collect()
}

// The seed's three tests.

#[tokio::test]
async fn test_dual_act_basic_execution() {
    let pair = Pair::new([continues("Do it."), terminates("Done.")], [concludes("it is done")]);
    let agent = pair.dual().agent();
    let (session, store) = start(&agent);
    let reply = session.reply("The task.").await.unwrap();
    assert_eq!((reply.outcome.clone(), reply.text()), (Outcome::Completed, "Done.".into()));
    let accepted = Accepted::of(reply.message.as_ref().unwrap()).unwrap();
    assert_eq!(accepted.loops, 1);
    assert_eq!(accepted.conclusions[0].conclusion, Conclusion::text("it is done"));
    assert_eq!(reply.usage.input_tokens, 300, "H's and R's use is the task's");
    replay(&agent, &journal(&store, session.id()).await).unwrap();
}

#[tokio::test]
async fn test_dual_act_multi_loop() {
    let human = [continues("1"), continues("2"), continues("3"), terminates("Done.")];
    let pair = Pair::new(human, [concludes("a"), concludes("b"), concludes("c")]);
    let (session, store) = start(&pair.dual().agent());
    let reply = session.reply("The task.").await.unwrap();
    assert_eq!((reply.outcome.clone(), reply.text()), (Outcome::Completed, "Done.".into()));
    assert_eq!(Accepted::of(reply.message.as_ref().unwrap()).unwrap().loops, 3);
    let entries = journal(&store, session.id()).await;
    assert_eq!(noted(&entries, "conclusion", "loop"), ["1", "2", "3"]);
}

#[tokio::test]
async fn test_dual_act_max_loops() {
    let human = (0..6).map(|n| continues(&n.to_string()));
    let pair = Pair::new(human, (0..5).map(|n| concludes(&format!("try {n}"))));
    let (session, _) = start(&pair.dual().agent());
    let reply = session.reply("The task.").await.unwrap();
    assert_eq!(reply.outcome, Outcome::LimitReached { limit: Limit::Loops });
    assert_eq!(reply.text(), "try 4");
    assert_eq!((pair.human.asked(), pair.reactive.asked()), (6, 5), "the last one is judged too");
}

#[test]
fn what_makes_no_dual_act_is_an_error_at_construction() {
    let pair = Pair::new([], []);
    let error = |change: &dyn Fn(&mut DualActConfig)| {
        let mut config = pair.config();
        change(&mut config);
        DualAct::new(config).err().unwrap()
    };
    assert_eq!(error(&|config| config.max_hr_loops = 0), DualActError::NoLoops);
    assert_eq!(error(&|config| config.reactive.clear()), DualActError::NoReactive);
    assert_eq!(
        error(&|config| config.reactive_task_prompt = "Do {summary}".into()).to_string(),
        "reactive_task_prompt: unknown placeholder {summary}; it may have {original_task}, \
         {instruction}, {focus_area}"
    );
    let prompt = |config: &mut DualActConfig| config.human_decision_prompt = "{focus_area}".into();
    assert!(error(&prompt).to_string().starts_with("human_decision_prompt: unknown placeholder"));
    let prompt = |config: &mut DualActConfig| config.conclusion_format_prompt = "{steps}".into();
    assert!(error(&prompt).to_string().starts_with("conclusion_format_prompt: unknown"));
}

#[test]
fn its_two_sides_can_be_looked_at() {
    let pair = Pair::new([], []);
    let mut config = pair.config();
    config.name = "pair".into();
    config.human = Agent::builder("planner", ReAct::default()).build();
    let dual = DualAct::new(config).unwrap();
    assert_eq!((dual.human().name(), dual.reactive()[0].name()), ("planner", "one"));
    let agent = Agent::from(dual);
    assert_eq!((agent.name(), agent.behavior()), ("pair", "dual"));
    assert_eq!(agent.children()["human"].name(), "planner");
}

#[tokio::test]
async fn a_function_decides_in_the_place_of_h_and_a_replay_does_not_call_it() {
    let pair = Pair::new([], [concludes("a"), concludes("b")]);
    let asked = Counter::default();
    let count = asked.clone();
    let mut dual = pair.dual();
    dual.set_decision_fn(move |about| {
        count.up();
        async move {
            let reasoning = format!("after {}", about.loops);
            Ok(match about.conclusions.first() {
                Some(last) if last.conclusion.summary == "b" => {
                    Decision::Terminate { answer: String::new(), reasoning }
                }
                _ => Decision::Continue { instruction: about.original_task, reasoning },
            })
        }
    });
    let agent = dual.agent();
    let (session, store) = start(&agent);
    let reply = session.reply("The task.").await.unwrap();
    assert_eq!((reply.outcome.clone(), reply.text()), (Outcome::Completed, "b".into()));
    assert!(pair.reactive.prompt(0)[0].starts_with("The task."));
    assert_eq!(asked.get(), 3);
    let entries = journal(&store, session.id()).await;
    assert_eq!(noted(&entries, "decision", "by"), ["\"function\""; 3]);
    replay(&agent, &entries).unwrap();
    assert_eq!(asked.get(), 3);
}

#[tokio::test]
async fn a_decision_function_that_fails_ends_the_run() {
    let pair = Pair::new([], []);
    let mut dual = pair.dual();
    dual.set_decision_fn(|_| async { Err("out of order".to_owned()) });
    let (session, _) = start(&dual.agent());
    let error = "the function decision failed: out of order".to_owned();
    let expected = Outcome::Failed { error, cause: FailureCause::Hook };
    assert_eq!(session.reply("The task.").await.unwrap().outcome, expected);
}

#[tokio::test]
async fn an_extractor_reads_conclusions_and_its_errors_are_told_to_h() {
    let human = [continues("1"), continues("2"), terminates("")];
    let pair = Pair::new(human, [says("RESULT 41"), says("RESULT 42")]);
    let mut dual = pair.dual();
    dual.set_conclusion_extractor(|response| async move {
        let text = response.message.map(|message| message.text()).unwrap_or_default();
        match text.strip_prefix("RESULT ") {
            Some("42") => Ok(Conclusion { confidence: Some(1.0), ..Conclusion::text("it is 42") }),
            _ => Err(format!("{text} is not the answer")),
        }
    });
    let agent = dual.agent();
    let (session, store) = start(&agent);
    let reply = session.reply("The task.").await.unwrap();
    assert_eq!(reply.text(), "it is 42");
    let told = pair.human.prompt(1).pop().unwrap();
    assert!(told.contains("the conclusion could not be read: RESULT 41 is not the answer"));
    let offered = pair.reactive.requests.lock().unwrap()[0].tools.len();
    assert_eq!(offered, 0, "R is not asked to conclude by a tool");
    replay(&agent, &journal(&store, session.id()).await).unwrap();
}

#[tokio::test]
async fn functions_before_and_after_each_loop_see_it_and_add_to_it() {
    let human = [continues("1"), continues("2"), terminates("Done.")];
    let pair = Pair::new(human, [concludes("a"), concludes("b")]);
    let deeds = Deeds::default();
    let (before, after) = (deeds.clone(), deeds.clone());
    let mut dual = pair.dual();
    dual.before_loop(move |start| {
        before.add(format!("before {}: {}", start.number, start.instruction));
        async move { Ok(Some(format!("Hint {}.", start.number))) }
    });
    dual.after_loop(move |end| {
        after.add(format!("after {}: {}", end.number, end.conclusions[0].conclusion.summary));
        async move {
            match end.number {
                1 => Ok(Some("It looks thin.".to_owned())),
                _ => Err("what fails afterwards is only reported".to_owned()),
            }
        }
    });
    let agent = dual.agent();
    let (session, store) = start(&agent);
    assert_eq!(session.reply("The task.").await.unwrap().outcome, Outcome::Completed);
    assert_eq!(deeds.list(), ["before 1: 1", "after 1: a", "before 2: 2", "after 2: b"]);
    assert!(pair.reactive.prompt(0)[0].contains("Hint 1."));
    assert!(pair.human.prompt(1).pop().unwrap().contains("It looks thin."));
    replay(&agent, &journal(&store, session.id()).await).unwrap();
    assert_eq!(deeds.list().len(), 4, "a replay calls nothing");

    let mut dual = Pair::new([continues("1")], []).dual();
    dual.before_loop(|_| async { Err("not today".to_owned()) });
    let (session, _) = start(&dual.agent());
    let Outcome::Failed { error, cause } = session.reply("The task.").await.unwrap().outcome else {
        panic!()
    };
    assert_eq!(
        (error.as_str(), cause),
        ("the function before_loop failed: not today", FailureCause::Hook)
    );
}

#[tokio::test]
async fn hooks_of_the_whole_see_the_request_and_the_answer_and_can_send_it_back() {
    let hooks = Hooks::new();
    hooks.pre_reply("polite", |_, _| async { Ok(Some(Message::user("The other task."))) });
    hooks.before_end("critic", |_, message| async move {
        let is_short = message.is_some_and(|message| message.text() == "Short.");
        Ok(is_short.then(|| Message::user("Say more.")))
    });
    let pair = Pair::new([terminates("Short."), terminates("Much longer.")], []);
    let agent = pair.dual().builder().hooks(hooks).build();
    let (session, store) = start(&agent);
    assert_eq!(session.reply("The task.").await.unwrap().text(), "Much longer.");
    assert!(pair.human.prompt(0)[0].contains("The other task."));
    assert!(pair.human.prompt(1).pop().unwrap().contains("Say more."));
    replay(&agent, &journal(&store, session.id()).await).unwrap();
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct Count {
    lines: u32,
}

#[tokio::test]
async fn whoever_expects_a_shape_from_a_dual_act_gets_it_like_from_any_agent() {
    let human = || {
        let shaped = calls(&[("", "count", r#"{"lines":12}"#)]);
        [continues("Count."), terminates("There are 12."), shaped]
    };
    let make = |human_said: usize, reactive_said: usize| {
        let human = human().into_iter().skip(human_said);
        Pair::new(human, [concludes("12")].into_iter().skip(reactive_said)).dual().agent()
    };
    let expectation = Expectation::of::<Count>("count", "Gives the count.");
    let agent = make(0, 0);
    let (session, _) = start(&agent);
    let reply = session.reply_expecting("How many?", expectation.clone()).await.unwrap();
    assert_eq!(expectation.read(reply.message.as_deref()), Ok(Count { lines: 12 }));
    assert_eq!((reply.outcome.clone(), reply.text()), (Outcome::Completed, "There are 12.".into()));

    let state = session.state().await.unwrap();
    for cut in 1..state.entries.len() {
        let entries = state.entries[..=cut].to_vec();
        let said = |run: u32| {
            let said = |e: &&Arc<Entry>| e.run.0 == run && e.event.kind() == "agent_message";
            entries.iter().filter(said).count()
        };
        let agent = make(said(1), said(2));
        let state = SessionState { schema: state.schema, entries };
        let store = Arc::new(MemoryStore::new());
        let session =
            Session::load_state(&agent, store, &state, SessionOptions::default()).unwrap();
        let reply = session.resume().await.unwrap();
        let read = expectation.read(reply.message.as_deref());
        assert_eq!(read, Ok(Count { lines: 12 }), "cut after entry {cut}");
        replay(&agent, &session.state().await.unwrap().entries).unwrap();
    }
}

#[tokio::test]
async fn what_the_user_encloses_reaches_h_and_r() {
    let pair = Pair::new([continues("Look."), terminates("Seen.")], [concludes("a cat")]);
    let (session, _) = start(&pair.dual().agent());
    let mut message = Message::user("What is it?");
    message.parts.push(Part::data(serde_json::json!({"picture": 1})));
    session.reply(message).await.unwrap();
    for model in [&pair.human, &pair.reactive] {
        let requests = model.requests.lock().unwrap();
        let parts = &requests[0].messages[0].parts;
        assert_eq!(parts.last(), Some(&Part::data(serde_json::json!({"picture": 1}))));
    }
}

#[tokio::test]
async fn questions_to_the_user_have_a_bound_too() {
    let ask = || decides(r#"{"action":"ask_human","reasoning":"r","question":"And now?"}"#);
    let pair = Pair::new((0..11).map(|_| ask()), []);
    let (session, _) = start(&pair.dual().agent());
    let mut reply = session.reply("The task.").await.unwrap();
    let mut answered = 0;
    while let Outcome::InputRequired { inquiries } = &reply.outcome {
        let answer = duologue_core::Answer::text("again");
        session.answer(&inquiries[0].id, answer, None).unwrap();
        reply = session.resume().await.unwrap();
        answered += 1;
    }
    assert_eq!(reply.outcome, Outcome::LimitReached { limit: Limit::Loops });
    assert_eq!(answered, 10);
}
