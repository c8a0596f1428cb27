//! What is hard to bring about from outside: watchers that do not look.

use std::{sync::Arc, time::Duration};

use duologue_behaviors::ReAct;
use duologue_core::{Agent, Effect, MemoryStore, Toolbox, tool};
use duologue_models::{Scripted, Turn, TurnCall};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio::sync::Semaphore;

use super::{Begin, TaskSettings, Tasks, Update};
use crate::{
    Caller, PushSettings,
    push::Pushes,
    task::{Place, Watch},
};

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

/// An agent that says so many things before its answer, once it is let go.
fn talkative(count: usize, gate: &Arc<Semaphore>) -> Tasks {
    let mut turns: Vec<Turn> = (0..count)
        .map(|n| Turn::text(n.to_string()).and_call(TurnCall::new("look", json!({}))))
        .collect();
    turns.push(Turn::text("Done."));
    let gate = Arc::clone(gate);
    let look = tool("look", "Looks.", Effect::Pure, move |_: Nothing, _| {
        let gate = Arc::clone(&gate);
        async move {
            let _open = gate.acquire().await;
            Ok("seen")
        }
    });
    let agent = Agent::builder("talkative", ReAct { max_iterations: 10_000 })
        .model(Arc::new(Scripted::new(turns)))
        .tools(Toolbox::new().with(look))
        .build();
    let settings = TaskSettings {
        input_modes: vec!["*/*".to_owned()],
        url: "http://here".to_owned(),
        deepest: 8,
    };
    let pushes = Pushes::new(PushSettings::default()).unwrap();
    Tasks::new(agent, Arc::new(MemoryStore::new()), settings, pushes)
}

fn request() -> a2a::SendMessageRequest {
    let message = a2a::Message::new(a2a::Role::User, vec![a2a::Part::text("go")]);
    a2a::SendMessageRequest { message, configuration: None, metadata: None, tenant: None }
}

async fn rest(mut watch: Watch) -> Vec<Update> {
    let mut all = Vec::new();
    loop {
        let next = tokio::time::timeout(Duration::from_secs(20), watch.next()).await;
        all.push(next.expect("the watcher is stuck").unwrap());
        if all.last().is_some_and(Update::ends) {
            return all;
        }
    }
}

#[tokio::test]
async fn a_watcher_that_does_not_look_holds_up_nobody_and_misses_nothing() {
    // More than a listener's channel holds.
    let gate = Arc::new(Semaphore::new(0));
    let tasks = talkative(400, &gate);
    let caller = Caller::anonymous();
    let mut first = tasks.send(&caller, request(), Begin::default()).await.unwrap();
    let id = first.id().to_owned();
    let sleepy = tasks.watch(&caller, &id, None).await.unwrap();
    gate.add_permits(1);
    // The agent comes to its end while the sleepy one does not look.
    first.until_settled().await.unwrap();
    drop(first);
    let told = rest(sleepy).await;
    let places: Vec<Place> = told.iter().filter_map(|update| update.place).collect();
    let mut in_order = places.clone();
    in_order.sort();
    in_order.dedup();
    assert_eq!(places, in_order, "each once and in order");
    let said: Vec<String> = told
        .iter()
        .filter_map(|update| match &update.response {
            a2a::StreamResponse::StatusUpdate(update) => {
                update.status.message.as_ref()?.text().map(str::to_owned)
            }
            _ => None,
        })
        .collect();
    // It began to watch when the agent had said some of it; all that came then is there.
    let begun = 400 - said.len();
    let expected: Vec<String> = (begun..400).map(|n| n.to_string()).collect();
    assert_eq!(said, expected);
    assert!(said.len() > 200, "it was asleep most of the time: {}", said.len());
    // Everybody who was there from the same place on is told the same.
    let place = places[0];
    let again = tasks.watch(&caller, &id, Some(place)).await.unwrap();
    let again: Vec<Place> = rest(again).await.iter().filter_map(|u| u.place).collect();
    assert_eq!(again, places[1..]);
}
