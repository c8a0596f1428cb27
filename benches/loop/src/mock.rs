//! The mock model: an OpenAI chat server in a process of its own, as cheap as it can be.
//!
//! It speaks just enough HTTP/1.1 for the arms: keep-alive, a body with a length, a chunked
//! answer. It prints its port when it listens, ends when its standard input does (so it never
//! outlives the harness) and then prints what it served.

use std::{
    net::Ipv4Addr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};
use bench_arm::{Pace, conversation::TOOL_TURNS, raise_open_files};
use bytes::{Buf, BytesMut};
use serde::{Deserialize, Serialize};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpSocket, TcpStream},
    sync::Barrier,
    time::timeout,
};

use crate::{
    request::{self, Asked},
    script::{HOLD_AFTER, Script},
};

/// The most that a request may have; the longest of ours has about 8 kB.
const MAX_HEAD: usize = 16 * 1024;
const MAX_BODY: usize = 1024 * 1024;

/// How long held conversations wait for the last one.
const HOLD_LIMIT: Duration = Duration::from_secs(300);

const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\n\
    content-type: text/event-stream; charset=utf-8\r\n\
    cache-control: no-cache\r\n\
    transfer-encoding: chunked\r\n\r\n";

/// What the server did, printed as one line of JSON at its end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Served {
    /// Answers given in full.
    pub(crate) answers: u64,
    /// Requests refused, with the first reason.
    pub(crate) refused: u64,
    /// Bytes of all request bodies.
    pub(crate) request_bytes: u64,
}

#[derive(Debug)]
struct Server {
    script: Script,
    meeting: Barrier,
    answers: AtomicU64,
    refused: AtomicU64,
    request_bytes: AtomicU64,
}

/// Serve until standard input ends. `held` conversations meet where the pace is [`Pace::Held`].
pub(crate) fn serve(held: usize) -> Result<()> {
    raise_open_files()?;
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("starting the runtime")?
        .block_on(listen(held))
}

#[allow(clippy::print_stdout, reason = "the harness reads the port and the counts here")]
async fn listen(held: usize) -> Result<()> {
    let socket = TcpSocket::new_v4()?;
    socket.bind((Ipv4Addr::LOCALHOST, 0).into())?;
    // All agents of a crowd knock at once; the system caps this at its own limit.
    let listener = socket.listen(16_384)?;
    println!("{}", listener.local_addr()?.port());

    let server = Arc::new(Server {
        script: Script::encode(),
        meeting: Barrier::new(held),
        answers: AtomicU64::new(0),
        refused: AtomicU64::new(0),
        request_bytes: AtomicU64::new(0),
    });
    let (mut input, mut sink) = (tokio::io::stdin(), [0; 64]);
    loop {
        tokio::select! {
            connection = listener.accept() => {
                let (stream, _) = connection.context("accepting a connection")?;
                stream.set_nodelay(true)?;
                tokio::spawn(converse(Arc::clone(&server), stream));
            }
            read = input.read(&mut sink) => {
                if read.unwrap_or(0) == 0 {
                    break;
                }
            }
        }
    }
    let served = Served {
        answers: server.answers.load(Ordering::Relaxed),
        refused: server.refused.load(Ordering::Relaxed),
        request_bytes: server.request_bytes.load(Ordering::Relaxed),
    };
    println!("{}", serde_json::to_string(&served)?);
    Ok(())
}

#[allow(clippy::print_stderr, reason = "the only place to say why a request was refused")]
async fn converse(server: Arc<Server>, mut stream: TcpStream) {
    let mut buffer = BytesMut::with_capacity(4 * 1024);
    loop {
        let error = match exchange(&server, &mut stream, &mut buffer).await {
            Ok(Next::Request) => continue,
            Ok(Next::Closed) => return,
            Err(error) => error,
        };
        if server.refused.fetch_add(1, Ordering::Relaxed) == 0 {
            eprintln!("mock server: refused a request: {error:#}");
        }
        let body = serde_json::json!({ "error": { "message": format!("{error:#}") } }).to_string();
        let answer = format!(
            "HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\n\
             connection: close\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        // The client may be gone already, and then nobody needs to know.
        let _ = stream.write_all(answer.as_bytes()).await;
        return;
    }
}

enum Next {
    Request,
    Closed,
}

/// Read one request and answer it.
async fn exchange(server: &Server, stream: &mut TcpStream, buffer: &mut BytesMut) -> Result<Next> {
    let Some(frame) = read_head(stream, buffer).await? else {
        return Ok(Next::Closed);
    };
    while buffer.len() < frame.head + frame.body {
        if stream.read_buf(buffer).await? == 0 {
            return Ok(Next::Closed);
        }
    }
    buffer.advance(frame.head);
    let body = buffer.split_to(frame.body);
    let asked = request::read(&body).map_err(anyhow::Error::msg)?;
    server.request_bytes.fetch_add(body.len() as u64, Ordering::Relaxed);
    drop(body);

    if answer(server, stream, asked).await? == Sent::Whole {
        server.answers.fetch_add(1, Ordering::Relaxed);
        return Ok(Next::Request);
    }
    Ok(Next::Closed)
}

#[derive(PartialEq, Eq)]
enum Sent {
    Whole,
    Partly,
}

async fn answer(server: &Server, stream: &mut TcpStream, asked: Asked) -> Result<Sent> {
    let pieces = server.script.answer(asked.turn, asked.usage).context("there is no such turn")?;
    let held = asked.pace == Pace::Held && asked.turn == TOOL_TURNS;
    if stream.write_all(HEAD).await.is_err() {
        return Ok(Sent::Partly);
    }
    for (index, piece) in pieces.enumerate() {
        if held && index == HOLD_AFTER {
            let met = timeout(HOLD_LIMIT, server.meeting.wait()).await;
            ensure!(met.is_ok(), "the other conversations did not come");
        }
        if stream.write_all(piece).await.is_err() {
            return Ok(Sent::Partly);
        }
        // Other conversations speak between two pieces, as they would with a real model.
        tokio::task::yield_now().await;
    }
    Ok(Sent::Whole)
}

struct Frame {
    head: usize,
    body: usize,
}

/// Read until the head of a request is in the buffer; `None` when the client is done.
async fn read_head(stream: &mut TcpStream, buffer: &mut BytesMut) -> Result<Option<Frame>> {
    loop {
        if let Some(frame) = parse_head(buffer)? {
            return Ok(Some(frame));
        }
        ensure!(buffer.len() <= MAX_HEAD, "the request's head is too long");
        // A client that hangs up, however it does, has nothing more to ask.
        if stream.read_buf(buffer).await.unwrap_or(0) == 0 {
            return Ok(None);
        }
    }
}

fn parse_head(buffer: &[u8]) -> Result<Option<Frame>> {
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut head = httparse::Request::new(&mut headers);
    let httparse::Status::Complete(length) = head.parse(buffer)? else {
        return Ok(None);
    };
    let path = head.path.unwrap_or_default();
    if head.method != Some("POST") || path != "/v1/chat/completions" {
        bail!(
            "there is only POST /v1/chat/completions, not {} {path}",
            head.method.unwrap_or_default()
        );
    }
    let body = head
        .headers
        .iter()
        .find(|header| header.name.eq_ignore_ascii_case("content-length"))
        .and_then(|header| std::str::from_utf8(header.value).ok())
        .and_then(|value| value.trim().parse().ok())
        .context("the request has no content-length")?;
    ensure!(body <= MAX_BODY, "the request's body is too long");
    Ok(Some(Frame { head: length, body }))
}
