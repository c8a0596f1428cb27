//! What every store does, asked of the one in memory and of the one on SQLite.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

mod common;

use std::sync::Arc;

use common::{add, all, begin, entry, id, note, notes, request, started, turn_ends, turn_starts};
use duologue_core::{
    Answer, Claim, Entry, Event, ForkPoint, ListQuery, Mail, Message, Outcome, RunId, SessionId,
    SessionSummary, Store, StoreError,
};
use serde_json::json;

macro_rules! conformance {
    ($($name:ident,)*) => {
        mod memory {
            $(
                #[tokio::test]
                async fn $name() {
                    super::$name(std::sync::Arc::new(duologue_core::MemoryStore::new())).await;
                }
            )*
        }
        mod sqlite {
            $(
                #[tokio::test]
                async fn $name() {
                    let (_folder, store) = super::common::open_new().await;
                    super::$name(std::sync::Arc::new(store.clone())).await;
                    store.close().await.unwrap();
                }
            )*
        }
    };
}

conformance! {
    what_is_appended_is_read_back_in_order,
    what_is_queued_can_be_read,
    a_session_is_begun_once,
    a_beginning_out_of_order_leaves_nothing,
    an_entry_that_does_not_follow_is_refused_and_nothing_is_overwritten,
    what_follows_before_the_wrong_entry_is_kept,
    a_session_goes_on_after_its_error_was_told,
    a_session_that_is_not_there_is_not_found,
    kinds_of_a_later_version_are_kept,
    a_summary_is_folded_from_the_entries,
    a_fork_is_seen_in_the_summary,
    lists_are_sorted_and_cut_into_pages,
    lists_are_filtered_by_agent_and_status,
    a_running_session_moves_up_in_the_list,
    ids_are_found_by_their_beginning,
    a_deleted_session_is_gone_with_its_mail,
    a_session_has_one_owner,
    whoever_begins_a_session_owns_it,
    mail_waits_until_it_is_acknowledged,
    mail_survives_as_it_was,
    mail_changes_the_version,
    many_sessions_are_written_at_once,
    a_flush_without_anything_to_write_succeeds,
}

type Any = Arc<dyn Store>;

async fn what_is_appended_is_read_back_in_order(store: Any) {
    let session = id("one");
    begin(&*store, &session, notes(0..3)).await.unwrap();
    add(&*store, &session, notes(3..4)).await.unwrap();
    store.append(&session, notes(4..6)).unwrap();
    store.append(&session, notes(6..10)).unwrap();
    store.flush(&session).await.unwrap();
    assert_eq!(all(&*store, &session).await, notes(0..10));
    assert_eq!(store.read(&session, 4, 3).await.unwrap(), notes(4..7));
    assert_eq!(store.read(&session, 8, 100).await.unwrap(), notes(8..10));
    assert_eq!(store.read(&session, 10, 100).await.unwrap(), []);
    assert_eq!(store.read(&session, u64::MAX, 100).await.unwrap(), []);
    assert_eq!(store.read(&session, 0, 0).await.unwrap(), []);
}

async fn what_is_queued_can_be_read(store: Any) {
    let session = id("one");
    let _claim = store.create(&session, notes(0..1)).unwrap();
    assert_eq!(all(&*store, &session).await, notes(0..1));
    store.append(&session, notes(1..2)).unwrap();
    assert_eq!(all(&*store, &session).await, notes(0..2));
    store.append(&session, notes(2..3)).unwrap();
    assert_eq!(store.summary(&session).await.unwrap().unwrap().entries, 3);
    let _other = store.create(&id("two"), notes(0..1)).unwrap();
    assert_eq!(store.find("", 9).await.unwrap(), [id("one"), id("two")]);
    let _third = store.create(&id("three"), notes(0..9)).unwrap();
    let list = store.list(ListQuery::default()).await.unwrap();
    assert_eq!(ids(&list), ["three", "one", "two"]);
    let _fourth = store.create(&id("four"), notes(0..1)).unwrap();
    assert_eq!(store.mail(&id("four")).await.unwrap(), []);
}

async fn a_session_is_begun_once(store: Any) {
    let session = id("one");
    begin(&*store, &session, notes(0..1)).await.unwrap();
    let again = begin(&*store, &session, notes(0..2)).await;
    assert_eq!(again.unwrap_err(), StoreError::Exists(session.clone()));
    assert_eq!(all(&*store, &session).await, notes(0..1));
}

async fn a_beginning_out_of_order_leaves_nothing(store: Any) {
    let session = id("one");
    let entries = [notes(0..2), notes(3..4)].concat();
    assert_eq!(
        begin(&*store, &session, entries).await.unwrap_err(),
        StoreError::OutOfOrder { session: session.clone(), found: 3, expected: 2 }
    );
    assert_eq!(store.summary(&session).await.unwrap(), None);
    begin(&*store, &session, notes(0..1)).await.unwrap();
    assert_eq!(all(&*store, &session).await, notes(0..1));
}

