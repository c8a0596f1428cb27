//! What the tests share.
#![allow(dead_code, reason = "not every test uses all of it")]

use std::sync::Arc;

use duologue_core::{
    Claim, Entry, Event, Message, Metadata, Outcome, RunId, SCHEMA_VERSION, SessionId, Store,
    StoreError,
};
use duologue_store::{Durability, SqliteOptions, SqliteStore};
use serde_json::json;
use tempfile::TempDir;

/// A store in a folder of its own. It does not wait for the disk: the tests end processes, not
/// machines.
pub(crate) async fn open_new() -> (TempDir, SqliteStore) {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder).await;
    (folder, store)
}

pub(crate) async fn open(folder: &TempDir) -> SqliteStore {
    SqliteStore::open(folder.path().join("journal.db"), quick()).await.unwrap()
}

pub(crate) fn quick() -> SqliteOptions {
    SqliteOptions { durability: Durability::Process, ..SqliteOptions::default() }
}

pub(crate) fn id(text: &str) -> SessionId {
    SessionId::from(text)
}

pub(crate) fn entry(seq: u64, at: i64, event: Event) -> Arc<Entry> {
    Arc::new(Entry { seq, at, run: RunId::ROOT, event })
}

pub(crate) fn started(agent: &str) -> Event {
    Event::SessionStarted {
        schema: SCHEMA_VERSION,
        agent: agent.into(),
        forked_from: None,
        metadata: Metadata::new(),
    }
}

pub(crate) fn request(text: &str) -> Event {
    Event::UserRequest {
        message: Arc::new(Message::user(text)),
        delivery: duologue_core::Delivery::Start,
        expects: None,
    }
}

pub(crate) fn turn_starts(turn: u32) -> Event {
    Event::AgentResponseStart { turn }
}

pub(crate) fn turn_ends(turn: u32, outcome: Outcome) -> Event {
    Event::AgentResponseEnd { turn, outcome }
}

pub(crate) fn note(text: &str) -> Event {
    Event::Note { topic: "test".into(), data: json!({ "text": text }) }
}

/// Notes with these places, one a millisecond.
pub(crate) fn notes(places: std::ops::Range<u64>) -> Vec<Arc<Entry>> {
    places.map(|seq| entry(seq, seq.cast_signed(), note(&format!("number {seq}")))).collect()
}

/// Begin a session, for good.
pub(crate) async fn begin(
    store: &dyn Store,
    session: &SessionId,
    entries: Vec<Arc<Entry>>,
) -> Result<Claim, StoreError> {
    let claim = store.create(session, entries)?;
    store.flush(session).await?;
    Ok(claim)
}

/// Append, for good.
pub(crate) async fn add(
    store: &dyn Store,
    session: &SessionId,
    entries: Vec<Arc<Entry>>,
) -> Result<(), StoreError> {
    store.append(session, entries)?;
    store.flush(session).await
}

/// The whole journal.
pub(crate) async fn all(store: &dyn Store, session: &SessionId) -> Vec<Arc<Entry>> {
    store.read(session, 0, usize::MAX).await.unwrap()
}
