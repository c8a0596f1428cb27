//! The official client, and our own, with our server.

use std::{collections::BTreeMap, process::Stdio, sync::Arc, time::Duration};

use duologue_behaviors::Generic;
use duologue_core::{Agent, Effect, Execution, MemoryStore, Tool, ToolError, Toolbox, tool};
use duologue_mcp::{Offer, ServerConfig, Serving, Transport};
use duologue_models::{Scripted, Turn};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio::process::Command;

use crate::support::{call, connected, installed};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Text {
    /// A text.
    text: String,
}

#[derive(Deserialize, JsonSchema)]
#[allow(dead_code, reason = "the driver reads it")]
struct Question {
    /// A question.
    question: String,
}

async fn serving() -> Serving {
    let ask = tool("ask_human", "Asks.", Effect::Pure, |_: Question, _| async {
        Err::<String, _>(ToolError::new("nobody"))
    });
    let agent = Agent::builder("greeter", Generic::default())
        .model(Arc::new(Scripted::new([
            Turn::call("ask_human", json!({"question": "Which name?"})),
            Turn::text("Hello, Ada!"),
            Turn::text("You are welcome."),
        ])))
        .tools(Toolbox::new().with(ask.execution(Execution::Human)))
        .build();
    let echo: Arc<dyn Tool> =
        Arc::new(tool("echo", "Says it again.", Effect::Pure, |it: Text, _| async move {
            Ok::<_, ToolError>(it.text)
        }));
    let offer = Offer::new(Arc::new(MemoryStore::new())).agent(agent).tool(echo);
    offer.serve_http("127.0.0.1:0".parse().unwrap()).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_official_client_calls_our_agents_and_tools() {
    let Some(python) = installed("py/bin/python") else { return };
    for elicits in ["elicits", "plain"] {
        let serving = serving().await;
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/foreign/client.py");
        let url = format!("http://{}/mcp", serving.address());
        let mut command = Command::new(&python);
        command.args([script, url.as_str(), elicits]).kill_on_drop(true).stdin(Stdio::null());
        let output = tokio::time::timeout(Duration::from_secs(60), command.output());
        let output = output.await.expect("it hangs").unwrap();
        let (out, err) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success() && out.trim() == "ok", "{elicits}: {out}\n{err}");
        serving.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_client_calls_our_server_by_the_newest_protocol() {
    let serving = serving().await;
    let url = format!("http://{}/mcp", serving.address());
    let config = ServerConfig::new(Transport::Http { url, headers: BTreeMap::new() });
    let servers = connected(vec![("home", config)]).await;
    let status = format!("{:?}", servers.get("home").unwrap().status());
    assert!(status.contains("duologue") && status.contains("2026-07-28"), "{status}");
    assert_eq!(call(&servers, "home__echo", json!({"text": "hi"})).await, Ok("hi".to_owned()));
    let asked = call(&servers, "home__greeter", json!({"message": "Greet me."})).await.unwrap();
    assert!(asked.contains("Which name?"), "{asked}");
    let nothing = call(&servers, "home__greeter", json!({})).await.unwrap_err();
    assert!(nothing.contains("there is no message"), "{nothing}");
    servers.stop().await;
    serving.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_that_comes_by_another_name_is_refused() {
    let serving = serving().await;
    let mut stream = tokio::net::TcpStream::connect(serving.address()).await.unwrap();
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let request = format!(
        "POST /mcp HTTP/1.1\r\nHost: evil.example\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n{body}",
        body.len()
    );
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
    serving.stop().await;
}
