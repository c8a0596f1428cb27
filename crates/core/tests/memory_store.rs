//! A store in memory that keeps only so much.

#![allow(clippy::expect_used, missing_docs)]

use std::sync::Arc;

use duologue_core::{
    Agent, Behavior, Latest, ListQuery, MemoryStore, Message, Outcome, Part, Role, RunState,
    Session, SessionOptions, Step, Store,
};

/// Says what it is told, or waits if it is told to.
struct Echo;

impl Behavior for Echo {
    type State = ();

    fn name(&self) -> &'static str {
        "echo"
    }

    fn decide(&self, run: &RunState, (): &()) -> Step {
        match (run.latest(), run.request()) {
            (Latest::Input, Some(request)) if request.text() == "wait" => Step::Wait,
            (Latest::Input, Some(request)) => {
                Step::Say(Message::new(Role::Assistant, vec![Part::text(request.text())]))
            }
            _ => Step::End(Outcome::Completed),
        }
    }
}

async fn say(store: &Arc<MemoryStore>, text: &str) -> Session {
    let agent = Agent::builder("echo", Echo).build();
    let session = Session::start(&agent, Arc::clone(store) as _, SessionOptions::default())
        .expect("a session begins");
    session.reply(Message::user(text)).await.expect("a reply");
    session
}

async fn titles(store: &MemoryStore) -> Vec<String> {
    let listed = store.list(ListQuery::default()).await.expect("a list");
    let mut titles: Vec<_> = listed.into_iter().map(|summary| summary.title).collect();
    titles.sort();
    titles
}

#[tokio::test]
async fn it_forgets_what_was_over_first_and_nothing_that_waits_or_is_open() {
    let store = Arc::new(MemoryStore::keeping(2));
    drop(say(&store, "wait").await);
    let open = say(&store, "open").await;
    for text in ["first", "second", "third"] {
        drop(say(&store, text).await);
    }
    assert_eq!(titles(&store).await, ["open", "second", "third", "wait"]);
    // What is gone on with is written on, and is over again later.
    open.reply(Message::user("more")).await.expect("a reply");
    drop(open);
    assert_eq!(titles(&store).await, ["open", "third", "wait"]);
}

#[tokio::test]
async fn it_keeps_everything_unless_it_is_told_how_much() {
    let store = Arc::new(MemoryStore::new());
    for _ in 0..20 {
        drop(say(&store, "hello").await);
    }
    assert_eq!(titles(&store).await.len(), 20);
}
