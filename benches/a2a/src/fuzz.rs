//! Nonsense for the server and for the client, until something breaks or enough was sent.
//!
//! Three kinds take turns: JSON-RPC bodies, HTTP+JSON requests of both versions, and streams of events
//! that a client reads. Whatever is found can be seen again with the seed that is printed.

use std::{
    panic,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use axum::{Router, body::Body, http::header::CONTENT_TYPE, routing};
use duologue_a2a::{
    Credentials, PushSettings, Remote, Server, Serving, a2a::SubscribeToTaskRequest,
};
use duologue_core::MemoryStore;
use fastrand::Rng;
use futures::StreamExt;
use serde_json::json;
use tokio::net::TcpListener;

use crate::{
    arms::echo,
    http::{Answer, Connection},
    nonsense, verdict,
};

/// Send nonsense.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// How many inputs in all
    #[arg(long, default_value_t = 1_000_000)]
    inputs: usize,
    /// Where chance begins; another seed sends other nonsense
    #[arg(long, default_value_t = 0)]
    seed: u64,
}

/// How many inputs one server gets before a fresh one takes over, so that what it keeps stays small.
const PER_SERVER: usize = 20_000;
/// After how many servers is told how far it is.
const REPORTED: u64 = 5;
/// How many send at once.
const SENDERS: usize = 8;
/// How long one answer may take.
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) async fn run(args: Args) -> Result<()> {
    let panics = watch_panics();
    let began = Instant::now();
    let mut sent = [0_usize; 3];
    let mut round = 0_u64;
    while sent.iter().sum::<usize>() < args.inputs {
        let left = args.inputs - sent.iter().sum::<usize>();
        let count = left.min(PER_SERVER);
        // Of every ten inputs five are JSON-RPC, three HTTP+JSON, two streams.
        let shares = [count - count * 5 / 10, count * 3 / 10, count * 2 / 10];
        let seed = args.seed.wrapping_mul(1_000_003).wrapping_add(round);
        server_round(seed, shares[0], shares[1]).await?;
        stream_round(seed, shares[2]).await?;
        for (sum, share) in sent.iter_mut().zip(shares) {
            *sum += share;
        }
        round += 1;
        let seen = panics.lock().unwrap_or_else(PoisonError::into_inner).clone();
        ensure!(seen.is_empty(), "seed {seed}: {}", seen.join("\n"));
        if round.is_multiple_of(REPORTED) {
            let (all, took) = (sent.iter().sum::<usize>(), began.elapsed());
            println!("{all} of {} inputs, {took:.0?}", args.inputs);
        }
    }
    println!(
        "{} JSON-RPC bodies, {} HTTP+JSON requests, {} event streams in {:.0?}: no panic, and \
         always a valid answer (seed {})",
        sent[0],
        sent[1],
        sent[2],
        began.elapsed(),
        args.seed
    );
    Ok(())
}

/// Every panic of any thread, in words.
fn watch_panics() -> Arc<Mutex<Vec<String>>> {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    panic::set_hook(Box::new(move |what| {
        log.lock().unwrap_or_else(PoisonError::into_inner).push(format!("a panic: {what}"));
    }));
    seen
}

async fn server_round(seed: u64, bodies: usize, requests: usize) -> Result<()> {
    // Nothing that a client names is posted to.
    let push = PushSettings { attempts: 1, ..PushSettings::default() };
    let serving: Serving =
        Server::new(echo(), Arc::new(MemoryStore::new())).push(push).start().await?;
    let port = serving.address().port();
    let left = Arc::new(AtomicUsize::new(bodies + requests));
    let mut senders = Vec::new();
    for sender in 0..SENDERS {
        let left = Arc::clone(&left);
        senders.push(tokio::spawn(async move {
            let mut rng = Rng::with_seed(seed.wrapping_mul(64).wrapping_add(sender as u64));
            let mut connection = Connection::open(port).await?;
            while let Ok(number) =
                left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1))
            {
                let before = rng.get_seed();
                let one = async {
                    if number > requests {
                        one_body(&mut connection, &mut rng).await
                    } else {
                        one_request(&mut connection, &mut rng).await
                    }
                };
                let closes = tokio::time::timeout(PATIENCE, one)
                    .await
                    .unwrap_or_else(|_| Err(anyhow::anyhow!("no answer came")))
                    .with_context(|| format!("round seed {seed}, input seed {before}"))?;
                if closes {
                    connection = Connection::open(port).await?;
                }
            }
            anyhow::Ok(())
        }));
    }
    for sender in senders {
        sender.await??;
    }
    serving.stop().await;
    Ok(())
}

