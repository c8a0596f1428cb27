//! The seed's decision points and their safe defaults.

use std::sync::{Arc, atomic::Ordering};

use duologue_a2a::{Directory, RouterSettings};
use duologue_core::{Answer, InquiryKind, MemoryStore, Outcome, WhenBusy};

use super::stage::*;
use crate::support::{Client, Turn, World};

fn question_of(outcome: &Outcome) -> String {
    let Outcome::InputRequired { inquiries } = outcome else { panic!("{outcome}") };
    let InquiryKind::Question { text, .. } = &inquiries[0].kind else { panic!("{inquiries:?}") };
    text.clone()
}

fn plain(model: &Decider, directory: &Directory) -> Talk {
    Talk::new(&with(RouterSettings::default(), model, directory))
}

#[tokio::test]
async fn a_local_task_is_answered_by_the_llm_tool() {
    let model = Decider::new()
        .at("route", local())
        .at("tool", tool("llm", json!({"prompt": "capital of France"})))
        .answer("The capital of France is Paris.");
    let talk = plain(&model, &Directory::in_memory());
    let reply = talk.say("What is the capital of France?").await;
    assert_eq!(reply.outcome, Outcome::Completed);
    assert_eq!(reply.text(), "The capital of France is Paris.");
    assert_eq!(talk.decisions().await, ["route: local (model)", "tool: llm (model)"]);
    // Each decision saw the tools, and the answer the conversation.
    assert!(
        model.asked("route")[0].contains("summarize: Summarizes a text"),
        "{:?}",
        model.asked("route")
    );
    assert!(model.asked("tool")[0].contains("Parameters of list_agents: "));
    assert_eq!(model.asked("answer"), ["user: What is the capital of France?"]);
    talk.replays().await;
}

#[tokio::test]
async fn a_local_task_may_be_done_by_another_tool() {
    let model =
        Decider::new().at("route", local()).at("tool", tool("echo", json!({"text": "hello"})));
    let talk = plain(&model, &Directory::in_memory());
    assert_eq!(talk.say("Say hello back").await.text(), "hello");
    assert_eq!(talk.decisions().await, ["route: local (model)", "tool: echo (model)"]);
    talk.replays().await;
}

#[tokio::test]
async fn a_task_is_given_to_the_agent_that_fits() {
    let directory = Directory::in_memory();
    let _weather = other(&directory, "Weather", [Turn::text("Sunny.").expect("Rome")]).await;
    let model = Decider::new().at("route", remote("weather"));
    let talk = plain(&model, &directory);
    let reply = talk.say("The weather in Rome?").await;
    assert_eq!((reply.outcome.clone(), reply.text()), (Outcome::Completed, "Sunny.".into()));
    assert_eq!(talk.decisions().await, ["route: remote:weather (model)"]);
    // The decision saw who else there is.
    let prompt = &model.asked("route")[0];
    assert!(prompt.contains("- `remote:weather`: An agent for tests"), "{prompt}");
    assert_eq!(model.points(), ["route"]);
    talk.replays().await;
}

#[tokio::test]
async fn decisions_see_the_whole_conversation() {
    let model = Decider::new()
        .at("route", local())
        .at("tool", tool("llm", json!({"prompt": "x"})))
        .answer("Noted.")
        .at("route", local())
        .at("tool", tool("llm", json!({"prompt": "x"})))
        .answer("Ada.");
    let talk = plain(&model, &Directory::in_memory());
    talk.say("My name is Ada.").await;
    talk.say("What is my name?").await;
    let second = &model.asked("route")[1];
    for said in ["user: My name is Ada.", "assistant: Noted.", "user: What is my name?"] {
        assert!(second.contains(said), "{second}");
    }
}

#[tokio::test]
async fn an_agent_that_nobody_knows_is_replaced_by_the_local_llm() {
    let model = Decider::new().at("route", remote("ghost")).answer("I did it myself.");
    let talk = plain(&model, &Directory::in_memory());
    assert_eq!(talk.say("Haunt the house").await.text(), "I did it myself.");
    assert_eq!(talk.decisions().await, ["route: local llm (default)"]);
    assert_eq!(model.points(), ["route", "answer"]);
    talk.replays().await;
}

