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

#[tokio::test]
async fn a_page_of_another_site_cannot_call_a_server_of_this_machine() {
    let serving = serve(done()).await;
    let client = Client::new(&serving);
    let body = json!({"jsonrpc": "2.0", "id": 7, "method": "SendMessage", "params": said("go")});
    let post = || client.http.post(&client.url).header("a2a-version", "1.0");
    // Its name may lead here, but it is still its name.
    let bent = post().header("host", "evil.example:80").json(&body).send().await.unwrap();
    assert_eq!(bent.status(), StatusCode::FORBIDDEN);
    // What a page may post without asking is not JSON.
    let plain = post().header("content-type", "text/plain").body(body.to_string());
    let reply: Value = plain.send().await.unwrap().json().await.unwrap();
    assert_eq!(reply["error"]["code"], -32005);
    assert_eq!(client.call("ListTasks", json!({})).await["totalSize"], 0);
}

#[tokio::test]
async fn a_caller_who_is_too_fast_is_told_to_wait() {
    let limits = duologue_a2a::Limits { rate: Some(3), ..Default::default() };
    let server = Server::new(done(), Arc::new(MemoryStore::new())).limits(limits);
    let serving = server.start().await.unwrap();
    let client = Client::new(&serving);
    let mut last = StatusCode::OK;
    for _ in 0..10 {
        last = client.post_rpc("ListTasks", json!({})).await.status();
    }
    assert_eq!(last, StatusCode::TOO_MANY_REQUESTS);
}

#[tokio::test]
async fn known_callers_get_a_card_of_their_own() {
    let store = || Arc::new(MemoryStore::new());
    let plain = serve(done()).await;
    let mut richer = plain.card().clone();
    richer.description = "for friends".to_owned();
    let refused = Server::new(done(), store()).extended_card(richer.clone()).start().await;
    assert!(refused.unwrap_err().to_string().contains("API key"));
    let access = Access::open().with_key("ada", "key-a");
    let server = Server::new(done(), store()).access(access).extended_card(richer);
    let serving = server.start().await.unwrap();
    let ada = with_key(&serving, "key-a");
    let card = ada.call("GetExtendedAgentCard", json!({})).await;
    assert_eq!(card["description"], "for friends");
}

/// Somebody who signs tokens.
struct Issuer {
    pair: ring::signature::EcdsaKeyPair,
    random: ring::rand::SystemRandom,
}

impl Issuer {
    fn new() -> Self {
        use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
        let random = ring::rand::SystemRandom::new();
        let alg = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let key = EcdsaKeyPair::generate_pkcs8(alg, &random).unwrap();
        let pair = EcdsaKeyPair::from_pkcs8(alg, key.as_ref(), &random).unwrap();
        Self { pair, random }
    }

    fn jwks(&self) -> String {
        let point = ring::signature::KeyPair::public_key(&self.pair).as_ref();
        let (x, y) = (encoded(&point[1..33]), encoded(&point[33..]));
        json!({"keys": [{"kty": "EC", "crv": "P-256", "kid": "k1", "x": x, "y": y}]}).to_string()
    }

    fn token(&self, claims: &Value) -> String {
        let header = encoded(json!({"alg": "ES256", "kid": "k1"}).to_string());
        let signed = format!("{header}.{}", encoded(claims.to_string()));
        let signature = self.pair.sign(&self.random, signed.as_bytes()).unwrap();
        format!("{signed}.{}", encoded(signature))
    }
}

fn encoded(bytes: impl AsRef<[u8]>) -> String {
    use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
    URL_SAFE_NO_PAD.encode(bytes)
}

#[tokio::test]
async fn a_bearer_token_says_who_calls() {
    let issuer = Issuer::new();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("keys.json");
    std::fs::write(&file, issuer.jwks()).unwrap();
    let access =
        Access::open().with_token_file(&file, Some("house".into()), Some("agents".into())).unwrap();
    let store = Arc::new(MemoryStore::new());
    let serving = Server::new(done(), store).access(access).start().await.unwrap();
    let claims =
        |who: &str| json!({"sub": who, "iss": "house", "aud": "agents", "exp": 4_000_000_000_u64});
    let with_token = |token: &str| {
        let mut client = Client::new(&serving);
        let headers = reqwest::header::HeaderMap::from_iter([(
            reqwest::header::AUTHORIZATION,
            format!("Bearer {token}").parse().unwrap(),
        )]);
        let http = reqwest::Client::builder().no_proxy().default_headers(headers);
        client.http = http.build().unwrap();
        client
    };
    let (ada, bob) = (issuer.token(&claims("ada")), issuer.token(&claims("bob")));
    let task = with_token(&ada).send("go").await;
    assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED");
    assert_eq!(with_token(&ada).call("ListTasks", json!({})).await["totalSize"], 1);
    assert_eq!(with_token(&bob).refused("GetTask", json!({"id": task["id"]})).await, -32001);
    // Our own client sends it by the scheme's name on the card.
    let scheme = serving.card().security_schemes.as_ref().unwrap().keys().next().unwrap();
    let credentials = duologue_a2a::Credentials::none().with(scheme, &ada);
    let remote = duologue_a2a::Remote::connect(serving.url(), &credentials).await.unwrap();
    let found = remote.follow(task["id"].as_str().unwrap()).await.unwrap();
    assert_eq!(json!(found.id), task["id"]);
    let mut wrong = vec![Issuer::new().token(&claims("ada")), "nonsense".to_owned()];
    for (field, value) in [("exp", json!(1)), ("iss", json!("other")), ("aud", json!("others"))] {
        let mut claims = claims("ada");
        claims[field] = value;
        wrong.push(issuer.token(&claims));
    }
    for token in wrong {
        let response = with_token(&token).post_rpc("SendMessage", said("go")).await;
        assert_eq!(response.status(), StatusCode::UNAUTHORIZED, "{token}");
    }
}
