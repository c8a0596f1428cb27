//! The three bindings say the same, and say what is wrong as the specification does.

use a2a_client::Transport;
use a2a_grpc::GrpcTransport;
use reqwest::{Method, StatusCode};
use serde_json::json;

use crate::support::*;

async fn rest(
    client: &Client,
    method: Method,
    path: &str,
    body: Option<Value>,
) -> (StatusCode, Value) {
    let request = client.http.request(method, format!("{}{path}", client.url));
    let mut request = request.header("a2a-version", client.version);
    if let Some(body) = body {
        request = request.header("content-type", "application/a2a+json").body(body.to_string());
    }
    let response = request.send().await.unwrap();
    let status = response.status();
    let text = response.text().await.unwrap();
    (status, serde_json::from_str(&text).unwrap_or_else(|_| panic!("{status} {text}")))
}

fn asks() -> Agent {
    let turns = [Turn::call("ask_human", json!({"question": "Which?"})), Turn::text("This one.")];
    agent(turns, &World::default()).build()
}

#[tokio::test]
async fn http_json_does_what_json_rpc_does() {
    let serving = serve(asks()).await;
    let client = Client::new(&serving);
    let (status, body) = rest(&client, Method::POST, "/message:send", Some(said("go"))).await;
    assert_eq!(status, StatusCode::OK);
    let task = body["task"].clone();
    let id = task["id"].as_str().unwrap();
    assert_eq!(task["status"]["state"], "TASK_STATE_INPUT_REQUIRED");
    let (_, same) = rest(&client, Method::GET, &format!("/tasks/{id}"), None).await;
    assert_eq!(same, client.get(&task).await);
    let path = "/tasks?status=TASK_STATE_INPUT_REQUIRED&pageSize=1";
    let (_, list) = rest(&client, Method::GET, path, None).await;
    assert_eq!(list["tasks"][0]["id"], task["id"]);
    let config = json!({"url": "https://example.com/hook", "id": "p1", "token": "t"});
    let path = format!("/tasks/{id}/pushNotificationConfigs");
    let (status, _) = rest(&client, Method::POST, &path, Some(config)).await;
    assert_eq!(status, StatusCode::OK);
    let (_, one) = rest(&client, Method::GET, &format!("{path}/p1"), None).await;
    assert_eq!((&one["url"], &one["token"]), (&json!("https://example.com/hook"), &json!("t")));
    for _ in 0..2 {
        let (status, _) = rest(&client, Method::DELETE, &format!("{path}/p1"), None).await;
        assert_eq!(status, StatusCode::OK, "deleting twice is deleting once");
    }
    let (_, none) = rest(&client, Method::GET, &path, None).await;
    assert_eq!(none, json!({}));
    let mut answer = said("This");
    answer["message"]["taskId"] = json!(id);
    let response = client
        .http
        .post(format!("{}/message:stream", client.url))
        .header("a2a-version", "1.0")
        .json(&answer)
        .send()
        .await
        .unwrap();
    let told: Vec<String> =
        Events::new(response).rest().await.iter().map(|(_, u)| brief(u)).collect();
    assert_eq!(told, ["task TASK_STATE_WORKING", "artifact This one.", "TASK_STATE_COMPLETED"]);
    let (status, body) =
        rest(&client, Method::POST, &format!("/tasks/{id}:cancel"), Some(json!({}))).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert_eq!(body["error"]["details"][0]["reason"], "TASK_NOT_CANCELABLE");
}

#[tokio::test]
async fn errors_of_http_json_have_their_status_and_their_reason() {
    let serving = serve(asks()).await;
    let client = Client::new(&serving);
    let cases = [
        (Method::GET, "/tasks/nobody", None, 404, "TASK_NOT_FOUND"),
        (Method::GET, "/tasks?pageSize=500", None, 400, "INVALID_PARAMS"),
        (Method::GET, "/tasks?historyLength=x", None, 400, "INVALID_PARAMS"),
        (Method::POST, "/message:send", Some(json!({})), 400, "INVALID_PARAMS"),
        (Method::POST, "/message:send", Some(json!([])), 400, "INVALID_PARAMS"),
        (Method::GET, "/extendedAgentCard", None, 400, "UNSUPPORTED_OPERATION"),
        (Method::GET, "/message:send", None, 405, "METHOD_NOT_FOUND"),
        (Method::GET, "/tasks/a/b/c/d", None, 404, "METHOD_NOT_FOUND"),
    ];
    for (method, path, body, status, reason) in cases {
        let (found, error) = rest(&client, method, path, body).await;
        let details = error["error"]["details"].as_array().unwrap();
        let info = details.last().unwrap();
        assert_eq!((found.as_u16(), info["reason"].as_str().unwrap()), (status, reason), "{path}");
        assert_eq!(info["domain"], "a2a-protocol.org");
        assert_eq!(error["error"]["code"], status);
    }
    let old = client.clone().of_version("0.3");
    let (status, error) = rest(&old, Method::GET, "/tasks", None).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert_eq!(error["error"]["details"][0]["reason"], "VERSION_NOT_SUPPORTED");
}

