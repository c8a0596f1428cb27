//! Many sessions.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

mod common;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use common::{all, begin, entry, id, notes, open_new, started, turn_ends, turn_starts};
use duologue_core::{ListQuery, Outcome, Store};

/// The bar for a list, in a build for release on an idle machine. This test runs in any build
/// beside others, so it takes the best of many tries, and gives three times as long.
const BAR: Duration = Duration::from_millis(10);

#[tokio::test]
async fn a_list_of_a_hundred_thousand_sessions_is_quick() {
    let (_folder, store) = open_new().await;
    for number in 0..100_000 {
        let session = id(&format!("{number:06}"));
        let agent = format!("agent-{}", number % 3);
        let outcome = if number % 20_000 == 7 {
            Outcome::InputRequired { inquiries: vec![] }
        } else {
            Outcome::Completed
        };
        let entries =
            vec![entry(0, number, started(&agent)), entry(1, number, turn_ends(1, outcome))];
        drop(store.create(&session, entries).unwrap());
        if number % 5_000 == 0 {
            store.flush(&session).await.unwrap();
        }
    }
    let (agent, rare) = (Some("agent-1".to_owned()), Some("input_required".to_owned()));
    for (before, agent, status, expected) in [
        (None, None, None, 50),
        (Some(50_000), None, None, 50),
        (None, agent.clone(), None, 50),
        (None, None, rare.clone(), 5),
        (None, agent.clone(), rare, 2),
        (None, Some("nobody".into()), Some("completed".into()), 0),
    ] {
        let query = ListQuery { before, agent, status, limit: 0 };
        let mut best = Duration::MAX;
        for _ in 0..20 {
            let start = Instant::now();
            assert_eq!(store.list(query.clone()).await.unwrap().len(), expected, "{query:?}");
            best = best.min(start.elapsed());
        }
        assert!(best < 3 * BAR, "{query:?}: {best:?}");
    }
    let start = Instant::now();
    assert_eq!(store.find("05", 10).await.unwrap().len(), 10);
    assert!(start.elapsed() < 3 * BAR);
    store.close().await.unwrap();
}

/// More sessions than the writer remembers, all of them in the middle of a turn.
#[tokio::test(flavor = "multi_thread")]
async fn twenty_thousand_sessions_run_at_once() {
    let (_folder, store) = open_new().await;
    let names: Vec<_> = (0..20_000).map(|number| id(&format!("{number:05}"))).collect();
    for name in &names {
        drop(store.create(name, vec![entry(0, 0, turn_starts(1))]).unwrap());
    }
    for seq in 1..4 {
        for name in &names {
            store.append(name, notes(seq..seq + 1)).unwrap();
        }
        for name in &names {
            store.flush(name).await.unwrap();
        }
    }
    let query = ListQuery { limit: 30_000, status: Some("running".into()), ..ListQuery::default() };
    let list = store.list(query).await.unwrap();
    assert_eq!(list.len(), 20_000);
    assert!(list.iter().all(|summary| (summary.entries, summary.updated_at) == (4, 3)));
    assert_eq!(all(&store, &names[12_345]).await[1..], notes(1..4));
    store.close().await.unwrap();
}

/// A journal grows; what an append costs does not.
#[tokio::test]
async fn a_long_journal_is_appended_to_and_paged_through() {
    let (_folder, store) = open_new().await;
    let store = Arc::new(store);
    let session = id("long");
    let _claim = begin(&*store, &session, notes(0..1)).await.unwrap();
    for from in (1..50_001).step_by(100) {
        store.append(&session, notes(from..from + 100)).unwrap();
        store.flush(&session).await.unwrap();
    }
    let mut read = 0;
    loop {
        let page = store.read(&session, read, 1_000).await.unwrap();
        if page.is_empty() {
            break;
        }
        assert_eq!(page[0].seq, read);
        read += page.len() as u64;
    }
    assert_eq!(read, 50_001);
    store.delete(&session).await.unwrap();
    assert_eq!(store.find("", 9).await.unwrap(), []);
}
