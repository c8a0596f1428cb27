//! What a server left behind is found by the next one.

use std::{path::Path, sync::Arc};

use duologue_store::{SqliteOptions, SqliteStore};
use serde_json::json;

use crate::support::*;

async fn open(folder: &Path) -> Arc<SqliteStore> {
    Arc::new(SqliteStore::open(folder.join("journal.db"), SqliteOptions::default()).await.unwrap())
}

#[tokio::test]
async fn tasks_and_open_questions_survive_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let turns = || {
        let ask = Turn::call("ask_human", json!({"question": "Which city?"}));
        [ask, Turn::text("Sunny in Rome.").expect("Rome")]
    };
    let build = || agent(turns(), &World::default()).build();
    let store = open(folder.path()).await;
    let serving = Server::new(build(), Arc::clone(&store) as Arc<dyn Store>).start().await.unwrap();
    let client = Client::new(&serving);
    let waiting = client.send("The weather?").await;
    let other = client.send("And tomorrow?").await;
    let done = client.send_to(&other, "Rome").await;
    serving.stop().await;
    store.close().await.unwrap();
    drop(store);

    let store = open(folder.path()).await;
    let serving = Server::new(build(), Arc::clone(&store) as Arc<dyn Store>).start().await.unwrap();
    let client = Client::new(&serving);
    assert_eq!(client.get(&waiting).await, waiting);
    assert_eq!(client.get(&done).await, done);
    let list = client.call("ListTasks", json!({})).await;
    assert_eq!(list["totalSize"], 2);
    assert_eq!(list["tasks"][0]["id"], done["id"]);
    let answered = client.send_to(&waiting, "Rome").await;
    assert_eq!(answered["artifacts"][0]["parts"][0]["text"], "Sunny in Rome.");
}

#[tokio::test]
async fn a_task_that_was_left_in_the_middle_goes_on_by_itself() {
    let folder = tempfile::tempdir().unwrap();
    let turns = || [Turn::call("wait", json!({"word": "x"})), Turn::text("Done.")];
    let world = World::default();
    let store = open(folder.path()).await;
    let built = agent(turns(), &world).build();
    let serving = Server::new(built, Arc::clone(&store) as Arc<dyn Store>).start().await.unwrap();
    let client = Client::new(&serving);
    let mut hasty = said("go");
    hasty["configuration"] = json!({"returnImmediately": true});
    let task = client.call("SendMessage", hasty).await["task"].clone();
    world.started.notified().await;
    // What the first process had by now is a copy of its file: it ends as if it had been killed.
    let copy = tempfile::tempdir().unwrap();
    for file in std::fs::read_dir(folder.path()).unwrap() {
        let file = file.unwrap();
        if file.file_type().unwrap().is_file() {
            std::fs::copy(file.path(), copy.path().join(file.file_name())).unwrap();
        }
    }
    let world = World::default();
    let store = open(copy.path()).await;
    let built = agent(turns(), &world).build();
    let serving = Server::new(built, Arc::clone(&store) as Arc<dyn Store>).start().await.unwrap();
    let client = Client::new(&serving);
    world.started.notified().await;
    let mut events = client.stream("SubscribeToTask", json!({"id": task["id"]})).await;
    assert_eq!(brief(&events.next().await.unwrap().1), "task TASK_STATE_WORKING");
    world.go.notify_one();
    let told: Vec<String> = events.rest().await.iter().map(|(_, u)| brief(u)).collect();
    assert_eq!(told, ["artifact Done.", "TASK_STATE_COMPLETED"]);
}

#[tokio::test]
async fn the_journal_of_a_task_replays_though_others_wrote_into_it() {
    let turns =
        [Turn::call("ask_human", json!({"question": "Which city?"})), Turn::text("Sunny in Rome.")];
    let built = agent(turns, &World::default()).build();
    let store = Arc::new(MemoryStore::new());
    let server = Server::new(built.clone(), Arc::clone(&store) as Arc<dyn Store>);
    let serving = server.start().await.unwrap();
    let client = Client::new(&serving);
    let mut params = said("The weather?");
    params["configuration"] =
        json!({"taskPushNotificationConfig": {"url": "https://example.invalid/"}});
    let task = client.call("SendMessage", params).await["task"].clone();
    client.send_to(&task, "Rome").await;
    let id = duologue_core::SessionId::from(task["id"].as_str().unwrap());
    let entries = duologue_core::read_all(&*store, &id).await.unwrap();
    assert_eq!(duologue_core::replay(&built, &entries), Ok(3));
}
