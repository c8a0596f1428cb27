//! Remote agents as agents of ours.

use std::{sync::Arc, time::Duration};

use duologue_a2a::{Access, Credentials, Remote, RemoteError};
use duologue_core::{
    Answer, Behavior, InquiryKind, Latest, Outcome, RunState, Session, SessionOptions, Step,
};
use serde_json::json;

use crate::support::*;

fn start(remote: &Remote) -> Session {
    let options = SessionOptions::default();
    Session::start(&remote.agent("far"), Arc::new(MemoryStore::new()), options).unwrap()
}

fn asks() -> Agent {
    let turns = [
        Turn::call("ask_human", json!({"question": "Which city?"})),
        Turn::text("Sunny in Rome.").expect("Rome"),
    ];
    agent(turns, &World::default()).build()
}

/// A server that offers only one way to talk.
async fn serve_only(agent: Agent, binding: &'static str, version: &'static str) -> Serving {
    Server::new(agent, Arc::new(MemoryStore::new()))
        .card(move |card| {
            card.supported_interfaces.retain(|face| {
                face.protocol_binding == binding && face.protocol_version == version
            });
        })
        .start()
        .await
        .unwrap()
}

#[tokio::test]
async fn a_remote_agent_answers_and_asks_back_over_every_binding() {
    for (binding, version) in [
        ("JSONRPC", "1.0"),
        ("HTTP+JSON", "1.0"),
        ("GRPC", "1.0"),
        ("JSONRPC", "0.3"),
        ("HTTP+JSON", "0.3"),
    ] {
        let serving = serve_only(asks(), binding, version).await;
        let remote = Remote::connect(serving.url(), &Credentials::none()).await.unwrap();
        assert_eq!(remote.interface().protocol_binding, binding);
        assert_eq!(remote.card().name, "tester");
        let session = start(&remote);
        let reply = session.reply("The weather?").await.unwrap();
        let Outcome::InputRequired { inquiries } = &reply.outcome else {
            panic!("{binding} {version}: {reply:?}")
        };
        let InquiryKind::Question { text, .. } = &inquiries[0].kind else {
            panic!("{inquiries:?}")
        };
        assert_eq!(text, "Which city?");
        session.answer(&inquiries[0].id, Answer::text("Rome"), None).unwrap();
        let reply = session.resume().await.unwrap();
        let found = (reply.outcome.clone(), reply.text());
        assert_eq!(found, (Outcome::Completed, "Sunny in Rome.".into()), "{binding} {version}");
        // A second request is another task of the same conversation.
        let reply = session.reply("And now?").await.unwrap();
        assert!(matches!(reply.outcome, Outcome::InputRequired { .. }), "{reply:?}");
        let client = Client::new(&serving);
        let list = client.call("ListTasks", json!({})).await;
        assert_eq!(list["totalSize"], 2);
        assert_eq!(list["tasks"][0]["contextId"], list["tasks"][1]["contextId"]);
    }
}

#[tokio::test]
async fn cancelling_here_cancels_there() {
    let world = World::default();
    let turns = [Turn::call("wait", json!({"word": "x"})), Turn::text("Done.")];
    let serving = serve(agent(turns, &world).build()).await;
    let remote = Remote::connect(serving.url(), &Credentials::none()).await.unwrap();
    let session = start(&remote);
    let running = tokio::spawn({
        let session = session.clone();
        async move { session.reply("go").await.unwrap() }
    });
    world.started.notified().await;
    // The other side is at work; give this side a moment to know its task.
    tokio::time::sleep(Duration::from_millis(200)).await;
    session.cancel("enough");
    let reply = running.await.unwrap();
    assert!(matches!(reply.outcome, Outcome::Aborted { .. }), "{reply:?}");
    let client = Client::new(&serving);
    let task = client.call("ListTasks", json!({})).await["tasks"][0].clone();
    client.until(&task, "TASK_STATE_CANCELED").await;
}

/// Says no.
struct Refuses;

impl Behavior for Refuses {
    type State = ();

    fn name(&self) -> &'static str {
        "refuses"
    }

    fn decide(&self, run: &RunState, (): &()) -> Step {
        match run.latest() {
            Latest::Input => Step::End(Outcome::Impossible { reason: "no such city".into() }),
            _ => Step::End(Outcome::Completed),
        }
    }
}

