//! What happens when the file cannot be written, or nobody is there to write it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

mod common;

use std::time::{Duration, Instant};

use common::{add, all, begin, id, note, notes, open, open_new, quick};
use duologue_core::{Event, ListQuery, Mail, Store, StoreError};
use duologue_store::{SqliteOptions, SqliteStore};
use rusqlite::Connection;
use serde_json::json;

#[tokio::test]
async fn what_was_accepted_while_another_process_keeps_the_file_locked_is_written_later() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let options = SqliteOptions { busy_timeout: Duration::from_millis(50), ..quick() };
    let store = SqliteStore::open(&path, options).await.unwrap();
    let session = id("one");
    let claim = begin(&store, &session, notes(0..1)).await.unwrap();

    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    for seq in 1..4 {
        let error = add(&store, &session, notes(seq..seq + 1)).await.unwrap_err();
        assert!(error.to_string().contains("another process keeps it locked"), "{error}");
    }
    let _second = store.create(&id("two"), notes(0..3)).unwrap();
    // What somebody waits for is told to them, and not done later behind their back.
    let mail = Mail::Cancel { reason: "x".into() };
    assert!(store.post(&session, mail).await.is_err());
    assert!(store.read(&session, 0, 9).await.is_err());
    // What is there already can still be listed, and what has nothing to write is not held up.
    assert_eq!(store.list(ListQuery::default()).await.unwrap().len(), 1);
    store.flush(&id("three")).await.unwrap();
    drop(claim);
    assert!(store.close().await.is_err());

    other.execute_batch("ROLLBACK").unwrap();
    store.flush(&session).await.unwrap();
    assert_eq!(all(&store, &session).await, notes(0..4));
    assert_eq!(all(&store, &id("two")).await, notes(0..3));
    assert_eq!(store.mail(&session).await.unwrap(), []);
    store.claim(&session).await.unwrap();
    store.close().await.unwrap();
}

