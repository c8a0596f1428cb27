//! A task's life: sent, streamed, asked back, answered, cancelled, listed.

use std::sync::atomic::Ordering;

use duologue_core::{Agent, Behavior, Outcome, RunState, Step};
use serde_json::json;

use crate::support::*;

const NOT_FOUND: i64 = -32001;
const NOT_CANCELABLE: i64 = -32002;
const UNSUPPORTED: i64 = -32004;
const INVALID: i64 = -32602;

#[tokio::test]
async fn a_message_is_answered_by_a_task_with_the_answer_as_its_artifact() {
    let serving = serve(agent([Turn::text("It is 42.")], &World::default()).build()).await;
    let client = Client::new(&serving);
    let task = client.send("What is it?").await;
    assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED");
    assert_eq!(task["artifacts"][0]["parts"], json!([{"text": "It is 42."}]));
    assert_eq!(task["history"][0]["parts"], json!([{"text": "What is it?"}]));
    assert_eq!(task["history"][0]["role"], "ROLE_USER");
    assert_eq!(client.get(&task).await, task);
    let short = client.call("GetTask", json!({"id": task["id"], "historyLength": 0})).await;
    assert!(short.get("history").is_none());
}

#[tokio::test]
async fn a_stream_tells_everything_once_and_in_order_and_ends() {
    let world = World::default();
    let turns = [Turn::text("First I wait.").and_call(call("wait")), Turn::text("Done.")];
    let serving = serve(agent(turns, &world).policy(allow()).build()).await;
    let client = Client::new(&serving);
    let mut events = client.stream("SendStreamingMessage", said("go")).await;
    let (_, first) = events.next().await.unwrap();
    let task = first["task"].clone();
    world.started.notified().await;
    // Two who come later, one of whom goes away again.
    let id = json!({"id": task["id"]});
    let mut late = client.stream("SubscribeToTask", id.clone()).await;
    let (_, snapshot) = late.next().await.unwrap();
    assert_eq!(snapshot["task"]["status"]["state"], "TASK_STATE_WORKING");
    let said_so_far = &snapshot["task"]["history"];
    assert_eq!(said_so_far[1]["parts"][0]["text"], "First I wait.");
    drop(client.stream("SubscribeToTask", id.clone()).await);
    world.go.notify_one();
    let told: Vec<String> = events.rest().await.iter().map(|(_, update)| brief(update)).collect();
    let expected = [
        "TASK_STATE_WORKING",
        "TASK_STATE_WORKING First I wait.",
        "artifact Done.",
        "TASK_STATE_COMPLETED",
    ];
    assert_eq!(told, expected);
    let told: Vec<String> = late.rest().await.iter().map(|(_, update)| brief(update)).collect();
    assert_eq!(told, expected[2..]);
    // What is over is not watched any more, unless somebody says where they were.
    assert_eq!(client.refused("SubscribeToTask", id).await, UNSUPPORTED);
}

#[tokio::test]
async fn a_client_that_lost_its_stream_goes_on_behind_the_last_event_it_got() {
    let serving = serve(agent([Turn::text("Done.")], &World::default()).build()).await;
    let client = Client::new(&serving);
    let all = client.stream("SendStreamingMessage", said("go")).await.rest().await;
    let task = all[0].1["task"].clone();
    for (place, (id, _)) in all.iter().enumerate() {
        let body = json!({"jsonrpc": "2.0", "id": 7, "method": "SubscribeToTask",
            "params": {"id": task["id"]}});
        let request = client.http.post(&client.url).header("a2a-version", "1.0");
        let response = request.header("last-event-id", id).json(&body).send().await.unwrap();
        let again = Events::new(response).rest().await;
        assert!(again[0].1.get("task").is_some(), "a subscription begins with the task");
        assert_eq!(again[1..], all[place + 1..], "behind {id}");
    }
}

