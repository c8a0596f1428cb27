//! A journal that cannot be written for a while: what was accepted goes on afterwards, and what was
//! refused is not done.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use duologue_core::{
    Claim, Entry, ListQuery, Mail, Mode, Policy, SessionId, SessionSummary, StoreError,
};
use futures::future::BoxFuture;

use crate::support::*;

/// A store whose disk is full for a while: it takes entries, and says so to whoever waits for them.
#[derive(Clone, Default)]
struct SmallDisk {
    kept: MemoryStore,
    is_full: Arc<AtomicBool>,
}

impl SmallDisk {
    fn set_full(&self, is_full: bool) {
        self.is_full.store(is_full, Ordering::SeqCst);
    }
}

impl Store for SmallDisk {
    fn create(&self, id: &SessionId, entries: Vec<Arc<Entry>>) -> Result<Claim, StoreError> {
        self.kept.create(id, entries)
    }

    fn append(&self, id: &SessionId, entries: Vec<Arc<Entry>>) -> Result<(), StoreError> {
        self.kept.append(id, entries)
    }

    fn flush(&self, id: &SessionId) -> BoxFuture<'_, Result<(), StoreError>> {
        if self.is_full.load(Ordering::SeqCst) {
            return Box::pin(async { Err(StoreError::Io("the disk is full".into())) });
        }
        self.kept.flush(id)
    }

    fn read(
        &self,
        id: &SessionId,
        from: u64,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Arc<Entry>>, StoreError>> {
        self.kept.read(id, from, limit)
    }

    fn summary(&self, id: &SessionId) -> BoxFuture<'_, Result<Option<SessionSummary>, StoreError>> {
        self.kept.summary(id)
    }

    fn list(&self, query: ListQuery) -> BoxFuture<'_, Result<Vec<SessionSummary>, StoreError>> {
        self.kept.list(query)
    }

    fn find(
        &self,
        prefix: &str,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<SessionId>, StoreError>> {
        self.kept.find(prefix, limit)
    }

    fn delete(&self, id: &SessionId) -> BoxFuture<'_, Result<(), StoreError>> {
        self.kept.delete(id)
    }

    fn claim(&self, id: &SessionId) -> BoxFuture<'_, Result<Claim, StoreError>> {
        self.kept.claim(id)
    }

    fn post(&self, id: &SessionId, mail: Mail) -> BoxFuture<'_, Result<(), StoreError>> {
        self.kept.post(id, mail)
    }

    fn mail(&self, id: &SessionId) -> BoxFuture<'_, Result<Vec<(u64, Mail)>, StoreError>> {
        self.kept.mail(id)
    }

    fn acknowledge(&self, id: &SessionId, up_to: u64) -> BoxFuture<'_, Result<(), StoreError>> {
        self.kept.acknowledge(id, up_to)
    }

    fn version(&self) -> BoxFuture<'_, Result<u64, StoreError>> {
        self.kept.version()
    }
}

const INTERNAL_ERROR: i64 = -32603;

async fn serve_on(disk: &SmallDisk, turns: Vec<Turn>, world: &World) -> Serving {
    let built = agent(turns, world).policy(Policy::new(Mode::Full)).build();
    Server::new(built, Arc::new(disk.clone())).start().await.unwrap()
}

fn hasty(text: &str) -> Value {
    let mut params = said(text);
    params["configuration"] = json!({"returnImmediately": true});
    params
}

/// The only task that there is, once it is over.
async fn the_task(client: &Client) -> Value {
    let list = client.call("ListTasks", json!({})).await;
    assert_eq!(list["totalSize"], 1, "{list}");
    let task = list["tasks"][0].clone();
    for _ in 0..200 {
        let now = client.get(&task).await;
        if now["status"]["state"] != "TASK_STATE_WORKING" {
            return now;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("it never ended: {}", client.get(&task).await)
}

#[tokio::test]
async fn an_accepted_task_that_a_full_disk_broke_off_goes_on_by_itself() {
    let (disk, world) = (SmallDisk::default(), World::default());
    let word = || json!({"word": "x"});
    let turns = vec![Turn::call("wait", word()), Turn::call("act", word()), Turn::text("Over.")];
    let serving = serve_on(&disk, turns, &world).await;
    let client = Client::new(&serving);
    let task = client.call("SendMessage", hasty("go")).await["task"].clone();
    world.started.notified().await;
    disk.set_full(true);
    world.go.notify_one();
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(client.get(&task).await["status"]["state"], "TASK_STATE_WORKING");
    assert_eq!(world.acted.load(Ordering::SeqCst), 0, "nothing is done that is not on record");
    disk.set_full(false);
    let over = client.until(&task, "TASK_STATE_COMPLETED").await;
    assert_eq!(over["artifacts"][0]["parts"][0]["text"], "Over.");
    // Whether it was done is not known after such a break, so it is not done again.
    assert_eq!(world.acted.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_task_whose_sender_was_told_that_it_is_not_taken_is_not_done() {
    let (disk, world) = (SmallDisk::default(), World::default());
    let turns = || vec![Turn::call("act", json!({"word": "x"})), Turn::text("Over.")];
    let serving = serve_on(&disk, turns(), &world).await;
    let client = Client::new(&serving);
    disk.set_full(true);
    assert_eq!(client.refused("SendMessage", hasty("go")).await, INTERNAL_ERROR);
    disk.set_full(false);
    let task = the_task(&client).await;
    assert_eq!(task["status"]["state"], "TASK_STATE_CANCELED");
    tokio::time::sleep(Duration::from_millis(1_300)).await;
    assert_eq!(world.acted.load(Ordering::SeqCst), 0, "not later either");
}

#[tokio::test]
async fn a_refused_task_with_a_key_is_the_same_when_it_comes_again() {
    let (disk, world) = (SmallDisk::default(), World::default());
    let turns = vec![Turn::call("wait", json!({"word": "x"})), Turn::text("Over.")];
    let serving = serve_on(&disk, turns, &world).await;
    let client = Client::new(&serving);
    let mut params = hasty("go");
    params["message"]["metadata"] = json!({"duologue/idempotencyKey": "k1"});
    disk.set_full(true);
    assert_eq!(client.refused("SendMessage", params.clone()).await, INTERNAL_ERROR);
    disk.set_full(false);
    let task = client.call("SendMessage", params).await["task"].clone();
    world.go.notify_one();
    client.until(&task, "TASK_STATE_COMPLETED").await;
    assert_eq!(the_task(&client).await["id"], task["id"]);
}
