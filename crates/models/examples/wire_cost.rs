//! What a streamed answer costs the client in CPU, in three arms: a bare `reqwest` client that only
//! parses, our chat client, and `genai`.
//!
//! The server is a second process on loopback. An answer is 50 pieces of text and a tool call, each
//! event in a write of its own. Run it with
//! `cargo run --release -p duologue-models --example wire_cost`, or with the name of one arm behind
//! `--` to profile that alone.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a measurement that stops at the first surprise"
)]

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader},
    process::{Command, Stdio},
    sync::Arc,
    time::Duration,
};

use duologue_core::{Message, Model, Request, ToolSpec};
use duologue_models::{ProviderConfig, Providers};
use futures::StreamExt;
use serde::Deserialize;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const ANSWERS: u32 = 2000;
const ROUNDS: usize = 5;
const ARMS: [&str; 3] = ["raw", "ours", "genai"];

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    if std::env::args().nth(1).as_deref() == Some("serve") {
        runtime.block_on(serve());
        return;
    }
    let mut server = Command::new(std::env::current_exe().unwrap())
        .arg("serve")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut port = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut port).unwrap();
    let base = format!("http://127.0.0.1:{}/v1/", port.trim());
    runtime.block_on(measure(&base));
    server.kill().unwrap();
    server.wait().unwrap();
}

async fn measure(base: &str) {
    let config = ProviderConfig { base_url: Some(base.to_owned()), ..ProviderConfig::default() };
    let providers = Providers::new(BTreeMap::from([("mock".to_owned(), config)])).unwrap();
    let ours = providers.model("mock/m").unwrap();
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let genai = genai::Client::builder().with_reqwest(client.clone()).build().unwrap();

    let mut costs = [Vec::new(), Vec::new(), Vec::new()];
    let only = std::env::args().nth(1);
    for round in 0..=ROUNDS {
        for (arm, costs) in costs.iter_mut().enumerate() {
            if only.as_deref().is_some_and(|only| ARMS.get(arm) != Some(&only)) {
                continue;
            }
            let before = cpu();
            for _ in 0..ANSWERS {
                match arm {
                    0 => raw(&client, base).await,
                    1 => own(&*ours).await,
                    _ => with_genai(&genai, base).await,
                }
            }
            // The first round only warms up.
            if round > 0 {
                costs.push((cpu() - before) / ANSWERS);
            }
        }
    }
    let median = |mut all: Vec<Duration>| {
        all.sort_unstable();
        all.get(ROUNDS / 2).copied().unwrap_or_default()
    };
    let costs = costs.map(median);
    for (name, cost) in ARMS.iter().zip(costs).filter(|(_, cost)| !cost.is_zero()) {
        let ratio = cost.as_secs_f64() / costs[0].as_secs_f64();
        println!("{name:5} {cost:>10.1?} per answer, {ratio:.2} x raw");
    }
}

/// CPU time of this thread, which does everything here.
fn cpu() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(text.split(' ').next().unwrap().parse().unwrap())
}

#[derive(Deserialize)]
struct Chunk {
    choices: Vec<Choice>,
}

#[derive(Deserialize)]
struct Choice {
    delta: Delta,
}

#[derive(Deserialize)]
struct Delta {
    content: Option<String>,
}