#[tokio::test]
async fn a_question_waits_for_its_answer_and_the_answer_finishes_the_task() {
    let turns = [
        Turn::call("ask_human", json!({"question": "Which city?"})),
        Turn::text("Sunny in Rome.").expect("Rome"),
    ];
    let serving = serve(agent(turns, &World::default()).build()).await;
    let client = Client::new(&serving);
    let mut events = client.stream("SendStreamingMessage", said("The weather?")).await;
    let told: Vec<String> = events.rest().await.iter().map(|(_, update)| brief(update)).collect();
    assert_eq!(told.last().unwrap(), "TASK_STATE_INPUT_REQUIRED Which city?");
    let list = client.call("ListTasks", json!({"status": "TASK_STATE_INPUT_REQUIRED"})).await;
    let task = list["tasks"][0].clone();
    let wrong = json!({"message": {"messageId": "x", "role": "ROLE_USER", "taskId": task["id"],
        "contextId": "another", "parts": [{"text": "Rome"}]}});
    assert_eq!(client.refused("SendMessage", wrong).await, INVALID);
    // Somebody who watches hears the rest.
    let mut watching = client.stream("SubscribeToTask", json!({"id": task["id"]})).await;
    assert_eq!(brief(&watching.next().await.unwrap().1), "task TASK_STATE_INPUT_REQUIRED");
    let done = client.send_to(&task, "Rome").await;
    assert_eq!(done["status"]["state"], "TASK_STATE_COMPLETED");
    assert_eq!(done["contextId"], task["contextId"]);
    let texts: Vec<&str> = done["history"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["parts"][0]["text"].as_str().unwrap())
        .collect();
    assert_eq!(texts, ["The weather?", "Which city?", "Rome"]);
    let told: Vec<String> = watching.rest().await.iter().map(|(_, u)| brief(u)).collect();
    assert_eq!(told, ["TASK_STATE_WORKING", "artifact Sunny in Rome.", "TASK_STATE_COMPLETED"]);
    let mut late = said("one more thing");
    late["message"]["taskId"] = task["id"].clone();
    assert_eq!(client.refused("SendMessage", late).await, UNSUPPORTED);
}

/// Waits for more after whatever it is told, without asking, until it is told enough.
struct Patient;

impl Behavior for Patient {
    type State = ();

    fn name(&self) -> &'static str {
        "patient"
    }

    fn decide(&self, run: &RunState, (): &()) -> Step {
        match run.request().map(|request| request.text()) {
            Some(text) if text == "enough" => Step::End(Outcome::Completed),
            _ => Step::End(Outcome::InputRequired { inquiries: Vec::new() }),
        }
    }
}

#[tokio::test]
async fn an_agent_that_waits_without_a_question_is_told_more() {
    let serving = serve(Agent::builder("patient", Patient).build()).await;
    let client = Client::new(&serving);
    let task = client.send("one").await;
    assert_eq!(task["status"]["state"], "TASK_STATE_INPUT_REQUIRED");
    let task = client.send_to(&task, "two").await;
    assert_eq!(task["status"]["state"], "TASK_STATE_INPUT_REQUIRED");
    let task = client.send_to(&task, "enough").await;
    assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED");
}

