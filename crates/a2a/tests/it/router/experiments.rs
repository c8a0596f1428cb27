//! Clarification, decomposition, recovery, synthesis and confirmation.

use std::{sync::Arc, time::Duration};

use duologue_a2a::{Directory, RouterSettings};
use duologue_core::{Answer, Event, InquiryKind, MemoryStore, Outcome, Reach, Store, replay};
use tokio::sync::Barrier;

use super::stage::*;
use crate::support::{Client, Script, Server, Serving, Turn};

const CLARIFICATION: RouterSettings = RouterSettings {
    clarification: true,
    decomposition: false,
    recovery: false,
    confirmation: false,
};
const DECOMPOSITION: RouterSettings = RouterSettings {
    clarification: false,
    decomposition: true,
    recovery: false,
    confirmation: false,
};
const RECOVERY: RouterSettings = RouterSettings {
    clarification: false,
    decomposition: true,
    recovery: true,
    confirmation: false,
};
const CONFIRMATION: RouterSettings = RouterSettings {
    clarification: false,
    decomposition: false,
    recovery: false,
    confirmation: true,
};

fn one_piece() -> Value {
    json!({"needs_steps": false, "steps": []})
}

fn step(id: u32, task: &str, agent: &str, after: &[u32]) -> Value {
    json!({"id": id, "task": task, "agent": agent, "after": after})
}

fn steps(steps: impl IntoIterator<Item = Value>) -> Value {
    json!({"needs_steps": true, "steps": steps.into_iter().collect::<Vec<_>>()})
}

fn recovery(action: &str, agent: &str) -> Value {
    json!({"action": action, "agent": agent})
}

#[tokio::test]
async fn a_vague_request_is_asked_about_and_then_routed_with_the_answer() {
    let model = Decider::new()
        .at("clarity", json!({"is_clear": false, "question": "Which report?"}))
        .at("clarity", json!({"is_clear": true, "question": ""}))
        .at("route", local())
        .at("tool", tool("llm", json!({"prompt": "x"})))
        .answer("Here is the sales report.");
    let directory = Directory::in_memory();
    let agent = described(&model, &directory).settings(CLARIFICATION).build().unwrap();
    let serving = agent.serve(Arc::new(MemoryStore::new()), |server| server).await.unwrap();
    let client = Client::new(&serving);
    let task = client.send("Do the report").await;
    assert_eq!(task["status"]["state"], "TASK_STATE_INPUT_REQUIRED");
    assert_eq!(task["status"]["message"]["parts"][0]["text"], "Which report?");
    let task = client.send_to(&task, "The one about sales").await;
    assert_eq!(task["artifacts"][0]["parts"][0]["text"], "Here is the sales report.");
    assert!(model.asked("route")[0].contains("The one about sales"));
}

#[tokio::test]
async fn a_clear_request_is_not_asked_about_and_an_unclear_judgement_counts_as_clear() {
    for judgement in [
        vec![json!({"is_clear": true, "question": ""})],
        vec![json!({"is_clear": false, "question": " "})],
        vec![json!("it is vague"), json!("very vague")],
    ] {
        let mut model =
            Decider::new().at("route", local()).at("tool", tool("echo", json!({"text": "done"})));
        for answer in judgement {
            model = model.at("clarity", answer);
        }
        let talk = Talk::new(&with(CLARIFICATION, &model, &Directory::in_memory()));
        assert_eq!(talk.say("Say done").await.text(), "done");
        talk.replays().await;
    }
}

#[tokio::test]
async fn nobody_is_asked_about_the_same_request_for_ever() {
    let vague = json!({"is_clear": false, "question": "What do you mean?"});
    let model = Decider::new()
        .at("clarity", &vague)
        .at("clarity", &vague)
        .at("clarity", &vague)
        .at("route", local())
        .at("tool", tool("echo", json!({"text": "as you like"})));
    let talk = Talk::new(&with(CLARIFICATION, &model, &Directory::in_memory()));
    talk.say("Hm").await;
    talk.answer(Answer::text("Hm, hm")).await;
    let reply = talk.answer(Answer::text("Hm, hm, hm")).await;
    assert_eq!(reply.text(), "as you like");
    talk.replays().await;
}

