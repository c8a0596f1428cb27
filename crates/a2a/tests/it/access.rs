//! Who may call, and what they may see.

use std::{net::Ipv4Addr, sync::Arc};

use duologue_a2a::Access;
use reqwest::StatusCode;
use serde_json::json;

use crate::support::*;

fn done() -> Agent {
    agent([Turn::text("Done.")], &World::default()).build()
}

fn with_key(serving: &Serving, key: &str) -> Client {
    let mut client = Client::new(serving);
    let headers = reqwest::header::HeaderMap::from_iter([(
        reqwest::header::HeaderName::from_static("x-api-key"),
        key.parse().unwrap(),
    )]);
    client.http = reqwest::Client::builder().no_proxy().default_headers(headers).build().unwrap();
    client
}

#[tokio::test]
async fn everybody_sees_only_their_own_tasks() {
    let access = Access::open().with_key("ada", "key-a").with_key("bob", "key-b");
    let store = Arc::new(MemoryStore::new());
    let serving = Server::new(done(), store).access(access).start().await.unwrap();
    let (ada, bob) = (with_key(&serving, "key-a"), with_key(&serving, "key-b"));
    let task = ada.send("go").await;
    let id = json!({"id": task["id"]});
    assert_eq!(bob.refused("GetTask", id.clone()).await, -32001);
    assert_eq!(bob.refused("CancelTask", id.clone()).await, -32001);
    assert_eq!(bob.refused("SubscribeToTask", id).await, -32001);
    let push = json!({"taskId": task["id"], "url": "https://example.com/"});
    assert_eq!(bob.refused("CreateTaskPushNotificationConfig", push).await, -32001);
    let mut follow_up = said("more");
    follow_up["message"]["taskId"] = task["id"].clone();
    assert_eq!(bob.refused("SendMessage", follow_up).await, -32001);
    assert_eq!(bob.call("ListTasks", json!({})).await["totalSize"], 0);
    assert_eq!(ada.call("ListTasks", json!({})).await["totalSize"], 1);
    let card = Client::new(&serving).http.get(format!("{}/.well-known/agent-card.json", ada.url));
    let card: Value = card.header("a2a-version", "1.0").send().await.unwrap().json().await.unwrap();
    assert!(card["securitySchemes"]["apiKey"]["apiKeySecurityScheme"]["name"].is_string());
}

#[tokio::test]
async fn nobody_gets_in_without_credentials() {
    let access = Access::open().with_key("ada", "key-a");
    let store = Arc::new(MemoryStore::new());
    let serving = Server::new(done(), store).access(access).start().await.unwrap();
    for client in [Client::new(&serving), with_key(&serving, "key-x")] {
        let response = client.post_rpc("SendMessage", said("go")).await;
        assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
        assert!(response.headers().contains_key("www-authenticate"));
        let path = format!("{}/tasks", client.url);
        assert_eq!(client.http.get(path).send().await.unwrap().status(), StatusCode::UNAUTHORIZED);
    }
    let grpc = a2a_grpc::GrpcTransport::connect(serving.url()).await.unwrap();
    let get =
        duologue_a2a::a2a::GetTaskRequest { id: "x".into(), history_length: None, tenant: None };
    let nothing = a2a_client::ServiceParams::new();
    assert!(a2a_client::Transport::get_task(&grpc, &nothing, &get).await.is_err());
}

#[tokio::test]
async fn an_open_server_stays_on_this_machine_and_says_so() {
    let all = (Ipv4Addr::UNSPECIFIED, 0).into();
    let store = || Arc::new(MemoryStore::new());
    let serving = Server::new(done(), store()).bind(all).start().await.unwrap();
    assert!(serving.address().ip().is_loopback());
    assert!(serving.warning().unwrap().contains("allow_unauthenticated"));
    let serving =
        Server::new(done(), store()).bind(all).allow_unauthenticated().start().await.unwrap();
    assert!(serving.address().ip().is_unspecified());
    assert_eq!(serving.warning(), None);
    let access = Access::open().with_key("ada", "key-a");
    let serving = Server::new(done(), store()).bind(all).access(access).start().await.unwrap();
    assert!(serving.address().ip().is_unspecified());
}
