//! Running plans on the embedded domain: no data, no network, no model but a script.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use duologue_bench::{
    AgentError, DataDir, Domain, Incoming, Limits, Message, Mode, Participant, Protocol, Registry,
    Results, Seat, Seated, SessionSeat, Task, Termination, ToolCall, Utterance,
    evaluate::{EvaluationType, REMARKS},
    external_tools,
    gym::Gym,
    metrics::Metrics,
    run::{Keep, Plan, Progress, run},
    users::{Guidelines, ScriptedParticipant},
};
use duologue_core::{Agent, Policy, Toolbox};
use duologue_models::{Scripted, Turn};
use futures::future::BoxFuture;
use serde_json::json;

fn bike_shop() -> (Arc<Domain>, Vec<Arc<Task>>) {
    let nowhere = DataDir::new("nowhere");
    let registry = Registry::default();
    let entry = registry.domain("bike_shop").unwrap();
    let domain = (entry.load)(&nowhere, None).unwrap();
    (Arc::new(domain), (entry.tasks)(&nowhere).unwrap().tasks)
}

fn plan(registry: &Registry, agent: &str, user: &str) -> Plan {
    let (domain, tasks) = bike_shop();
    Plan {
        domain,
        tasks,
        agent: (agent.to_owned(), registry.agent(agent).unwrap().clone()),
        user: (user.to_owned(), registry.user(user).unwrap().clone()),
        agent_llm: None,
        user_llm: None,
        judge: None,
        trials: 1,
        limits: Limits::default(),
        protocol: Protocol::Free,
        seed: 300,
        concurrency: 8,
        retries: 0,
        evaluation: EvaluationType::All,
        guidelines: Guidelines::own(),
    }
}

async fn results(plan: Plan) -> Results {
    run(Arc::new(plan), &mut Keep::in_memory(), |_| {}).await.unwrap()
}

#[tokio::test]
async fn the_expected_actions_solve_every_task_of_the_embedded_domain() {
    let registry = Registry::default();
    let results = results(plan(&registry, "oracle", "oracle_user")).await;
    for simulation in &results.simulations {
        let reward = simulation.reward_info.as_ref().map(|info| info.reward);
        assert_eq!(reward, Some(1.0), "{}: {:?}", simulation.task_id, simulation.reward_info);
    }
    assert_eq!(results.simulations.len(), 8);
}

#[tokio::test]
async fn an_agent_alone_solves_every_task_with_a_ticket() {
    let registry = Registry::default();
    let mut plan = plan(&registry, "oracle_solo", "dummy_user");
    plan.tasks.retain(|task| task.ticket.is_some());
    // What must be told to a user cannot be told by an agent that talks to nobody.
    plan.tasks.retain(|task| {
        task.evaluation_criteria.as_ref().is_some_and(|c| c.communicate_info.is_none())
    });
    let results = results(plan).await;
    assert!(!results.simulations.is_empty());
    for simulation in &results.simulations {
        assert_eq!(simulation.termination_reason, Termination::AgentStop);
        assert_eq!(simulation.reward_info.as_ref().unwrap().reward, 1.0, "{}", simulation.task_id);
    }
}

#[tokio::test]
async fn a_pass_that_nobody_worked_for_is_flagged_beside_the_reward() {
    let registry = Registry::default();
    let results = results(plan(&registry, "idle", "oracle_user")).await;
    let passed: Vec<&str> = results
        .simulations
        .iter()
        .filter(|s| s.reward_info.as_ref().unwrap().reward == 1.0)
        .map(|s| s.task_id.as_str())
        .collect();
    assert_eq!(passed, ["too_late_to_cancel"]);
    let flagged = results.simulations.iter().find(|s| s.task_id == passed[0]).unwrap();
    let flags = &flagged.extra[REMARKS]["flags"];
    assert!(flags.items().iter().any(|flag| *flag == "doing_nothing_passes"), "{flags:?}");
}

#[tokio::test]
async fn a_run_that_stops_early_has_no_reward_and_tells_how_far_it_came() {
    let registry = Registry::default();
    let mut plan = plan(&registry, "oracle", "oracle_user");
    plan.tasks.retain(|task| task.id == "book_tune_up");
    plan.limits.max_steps = 5;
    let results = results(plan).await;
    let simulation = &results.simulations[0];
    assert_eq!(simulation.termination_reason, Termination::MaxSteps);
    assert_eq!(simulation.reward_info.as_ref().unwrap().reward, 0.0);
    let parts = &simulation.extra[REMARKS]["parts_when_stopped"];
    assert_eq!(parts["DB"].as_f64(), Some(1.0), "{parts:?}");
    assert_eq!(parts["COMMUNICATE"].as_f64(), Some(0.0), "{parts:?}");
}