/// An agent whose only tool waits until all who wait there have come.
async fn meeting(directory: &Directory, name: &'static str, barrier: &Arc<Barrier>) -> Serving {
    let barrier = Arc::clone(barrier);
    let meet = duologue_core::tool(
        "meet",
        "Meets the other.",
        duologue_core::Effect::Pure,
        move |_: crate::support::Word, _| {
            let barrier = Arc::clone(&barrier);
            async move {
                barrier.wait().await;
                Ok("met")
            }
        },
    )
    .reach(Reach::Workspace);
    let script =
        vec![Turn::call("meet", json!({"word": "x"})), Turn::text(format!("{name} found out."))];
    let agent = duologue_core::Agent::builder(name, duologue_behaviors::ReAct::default())
        .model(Arc::new(Script(script)))
        .tools(duologue_core::Toolbox::new().with(meet))
        .build();
    let serving = Server::new(agent, Arc::new(MemoryStore::new())).start().await.unwrap();
    directory.add(serving.url()).await.unwrap();
    serving
}

#[tokio::test]
async fn a_plan_is_carried_out_side_by_side_and_put_together() {
    let directory = Directory::in_memory();
    // Each of the two goes on only when the other has come: one after the other would never end.
    let barrier = Arc::new(Barrier::new(2));
    let _hotels = meeting(&directory, "hotels", &barrier).await;
    let _flights = meeting(&directory, "flights", &barrier).await;
    let plan = steps([
        step(1, "Find a hotel in Rome", "hotels", &[]),
        step(2, "Find a flight to Rome", "flights", &[]),
        step(3, "Add up the prices", "", &[1, 2]),
    ]);
    let model = Decider::new()
        .at("decomposition", plan)
        .answer("300 euros in all.")
        .answer("A hotel and a flight for 300 euros.");
    let agent = described(&model, &directory).settings(DECOMPOSITION).build().unwrap();
    let store = Arc::new(MemoryStore::new());
    let kept = Arc::clone(&store) as Arc<dyn Store>;
    let serving = agent.serve(kept, |server| server).await.unwrap();
    let client = Client::new(&serving);
    let task = tokio::time::timeout(
        std::time::Duration::from_secs(20),
        client.send("Plan a trip to Rome and tell me what it costs"),
    );
    let task = task.await.expect("the steps did not overlap");
    assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED", "{task}");
    let answer = &task["artifacts"][0]["parts"][0]["text"];
    assert_eq!(*answer, "A hotel and a flight for 300 euros.");
    // The third step knew what the first two gave; so did the last word.
    let asked = model.asked("answer");
    assert!(asked[0].contains("Result of step 1:\nhotels found out."), "{}", asked[0]);
    assert!(asked[1].contains("Step 3 (this agent): Add up the prices"), "{}", asked[1]);
    assert!(asked[1].contains("300 euros in all."), "{}", asked[1]);
    // The tasks of the others can be found from this one.
    let mut delegated: Vec<(i64, String)> = task["metadata"]["duologue/delegated"]
        .as_array()
        .unwrap()
        .iter()
        .map(|to| (to["step"].as_i64().unwrap(), to["agent"].as_str().unwrap().to_owned()))
        .collect();
    delegated.sort();
    assert_eq!(delegated, [(1, "hotels".to_owned()), (2, "flights".to_owned())]);
    // And the journal shows them at the same time: both began before either ended.
    let id = duologue_core::SessionId::from(task["id"].as_str().unwrap());
    let entries = duologue_core::read_all(&*store, &id).await.unwrap();
    let told = entries.iter().filter_map(|entry| match &entry.event {
        Event::ChildStarted { .. } => Some("began"),
        Event::ChildReplied { .. } => Some("ended"),
        _ => None,
    });
    let told: Vec<&str> = told.collect();
    assert_eq!(told, ["began", "began", "ended", "ended", "began", "ended"]);
    replay(agent.exposed(), &entries).unwrap();
}

#[tokio::test]
async fn requests_of_one_piece_and_plans_that_are_none_are_routed() {
    for plans in [
        vec![one_piece()],
        vec![steps([step(1, "Only one", "", &[])])],
        vec![steps([step(1, "a", "", &[2]), step(2, "b", "", &[1])]), json!("no plan")],
    ] {
        let mut model = Decider::new()
            .at("route", local())
            .at("tool", tool("echo", json!({"text": "in one go"})));
        for plan in plans {
            model = model.at("decomposition", plan);
        }
        let talk = Talk::new(&with(DECOMPOSITION, &model, &Directory::in_memory()));
        assert_eq!(talk.say("Do it").await.text(), "in one go");
        talk.replays().await;
    }
}