async fn an_entry_that_does_not_follow_is_refused_and_nothing_is_overwritten(store: Any) {
    let session = id("one");
    begin(&*store, &session, notes(0..3)).await.unwrap();
    for (found, entries) in [(4, notes(4..5)), (1, vec![entry(1, 9, note("other"))])] {
        assert_eq!(
            add(&*store, &session, entries).await.unwrap_err(),
            StoreError::OutOfOrder { session: session.clone(), found, expected: 3 }
        );
        assert_eq!(all(&*store, &session).await, notes(0..3));
    }
}

async fn what_follows_before_the_wrong_entry_is_kept(store: Any) {
    let session = id("one");
    begin(&*store, &session, notes(0..1)).await.unwrap();
    let entries = [notes(1..3), notes(7..9)].concat();
    assert!(add(&*store, &session, entries).await.is_err());
    assert_eq!(all(&*store, &session).await, notes(0..3));
    assert_eq!(store.summary(&session).await.unwrap().unwrap().entries, 3);
}

async fn a_session_goes_on_after_its_error_was_told(store: Any) {
    let session = id("one");
    begin(&*store, &session, notes(0..1)).await.unwrap();
    assert!(add(&*store, &session, notes(5..6)).await.is_err());
    store.flush(&session).await.unwrap();
    add(&*store, &session, notes(1..2)).await.unwrap();
    assert_eq!(all(&*store, &session).await, notes(0..2));
}

async fn a_session_that_is_not_there_is_not_found(store: Any) {
    let session = id("nobody");
    let not_found = StoreError::NotFound(session.clone());
    assert_eq!(add(&*store, &session, notes(0..1)).await, Err(not_found.clone()));
    assert_eq!(store.read(&session, 0, 9).await, Err(not_found.clone()));
    assert_eq!(store.summary(&session).await, Ok(None));
    assert_eq!(store.delete(&session).await, Err(not_found.clone()));
    assert_eq!(store.claim(&session).await.unwrap_err(), not_found);
    assert_eq!(store.post(&session, stop("x")).await, Err(not_found.clone()));
    assert_eq!(store.mail(&session).await, Err(not_found.clone()));
    assert_eq!(store.acknowledge(&session, 1).await, Err(not_found));
}

async fn kinds_of_a_later_version_are_kept(store: Any) {
    let session = id("one");
    let telepathy = json!({"kind": "telepathy", "with": ["x", 1.5, {"deep": null}]});
    let entries =
        vec![Arc::new(Entry { seq: 0, at: -5, run: RunId(7), event: Event::Unknown(telepathy) })];
    begin(&*store, &session, entries.clone()).await.unwrap();
    assert_eq!(all(&*store, &session).await, entries);
}

async fn a_summary_is_folded_from_the_entries(store: Any) {
    let session = id("one");
    let events = [
        started("parrot"),
        request("\n  What is new?\nTell me all."),
        turn_starts(1),
        note("in the middle"),
        note("still in the middle"),
        turn_ends(1, Outcome::Completed),
        note("after it"),
        turn_starts(2),
        turn_ends(2, Outcome::InputRequired { inquiries: vec![] }),
    ];
    let mut folded = SessionSummary::new(session.clone());
    let _claim = begin(&*store, &session, vec![]).await.unwrap();
    assert_eq!(store.summary(&session).await, Ok(Some(folded.clone())));
    for (event, seq) in events.into_iter().zip(0_u64..) {
        let entry = entry(seq, 1000 + seq.cast_signed() * 10, event);
        folded.fold(&entry);
        add(&*store, &session, vec![entry]).await.unwrap();
        assert_eq!(store.summary(&session).await, Ok(Some(folded.clone())));
        let list = store.list(ListQuery::default()).await.unwrap();
        assert_eq!(list, [folded.clone()]);
    }
    assert_eq!(folded.title, "What is new?");
    assert_eq!(folded.status, "input_required");
}

async fn a_fork_is_seen_in_the_summary(store: Any) {
    let fork = ForkPoint { session: id("original"), at: 17 };
    let event = Event::SessionStarted {
        schema: 1,
        agent: "parrot".into(),
        forked_from: Some(fork.clone()),
        metadata: [("model", json!("a/b"))].into(),
    };
    let session = id("copy");
    begin(&*store, &session, vec![entry(0, 1, event)]).await.unwrap();
    let summary = store.summary(&session).await.unwrap().unwrap();
    assert_eq!(summary.forked_from, Some(fork));
}

fn ids(list: &[SessionSummary]) -> Vec<&str> {
    list.iter().map(|summary| summary.id.as_str()).collect()
}