#[tokio::test]
async fn a_killed_run_takes_up_what_was_finished_and_ends_with_the_same_results() {
    let registry = Registry::default();
    let whole = results(plan(&registry, "oracle", "oracle_user")).await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("results.json");
    for killed_after in 0..9 {
        let keep = interrupted(&registry, &file, killed_after).await;
        // A kill in the middle of a write leaves half a line.
        let journal = folder.path().join("results.json.unfinished.jsonl");
        let mut text = std::fs::read_to_string(&journal).unwrap();
        text.push_str("{\"id\": \"half");
        std::fs::write(&journal, text).unwrap();
        drop(keep);
        let mut keep = Keep::in_file(&file).unwrap();
        let begun = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&begun);
        let plan = Arc::new(plan(&registry, "oracle", "oracle_user"));
        let results = run(plan, &mut keep, |progress| {
            if matches!(progress, Progress::Begun(_)) {
                counted.fetch_add(1, Ordering::Relaxed);
            }
        });
        let results = results.await.unwrap();
        keep.finish(&results).unwrap();
        assert_eq!(begun.load(Ordering::Relaxed), 8 - killed_after.min(8));
        assert_eq!(timeless(&Results::load(&file).unwrap()), timeless(&whole));
        assert!(!journal.exists());
        std::fs::remove_file(&file).unwrap();
    }
}

/// A run that ends as by a kill after some simulations.
async fn interrupted(registry: &Registry, file: &Path, after: usize) -> Keep {
    let mut keep = Keep::in_file(file).unwrap();
    let mut plan = plan(registry, "oracle", "oracle_user");
    plan.tasks.truncate(after);
    run(Arc::new(plan), &mut keep, |_| {}).await.unwrap();
    keep
}

/// Results without what depends on the clock.
fn timeless(results: &Results) -> Vec<String> {
    let line = |simulation: &duologue_bench::Simulation| {
        let mut simulation = simulation.clone();
        simulation.timestamp = None;
        simulation.start_time = String::new();
        simulation.end_time = String::new();
        simulation.duration = 0.0;
        for message in simulation.messages.iter_mut().flatten() {
            match message {
                Message::System(message) => message.timestamp = None,
                Message::Assistant(message) | Message::User(message) => message.timestamp = None,
                Message::Tool(message) => message.timestamp = None,
            }
        }
        serde_json::to_string(&simulation).unwrap()
    };
    results.simulations.iter().map(line).collect()
}

#[tokio::test]
async fn many_simulations_share_one_database() {
    let registry = Registry::default();
    let mut plan = plan(&registry, "oracle", "oracle_user");
    plan.trials = 25;
    plan.concurrency = 100;
    let metrics = Metrics::of(&results(plan).await);
    assert_eq!(metrics.simulations, 200);
    assert_eq!(metrics.pass_hat.len(), 25);
    assert_eq!(metrics.pass_hat[24], 1.0);
}

/// An agent that somebody else wrote.
struct Polite;

impl Participant for Polite {
    type State = u32;

    fn get_init_state(&self, history: &[Message]) -> Result<u32, AgentError> {
        Ok(u32::try_from(history.len()).unwrap())
    }

    fn generate_next_message<'a>(
        &'a self,
        _: Incoming,
        state: u32,
    ) -> BoxFuture<'a, Result<(Utterance, u32), AgentError>> {
        Box::pin(async move { Ok((Utterance::text(format!("Message {state}.")), state + 1)) })
    }
}

#[tokio::test]
async fn a_registered_agent_is_run_by_its_name() {
    let mut registry = Registry::default();
    registry.register_agent("polite", Mode::Dialogue, false, |_| Ok(Box::new(Seated::new(Polite))));
    let results = results(plan(&registry, "polite", "oracle_user")).await;
    let said = results.simulations[0].messages()[2].content().map(str::to_owned);
    assert_eq!(said.as_deref(), Some("Message 1."));
    assert!(registry.agent("rude").is_err_and(|e| e.to_string().contains("polite")));
}

