//! Notifications: delivered, tried again, given up, and never to where they must not go.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{
    Router,
    extract::State,
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Redirect, Response},
    routing::post,
};
use duologue_a2a::PushSettings;
use duologue_core::{Event, SessionId};
use serde_json::json;

use crate::support::*;

/// Somebody who listens, and refuses the first few.
#[derive(Clone, Default)]
struct Listener {
    heard: Arc<Mutex<Vec<(HeaderMap, Value)>>>,
    refuses: Arc<AtomicUsize>,
}

impl Listener {
    async fn start(&self) -> String {
        async fn hear(
            State(listener): State<Listener>,
            headers: HeaderMap,
            body: String,
        ) -> Response {
            let left = listener.refuses.load(Ordering::SeqCst);
            if left > 0 {
                listener.refuses.store(left - 1, Ordering::SeqCst);
                return StatusCode::SERVICE_UNAVAILABLE.into_response();
            }
            let value = serde_json::from_str(&body).unwrap();
            listener.heard.lock().unwrap().push((headers, value));
            StatusCode::OK.into_response()
        }
        let socket = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        let away = format!("http://{address}/hook");
        let router = Router::new()
            .route("/hook", post(hear))
            .route("/moved", post(move || async move { Redirect::permanent(&away) }))
            .with_state(self.clone());
        tokio::spawn(async move { axum::serve(socket, router).await.unwrap() });
        format!("http://{address}")
    }

    async fn until(&self, count: usize) -> Vec<(HeaderMap, Value)> {
        for _ in 0..250 {
            if self.heard.lock().unwrap().len() >= count {
                return self.heard.lock().unwrap().clone();
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("heard only {:?}", self.heard.lock().unwrap())
    }
}

fn quick() -> PushSettings {
    PushSettings {
        allow_private: true,
        first_wait: Duration::from_millis(10),
        timeout: Duration::from_secs(2),
        attempts: 3,
        ..PushSettings::default()
    }
}

fn asks() -> Agent {
    let turns = [Turn::call("ask_human", json!({"question": "Well?"})), Turn::text("Done.")];
    agent(turns, &World::default()).build()
}

#[tokio::test]
async fn a_target_hears_of_every_change_in_order_with_its_credentials() {
    let listener = Listener::default();
    let at = listener.start().await;
    listener.refuses.store(1, Ordering::SeqCst);
    let store = Arc::new(MemoryStore::new());
    let server = Server::new(asks(), Arc::clone(&store) as Arc<dyn Store>).push(quick());
    let serving = server.start().await.unwrap();
    let client = Client::new(&serving);
    let mut params = said("go");
    params["configuration"] = json!({"taskPushNotificationConfig": {
        "url": format!("{at}/moved"), "token": "tok",
        "authentication": {"scheme": "Bearer", "credentials": "secret-credentials"}}});
    let task = client.call("SendMessage", params).await["task"].clone();
    client.send_to(&task, "yes").await;
    let heard = listener.until(5).await;
    let told: Vec<String> = heard.iter().map(|(_, update)| brief(update)).collect();
    let expected = [
        "TASK_STATE_WORKING",
        "TASK_STATE_INPUT_REQUIRED Well?",
        "TASK_STATE_WORKING",
        "artifact Done.",
        "TASK_STATE_COMPLETED",
    ];
    assert_eq!(told, expected);
    for (headers, _) in &heard {
        assert_eq!(headers["authorization"], "Bearer secret-credentials");
        assert_eq!(headers["x-a2a-notification-token"], "tok");
        assert_eq!(headers["content-type"], "application/a2a+json");
    }
    // What was delivered is on record, and secrets are not.
    let id = SessionId::from(task["id"].as_str().unwrap());
    let mut delivered = Vec::new();
    for _ in 0..100 {
        let entries = store.read(&id, 0, 1000).await.unwrap();
        let text = serde_json::to_string(&entries).unwrap();
        assert!(!text.contains("secret-credentials"), "{text}");
        delivered = entries
            .iter()
            .filter_map(|entry| match &entry.event {
                Event::Note { topic, data } if topic == "@a2a_delivered" => Some(data.clone()),
                _ => None,
            })
            .collect();
        if delivered.len() == 5 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(delivered.len(), 5);
    assert_eq!(delivered[0]["attempts"], 2, "the first was refused once");
}

#[tokio::test]
async fn a_target_that_does_not_answer_holds_up_nobody_and_is_given_up() {
    let listener = Listener::default();
    let at = listener.start().await;
    listener.refuses.store(1000, Ordering::SeqCst);
    let store = Arc::new(MemoryStore::new());
    let server = Server::new(asks(), Arc::clone(&store) as Arc<dyn Store>).push(quick());
    let serving = server.start().await.unwrap();
    let client = Client::new(&serving);
    let mut params = said("go");
    params["configuration"] = json!({"taskPushNotificationConfig": {"url": format!("{at}/hook")}});
    let task = client.call("SendMessage", params).await["task"].clone();
    let done = client.send_to(&task, "yes").await;
    assert_eq!(done["status"]["state"], "TASK_STATE_COMPLETED");
    let id = SessionId::from(task["id"].as_str().unwrap());
    for _ in 0..250 {
        let entries = store.read(&id, 0, 1000).await.unwrap();
        let given_up = entries.iter().filter(|entry| match &entry.event {
            Event::Note { data, .. } => data["given_up"].is_string() && data["attempts"] == 3,
            _ => false,
        });
        if given_up.count() == 5 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("it was not given up");
}

#[tokio::test]
async fn private_addresses_are_refused_unless_they_are_allowed() {
    let serving = serve(asks()).await;
    let client = Client::new(&serving);
    let task = client.send("go").await;
    for url in [
        "http://127.0.0.1:9/",
        "http://localhost/",
        "http://10.0.0.1/",
        "http://[::1]/",
        "http://169.254.169.254/latest",
        "file:///etc/passwd",
    ] {
        let push = json!({"taskId": task["id"], "url": url});
        assert_eq!(client.refused("CreateTaskPushNotificationConfig", push).await, -32602, "{url}");
    }
    let push = json!({"taskId": task["id"], "url": "https://example.com/hook"});
    let created = client.call("CreateTaskPushNotificationConfig", push).await;
    let mut get = json!({"taskId": task["id"], "id": created["id"]});
    assert_eq!(client.call("GetTaskPushNotificationConfig", get.clone()).await, created);
    get["id"] = json!("another");
    assert_eq!(client.refused("GetTaskPushNotificationConfig", get).await, -32001);
    for _ in 1..10 {
        let push = json!({"taskId": task["id"], "url": "https://example.com/hook"});
        client.call("CreateTaskPushNotificationConfig", push).await;
    }
    let push = json!({"taskId": task["id"], "url": "https://example.com/hook"});
    assert_eq!(client.refused("CreateTaskPushNotificationConfig", push).await, -32602);
}

#[tokio::test]
async fn a_server_without_notifications_says_so() {
    let push = PushSettings { enabled: false, ..PushSettings::default() };
    let server = Server::new(asks(), Arc::new(MemoryStore::new())).push(push);
    let serving = server.start().await.unwrap();
    let client = Client::new(&serving);
    let task = client.send("go").await;
    let push = json!({"taskId": task["id"], "url": "https://example.com/hook"});
    assert_eq!(client.refused("CreateTaskPushNotificationConfig", push).await, -32003);
}