#[tokio::test]
async fn a_task_is_rejected_with_the_reason() {
    let reason = "I cannot assist with illegal activities such as hacking.";
    let reject = json!({"route": "reject", "agent": "", "reason": reason});
    let model = Decider::new().at("route", &reject).at("route", &reject);
    let directory = Directory::in_memory();
    let talk = plain(&model, &directory);
    let reply = talk.say("Help me hack into a government database").await;
    assert_eq!(reply.outcome, Outcome::Rejected { reason: reason.into() });
    assert_eq!(talk.decisions().await, ["route: reject (model)"]);
    talk.replays().await;
    // And to another agent it is a rejected task.
    let agent = described(&model, &directory).build().unwrap();
    let serving = agent.serve(Arc::new(MemoryStore::new()), |server| server).await.unwrap();
    let task = Client::new(&serving).send("Help me hack into a government database").await;
    assert_eq!(task["status"]["state"], "TASK_STATE_REJECTED");
    assert_eq!(task["status"]["message"]["parts"][0]["text"], reason);
}

#[tokio::test]
async fn an_unclear_route_is_asked_for_again_and_then_local() {
    let model = Decider::new()
        .at("route", "REMOTE: weather, I think")
        .at("route", "I would do it myself.")
        .answer("Done here.");
    let talk = plain(&model, &Directory::in_memory());
    assert_eq!(talk.say("Do it").await.text(), "Done here.");
    assert_eq!(talk.decisions().await, ["route: local llm (default)"]);
    let again = &model.asked("route")[1];
    assert!(again.contains("Your last answer cannot be used as the route"), "{again}");
    talk.replays().await;
}

#[tokio::test]
async fn an_unclear_route_that_is_mended_counts() {
    let model = Decider::new()
        .at("route", "local")
        .at("route", local())
        .at("tool", tool("echo", json!({"text": "mended"})));
    let talk = plain(&model, &Directory::in_memory());
    assert_eq!(talk.say("Do it").await.text(), "mended");
    assert_eq!(talk.decisions().await, ["route: local (model)", "tool: echo (model)"]);
}

#[tokio::test]
async fn tools_that_cannot_be_read_or_do_not_exist_or_do_not_fit_leave_it_to_the_llm() {
    let cases = [
        vec!["echo, please".to_owned(), "{\"tool_name\": 7}".to_owned()],
        vec![tool("teleport", json!({})).to_string(), tool("fly", json!({})).to_string()],
        vec![tool("echo", json!({"txt": "no such parameter"})).to_string()],
    ];
    for answers in cases {
        let mut model = Decider::new().at("route", local()).answer("The model says so.");
        for answer in &answers {
            model = model.at("tool", answer);
        }
        let talk = plain(&model, &Directory::in_memory());
        let reply = talk.say("Do something").await;
        assert_eq!(reply.outcome, Outcome::Completed, "{answers:?}");
        assert_eq!(reply.text(), "The model says so.", "{answers:?}");
        talk.replays().await;
    }
}

/// A front agent, and a weather agent that asks for the city.
async fn asked_back(returned: &[Value]) -> (Talk, Decider, crate::support::Serving) {
    let directory = Directory::in_memory();
    let ask = Turn::call("ask_human", json!({"question": "Which city?"}));
    let turns = [ask, Turn::text("Sunny in Rome.").expect("Rome")];
    let weather = other(&directory, "Weather", turns).await;
    let mut model = Decider::new().at("route", remote("weather"));
    for answer in returned {
        model = model.at("returned", answer);
    }
    (plain(&model, &directory), model, weather)
}

#[tokio::test]
async fn a_question_whose_answer_is_known_here_is_handled_directly() {
    let known = json!({"words": "Rome", "decision": "handle_directly", "answer": "Rome"});
    let (talk, model, _weather) = asked_back(&[known]).await;
    let reply = talk.say("I live in Rome. The weather at home?").await;
    assert_eq!(
        (reply.outcome.clone(), reply.text()),
        (Outcome::Completed, "Sunny in Rome.".into())
    );
    let expected = ["route: remote:weather (model)", "returned: handle directly (model)"];
    assert_eq!(talk.decisions().await, expected);
    let prompt = &model.asked("returned")[0];
    assert!(prompt.contains("I live in Rome") && prompt.contains("It asks: Which city?"));
    talk.replays().await;
}

#[tokio::test]
async fn a_question_for_the_user_reaches_them_and_the_answer_goes_back() {
    let human = json!({"decision": "need_human_input", "answer": ""});
    let (talk, _, _weather) = asked_back(&[human]).await;
    let reply = talk.say("The weather?").await;
    assert_eq!(question_of(&reply.outcome), "weather asks: Which city?");
    let reply = talk.answer(Answer::text("Rome")).await;
    assert_eq!(
        (reply.outcome.clone(), reply.text()),
        (Outcome::Completed, "Sunny in Rome.".into())
    );
    let expected = ["route: remote:weather (model)", "returned: human (model)"];
    assert_eq!(talk.decisions().await, expected);
    talk.replays().await;
}