#[tokio::test]
async fn the_outcome_of_a_remote_agent_is_known_exactly() {
    let serving = serve(Agent::builder("refuses", Refuses).build()).await;
    let remote = Remote::connect(serving.url(), &Credentials::none()).await.unwrap();
    let reply = start(&remote).reply("Atlantis").await.unwrap();
    assert_eq!(reply.outcome, Outcome::Impossible { reason: "no such city".into() });
}

#[tokio::test]
async fn a_question_travels_up_a_chain_of_agents_and_its_answer_down() {
    let last = serve(asks()).await;
    let remote = Remote::connect(last.url(), &Credentials::none()).await.unwrap();
    let middle = serve(remote.agent("middle")).await;
    let remote = Remote::connect(middle.url(), &Credentials::none()).await.unwrap();
    let first = serve(remote.agent("first")).await;
    let client = Client::new(&first);
    let task = client.send("The weather?").await;
    assert_eq!(task["status"]["state"], "TASK_STATE_INPUT_REQUIRED");
    assert_eq!(task["status"]["message"]["parts"][0]["text"], "Which city?");
    let done = client.send_to(&task, "Rome").await;
    assert_eq!(done["artifacts"][0]["parts"][0]["text"], "Sunny in Rome.");
    // Cancelling the first cancels them all.
    let task = client.send("The weather?").await;
    client.call("CancelTask", json!({"id": task["id"]})).await;
}

#[tokio::test]
async fn a_task_that_was_sent_is_found_again_after_a_restart() {
    let world = World::default();
    let turns = [Turn::call("wait", json!({"word": "x"})), Turn::text("Done.")];
    let serving = serve(agent(turns, &world).build()).await;
    let remote = Remote::connect(serving.url(), &Credentials::none()).await.unwrap();
    let store = Arc::new(MemoryStore::new());
    let far = remote.agent("far");
    let options = SessionOptions::default();
    let session = Session::start(&far, Arc::clone(&store) as Arc<dyn Store>, options).unwrap();
    let running = tokio::spawn({
        let session = session.clone();
        async move { session.reply("go").await }
    });
    world.started.notified().await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    // Another process goes on from a copy of the journal, as it was then.
    let state = session.state().await.unwrap();
    let copy =
        Session::load_state(&far, Arc::new(MemoryStore::new()), &state, SessionOptions::default())
            .unwrap();
    assert!(copy.is_unfinished());
    let resumed = tokio::spawn(async move { copy.resume().await.unwrap() });
    tokio::time::sleep(Duration::from_millis(100)).await;
    world.go.notify_one();
    assert_eq!(resumed.await.unwrap().text(), "Done.");
    assert_eq!(running.await.unwrap().unwrap().text(), "Done.");
    let client = Client::new(&serving);
    assert_eq!(client.call("ListTasks", json!({})).await["totalSize"], 1, "it was sent once");
}

#[tokio::test]
async fn an_answer_that_comes_after_somebody_elses_gets_what_came_of_theirs() {
    let serving = serve(asks()).await;
    let remote = Remote::connect(serving.url(), &Credentials::none()).await.unwrap();
    let session = start(&remote);
    let reply = session.reply("The weather?").await.unwrap();
    let Outcome::InputRequired { inquiries } = &reply.outcome else { panic!("{reply:?}") };
    let there = Client::new(&serving);
    let task = there.call("ListTasks", json!({})).await["tasks"][0].clone();
    there.send_to(&task, "Rome").await;
    there.until(&task, "TASK_STATE_COMPLETED").await;
    session.answer(&inquiries[0].id, Answer::text("Paris"), None).unwrap();
    let reply = session.resume().await.unwrap();
    assert_eq!(
        (reply.outcome.clone(), reply.text()),
        (Outcome::Completed, "Sunny in Rome.".into())
    );
}

#[tokio::test]
async fn credentials_go_to_the_agent_that_asks_for_them() {
    let access = Access::open().with_key("me", "s3cret");
    let server = Server::new(asks(), Arc::new(MemoryStore::new())).access(access);
    let serving = server.start().await.unwrap();
    let keys = Credentials::none().with("apiKey", "s3cret");
    let remote = Remote::connect(serving.url(), &keys).await.unwrap();
    let reply = start(&remote).reply("hello").await.unwrap();
    assert!(matches!(reply.outcome, Outcome::InputRequired { .. }), "{reply:?}");
    let remote = Remote::connect(serving.url(), &Credentials::none()).await.unwrap();
    let reply = start(&remote).reply("hello").await.unwrap();
    assert!(matches!(reply.outcome, Outcome::Failed { .. }), "{reply:?}");
}

