//! Planned agents where a scenario in YAML does not reach: metadata, children, lessons, steering,
//! cancellation in an aside, and what a request carries.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    missing_docs
)]

mod support;

use std::sync::{Arc, Mutex};

use duologue_behaviors::{
    Lesson, LessonError, LessonStore, Planned, PlannedConfig, PlannedNote, Strategy,
};
use duologue_core::{
    Agent, Behavior, ChildTurn, Entry, Event, Expectation, Message, Mode, Model, Outcome, Policy,
    RunId, RunState, Step, ToolChoice, WhenBusy, replay,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use support::*;

const PLAN: &str = r#"{"reasoning": "r", "steps": [{"title": "Look", "tool": "look"}]}"#;
const YES: &str =
    r#"{"is_complete": true, "reasoning": "Seen.", "suggestions": [], "confidence": 1}"#;
const SIMPLE: &str = r#"{"is_simple_task": true, "complexity": "low",
    "needs_explicit_reasoning": false, "reasoning": "easy"}"#;

fn planned(model: &Arc<Turns>, config: PlannedConfig) -> Agent {
    Planned::builder("planned", config, toolbox(&Deeds::default()))
        .model(Arc::clone(model) as Arc<dyn Model>)
        .policy(Policy::new(Mode::Full))
        .build()
}

fn with(strategy: Strategy) -> PlannedConfig {
    PlannedConfig { strategy: Some(strategy), ..PlannedConfig::default() }
}

fn notes(entries: &[Arc<Entry>]) -> Vec<PlannedNote> {
    entries
        .iter()
        .filter_map(|entry| match &entry.event {
            Event::Note { topic, data } => PlannedNote::read(topic, data),
            _ => None,
        })
        .collect()
}

fn look(word: &str) -> Turn {
    calls(&[("", "look", &json!({ "word": word }).to_string())])
}

fn done(summary: &str) -> Turn {
    calls(&[("", "done", &json!({ "summary": summary }).to_string())])
}