#[tokio::test]
async fn errors_of_json_rpc_have_their_code_whatever_is_sent() {
    let serving = serve(asks()).await;
    let client = Client::new(&serving);
    let cases = [
        ("{", -32700),
        ("[]", -32600),
        ("\"x\"", -32600),
        ("{}", -32600),
        (r#"{"jsonrpc":"1.0","id":1,"method":"GetTask"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":{},"method":"GetTask"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1,"method":"Nonsense"}"#, -32601),
        (r#"{"jsonrpc":"2.0","id":1,"method":"message/send"}"#, -32601),
        (r#"{"jsonrpc":"2.0","id":1,"method":"GetTask"}"#, -32602),
        (r#"{"jsonrpc":"2.0","id":1,"method":"GetTask","params":[1]}"#, -32602),
        (r#"{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"x"}}"#, -32001),
    ];
    for (body, code) in cases {
        let request = client.http.post(&client.url).header("a2a-version", "1.0");
        let request = request.header("content-type", "application/json").body(body);
        let reply: Value = request.send().await.unwrap().json().await.unwrap();
        assert_eq!(reply["error"]["code"], code, "{body}: {reply}");
        assert_eq!(reply["jsonrpc"], "2.0");
    }
    let strange = client.clone().of_version("99.0");
    assert_eq!(strange.refused("GetTask", json!({"id": "x"})).await, -32009);
    let silent = client.clone().of_version("");
    assert_eq!(silent.refused("GetTask", json!({"id": "x"})).await, -32601);
}

#[tokio::test]
async fn what_is_too_large_is_refused_and_not_read() {
    let limits = duologue_a2a::Limits { body: 1000, ..Default::default() };
    let server = Server::new(asks(), std::sync::Arc::new(MemoryStore::new())).limits(limits);
    let serving = server.start().await.unwrap();
    let client = Client::new(&serving);
    let response = client.post_rpc("SendMessage", said(&"x".repeat(2000))).await;
    assert_eq!(response.status(), StatusCode::PAYLOAD_TOO_LARGE);
    let body: Value = response.json().await.unwrap();
    assert_eq!(body["error"]["code"], -32600);
}

#[tokio::test]
async fn grpc_does_what_json_rpc_does_on_the_same_port() {
    use a2a_client::ServiceParams;
    use duologue_a2a::a2a::{self, StreamResponse, TaskState};
    use futures::StreamExt;

    let serving = serve(asks()).await;
    let grpc = GrpcTransport::connect(serving.url()).await.unwrap();
    let params = ServiceParams::from([("a2a-version".to_owned(), vec!["1.0".to_owned()])]);
    let message = a2a::Message::new(a2a::Role::User, vec![a2a::Part::text("go")]);
    let request =
        a2a::SendMessageRequest { message, configuration: None, metadata: None, tenant: None };
    let sent = grpc.send_message(&params, &request).await.unwrap();
    let a2a::SendMessageResponse::Task(task) = sent else { panic!("{sent:?}") };
    assert_eq!(task.status.state, TaskState::InputRequired);
    let mut answer = request.clone();
    answer.message.task_id = Some(task.id.clone());
    let stream = grpc.send_streaming_message(&params, &answer).await.unwrap();
    let told: Vec<StreamResponse> = stream.map(Result::unwrap).collect().await;
    assert!(matches!(&told[0], StreamResponse::Task(first) if first.id == task.id));
    let StreamResponse::StatusUpdate(last) = told.last().unwrap() else { panic!("{told:?}") };
    assert_eq!(last.status.state, TaskState::Completed);
    let get = a2a::GetTaskRequest { id: "nobody".into(), history_length: None, tenant: None };
    let error = grpc.get_task(&params, &get).await.unwrap_err();
    assert_eq!(error.code, a2a::error_code::TASK_NOT_FOUND);
    let mut empty = request;
    empty.message.parts.clear();
    let error = grpc.send_message(&params, &empty).await.unwrap_err();
    assert_eq!(error.code, a2a::error_code::INVALID_PARAMS);
}

#[tokio::test]
async fn the_card_says_how_the_agent_is_reached_and_is_not_sent_twice() {
    let serving = serve(asks()).await;
    let client = Client::new(&serving);
    let url = format!("{}/.well-known/agent-card.json", client.url);
    let fetch = |version: &'static str| client.http.get(&url).header("a2a-version", version);
    let response = fetch("1.0").send().await.unwrap();
    let etag = response.headers()["etag"].clone();
    let card: duologue_a2a::a2a::AgentCard = response.json().await.unwrap();
    assert_eq!(&card, serving.card());
    let skills: Vec<&str> = card.skills.iter().map(|skill| skill.id.as_str()).collect();
    assert_eq!(skills, ["act", "wait", "ask_human"]);
    let again = fetch("1.0").header("if-none-match", etag).send().await.unwrap();
    assert_eq!(again.status(), StatusCode::NOT_MODIFIED);
    // Who says no version may be of 0.3, and finds what it looks for.
    let old: Value = fetch("").send().await.unwrap().json().await.unwrap();
    assert_eq!((&old["protocolVersion"], &old["url"]), (&json!("0.3.0"), &json!(client.url)));
    assert!(old["supportedInterfaces"].is_array());
}