#[tokio::test]
async fn what_nobody_flushes_is_written_soon_all_the_same() {
    let (folder, store) = open_new().await;
    let session = id("one");
    let _claim = store.create(&session, notes(0..1)).unwrap();
    store.append(&session, notes(1..4)).unwrap();
    let other = open(&folder).await;
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        match other.read(&session, 0, 9).await {
            Ok(entries) if entries.len() == 4 => break,
            _ => assert!(Instant::now() < deadline, "it is not there yet"),
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_queue_that_is_full_refuses_more_until_it_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let options = SqliteOptions { queue: 10, busy_timeout: Duration::from_millis(20), ..quick() };
    let store = SqliteStore::open(&path, options).await.unwrap();
    let session = id("one");
    let _claim = begin(&store, &session, notes(0..1)).await.unwrap();
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    for seq in 1..11 {
        store.append(&session, notes(seq..seq + 1)).unwrap();
    }
    let error = store.append(&session, notes(11..12)).unwrap_err();
    assert!(error.to_string().starts_with("10 entries wait to be written"), "{error}");
    assert!(store.create(&id("two"), notes(0..1)).is_err());
    other.execute_batch("ROLLBACK").unwrap();
    store.flush(&session).await.unwrap();
    add(&store, &session, notes(11..12)).await.unwrap();
    assert_eq!(all(&store, &session).await, notes(0..12));
}

#[tokio::test]
async fn what_comes_behind_a_refused_entry_is_refused_until_somebody_was_told() {
    let (_folder, store) = open_new().await;
    let session = id("one");
    let _claim = begin(&store, &session, notes(0..2)).await.unwrap();
    // The same id again, and an entry that would fit the session that is there.
    let _other = store.create(&session, notes(0..1)).unwrap();
    store.append(&session, notes(2..3)).unwrap();
    // Somebody who only reads is not told, and does not hide it from the writer.
    assert_eq!(all(&store, &session).await, notes(0..2));
    store.append(&session, notes(2..3)).unwrap();
    assert_eq!(store.flush(&session).await, Err(StoreError::Exists(session.clone())));
    assert_eq!(all(&store, &session).await, notes(0..2));
    add(&store, &session, notes(2..3)).await.unwrap();
    assert_eq!(all(&store, &session).await, notes(0..3));
}

#[tokio::test]
async fn an_entry_that_cannot_be_read_back_is_refused() {
    let (_folder, store) = open_new().await;
    let session = id("one");
    let _claim = begin(&store, &session, notes(0..1)).await.unwrap();
    for value in [json!({"no": "kind"}), json!(5), json!({"kind": 5})] {
        let nameless = common::entry(1, 1, Event::Unknown(value));
        let error = add(&store, &session, vec![nameless.clone()]).await.unwrap_err();
        assert_eq!(error.to_string(), "entry 1 cannot be kept: it has no kind");
        assert!(begin(&store, &id("two"), vec![nameless]).await.is_err());
    }
    assert_eq!(store.find("", 9).await.unwrap(), [id("one")]);
    add(&store, &session, notes(1..2)).await.unwrap();
}

#[tokio::test]
async fn an_entry_that_was_damaged_in_the_file_is_named() {
    let (folder, store) = open_new().await;
    let session = id("one");
    let _claim = begin(&store, &session, notes(0..3)).await.unwrap();
    let file = Connection::open(folder.path().join("journal.db")).unwrap();
    file.execute("UPDATE entries SET body = '{' WHERE key & 4294967295 = 1", []).unwrap();
    let error = store.read(&session, 0, 9).await.unwrap_err().to_string();
    assert!(error.starts_with("session one: entry 1 cannot be read: "), "{error}");
    assert_eq!(store.read(&session, 2, 9).await.unwrap(), notes(2..3));
}

#[tokio::test]
async fn a_large_entry_is_kept_whole() {
    let (_folder, store) = open_new().await;
    let session = id("one");
    let large = common::entry(0, 0, note(&"é\0\"\\\u{10ffff}x".repeat(500_000)));
    begin(&store, &session, vec![large.clone()]).await.unwrap();
    assert_eq!(all(&store, &session).await, [large]);
}

#[tokio::test]
async fn after_it_is_closed_every_use_is_an_error() {
    let (_folder, store) = open_new().await;
    let session = id("one");
    let claim = begin(&store, &session, notes(0..1)).await.unwrap();
    let clone = store.clone();
    store.close().await.unwrap();
    clone.close().await.unwrap();
    let closed = StoreError::Io("the store is closed".into());
    assert_eq!(clone.append(&session, notes(1..2)), Err(closed.clone()));
    assert_eq!(clone.create(&id("two"), notes(0..1)).unwrap_err(), closed);
    assert_eq!(clone.read(&session, 0, 1).await, Err(closed.clone()));
    assert_eq!(clone.list(ListQuery::default()).await, Err(closed.clone()));
    assert_eq!(clone.claim(&session).await.unwrap_err(), closed);
    assert_eq!(clone.version().await, Err(closed));
    // There is nothing to write, so nothing is wrong.
    assert_eq!(clone.flush(&session).await, Ok(()));
    drop(claim);
}

#[tokio::test]
async fn a_store_that_is_closed_leaves_one_file_with_everything_in_it() {
    let (folder, store) = open_new().await;
    let _claim = begin(&store, &id("one"), notes(0..1)).await.unwrap();
    // Both readers have the file open.
    let (one, two) = (id("one"), id("one"));
    let (first, second) = tokio::join!(store.read(&one, 0, 9), store.read(&two, 0, 9));
    assert_eq!(first, second);
    store.close().await.unwrap();
    let left: Vec<_> =
        std::fs::read_dir(&folder).unwrap().map(|file| file.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "the file and the locks: {left:?}");
    let alone = tempfile::tempdir().unwrap();
    std::fs::copy(folder.path().join("journal.db"), alone.path().join("journal.db")).unwrap();
    assert_eq!(all(&open(&alone).await, &id("one")).await, notes(0..1));
}

#[tokio::test]
async fn a_claim_outlives_the_store() {
    let (folder, store) = open_new().await;
    let session = id("one");
    let claim = begin(&store, &session, notes(0..1)).await.unwrap();
    store.close().await.unwrap();
    drop(store);
    let other = open(&folder).await;
    assert!(matches!(other.claim(&session).await, Err(StoreError::Busy { .. })));
    drop(claim);
    other.claim(&session).await.unwrap();
}

#[tokio::test]
async fn a_store_that_is_dropped_writes_what_is_queued() {
    let (folder, store) = open_new().await;
    let session = id("one");
    let claim = store.create(&session, notes(0..1)).unwrap();
    for seq in 1..1_000 {
        store.append(&session, notes(seq..seq + 1)).unwrap();
    }
    drop(store);
    drop(claim);
    let store = open(&folder).await;
    assert_eq!(all(&store, &session).await, notes(0..1_000));
}

#[tokio::test]
async fn a_claim_that_nobody_waits_for_any_more_is_given_back() {
    let (_folder, store) = open_new().await;
    let session = id("one");
    drop(begin(&store, &session, notes(0..1)).await.unwrap());
    drop(store.claim(&session));
    // The writer may have it in its hands just now.
    let deadline = Instant::now() + Duration::from_secs(10);
    while store.claim(&session).await.is_err() {
        assert!(Instant::now() < deadline, "it was never given back");
    }
}

#[test]
fn it_works_without_a_runtime() {
    futures::executor::block_on(async {
        let (_folder, store) = open_new().await;
        begin(&store, &id("one"), notes(0..3)).await.unwrap();
        assert_eq!(all(&store, &id("one")).await, notes(0..3));
        store.close().await.unwrap();
    });
}
