//! Clients of 0.3, and of the `tasks/send` before it.

use duologue_core::{Behavior, Latest, Message, Outcome, RunState, Step};
use serde_json::json;

use crate::support::*;

fn old(text: &str) -> Value {
    json!({"message": {"kind": "message", "messageId": "m1", "role": "user",
        "parts": [{"kind": "text", "text": text}]}})
}

#[tokio::test]
async fn a_client_of_0_3_sends_streams_answers_and_cancels() {
    let turns =
        [Turn::call("ask_human", json!({"question": "Which city?"})), Turn::text("Sunny in Rome.")];
    let serving = serve(agent(turns, &World::default()).build()).await;
    let client = Client::new(&serving).of_version("");
    let task = client.call("message/send", old("The weather?")).await;
    assert_eq!(
        (&task["kind"], &task["status"]["state"]),
        (&json!("task"), &json!("input-required"))
    );
    assert_eq!(task["status"]["message"]["parts"][0]["text"], "Which city?");
    let mut answer = old("Rome");
    answer["message"]["taskId"] = task["id"].clone();
    let told = client.stream("message/stream", answer).await.rest().await;
    let kinds: Vec<&str> = told.iter().map(|(_, u)| u["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["task", "artifact-update", "status-update"]);
    let last = &told.last().unwrap().1;
    assert_eq!((&last["status"]["state"], &last["final"]), (&json!("completed"), &json!(true)));
    let got = client.call("tasks/get", json!({"id": task["id"]})).await;
    assert_eq!(got["artifacts"][0]["parts"][0]["kind"], "text");
    assert_eq!(client.refused("tasks/cancel", json!({"id": task["id"]})).await, -32002);
    assert_eq!(client.refused("tasks/get", json!({"id": "nobody"})).await, -32001);
    // The same task in the words of today.
    let new = client.clone().of_version("1.0").get(&task).await;
    assert_eq!(new["status"]["state"], "TASK_STATE_COMPLETED");
}

#[tokio::test]
async fn notification_targets_of_0_3_are_kept() {
    let turns = [Turn::call("ask_human", json!({"question": "Well?"})), Turn::text("Done.")];
    let serving = serve(agent(turns, &World::default()).build()).await;
    let client = Client::new(&serving).of_version("0.3");
    let task = client.call("message/send", old("go")).await;
    let config = json!({"taskId": task["id"], "pushNotificationConfig": {
        "url": "https://example.com/hook", "id": "p", "authentication": {"schemes": ["Bearer"]}}});
    client.call("tasks/pushNotificationConfig/set", config).await;
    let id = json!({"id": task["id"]});
    let got = client.call("tasks/pushNotificationConfig/get", id.clone()).await;
    assert_eq!(got["pushNotificationConfig"]["authentication"]["schemes"], json!(["Bearer"]));
    let gone = json!({"id": task["id"], "pushNotificationConfigId": "p"});
    client.rpc("tasks/pushNotificationConfig/delete", gone).await;
    assert_eq!(client.call("tasks/pushNotificationConfig/list", id).await, json!([]));
}

/// Refuses what it does not like.
struct Picky;

impl Behavior for Picky {
    type State = ();

    fn name(&self) -> &'static str {
        "picky"
    }

    fn decide(&self, run: &RunState, (): &()) -> Step {
        let asked = run.request().map(|message| message.text()).unwrap_or_default();
        match (run.latest(), asked.as_str()) {
            (Latest::Input, "hack") => Step::End(Outcome::Rejected { reason: "not that".into() }),
            (Latest::Input, text) => Step::Say(Message::assistant(format!("You said {text}"))),
            _ => Step::End(Outcome::Completed),
        }
    }
}

#[tokio::test]
async fn tasks_send_takes_its_clients_ids_and_tells_a_rejection_as_a_failure() {
    let serving = serve(Agent::builder("picky", Picky).build()).await;
    let client = Client::new(&serving).of_version("");
    let send = |id: &str, text: &str| {
        json!({"id": id, "sessionId": "s1",
            "message": {"role": "user", "parts": [{"type": "text", "text": text}]}})
    };
    let task = client.call("tasks/send", send("my-task", "hello")).await;
    assert_eq!((&task["id"], &task["sessionId"]), (&json!("my-task"), &json!("s1")));
    assert_eq!(task["status"]["state"], "completed");
    let part = &task["artifacts"][0]["parts"][0];
    assert_eq!((&part["type"], &part["text"]), (&json!("text"), &json!("You said hello")));
    let task = client.call("tasks/send", send("another", "hack")).await;
    assert_eq!(task["status"]["state"], "failed");
    assert_eq!(task["status"]["message"]["parts"][0]["text"], "not that");
    let got = client.call("tasks/get", json!({"id": "another"})).await;
    assert_eq!(got["status"]["state"], "failed");
    // Those who know the word are told it.
    let today = client.clone().of_version("1.0").get(&json!({"id": "another"})).await;
    assert_eq!(today["status"]["state"], "TASK_STATE_REJECTED");
    assert_eq!(client.refused("tasks/send", send("../x", "hello")).await, -32602);
}