#[tokio::test]
async fn a_step_for_an_unknown_agent_is_done_here_and_questions_of_steps_reach_the_user() {
    let directory = Directory::in_memory();
    let ask = Turn::call("ask_human", json!({"question": "Which city?"}));
    let turns = [ask, Turn::text("Sunny in Rome.").expect("Rome")];
    let _weather = other(&directory, "Weather", turns).await;
    let plan =
        steps([step(1, "Look up the weather", "weather", &[]), step(2, "Greet", "ghost", &[])]);
    let model = Decider::new()
        .at("decomposition", plan)
        .at("returned", json!({"decision": "need_human_input", "answer": ""}))
        .answer("Hello!")
        .answer("Hello! It is sunny in Rome.");
    let talk = Talk::new(&with(DECOMPOSITION, &model, &directory));
    let reply = talk.say("Greet me and tell me the weather").await;
    let Outcome::InputRequired { inquiries } = &reply.outcome else { panic!("{reply:?}") };
    assert_eq!(inquiries[0].kind.to_string(), "weather asks: Which city?");
    let reply = talk.answer(Answer::text("Rome")).await;
    assert_eq!(reply.text(), "Hello! It is sunny in Rome.");
    talk.replays().await;
}

#[tokio::test]
async fn later_tasks_at_the_same_agent_refer_to_the_earlier_ones() {
    let directory = Directory::in_memory();
    let books = other(&directory, "Books", [Turn::text("found")]).await;
    let plan = steps([step(1, "Find it", "books", &[]), step(2, "Order it", "books", &[1])]);
    let model = Decider::new().at("decomposition", plan).answer("Ordered.");
    let talk = Talk::new(&with(DECOMPOSITION, &model, &directory));
    assert_eq!(talk.say("Find and order the book").await.text(), "Ordered.");
    let client = Client::new(&books);
    let list = client.call("ListTasks", json!({"historyLength": 10})).await;
    let tasks = list["tasks"].as_array().unwrap();
    assert_eq!(tasks.len(), 2);
    let second = tasks[0]["history"][0].clone();
    assert_eq!(second["referenceTaskIds"], json!([tasks[1]["id"]]), "{second}");
}

/// An agent that is known but no longer there.
async fn gone(directory: &Directory, name: &'static str) {
    let serving = other(directory, name, [Turn::text("x")]).await;
    serving.stop().await;
    directory.set_patience(Duration::ZERO);
}

#[tokio::test]
async fn a_failed_delegation_is_retried_or_given_to_another_or_done_here() {
    for (action, agent, expected) in
        [("another_agent", "backup", "Backup did it."), ("local", "", "I did it myself.")]
    {
        let directory = Directory::in_memory();
        gone(&directory, "Main").await;
        let _backup = other(&directory, "Backup", [Turn::text("Backup did it.")]).await;
        let model = Decider::new()
            .at("decomposition", one_piece())
            .at("route", remote("main"))
            .at("recovery", recovery(action, agent))
            .answer("I did it myself.");
        let talk = Talk::new(&with(RECOVERY, &model, &directory));
        let reply = talk.say("Do it").await;
        assert_eq!((reply.outcome.clone(), reply.text()), (Outcome::Completed, expected.into()));
        let prompt = &model.asked("recovery")[0];
        assert!(prompt.contains("This was given to main: Do it"), "{prompt}");
        talk.replays().await;
    }
}

#[tokio::test]
async fn retrying_helps_where_the_other_agent_comes_to_its_senses() {
    let directory = Directory::in_memory();
    let fails = Turn::error(duologue_core::ErrorClass::BadRequest, "not now");
    let model = duologue_models::Scripted::new([fails, Turn::text("Now it works.")]);
    let flaky = duologue_core::Agent::builder("flaky", duologue_behaviors::ReAct::default())
        .model(Arc::new(model))
        .build();
    let serving = Server::new(flaky, Arc::new(MemoryStore::new())).start().await.unwrap();
    directory.add(serving.url()).await.unwrap();
    // The judgement cannot be read, so the safe default is taken: once more.
    let model = Decider::new()
        .at("decomposition", one_piece())
        .at("route", remote("flaky"))
        .at("recovery", "try again")
        .at("recovery", "just try again");
    let talk = Talk::new(&with(RECOVERY, &model, &directory));
    assert_eq!(talk.say("Do it").await.text(), "Now it works.");
    let decisions = talk.decisions().await;
    assert_eq!(decisions.last().unwrap(), "recovery: retry (default)");
    talk.replays().await;
}

#[tokio::test]
async fn giving_up_ends_with_what_went_wrong_and_ways_out_are_bounded() {
    let directory = Directory::in_memory();
    gone(&directory, "Main").await;
    let mut model = Decider::new().at("decomposition", one_piece()).at("route", remote("main"));
    for _ in 0..10 {
        model = model.at("recovery", recovery("retry", ""));
    }
    let talk = Talk::new(&with(RECOVERY, &model, &directory));
    let reply = talk.say("Do it").await;
    assert!(matches!(reply.outcome, Outcome::Failed { .. }), "{reply:?}");
    assert_eq!(model.asked("recovery").len(), 3);
    for action in ["give_up", "replan", "another_agent"] {
        let model = Decider::new()
            .at("decomposition", one_piece())
            .at("route", remote("main"))
            .at("recovery", recovery(action, "main"));
        let talk = Talk::new(&with(RECOVERY, &model, &directory));
        let reply = talk.say("Do it").await;
        assert!(matches!(reply.outcome, Outcome::Failed { .. }), "{action}: {reply:?}");
        assert_eq!(model.asked("recovery").len(), 1);
    }
}