#[tokio::test]
async fn an_address_without_an_agent_is_told() {
    let error = Remote::connect("127.0.0.1:1", &Credentials::none()).await.unwrap_err();
    assert!(matches!(error, RemoteError::Card { .. }), "{error}");
    let error = Remote::connect("ftp://x", &Credentials::none()).await.unwrap_err();
    assert!(matches!(error, RemoteError::Address(..)), "{error}");
}

#[tokio::test]
async fn a_card_is_trusted_only_with_the_signature_of_a_pinned_key() {
    use duologue_a2a::CardKey;
    let key = || CardKey::from_pkcs8("k1", &CardKey::generate().unwrap()).unwrap();
    let (ours, theirs) = (key(), key());
    let pinned = ours.jwks();
    let server = Server::new(asks(), Arc::new(MemoryStore::new())).sign(ours);
    let serving = server.start().await.unwrap();
    let none = Credentials::none();
    Remote::connect_pinned(serving.url(), &none, &pinned).await.unwrap();
    let error = Remote::connect_pinned(serving.url(), &none, &theirs.jwks()).await.unwrap_err();
    assert!(matches!(error, RemoteError::Untrusted { .. }), "{error}");
}

#[tokio::test]
async fn a_request_that_goes_in_a_circle_is_refused() {
    let last = serve(asks()).await;
    let remote = Remote::connect(last.url(), &Credentials::none()).await.unwrap();
    let first = serve(remote.agent("first")).await;
    Client::new(&first).send("The weather?").await;
    // The last one knows whose hands the request went through.
    let seen = Client::new(&last);
    let list = seen.call("ListTasks", json!({"historyLength": 1})).await;
    let got = seen.get(&list["tasks"][0]).await;
    let path = got["history"][0]["metadata"]["duologue/path"].clone();
    assert_eq!(path, json!([first.url()]));
    // Were it to send it back, the first would refuse.
    let mut back = said("The weather?");
    back["message"]["metadata"] = json!({"duologue/path": path});
    let reply = Client::new(&first).rpc("SendMessage", back).await;
    assert_eq!(reply["error"]["code"], -32004);
    assert!(reply["error"]["message"].as_str().unwrap().contains("circle"), "{reply}");
}

#[tokio::test]
async fn an_open_question_survives_a_restart_in_the_middle_of_a_chain() {
    use duologue_store::{SqliteOptions, SqliteStore};
    let last = serve(asks()).await;
    let folder = tempfile::tempdir().unwrap();
    let middle = async || {
        let remote = Remote::connect(last.url(), &Credentials::none()).await.unwrap();
        let file = folder.path().join("journal.db");
        let store = SqliteStore::open(file, SqliteOptions::default()).await.unwrap();
        let kept = Arc::new(store.clone()) as Arc<dyn Store>;
        (Server::new(remote.agent("middle"), kept).start().await.unwrap(), store)
    };
    let (serving, store) = middle().await;
    let task = Client::new(&serving).send("The weather?").await;
    assert_eq!(task["status"]["message"]["parts"][0]["text"], "Which city?");
    serving.stop().await;
    store.close().await.unwrap();
    let (serving, _store) = middle().await;
    let done = Client::new(&serving).send_to(&task, "Rome").await;
    assert_eq!(done["artifacts"][0]["parts"][0]["text"], "Sunny in Rome.", "{done}");
}

#[tokio::test]
async fn giving_up_on_a_question_cancels_the_task_that_asked_it() {
    let serving = serve(asks()).await;
    let remote = Remote::connect(serving.url(), &Credentials::none()).await.unwrap();
    let session = start(&remote);
    session.reply("The weather?").await.unwrap();
    let reply = session.abandon("never mind").await.unwrap();
    assert_eq!(reply.outcome, Outcome::Aborted { reason: "never mind".into() });
    let client = Client::new(&serving);
    let task = client.call("ListTasks", json!({})).await["tasks"][0].clone();
    client.until(&task, "TASK_STATE_CANCELED").await;
    // The next request is a task of its own, of the same conversation.
    let reply = session.reply("The weather?").await.unwrap();
    assert!(matches!(reply.outcome, Outcome::InputRequired { .. }), "{reply:?}");
    assert_eq!(client.call("ListTasks", json!({})).await["totalSize"], 2);
}