#[tokio::test]
async fn a_training_loop_steps_through_a_conversation_and_gets_the_reward() {
    let (domain, tasks) = bike_shop();
    let task = tasks.into_iter().find(|task| task.id == "book_tune_up").unwrap();
    let user = || Ok(Box::new(Seated::new(duologue_bench::baselines::OracleUser)) as Box<dyn Seat>);
    let mut gym = Gym::new(domain, Arc::clone(&task), Mode::Dialogue, Arc::new(user));
    for _ in 0..2 {
        let first = gym.reset(300, None).await.unwrap();
        assert_eq!(first.messages.len(), 2);
        let book = ToolCall {
            id: "1".into(),
            name: "book_repair".into(),
            arguments: task.actions()[1].arguments.clone(),
            requestor: duologue_bench::Requestor::Assistant,
        };
        let booked = gym.step(Utterance::calls(vec![book])).await.unwrap();
        assert!(booked.end.is_none());
        assert!(booked.messages[0].content().unwrap().contains("50.0"), "{booked:?}");
        let end = gym.step(Utterance::text("It is 50.")).await.unwrap().end.unwrap();
        assert_eq!(end.reason, Termination::UserStop);
        assert_eq!(end.reward, 1.0);
    }
    assert!(gym.step(Utterance::text("Still there?")).await.is_err());
}

#[tokio::test]
async fn a_recorded_conversation_is_taken_up_in_the_middle() {
    let registry = Registry::default();
    let recorded = results(plan(&registry, "oracle", "oracle_user")).await;
    let simulation = recorded.simulations.iter().find(|s| s.task_id == "full_day").unwrap();
    let task = recorded.task("full_day").unwrap();
    // The first call is answered, the booking is not yet made.
    let forked = task.continued_from(&simulation.messages()[..5]);
    let mut plan = plan(&registry, "idle", "oracle_user");
    plan.tasks = vec![Arc::new(forked)];
    let results = results(plan).await;
    let messages = results.simulations[0].messages();
    assert_eq!(
        messages[..4].iter().map(Message::content).collect::<Vec<_>>(),
        simulation.messages()[..4].iter().map(Message::content).collect::<Vec<_>>()
    );
    assert_eq!(messages[4].content(), Some("I cannot help with that."));
}

#[tokio::test]
async fn any_duologue_agent_works_with_the_environments_tools() {
    let mut registry = Registry::default();
    registry.register_agent("generic", Mode::Dialogue, false, |casting| {
        let model = Scripted::new([
            Turn::call("find_customer", json!({"phone": "555-0101"})),
            Turn::text("A tune-up of the green bike on Monday is 50. Shall I book it?"),
            Turn::call(
                "book_repair",
                json!({"bike_id": "b1", "kind": "tune_up", "day": "2026-05-18"}),
            ),
            Turn::text("It is booked."),
        ]);
        let tools = external_tools(&casting.tools);
        let tools = tools.into_iter().fold(Toolbox::new(), Toolbox::with_shared);
        let agent = Agent::builder("generic", duologue_behaviors::Generic::default())
            .system(casting.policy)
            .model(Arc::new(model))
            .tools(tools)
            .policy(Policy::default())
            .build();
        Ok(Box::new(SessionSeat::new(agent)) as Box<dyn Seat>)
    });
    registry.register_user("customer", false, |_| {
        let script = ["I want a tune-up on Monday.", "Yes.", "Thanks. ###STOP###"];
        let user = ScriptedParticipant::new(script.map(Utterance::text));
        Ok(Box::new(Seated::new(user)) as Box<dyn Seat>)
    });
    let mut plan = plan(&registry, "generic", "customer");
    plan.tasks.retain(|task| task.id == "book_tune_up");
    let results = results(plan).await;
    let simulation = &results.simulations[0];
    assert_eq!(simulation.termination_reason, Termination::UserStop, "{simulation:?}");
    assert_eq!(simulation.reward_info.as_ref().unwrap().reward, 1.0);
}

