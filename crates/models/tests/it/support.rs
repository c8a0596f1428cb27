//! A server on loopback that answers with exactly the bytes a test wants, in the pieces it wants.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use duologue_core::{Accumulator, Completion, Delta, Message, Model, ModelError, Request};
use duologue_models::{ProviderConfig, Providers, Wire};
use futures::StreamExt;
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

/// What the server does with a request.
#[derive(Clone)]
pub(crate) enum Act {
    /// Send these bytes in a write of their own.
    Send(Vec<u8>),
    /// Wait a moment, so that the write before is a read of its own.
    Pause(Duration),
    /// Close the connection.
    Close,
    /// Send nothing more and keep the connection.
    Hang,
}

/// A request as it arrived.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) head: String,
    pub(crate) body: Value,
}

pub(crate) struct Server {
    pub(crate) port: u16,
    seen: Arc<Mutex<Vec<Seen>>>,
    connections: Arc<AtomicUsize>,
    closed: Arc<AtomicUsize>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    /// A server that does the same with every request.
    pub(crate) async fn start(acts: Vec<Act>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let connections = Arc::new(AtomicUsize::new(0));
        let closed = Arc::new(AtomicUsize::new(0));
        let (all, open, gone) = (Arc::clone(&seen), Arc::clone(&connections), Arc::clone(&closed));
        let task = tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                open.fetch_add(1, Ordering::SeqCst);
                let (acts, all, gone) = (acts.clone(), Arc::clone(&all), Arc::clone(&gone));
                tokio::spawn(async move {
                    serve(socket, acts, all).await;
                    gone.fetch_add(1, Ordering::SeqCst);
                });
            }
        });
        Self { port, seen, connections, closed, task }
    }

    /// A server that streams these events, whole.
    pub(crate) async fn streaming(events: &[Value]) -> Self {
        let mut text: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
        text.push_str("data: [DONE]\n\n");
        Self::start(stream(&[text.as_bytes()], End::Proper)).await
    }

    /// A server that streams named events, as Anthropic and OpenAI's responses do.
    pub(crate) async fn streaming_named(events: &[Value]) -> Self {
        let text: String = events
            .iter()
            .map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap()))
            .collect();
        Self::start(stream(&[text.as_bytes()], End::Proper)).await
    }

    /// A server that answers with a status, headers and a body.
    pub(crate) async fn refusing(status: &str, headers: &str, body: &str) -> Self {
        let text = format!(
            "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n{headers}\r\n{body}",
            body.len()
        );
        Self::start(vec![Act::Send(text.into_bytes())]).await
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    pub(crate) fn closed(&self) -> usize {
        self.closed.load(Ordering::SeqCst)
    }

    /// Providers of which `mock` is this server.
    pub(crate) fn providers(&self, wire: Wire) -> Providers {
        self.providers_with(wire, ProviderConfig::default())
    }

    pub(crate) fn providers_with(&self, wire: Wire, config: ProviderConfig) -> Providers {
        let config = ProviderConfig {
            wire: Some(wire),
            base_url: Some(format!("http://127.0.0.1:{}", self.port)),
            api_key_env: Some("MOCK_KEY".into()),
            ..config
        };
        let configs = BTreeMap::from([("mock".to_owned(), config)]);
        Providers::with_environment(configs, environment).unwrap()
    }

    pub(crate) fn model(&self, wire: Wire, id: &str) -> Arc<dyn Model> {
        self.providers(wire).model(&format!("mock/{id}")).unwrap()
    }
}

/// The key is the one secret of these tests.
pub(crate) const KEY: &str = "mock-secret-key";

pub(crate) fn environment(name: &str) -> Option<String> {
    match name {
        "MOCK_KEY" => Some(KEY.to_owned()),
        "TEAM_SECRET" => Some("team-secret".to_owned()),
        _ => None,
    }
}

/// How a stream ends.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum End {
    /// As HTTP says it must.
    Proper,
    /// The connection closes in the middle.
    Torn,
    /// It never does.
    Never,
}

/// The acts of a streamed answer in pieces that each arrive alone.
pub(crate) fn stream(pieces: &[&[u8]], end: End) -> Vec<Act> {
    let head =
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    let mut acts = vec![Act::Send(head.as_bytes().to_vec())];
    for piece in pieces {
        let mut chunk = format!("{:x}\r\n", piece.len()).into_bytes();
        chunk.extend_from_slice(piece);
        chunk.extend_from_slice(b"\r\n");
        acts.push(Act::Send(chunk));
        if pieces.len() > 1 {
            acts.push(Act::Pause(Duration::from_millis(3)));
        }
    }
    acts.push(match end {
        End::Proper => Act::Send(b"0\r\n\r\n".to_vec()),
        End::Torn => Act::Close,
        End::Never => Act::Hang,
    });
    acts
}

async fn serve(mut socket: TcpStream, acts: Vec<Act>, seen: Arc<Mutex<Vec<Seen>>>) {
    socket.set_nodelay(true).unwrap();
    let mut buffer = Vec::new();
    while let Some(request) = read_request(&mut socket, &mut buffer).await {
        seen.lock().unwrap().push(request);
        for act in &acts {
            match act {
                Act::Send(bytes) => {
                    if socket.write_all(bytes).await.is_err() {
                        return;
                    }
                }
                Act::Pause(time) => tokio::time::sleep(*time).await,
                Act::Close => return,
                Act::Hang => {
                    // Until the other side goes away.
                    let _ = socket.read(&mut [0; 64]).await;
                    return;
                }
            }
        }
    }
}

async fn read_request(socket: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<Seen> {
    loop {
        if let Some(end) = buffer.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&buffer[..end]).into_owned();
            let length = head
                .to_ascii_lowercase()
                .lines()
                .find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok())
                .unwrap_or(0);
            while buffer.len() < end + 4 + length {
                if socket.read_buf(buffer).await.ok()? == 0 {
                    return None;
                }
            }
            let body = serde_json::from_slice(&buffer[end + 4..end + 4 + length]);
            buffer.drain(..end + 4 + length);
            return Some(Seen { head, body: body.unwrap_or_default() });
        }
        if socket.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
    }
}

pub(crate) fn asked(text: &str) -> Request {
    conversation(vec![Message::user(text)])
}

pub(crate) fn conversation(messages: Vec<Message>) -> Request {
    Request {
        messages: Arc::new(messages.into_iter().map(Arc::new).collect()),
        ..Request::default()
    }
}

/// Everything a model says, to the end or to the first error.
pub(crate) async fn deltas(
    model: &Arc<dyn Model>,
    request: Request,
) -> Result<Vec<Delta>, ModelError> {
    let all: Vec<Result<Delta, ModelError>> = model.ask(request).collect().await;
    all.into_iter().collect()
}

pub(crate) async fn answer(
    model: &Arc<dyn Model>,
    request: Request,
) -> Result<Completion, ModelError> {
    let mut all = Accumulator::default();
    for delta in deltas(model, request).await? {
        all.push(delta);
    }
    Ok(all.finish())
}