/// The strategy that a task with this `execution_mode` is gone about with, and why.
async fn chosen(config: PlannedConfig, mode: serde_json::Value, turns: Vec<Turn>) -> String {
    let model = Turns::new(turns);
    let agent = planned(&model, config);
    let (session, store) = start(&agent);
    let mut request = Message::user("look");
    request.metadata.insert("execution_mode", mode);
    session.reply(request).await.unwrap();
    let entries = journal(&store, session.id()).await;
    match &notes(&entries)[0] {
        PlannedNote::Strategy(choice) => {
            let by = json!(choice.by);
            format!("{} by {}: {}", choice.strategy, by.as_str().unwrap(), choice.reason)
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_flag_comes_before_metadata_and_metadata_before_classification() {
    let auto = PlannedConfig::default;
    assert_eq!(
        chosen(with(Strategy::Simple), json!("react"), vec![says("seen")]).await,
        "simple by option: the agent is set to it"
    );
    assert_eq!(
        chosen(auto(), json!("react"), vec![says(PLAN), done("seen")]).await,
        "react by metadata: the request asks for it"
    );
    assert_eq!(
        chosen(auto(), json!("auto"), vec![says(SIMPLE), says("seen")]).await,
        "simple by classification: easy"
    );
    let ignored = "simple by classification: unknown strategy \"fast\"; there are simple, \
                   multi_step, react and hybrid; easy";
    assert_eq!(chosen(auto(), json!("fast"), vec![says(SIMPLE), says("seen")]).await, ignored);
}

#[tokio::test]
async fn an_aside_carries_a_shape_and_no_tools_and_leaves_the_conversation_alone() {
    let model = Turns::new([says(PLAN), look("a"), says(YES)]);
    let agent = planned(&model, with(Strategy::MultiStep));
    let (session, _) = start(&agent);
    assert_eq!(session.reply("look").await.unwrap().text(), "Seen.");
    let requests = model.requests.lock().unwrap();
    let shape = requests[0].options.output.as_ref().unwrap();
    assert_eq!(shape.name, "plan");
    assert_eq!(shape.schema["required"], json!(["reasoning", "steps"]));
    assert!(requests[0].tools.is_empty());
    // One model call for the step, thought and action together, with all tools and no shape.
    assert_eq!(requests.len(), 3);
    assert!(requests[1].options.output.is_none());
    assert!(requests[1].tools.iter().any(|tool| tool.name == "todo_manager"));
    assert_eq!(requests[1].messages.len(), 1, "the plan's answer is not in the conversation");
    assert_eq!(requests[1].extra.len(), 1, "the list is one live copy beside it");
}

#[tokio::test]
async fn a_simple_step_asks_for_nothing_that_plain_react_does_not() {
    let model = Turns::new([look("a"), look("b"), says("seen")]);
    let (session, _) = start(&planned(&model, with(Strategy::Simple)));
    session.reply("look").await.unwrap();
    assert_eq!(model.asked(), 3);
    assert!(model.requests.lock().unwrap().iter().all(|request| request.extra.is_empty()));
}

/// Runs one child and tells how it ended.
struct Chief(Option<Arc<Expectation>>);

impl Behavior for Chief {
    type State = Option<String>;

    fn name(&self) -> &'static str {
        "chief"
    }

    fn fold(&self, heard: &mut Option<String>, entry: &Entry) {
        if let Event::ChildReplied { outcome, message, .. } = &entry.event {
            let grade = message.as_ref().and_then(|m| m.structured("grade")).cloned();
            let text = message.as_ref().map(|message| message.text()).unwrap_or_default();
            *heard = Some(grade.map_or(format!("{outcome}: {text}"), |grade| grade.to_string()));
        }
    }

    fn decide(&self, run: &RunState, heard: &Option<String>) -> Step {
        match heard {
            _ if run.last_message().is_some() => Step::End(Outcome::Completed),
            Some(heard) => Step::Say(Message::assistant(heard)),
            None => Step::Run(vec![ChildTurn {
                key: "worker".into(),
                input: Message::user("work"),
                expects: self.0.clone(),
            }]),
        }
    }
}

#[tokio::test]
async fn a_stuck_child_hands_the_matter_up_instead_of_asking_people() {
    let mut turns: Vec<Turn> = (0..4).map(|_| look("a")).collect();
    turns.push(says(r#"{"reasoning": "r", "steps": [{"title": "Other"}]}"#));
    turns.extend((0..3).map(|_| look("a")));
    let model = Turns::new(turns);
    let child = planned(&model, with(Strategy::Simple));
    let chief = Agent::builder("chief", Chief(None)).child("worker", child).build();
    let (session, store) = start(&chief);
    let reply = session.reply("go").await.unwrap();
    assert_eq!(reply.outcome, Outcome::Completed);
    let stuck = "stuck: the same call gave the same result 3 times in a row, after 7 steps.";
    assert!(reply.text().starts_with(stuck), "{}", reply.text());
    assert!(reply.text().contains("- look {\"word\":\"a\"} → ok: look did a"), "{}", reply.text());
    let entries = journal(&store, session.id()).await;
    let rungs: Vec<_> = notes(&entries)
        .into_iter()
        .filter_map(|note| match note {
            PlannedNote::Stuck(note) => Some(json!(note.rung)),
            _ => None,
        })
        .collect();
    assert_eq!(rungs, [json!("hint"), json!("replan"), json!("hand_up")]);
    replay(&chief, &entries).unwrap();
}

#[derive(Deserialize, JsonSchema)]
#[allow(dead_code)]
struct Grade {
    grade: u8,
}

#[tokio::test]
async fn a_child_of_which_a_structure_is_expected_gives_it_after_done_or_instead() {
    let expectation = Arc::new(Expectation::of::<Grade>("grade", "Gives the grade."));
    let grade = || calls(&[("", "grade", r#"{"grade": 7}"#)]);
    let ways = [
        vec![look("a"), done("Seen."), grade()],
        vec![look("a"), grade()],
        vec![says("Seen."), grade()],
    ];
    for turns in ways {
        let asked = turns.len();
        let model = Turns::new(turns);
        let child = planned(&model, with(Strategy::Simple));
        let chief = Agent::builder("chief", Chief(Some(Arc::clone(&expectation))))
            .child("worker", child)
            .build();
        let (session, store) = start(&chief);
        assert_eq!(session.reply("go").await.unwrap().text(), r#"{"grade":7}"#);
        assert_eq!(model.asked(), asked);
        replay(&chief, &journal(&store, session.id()).await).unwrap();
    }
    let forced = ToolChoice::One("grade".into());
    let model = Turns::new([done("Seen."), grade()]);
    let child = planned(&model, with(Strategy::Simple));
    let chief = Chief(Some(expectation));
    let chief = Agent::builder("chief", chief).child("worker", child).build();
    start(&chief).0.reply("go").await.unwrap();
    assert_eq!(model.requests.lock().unwrap()[1].options.tool_choice, forced);
}

/// Lessons in memory.
#[derive(Default)]
struct Notebook(Mutex<Vec<Lesson>>);

impl LessonStore for Notebook {
    fn all(&self) -> Result<Vec<Lesson>, LessonError> {
        Ok(self.0.lock().unwrap().clone())
    }

    fn keep(&self, lesson: &Lesson) -> Result<(), LessonError> {
        self.0.lock().unwrap().push(lesson.clone());
        Ok(())
    }

    fn forget(&self, _: usize) -> Result<bool, LessonError> {
        Ok(false)
    }
}

#[tokio::test]
async fn a_lesson_of_one_task_changes_the_prompt_of_a_later_plan() {
    let notebook = Arc::new(Notebook::default());
    let run = async |task: &str| {
        let model = Turns::new([says(PLAN), look("a"), says(YES)]);
        let agent = Planned::learning_builder(
            "planned",
            with(Strategy::MultiStep),
            toolbox(&Deeds::default()),
            Arc::clone(&notebook) as Arc<dyn LessonStore>,
        )
        .model(Arc::clone(&model) as Arc<dyn Model>)
        .policy(Policy::new(Mode::Full))
        .build();
        let (session, store) = start(&agent);
        session.reply(task).await.unwrap();
        let entries = journal(&store, session.id()).await;
        // A replay folds what was recalled and asks no store.
        let stored = notebook.0.lock().unwrap().clone();
        notebook.0.lock().unwrap().clear();
        replay(&agent, &entries).unwrap();
        assert!(notebook.0.lock().unwrap().is_empty(), "a replay keeps no lesson");
        *notebook.0.lock().unwrap() = stored;
        model.prompt(0).join("\n")
    };
    let first = run("count the lines of the file a.txt").await;
    assert!(!first.contains("What similar tasks taught"), "{first}");
    let kept = notebook.all().unwrap();
    assert_eq!(kept.len(), 1);
    assert_eq!((kept[0].worked, kept[0].plan.as_slice()), (true, &["Look".to_owned()][..]));
    let second = run("count the lines of the file b.txt").await;
    let lesson = "What similar tasks taught:\n\
                  - \"count the lines of the file a.txt\" by \"Look\": worked (completed)";
    assert!(second.contains(lesson), "{second}");
    let other = run("paint my house").await;
    assert!(!other.contains("What similar tasks taught"), "{other}");
}

#[tokio::test]
async fn a_failed_task_teaches_too() {
    let notebook = Arc::new(Notebook::default());
    let config = PlannedConfig { max_simple: 1, ..with(Strategy::Simple) };
    let store = Arc::clone(&notebook) as Arc<dyn LessonStore>;
    let model = Turns::new([look("a")]);
    let agent = Planned::learning_builder("planned", config, toolbox(&Deeds::default()), store)
        .model(model)
        .policy(Policy::new(Mode::Full))
        .build();
    let (session, _) = start(&agent);
    session.reply("look").await.unwrap();
    let kept = notebook.all().unwrap();
    assert_eq!((kept[0].worked, kept[0].outcome.as_str()), (false, "limit reached: steps"));
}

#[tokio::test(start_paused = true)]
async fn what_is_said_during_a_step_is_read_before_a_check_or_done_ends_the_run() {
    let slow = || calls(&[("", "slow", r#"{"word":"a"}"#), ("", "validator", "{}")]);
    let model = Turns::new([slow(), says(YES), done("Waited and painted.")]);
    let agent = planned(&model, with(Strategy::Simple));
    let (session, _) = start(&agent);
    let turn = tokio::spawn({
        let session = session.clone();
        async move { session.reply("wait").await }
    });
    while model.asked() == 0 {
        tokio::task::yield_now().await;
    }
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
    let steer = session.reply_when_busy("Paint it too.", WhenBusy::Steer).await;
    drop(steer);
    let reply = turn.await.unwrap().unwrap();
    assert_eq!(reply.text(), "Waited and painted.");
    assert!(model.prompt(2).contains(&"Paint it too.".to_owned()), "{:?}", model.prompt(2));
}

#[tokio::test]
async fn cancelling_reaches_a_check_and_the_next_request_is_a_task_of_its_own() {
    let model = Turns::new([
        says(PLAN),
        look("a"),
        Turn::Hangs("{\"is_complete\": "),
        says(PLAN),
        done("Second."),
    ]);
    let agent = planned(&model, with(Strategy::MultiStep));
    let (session, store) = start(&agent);
    let turn = tokio::spawn({
        let session = session.clone();
        async move { session.reply("look").await }
    });
    while model.asked() < 3 {
        tokio::task::yield_now().await;
    }
    session.cancel("stop");
    let reply = turn.await.unwrap().unwrap();
    assert_eq!(reply.outcome, Outcome::Aborted { reason: "stop".into() });
    assert_eq!(session.reply("again").await.unwrap().text(), "Second.");
    let entries = journal(&store, session.id()).await;
    assert!(entries.iter().all(|entry| entry.run == RunId::ROOT));
    replay(&agent, &entries).unwrap();
}