#[tokio::test]
async fn tasks_and_tools_that_do_not_fit_an_agent_are_told() {
    use duologue_bench::{
        agents::{GroundTruthAgent, SoloAgent, StepDetail},
        llm::{Llm, ModelLlm, ToolList},
    };
    let model = ModelLlm {
        model: Arc::new(Scripted::new([Turn::text("never asked")])),
        options: duologue_core::Options::default(),
    };
    let llm: Arc<dyn Llm> = Arc::new(model);
    let (domain, tasks) = bike_shop();
    let tools = || domain.agent_tools(Mode::Solo);
    let solo = |task: &Task| SoloAgent::new(Arc::clone(&llm), tools(), "", task).err();
    let reason = |error: Option<AgentError>| match error {
        Some(AgentError::InvalidTask { reason, .. }) => reason,
        other => panic!("{other:?}"),
    };
    let fits = tasks.iter().find(|task| task.id == "full_day").unwrap();
    let mut task = Task::clone(fits);
    task.initial_state = None;
    assert_eq!(solo(&task), None);

    // A tool that must be there.
    let without = SoloAgent::with_tools(Arc::clone(&llm), ToolList::default(), "", &task).err();
    assert_eq!(without, Some(AgentError::MissingTool { tool: "done".into() }));
    assert_eq!(without.unwrap().to_string(), "the tool \"done\" is missing");

    // A task without what the agent works from.
    let no_ticket = Task { ticket: None, ..task.clone() };
    assert_eq!(reason(solo(&no_ticket)), "it has no ticket");
    let no_actions = Task { evaluation_criteria: None, ..task.clone() };
    assert_eq!(reason(solo(&no_actions)), "it expects no actions");
    let talked = task.continued_from(&[Message::User(Utterance::text("Hello?"))]);
    assert_eq!(reason(solo(&talked)), "it starts from a conversation with a user");
    let told = GroundTruthAgent::new(
        Arc::clone(&llm),
        tools(),
        "",
        &no_actions,
        StepDetail::WithArguments,
    );
    let told = told.err().unwrap();
    assert!(told.to_string().starts_with("task full_day is not for this agent"), "{told}");
}

#[tokio::test]
async fn a_conversation_on_record_goes_on_at_every_step_as_if_nothing_had_happened() {
    use duologue_bench::{Environment, Orchestrator, orchestrator::Record};
    let (domain, tasks) = bike_shop();
    for task in tasks {
        let seated = || {
            let registry = Registry::default();
            let environment = Environment::for_task(&domain, Mode::Dialogue, Some(&task)).unwrap();
            let plan = plan(&registry, "oracle", "oracle_user");
            let casting = |tools| duologue_bench::registry::Casting {
                domain: &domain,
                mode: Mode::Dialogue,
                policy: "",
                tools,
                task: &task,
                llm: None,
                guidelines: &plan.guidelines,
            };
            let agent = (plan.agent.1.make)(casting(domain.agent_tools(Mode::Dialogue))).unwrap();
            let user = (plan.user.1.make)(casting(domain.user_tools(&task))).unwrap();
            Orchestrator::new(environment, agent, user, Arc::clone(&task))
        };
        let mut records: Vec<Record> = Vec::new();
        let mut whole = seated();
        let keep = |record| {
            records.push(record);
            Ok(())
        };
        let expected = whole.run_recorded(Vec::new(), keep).await.unwrap();
        for at in 1..=records.len() {
            // Through JSON, as a file has it.
            let text = serde_json::to_string(&records[..at]).unwrap();
            let earlier: Vec<Record> = serde_json::from_str(&text).unwrap();
            let mut resumed = seated();
            let mut more = 0;
            let keep = |_| {
                more += 1;
                Ok(())
            };
            let simulation = resumed.run_recorded(earlier, keep).await.unwrap();
            assert_eq!(more, records.len() - at, "{}", task.id);
            assert_eq!(simulation.termination_reason, expected.termination_reason);
            let kept = records[..at].iter().map(|record| record.messages.len()).sum::<usize>();
            assert_eq!(simulation.messages()[..kept], expected.messages()[..kept]);
            assert_eq!(
                resumed.environment().db_hash(),
                whole.environment().db_hash(),
                "{}",
                task.id
            );
            assert_eq!(resumed.environment().user_db_hash(), whole.environment().user_db_hash());
        }
        // Records of a world that answers otherwise are not gone on with.
        let mut wrong = records.clone();
        for message in wrong.iter_mut().flat_map(|record| &mut record.messages) {
            if let Message::Tool(answer) = message {
                answer.content = Some("something else".into());
            }
        }
        let has_calls = wrong != records;
        let result = seated().run_recorded(wrong, |_| Ok(())).await;
        assert_eq!(result.is_err(), has_calls, "{}", task.id);
    }
}