#[tokio::test]
async fn only_a_plain_yes_lets_a_risky_call_run() {
    let turns = [Turn::call("act", json!({"word": "x"})), Turn::text("Ended.")];
    let world = World::default();
    let serving = serve(agent(turns, &world).build()).await;
    let client = Client::new(&serving);
    let task = client.send("act").await;
    assert_eq!(task["status"]["state"], "TASK_STATE_INPUT_REQUIRED");
    assert!(task["status"]["message"]["metadata"]["duologue/inquiries"][0]["id"].is_string());
    let done = client.send_to(&task, "hm, yes and no").await;
    assert_eq!(done["status"]["state"], "TASK_STATE_COMPLETED");
    assert_eq!(world.acted.load(Ordering::SeqCst), 0);
    let task = client.send("act").await;
    client.send_to(&task, "yes").await;
    assert_eq!(world.acted.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn who_does_not_want_to_wait_gets_the_task_at_once_and_it_goes_on_without_them() {
    let world = World::default();
    let turns = [Turn::call("wait", json!({"word": "x"})), Turn::text("Done.")];
    let serving = serve(agent(turns, &world).policy(allow()).build()).await;
    let client = Client::new(&serving);
    let mut hasty = said("go");
    hasty["configuration"] = json!({"returnImmediately": true});
    let task = client.call("SendMessage", hasty).await["task"].clone();
    let state = task["status"]["state"].as_str().unwrap();
    assert!(["TASK_STATE_SUBMITTED", "TASK_STATE_WORKING"].contains(&state), "{state}");
    world.started.notified().await;
    world.go.notify_one();
    let done = client.until(&task, "TASK_STATE_COMPLETED").await;
    assert_eq!(done["artifacts"][0]["parts"][0]["text"], "Done.");
}

#[tokio::test]
async fn a_task_is_cancelled_at_work_and_while_it_waits_but_not_afterwards() {
    let world = World::default();
    let turns = [Turn::call("wait", json!({"word": "x"})), Turn::text("Done.")];
    let serving = serve(agent(turns, &world).policy(allow()).build()).await;
    let client = Client::new(&serving);
    let mut events = client.stream("SendStreamingMessage", said("go")).await;
    let task = events.next().await.unwrap().1["task"].clone();
    world.started.notified().await;
    let id = json!({"id": task["id"]});
    let cancelled = client.call("CancelTask", id.clone()).await;
    assert_eq!(cancelled["status"]["state"], "TASK_STATE_CANCELED");
    let told = events.rest().await;
    assert!(brief(&told.last().unwrap().1).starts_with("TASK_STATE_CANCELED"));
    assert_eq!(client.refused("CancelTask", id).await, NOT_CANCELABLE);
    assert_eq!(client.refused("CancelTask", json!({"id": "nobody"})).await, NOT_FOUND);

    let turns = [Turn::call("ask_human", json!({"question": "Well?"})), Turn::text("Done.")];
    let serving = serve(agent(turns, &World::default()).build()).await;
    let client = Client::new(&serving);
    let task = client.send("go").await;
    let id = json!({"id": task["id"]});
    let cancelled = client.call("CancelTask", id.clone()).await;
    assert_eq!(cancelled["status"]["state"], "TASK_STATE_CANCELED");
    assert_eq!(client.get(&task).await["status"]["state"], "TASK_STATE_CANCELED");
}

#[tokio::test]
async fn a_list_is_filtered_and_paged_the_last_changed_first() {
    let serving = serve(agent([Turn::text("Done.")], &World::default()).build()).await;
    let client = Client::new(&serving);
    let mut sent = Vec::new();
    for place in 0..5 {
        let mut params = said("go");
        params["message"]["contextId"] = json!(if place < 3 { "one" } else { "two" });
        sent.push(client.call("SendMessage", params).await["task"]["id"].clone());
        tokio::time::sleep(std::time::Duration::from_millis(3)).await;
    }
    sent.reverse();
    let first = client.call("ListTasks", json!({"pageSize": 2})).await;
    assert_eq!((&first["totalSize"], &first["pageSize"]), (&json!(5), &json!(2)));
    assert!(first["tasks"][0].get("artifacts").is_none());
    let mut found: Vec<Value> = Vec::new();
    let mut token = json!("");
    loop {
        let page = json!({"pageSize": 2, "pageToken": token, "includeArtifacts": true});
        let page = client.call("ListTasks", page).await;
        let tasks = page["tasks"].as_array().unwrap();
        assert!(tasks.iter().all(|task| task.get("artifacts").is_some()));
        found.extend(tasks.iter().map(|task| task["id"].clone()));
        token = page["nextPageToken"].clone();
        if token == "" {
            break;
        }
    }
    assert_eq!(found, sent);
    let some = client.call("ListTasks", json!({"contextId": "two"})).await;
    assert_eq!(some["totalSize"], 2);
    for wrong in [
        json!({"pageSize": 0}),
        json!({"pageSize": 101}),
        json!({"historyLength": -1}),
        json!({"pageToken": "x"}),
        json!({"status": "TASK_STATE_RUNNING"}),
    ] {
        assert_eq!(client.refused("ListTasks", wrong).await, INVALID);
    }
}

#[tokio::test]
async fn a_repeated_key_finds_the_task_that_it_began() {
    let serving = serve(agent([Turn::text("Done.")], &World::default()).build()).await;
    let client = Client::new(&serving);
    let mut params = said("go");
    params["message"]["metadata"] = json!({"duologue/idempotencyKey": "k1"});
    let first = client.call("SendMessage", params.clone()).await;
    let second = client.call("SendMessage", params).await;
    assert_eq!(first["task"], second["task"]);
    assert_eq!(client.call("ListTasks", json!({})).await["totalSize"], 1);
}

fn call(name: &str) -> duologue_models::TurnCall {
    duologue_models::TurnCall::new(name, json!({"word": "x"}))
}

fn allow() -> duologue_core::Policy {
    duologue_core::Policy::new(duologue_core::Mode::Full)
}

#[tokio::test]
async fn a_new_task_of_a_conversation_knows_what_was_said_before() {
    let built = agent([], &World::default()).model(std::sync::Arc::new(Recites)).build();
    let serving = serve(built).await;
    let client = Client::new(&serving);
    let answer = |task: &Value| task["artifacts"][0]["parts"][0]["text"].clone();
    let first = client.send("one").await;
    assert_eq!(answer(&first), "one");
    let again = async |context: &Value, text: &str| {
        let mut params = said(text);
        params["message"]["contextId"] = context.clone();
        client.call("SendMessage", params).await["task"].clone()
    };
    let second = again(&first["contextId"], "two").await;
    assert_eq!(answer(&second), "one | one | two");
    assert_ne!(second["id"], first["id"]);
    let third = again(&first["contextId"], "three").await;
    assert_eq!(answer(&third), "one | one | two | one | one | two | three");
    // What was said before is the agent's to know, and not this task's history.
    assert_eq!(third["history"].as_array().unwrap().len(), 1);
    let stranger = again(&json!("another"), "four").await;
    assert_eq!(answer(&stranger), "four");
    let mut params = said("five");
    params["message"]["referenceTaskIds"] = json!([stranger["id"], "nobody"]);
    let referring = client.call("SendMessage", params).await["task"].clone();
    let text = answer(&referring);
    assert!(text.as_str().unwrap().ends_with("which is referred to:\nfour | five"), "{text}");
}

/// Answers with all that it was asked with.
struct Recites;

impl duologue_core::Model for Recites {
    fn name(&self) -> &str {
        "test/recites"
    }

    fn ask(&self, request: duologue_core::Request) -> duologue_core::DeltaStream {
        use duologue_core::{Delta, StopReason};
        use futures::StreamExt;
        let texts: Vec<String> = request.messages.iter().map(|message| message.text()).collect();
        let deltas = [Ok(Delta::Text(texts.join(" | "))), Ok(Delta::Stop(StopReason::Completed))];
        futures::stream::iter(deltas).boxed()
    }
}

#[tokio::test]
async fn who_asks_for_pieces_sees_an_answer_being_written() {
    let serving = serve(agent([Turn::text("One two three.")], &World::default()).build()).await;
    let client = Client::new(&serving);
    let body = json!({"jsonrpc": "2.0", "id": 7, "method": "SendStreamingMessage",
        "params": said("go")});
    let request = client.http.post(&client.url).header("a2a-version", "1.0");
    let request = request.header("a2a-extensions", "urn:duologue:pieces, urn:x").json(&body);
    let told = Events::new(request.send().await.unwrap()).rest().await;
    let is_piece = |update: &Value| {
        !update["statusUpdate"]["status"]["message"]["metadata"]["duologue/piece"].is_null()
    };
    let (pieces, rest): (Vec<_>, Vec<_>) = told.iter().partition(|(_, update)| is_piece(update));
    let text: String = pieces
        .iter()
        .filter_map(|(_, u)| u["statusUpdate"]["status"]["message"]["parts"][0]["text"].as_str())
        .collect();
    assert_eq!(text, "One two three.");
    assert!(pieces.iter().all(|(id, _)| id.is_empty()), "pieces are nowhere in the journal");
    // Everything else is as it is for everybody.
    let told: Vec<String> = rest.iter().map(|(_, update)| brief(update)).collect();
    let plain = client.stream("SendStreamingMessage", said("go")).await.rest().await;
    let plain: Vec<String> = plain.iter().map(|(_, update)| brief(update)).collect();
    assert_eq!(told, plain);
}