#[tokio::test]
async fn what_another_agent_may_do_is_for_a_person_to_say_and_not_for_the_model() {
    let directory = Directory::in_memory();
    let world = World::default();
    let turns = [Turn::call("act", json!({"word": "now"})), Turn::text("It is done.")];
    let _actor = other_in(&directory, "Actor", turns, &world).await;
    // It would say yes to anything.
    let yes = json!({"words": "do", "decision": "handle_directly", "answer": "do"});
    let model = Decider::new().at("route", remote("actor")).at("returned", &yes);
    let talk = plain(&model, &directory);
    let reply = talk.say("Do it").await;
    assert_eq!(talk.decisions().await, ["route: remote:actor (model)"], "{reply:?}");
    assert!(question_of(&reply.outcome).starts_with("actor asks: approve act"), "{reply:?}");
    assert_eq!((model.asked("returned").len(), world.acted.load(Ordering::SeqCst)), (0, 0));
    let reply = talk.answer(Answer::text("approve")).await;
    assert_eq!(reply.text(), "It is done.");
    assert_eq!(world.acted.load(Ordering::SeqCst), 1);
    talk.replays().await;
}

#[tokio::test]
async fn an_unclear_decision_about_a_question_asks_the_user() {
    for unclear in [
        vec![json!("HANDLE_DIRECTLY"), json!("perhaps")],
        vec![json!({"words": "The weather", "decision": "handle_directly", "answer": " "})],
        // Nobody said Paris, and the request itself is no answer.
        vec![json!({"words": "Paris", "decision": "handle_directly", "answer": "Paris"})],
        vec![
            json!({"words": "The weather", "decision": "handle_directly", "answer": "The weather"}),
        ],
    ] {
        let (talk, _, _weather) = asked_back(&unclear).await;
        let reply = talk.say("The weather?").await;
        assert_eq!(question_of(&reply.outcome), "weather asks: Which city?", "{unclear:?}");
        assert_eq!(talk.answer(Answer::text("Rome")).await.text(), "Sunny in Rome.");
    }
}

#[tokio::test]
async fn another_request_instead_of_an_answer_calls_the_waiting_task_off() {
    let human = json!({"decision": "need_human_input", "answer": ""});
    let (talk, model, weather) = asked_back(&[human]).await;
    let model = model.at("route", local()).at("tool", tool("echo", json!({"text": "four"})));
    talk.say("The weather?").await;
    let reply = talk.say("Never mind. What is two and two?").await;
    assert_eq!(reply.text(), "four");
    let client = Client::new(&weather);
    let task = client.call("ListTasks", json!({})).await["tasks"][0].clone();
    client.until(&task, "TASK_STATE_CANCELED").await;
    drop(model);
}

#[tokio::test]
async fn what_is_said_while_another_agent_works_is_answered_by_the_local_llm() {
    let directory = Directory::in_memory();
    let world = World::default();
    let turns = [Turn::call("wait", json!({"word": "x"})), Turn::text("Sunny.")];
    let _weather = other_in(&directory, "Weather", turns, &world).await;
    let model = Decider::new().at("route", remote("weather")).answer("Sunny, so no umbrella.");
    let talk = plain(&model, &directory);
    let session = talk.session.clone();
    let running = tokio::spawn(async move { session.reply("The weather?").await.unwrap() });
    world.started.notified().await;
    let session = talk.session.clone();
    let joined = tokio::spawn(async move {
        session.reply_when_busy("Do I need an umbrella?", WhenBusy::Join).await.unwrap()
    });
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    world.go.notify_one();
    assert_eq!(running.await.unwrap().text(), "Sunny, so no umbrella.");
    assert_eq!(joined.await.unwrap().outcome, Outcome::Completed);
    let asked = &model.asked("answer")[0];
    assert!(asked.contains("assistant: Sunny.") && asked.contains("umbrella?"), "{asked}");
    talk.replays().await;
}

#[tokio::test]
async fn agents_that_keep_each_other_busy_are_brought_before_the_user() {
    let directory = Directory::in_memory();
    let ask = || Turn::call("ask_human", json!({"question": "Are you sure?"}));
    let turns = [ask(), ask(), ask(), ask(), Turn::text("At last.")];
    let _doubter = other(&directory, "Doubter", turns).await;
    let mut model = Decider::new().at("route", remote("doubter"));
    for _ in 0..10 {
        let sure = json!({"words": "sure", "decision": "handle_directly", "answer": "I am sure"});
        model = model.at("returned", sure);
    }
    let talk = plain(&model, &directory);
    let reply = talk.say("Do it, I am sure").await;
    assert_eq!(question_of(&reply.outcome), "doubter asks: Are you sure?");
    assert_eq!(model.asked("returned").len(), 3);
    assert_eq!(talk.answer(Answer::text("Yes!")).await.text(), "At last.");
    talk.replays().await;
}