#[tokio::test]
async fn a_failed_plan_is_planned_again_with_what_is_done() {
    let directory = Directory::in_memory();
    gone(&directory, "Main").await;
    let _good = other(&directory, "Good", [Turn::text("good part")]).await;
    let first = steps([step(1, "The good part", "good", &[]), step(2, "The rest", "main", &[])]);
    let second = steps([step(1, "The rest, done here", "", &[])]);
    let model = Decider::new()
        .at("decomposition", first)
        .at("recovery", recovery("replan", ""))
        .at("decomposition", second)
        .answer("the rest")
        .answer("All of it.");
    let talk = Talk::new(&with(RECOVERY, &model, &directory));
    assert_eq!(talk.say("Do both parts").await.text(), "All of it.");
    let again = &model.asked("decomposition")[1];
    assert!(again.contains("An earlier plan failed at step 2"), "{again}");
    assert!(again.contains("Result: good part"), "{again}");
    talk.replays().await;
}

#[tokio::test]
async fn without_recovery_the_other_agents_failure_is_the_outcome() {
    let directory = Directory::in_memory();
    gone(&directory, "Main").await;
    let model = Decider::new().at("route", remote("main"));
    let talk = Talk::new(&with(RouterSettings::default(), &model, &directory));
    let reply = talk.say("Do it").await;
    assert!(matches!(reply.outcome, Outcome::Failed { .. }), "{reply:?}");
    talk.replays().await;
}

#[tokio::test]
async fn something_risky_waits_for_a_yes() {
    for (answer, confirmed) in
        [(Answer::Approve, true), (Answer::Deny { reason: "too dear".into() }, false)]
    {
        let directory = Directory::in_memory();
        let shop = other(&directory, "Shop", [Turn::text("Bought.")]).await;
        let model = Decider::new()
            .at("route", remote("shop"))
            .at("risk", json!({"is_risky": true, "why": "It spends money."}));
        let talk = Talk::new(&with(CONFIRMATION, &model, &directory));
        let reply = talk.say("Buy a car").await;
        let Outcome::InputRequired { inquiries } = &reply.outcome else { panic!("{reply:?}") };
        let InquiryKind::Approval { call, .. } = &inquiries[0].kind else { panic!() };
        assert_eq!(call.arguments, json!({"action": "shop: Buy a car", "why": "It spends money."}));
        let list = Client::new(&shop).call("ListTasks", json!({})).await;
        assert_eq!(list["totalSize"], 0);
        let reply = talk.answer(answer).await;
        if confirmed {
            assert_eq!(reply.text(), "Bought.");
        } else {
            let Outcome::Rejected { reason } = &reply.outcome else { panic!("{reply:?}") };
            assert!(reason.contains("too dear"), "{reason}");
        }
        talk.replays().await;
    }
}

#[tokio::test]
async fn what_is_not_risky_just_happens_and_an_unclear_risk_is_one() {
    let directory = Directory::in_memory();
    let _shop = other(&directory, "Shop", [Turn::text("In stock.")]).await;
    let model = Decider::new()
        .at("route", remote("shop"))
        .at("risk", json!({"is_risky": false, "why": ""}));
    let talk = Talk::new(&with(CONFIRMATION, &model, &directory));
    assert_eq!(talk.say("Is it in stock?").await.text(), "In stock.");
    talk.replays().await;
    let model = Decider::new().at("route", remote("shop")).at("risk", "no").at("risk", "none");
    let talk = Talk::new(&with(CONFIRMATION, &model, &directory));
    let reply = talk.say("Is it in stock?").await;
    assert!(matches!(reply.outcome, Outcome::InputRequired { .. }), "{reply:?}");
    assert_eq!(talk.decisions().await.last().unwrap(), "risk: confirm (default)");
    // Looking is never risky.
    let model = Decider::new().at("route", local()).at("tool", tool("echo", json!({"text": "x"})));
    let talk = Talk::new(&with(CONFIRMATION, &model, &directory));
    assert_eq!(talk.say("Say x").await.text(), "x");
    assert_eq!(model.points(), ["route", "tool"]);
}