async fn one_body(connection: &mut Connection, rng: &mut Rng) -> Result<bool> {
    let (body, headers) = (nonsense::json_rpc(rng), nonsense::headers(rng));
    connection.send("POST", b"/", &headers, &body).await?;
    let answer = connection.answer().await?;
    let shown = || format!("{headers:?} {}", String::from_utf8_lossy(&body));
    verdict::json_rpc(&answer).with_context(shown)?;
    Ok(answer.closes)
}

async fn one_request(connection: &mut Connection, rng: &mut Rng) -> Result<bool> {
    let ((method, path, body), headers) = (nonsense::rest(rng), nonsense::headers(rng));
    connection.send(method, &path, &headers, &body).await?;
    let shown = || {
        let (path, body) = (String::from_utf8_lossy(&path), String::from_utf8_lossy(&body));
        format!("{method} {path} {headers:?} {body}")
    };
    let answer = if method == "HEAD" {
        // No body follows, whatever its length would be. Another connection is simpler than to know.
        return Ok(true);
    } else {
        connection.answer().await.with_context(shown)?
    };
    judge_request(&answer).with_context(shown)?;
    Ok(answer.closes)
}

fn judge_request(answer: &Answer) -> Result<()> {
    // The HTTP library itself refuses what is no HTTP, without words.
    if answer.status == 400 && answer.body.is_empty() {
        return Ok(());
    }
    verdict::rest(answer)
}

/// Streams of events for the client of 0.3, whose reader is ours. It must give updates or errors, and
/// come to an end.
async fn stream_round(seed: u64, count: usize) -> Result<()> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let url = format!("http://{}", listener.local_addr()?);
    let card = json!({
        "name": "Noise", "description": "d", "version": "1", "protocolVersion": "0.3.0",
        "url": url, "preferredTransport": "JSONRPC", "capabilities": {"streaming": true},
        "skills": [], "defaultInputModes": [], "defaultOutputModes": [],
    })
    .to_string();
    let rng = Arc::new(Mutex::new(Rng::with_seed(seed)));
    let noise = move || {
        let body = nonsense::events(&mut rng.lock().unwrap_or_else(PoisonError::into_inner));
        // In pieces, as networks cut it.
        let pieces: Vec<_> = body
            .chunks(7)
            .map(|piece| Ok::<_, std::convert::Infallible>(bytes::Bytes::copy_from_slice(piece)))
            .collect();
        let body = Body::from_stream(futures::stream::iter(pieces));
        async move { ([(CONTENT_TYPE, "text/event-stream")], body) }
    };
    let router = Router::new()
        .route("/.well-known/agent-card.json", routing::get(|| async move { card }))
        .route("/", routing::post(noise));
    let server = tokio::spawn(async move { axum::serve(listener, router).await });
    let remote = Remote::connect(&url, &Credentials::none()).await?;
    let request = SubscribeToTaskRequest { id: "t".to_owned(), tenant: None };
    let read = futures::stream::iter(0..count)
        .map(|_| async {
            let updates = remote.transport().subscribe_to_task(remote.params(), &request).await;
            // An error says that it is none; it must not hang or panic.
            if let Ok(mut updates) = updates {
                while updates.next().await.is_some() {}
            }
        })
        .buffer_unordered(SENDERS)
        .count();
    let done = tokio::time::timeout(PATIENCE * 10, read).await;
    server.abort();
    match done {
        Ok(_) => Ok(()),
        Err(_) => bail!("round seed {seed}: a stream was read without end"),
    }
}