async fn lists_are_sorted_and_cut_into_pages(store: Any) {
    for number in 0..60 {
        // Two share each moment.
        let first = entry(0, number / 2, started("a"));
        let _claim = store.create(&id(&format!("{number:02}")), vec![first]).unwrap();
    }
    let page = store.list(ListQuery::default()).await.unwrap();
    assert_eq!(page.len(), 50);
    assert_eq!(ids(&page)[..4], ["59", "58", "57", "56"]);
    let query = ListQuery { limit: 3, before: Some(page[49].updated_at), ..ListQuery::default() };
    assert_eq!(ids(&store.list(query.clone()).await.unwrap()), ["09", "08", "07"]);
    let rest = ListQuery { limit: 100, ..query };
    assert_eq!(store.list(rest).await.unwrap().len(), 10);
}

async fn lists_are_filtered_by_agent_and_status(store: Any) {
    for (at, (agent, end)) in (0..).zip([
        ("ada", Some(Outcome::Completed)),
        ("bob", None),
        ("ada", None),
        ("bob", Some(Outcome::Completed)),
    ]) {
        let mut entries = vec![entry(0, at, started(agent)), entry(1, at, turn_starts(1))];
        entries.extend(end.map(|outcome| entry(2, at, turn_ends(1, outcome))));
        let _claim = store.create(&id(&at.to_string()), entries).unwrap();
    }
    let (ada, running) = (Some("ada".to_owned()), Some("running".to_owned()));
    for (agent, status, expected) in [
        (None, None, vec!["3", "2", "1", "0"]),
        (ada.clone(), None, vec!["2", "0"]),
        (None, running.clone(), vec!["2", "1"]),
        (ada.clone(), running.clone(), vec!["2"]),
        (Some("nobody".into()), None, vec![]),
        (ada, Some("completed".into()), vec!["0"]),
    ] {
        let query = ListQuery { agent, status, ..ListQuery::default() };
        let list = store.list(query.clone()).await.unwrap();
        assert_eq!(ids(&list), expected, "{query:?}");
    }
}

async fn a_running_session_moves_up_in_the_list(store: Any) {
    for name in ["one", "two"] {
        let _claim = store.create(&id(name), vec![entry(0, 1, turn_starts(1))]).unwrap();
    }
    for at in 1..9 {
        for name in ["one", "two"] {
            add(&*store, &id(name), vec![entry(at, at.cast_signed() * 2, note("x"))])
                .await
                .unwrap();
            let list = store.list(ListQuery::default()).await.unwrap();
            assert_eq!(list[0].updated_at, at.cast_signed() * 2);
            assert_eq!(list[0].entries, at + 1);
        }
    }
    let query = ListQuery { before: Some(16), ..ListQuery::default() };
    assert_eq!(store.list(query).await.unwrap(), []);
}

async fn ids_are_found_by_their_beginning(store: Any) {
    for name in ["ab1", "ab2", "ab%", "a_", "abé", "b", "ab"] {
        let _claim = store.create(&id(name), notes(0..1)).unwrap();
    }
    let find = |prefix: &'static str, limit| {
        let store = Arc::clone(&store);
        async move { store.find(prefix, limit).await.unwrap() }
    };
    let named = |names: &[&str]| names.iter().map(|name| id(name)).collect::<Vec<_>>();
    assert_eq!(find("ab", 9).await, named(&["ab", "ab%", "ab1", "ab2", "abé"]));
    assert_eq!(find("ab", 2).await, named(&["ab", "ab%"]));
    assert_eq!(find("ab%", 9).await, named(&["ab%"]));
    assert_eq!(find("a_", 9).await, named(&["a_"]));
    assert_eq!(find("abé", 9).await, named(&["abé"]));
    assert_eq!(find("c", 9).await, []);
    assert_eq!(find("", 99).await.len(), 7);
}

async fn a_deleted_session_is_gone_with_its_mail(store: Any) {
    let session = id("one");
    let claim = begin(&*store, &session, notes(0..5)).await.unwrap();
    begin(&*store, &id("other"), notes(0..2)).await.unwrap();
    store.post(&session, stop("x")).await.unwrap();
    store.append(&session, notes(5..6)).unwrap();
    store.delete(&session).await.unwrap();
    assert_eq!(store.summary(&session).await, Ok(None));
    assert_eq!(store.find("", 9).await.unwrap(), [id("other")]);
    assert_eq!(store.read(&session, 0, 9).await, Err(StoreError::NotFound(session.clone())));
    assert!(add(&*store, &session, notes(6..7)).await.is_err());
    // The same name again is another session: nothing of the old one shines through.
    let _claim = begin(&*store, &session, notes(0..1)).await.unwrap();
    assert_eq!(all(&*store, &session).await, notes(0..1));
    assert_eq!(store.mail(&session).await.unwrap(), []);
    drop(claim);
    assert_eq!(all(&*store, &id("other")).await, notes(0..2));
}