async fn raw(client: &reqwest::Client, base: &str) {
    let body = json!({"model": "m", "stream": true, "stream_options": {"include_usage": true},
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hello"}]});
    let response = client.post(format!("{base}chat/completions")).json(&body).send().await.unwrap();
    let mut stream = response.bytes_stream();
    let mut buffer = Vec::new();
    let mut text = String::new();
    while let Some(bytes) = stream.next().await {
        buffer.extend_from_slice(&bytes.unwrap());
        let mut start = 0;
        while let Some(end) = buffer[start..].windows(2).position(|pair| pair == b"\n\n") {
            let event = &buffer[start..start + end];
            start += end + 2;
            let data = event.strip_prefix(b"data: ").unwrap();
            if data != b"[DONE]" {
                let chunk: Chunk = serde_json::from_slice(data).unwrap();
                for choice in chunk.choices {
                    text.push_str(choice.delta.content.as_deref().unwrap_or_default());
                }
            }
        }
        buffer.drain(..start);
    }
    assert_eq!(text.len(), 50 * 4);
}

async fn own(model: &dyn Model) {
    let request = Request {
        system: Some("Be brief.".into()),
        messages: Arc::new(vec![Arc::new(Message::user("hello"))]),
        tools: Arc::from(Vec::<Arc<ToolSpec>>::new()),
        ..Request::default()
    };
    let mut stream = model.ask(request);
    let mut text = 0;
    while let Some(delta) = stream.next().await {
        if let duologue_core::Delta::Text(more) = delta.unwrap() {
            text += more.len();
        }
    }
    assert_eq!(text, 50 * 4);
}

async fn with_genai(client: &genai::Client, base: &str) {
    use genai::chat::{ChatMessage, ChatOptions, ChatRequest, ChatStreamEvent};
    let target = genai::ServiceTarget {
        endpoint: genai::resolver::Endpoint::from_owned(base),
        auth: genai::resolver::AuthData::Key("k".to_owned()),
        model: genai::ModelIden::new(genai::adapter::AdapterKind::OpenAI, "m"),
    };
    let request = ChatRequest::new(vec![ChatMessage::user("hello")]).with_system("Be brief.");
    let options = ChatOptions::default().with_capture_usage(true).with_capture_tool_calls(true);
    let mut stream = client.exec_chat_stream(target, request, Some(&options)).await.unwrap().stream;
    let mut text = 0;
    while let Some(event) = stream.next().await {
        if let ChatStreamEvent::Chunk(chunk) = event.unwrap() {
            text += chunk.content.len();
        }
    }
    assert_eq!(text, 50 * 4);
}

/// Answers every request on every connection with the same stream.
async fn serve() {
    // The parent holds the other end of this pipe: when it goes, so does the server.
    std::thread::spawn(|| {
        let _ = std::io::stdin().read_line(&mut String::new());
        std::process::exit(0);
    });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    println!("{}", listener.local_addr().unwrap().port());
    let writes = Arc::new(answer());
    loop {
        let (mut socket, _) = listener.accept().await.unwrap();
        socket.set_nodelay(true).unwrap();
        let writes = Arc::clone(&writes);
        tokio::spawn(async move {
            let mut buffer = Vec::new();
            loop {
                let (head, length) = loop {
                    if let Some(found) = request_end(&buffer) {
                        break found;
                    }
                    if socket.read_buf(&mut buffer).await.unwrap_or(0) == 0 {
                        return;
                    }
                };
                while buffer.len() < head + length {
                    if socket.read_buf(&mut buffer).await.unwrap_or(0) == 0 {
                        return;
                    }
                }
                buffer.drain(..head + length);
                for write in writes.iter() {
                    socket.write_all(write).await.unwrap();
                }
            }
        });
    }
}

/// Where the head of a request ends, and how long its body is.
fn request_end(buffer: &[u8]) -> Option<(usize, usize)> {
    let head = buffer.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let text = String::from_utf8_lossy(&buffer[..head]).to_ascii_lowercase();
    let length = text
        .lines()
        .find_map(|line| line.strip_prefix("content-length:"))
        .map_or(0, |value| value.trim().parse().unwrap());
    Some((head, length))
}

fn answer() -> Vec<Vec<u8>> {
    let chunk = |delta: serde_json::Value, finish: Option<&str>| {
        json!({"id": "chatcmpl-123", "object": "chat.completion.chunk", "created": 1_700_000_000,
            "model": "m", "system_fingerprint": "fp_1",
            "choices": [{"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish}],
            "usage": null})
        .to_string()
    };
    let call = |more: serde_json::Value| json!({"tool_calls": [more]});
    let mut events = vec![chunk(json!({"role": "assistant", "content": ""}), None)];
    events.extend((0..50).map(|_| chunk(json!({"content": "tok "}), None)));
    events.push(chunk(
        call(json!({"index": 0, "id": "call_1", "type": "function",
            "function": {"name": "echo", "arguments": ""}})),
        None,
    ));
    for fragment in ["{\"te", "xt\":", "\"hello\"", "}"] {
        events.push(chunk(call(json!({"index": 0, "function": {"arguments": fragment}})), None));
    }
    events.push(chunk(json!({}), Some("tool_calls")));
    events.push(
        json!({"id": "chatcmpl-123", "object": "chat.completion.chunk", "created": 1_700_000_000,
            "model": "m", "choices": [],
            "usage": {"prompt_tokens": 20, "completion_tokens": 60, "total_tokens": 80}})
        .to_string(),
    );
    events.push("[DONE]".to_owned());
    let head =
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    let mut writes = vec![head.as_bytes().to_vec()];
    writes.extend(events.into_iter().map(|event| {
        let data = format!("data: {event}\n\n");
        format!("{:x}\r\n{data}\r\n", data.len()).into_bytes()
    }));
    writes.push(b"0\r\n\r\n".to_vec());
    writes
}
