//! Many tasks that wait, each with a subscriber. Then all are answered, and every subscriber must
//! hear the end.

use std::{
    env,
    process::Command,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use bench_arm::{Bar, figure};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::{arms::Arm, contest::Process, http::Connection};

/// Hold many open tasks at once.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// How many
    #[arg(long, default_value_t = 10_000)]
    tasks: usize,
}

/// How many requests are under way at once, besides the subscriptions.
const AT_ONCE: usize = 64;
/// How long the ends may take to arrive.
const PATIENCE: Duration = Duration::from_secs(300);

const HEADERS: [&str; 2] = ["Content-Type: application/json", "A2A-Version: 1.0"];

pub(crate) async fn run(args: Args) -> Result<()> {
    let files = bench_arm::raise_open_files()?;
    let wanted = args.tasks as u64 + 200;
    ensure!(files >= wanted, "{wanted} open files are needed, and {files} are allowed");
    let mut command = Command::new(env::current_exe()?);
    command.arg("arm").arg(Arm::Asking.name());
    let mut server = Process::start(command)?;
    let port = server.port;
    // One before it counts, so that what every server needs is not counted.
    begin(port).await?;
    let empty = server.memory()?;
    let began = Instant::now();
    let slots = Arc::new(Semaphore::new(AT_ONCE));
    let mut watching = Vec::with_capacity(args.tasks);
    for _ in 0..args.tasks {
        let slot = Arc::clone(&slots).acquire_owned().await?;
        watching.push(tokio::spawn(async move {
            let id = begin(port).await?;
            let subscriber = subscribe(port, &id).await?;
            drop(slot);
            anyhow::Ok((id, subscriber))
        }));
    }
    let mut open = Vec::with_capacity(args.tasks);
    for task in watching {
        open.push(task.await??);
    }
    let full = server.memory()?;
    let opened = began.elapsed();
    let began = Instant::now();
    let mut ending = Vec::with_capacity(open.len());
    for (id, subscriber) in open {
        let slots = Arc::clone(&slots);
        ending.push(tokio::spawn(async move {
            let slot = slots.acquire_owned().await?;
            answer(port, &id).await?;
            drop(slot);
            hear_the_end(subscriber).await
        }));
    }
    let mut lost = 0;
    let deadline = tokio::time::Instant::now() + PATIENCE;
    for task in ending {
        match tokio::time::timeout_at(deadline, task).await {
            Ok(Ok(Ok(()))) => {}
            Ok(Ok(Err(error))) => {
                eprintln!("lost: {error:#}");
                lost += 1;
            }
            _ => lost += 1,
        }
    }
    let each = full.saturating_sub(empty) as f64 / args.tasks.max(1) as f64 / 1024.0;
    println!("{} open tasks with a subscriber each, opened in {opened:.1?}", args.tasks);
    println!("memory of the server: {each:.1} KB each ({} MB in all)", full >> 20);
    println!(
        "answered and ended in {:.1?}; {lost} subscribers did not hear the end",
        began.elapsed()
    );
    figure(&format!("a2a: KB per open task of {}", args.tasks), each, Bar::AtMost(100.0));
    server.end()?;
    ensure!(lost == 0, "{lost} of {} were lost", args.tasks);
    Ok(())
}

async fn call(port: u16, method: &str, params: Value) -> Result<Value> {
    let mut connection = Connection::open(port).await?;
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
    connection.send("POST", b"/", &HEADERS, body.as_bytes()).await?;
    let answer: Value = serde_json::from_slice(&connection.answer().await?.body)?;
    match answer.get("result") {
        Some(result) => Ok(result.clone()),
        None => bail!("{method}: {answer}"),
    }
}

fn message(text: &str, task: Option<&str>) -> Value {
    let id = format!("{:016x}", fastrand::u64(..));
    let mut message = json!({"messageId": id, "role": "ROLE_USER", "parts": [{"text": text}]});
    if let (Some(fields), Some(task)) = (message.as_object_mut(), task) {
        fields.insert("taskId".to_owned(), task.into());
    }
    json!({ "message": message })
}

async fn begin(port: u16) -> Result<String> {
    let result = call(port, "SendMessage", message("Shall we?", None)).await?;
    let id = result.pointer("/task/id").and_then(Value::as_str);
    Ok(id.with_context(|| format!("no task: {result}"))?.to_owned())
}

async fn answer(port: u16, id: &str) -> Result<()> {
    call(port, "SendMessage", message("yes", Some(id))).await.map(|_| ())
}

async fn subscribe(port: u16, id: &str) -> Result<Connection> {
    let mut connection = Connection::open(port).await?;
    let body = json!({
        "jsonrpc": "2.0", "id": 1, "method": "SubscribeToTask", "params": {"id": id},
    });
    connection.send("POST", b"/", &HEADERS, body.to_string().as_bytes()).await?;
    connection.stream().await?;
    // The task as it is comes first; from then on nothing is missed.
    connection.chunk().await?.context("the stream ended at once")?;
    Ok(connection)
}

async fn hear_the_end(mut subscriber: Connection) -> Result<()> {
    let mut heard = Vec::new();
    while let Some(chunk) = subscriber.chunk().await? {
        heard.extend_from_slice(&chunk);
    }
    let heard = String::from_utf8_lossy(&heard);
    ensure!(heard.contains("TASK_STATE_COMPLETED"), "the stream ended without the end: {heard}");
    Ok(())
}