async fn a_session_has_one_owner(store: Any) {
    let session = id("one");
    drop(begin(&*store, &session, notes(0..1)).await.unwrap());
    let claim: Claim = store.claim(&session).await.unwrap();
    assert_eq!(
        store.claim(&session).await.unwrap_err(),
        StoreError::Busy { session: session.clone(), owner: "this process".into() }
    );
    drop(claim);
    store.claim(&session).await.unwrap();
}

async fn whoever_begins_a_session_owns_it(store: Any) {
    let session = id("one");
    let claim = store.create(&session, notes(0..1)).unwrap();
    assert!(matches!(store.claim(&session).await, Err(StoreError::Busy { .. })));
    drop(claim);
    store.claim(&session).await.unwrap();
}

fn stop(reason: &str) -> Mail {
    Mail::Cancel { reason: reason.into() }
}

async fn mail_waits_until_it_is_acknowledged(store: Any) {
    let (session, other) = (id("one"), id("two"));
    begin(&*store, &session, notes(0..1)).await.unwrap();
    begin(&*store, &other, notes(0..1)).await.unwrap();
    for reason in ["a", "b", "c"] {
        store.post(&session, stop(reason)).await.unwrap();
        store.post(&other, stop("other")).await.unwrap();
    }
    let mail = store.mail(&session).await.unwrap();
    let reasons =
        |mail: &[(u64, Mail)]| mail.iter().map(|(_, mail)| mail.clone()).collect::<Vec<_>>();
    assert_eq!(reasons(&mail), [stop("a"), stop("b"), stop("c")]);
    assert!(mail.is_sorted_by(|(a, _), (b, _)| a < b));
    store.acknowledge(&session, mail[1].0).await.unwrap();
    assert_eq!(reasons(&store.mail(&session).await.unwrap()), [stop("c")]);
    store.acknowledge(&session, u64::MAX).await.unwrap();
    assert_eq!(store.mail(&session).await.unwrap(), []);
    // A number is not given twice, or an old acknowledgement would remove new mail.
    store.post(&session, stop("d")).await.unwrap();
    assert!(store.mail(&session).await.unwrap()[0].0 > mail[2].0);
    assert_eq!(store.mail(&other).await.unwrap().len(), 3);
}

async fn mail_survives_as_it_was(store: Any) {
    let session = id("one");
    begin(&*store, &session, notes(0..1)).await.unwrap();
    let mails = [
        Mail::Answer {
            id: "call-1".into(),
            answer: Answer::Edit { arguments: Box::new(json!({"path": "a", "n": 0.1})) },
            by: Some("ada".into()),
        },
        Mail::Answer { id: "call-2".into(), answer: Answer::text("yes"), by: None },
        Mail::Request { message: Message::user("and now?") },
    ];
    for mail in &mails {
        store.post(&session, mail.clone()).await.unwrap();
    }
    let kept = store.mail(&session).await.unwrap();
    assert_eq!(kept.into_iter().map(|(_, mail)| mail).collect::<Vec<_>>(), mails);
}

async fn mail_changes_the_version(store: Any) {
    let session = id("one");
    begin(&*store, &session, notes(0..1)).await.unwrap();
    let before = store.version().await.unwrap();
    add(&*store, &session, notes(1..2)).await.unwrap();
    assert_eq!(store.version().await.unwrap(), before);
    store.post(&session, stop("x")).await.unwrap();
    assert_ne!(store.version().await.unwrap(), before);
}

async fn many_sessions_are_written_at_once(store: Any) {
    let tasks: Vec<_> = (0..50)
        .map(|number| {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                let session = id(&format!("session-{number}"));
                let _claim = begin(&*store, &session, notes(0..1)).await.unwrap();
                for seq in 1..40 {
                    store.append(&session, notes(seq..seq + 1)).unwrap();
                    if seq % 3 == 0 {
                        store.flush(&session).await.unwrap();
                    }
                    tokio::task::yield_now().await;
                }
                store.flush(&session).await.unwrap();
                session
            })
        })
        .collect();
    for task in tasks {
        let session: SessionId = task.await.unwrap();
        assert_eq!(all(&*store, &session).await, notes(0..40));
    }
    let query = ListQuery { limit: 1000, ..ListQuery::default() };
    let list = store.list(query).await.unwrap();
    assert_eq!(list.len(), 50);
    assert!(list.iter().all(|summary| summary.entries == 40));
}

async fn a_flush_without_anything_to_write_succeeds(store: Any) {
    store.flush(&id("nobody")).await.unwrap();
    let session = id("one");
    begin(&*store, &session, notes(0..1)).await.unwrap();
    store.flush(&session).await.unwrap();
}
