//! What the journal costs: `cargo bench -p duologue-store`.
//!
//! A step is what an agent writes in one: a message with a tool call, a start, an end and a note,
//! with two flushes. CPU is that of the whole process, the kernel's part included, less what the
//! same steps cost with the journal in memory.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    missing_docs,
    reason = "a program for developers"
)]

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use duologue_core::{
    Authors, Effect, Entry, Event, ListQuery, MemoryStore, Message, Part, Role, RunId, SessionId,
    StopReason, Store, ToolCall, ToolResult, ToolStatus, Usage,
};
use duologue_store::{Durability, SqliteOptions, SqliteStore};
use rustix::time::{ClockId, clock_gettime};
use serde_json::json;

const ENTRIES: u64 = 4;

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    println!(
        "{:<10} {:>8} {:>7}   {:>10} {:>10} {:>10} {:>12}",
        "durability",
        "sessions",
        "steps",
        "entries/s",
        "CPU µs/entry",
        "CPU µs/step",
        "wall µs/step"
    );
    runtime.block_on(async {
        for (sessions, steps) in [(1, 2_000), (10, 500), (100, 100), (1_000, 20), (10_000, 3)] {
            let memory = measure(Arc::new(MemoryStore::new()), sessions, steps).await;
            for durability in [Durability::Process, Durability::Disk] {
                let (_folder, store) = open(durability).await;
                let whole = measure(Arc::new(store.clone()), sessions, steps).await;
                store.close().await.unwrap();
                let done = f64::from(sessions) * f64::from(steps);
                let cpu = (whole.cpu.saturating_sub(memory.cpu)).as_secs_f64() * 1e6 / done;
                println!(
                    "{:<10} {sessions:>8} {steps:>7}   {:>10.0} {:>10.1} {cpu:>10.1} {:>12.1}",
                    format!("{durability:?}"),
                    done * ENTRIES as f64 / whole.wall.as_secs_f64(),
                    cpu / ENTRIES as f64,
                    whole.wall.as_secs_f64() * 1e6 / f64::from(steps),
                );
            }
        }
        questions().await;
    });
}

/// What is asked often: whether anything changed, whether there is mail, and lists.
async fn questions() {
    let (_folder, store) = open(Durability::Process).await;
    for number in 0..100_000_u32 {
        let session = SessionId::from(format!("{number:012}"));
        let start = Event::SessionStarted {
            schema: 1,
            agent: format!("agent-{}", number % 7),
            forked_from: None,
            metadata: duologue_core::Metadata::new(),
        };
        drop(store.create(&session, vec![entry(0, start)]).unwrap());
        if number % 10_000 == 0 {
            store.flush(&session).await.unwrap();
        }
    }
    let session = SessionId::from("000000000000");
    store.list(ListQuery::default()).await.unwrap();
    let times = 2_000;
    println!("\nwith 100,000 sessions: CPU µs and wall µs of one question");
    let start = Moment::now();
    for _ in 0..times {
        store.version().await.unwrap();
    }
    start.print("version", times);
    let start = Moment::now();
    for _ in 0..times {
        store.mail(&session).await.unwrap();
    }
    start.print("mail", times);
    let start = Moment::now();
    for _ in 0..times {
        store.flush(&session).await.unwrap();
    }
    start.print("flush of nothing", times);
    let rare = Some("input_required".to_owned());
    for (name, query) in [
        ("list", ListQuery::default()),
        ("list of an agent", ListQuery { agent: Some("agent-3".into()), ..ListQuery::default() }),
        ("list of a rare status", ListQuery { status: rare.clone(), ..ListQuery::default() }),
        (
            "list of both",
            ListQuery { agent: Some("agent-3".into()), status: rare, ..ListQuery::default() },
        ),
    ] {
        let start = Moment::now();
        for _ in 0..100 {
            store.list(query.clone()).await.unwrap();
        }
        start.print(name, 100);
    }
    let start = Moment::now();
    for _ in 0..100 {
        store.find("00000005", 10).await.unwrap();
    }
    start.print("find", 100);
    store.close().await.unwrap();
}

async fn open(durability: Durability) -> (tempfile::TempDir, SqliteStore) {
    // Beside the build, not in a folder for temporary files that may be no disk at all.
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let options = SqliteOptions { durability, queue: 1_000_000, ..SqliteOptions::default() };
    let store = SqliteStore::open(folder.path().join("journal.db"), options).await.unwrap();
    (folder, store)
}

struct Moment {
    wall: Instant,
    cpu: Duration,
}

struct Spent {
    wall: Duration,
    cpu: Duration,
}

impl Moment {
    fn now() -> Self {
        let cpu = clock_gettime(ClockId::ProcessCPUTime);
        Self { wall: Instant::now(), cpu: Duration::try_from(cpu).unwrap() }
    }

    fn spent(&self) -> Spent {
        let now = Self::now();
        Spent { wall: now.wall - self.wall, cpu: now.cpu - self.cpu }
    }

    fn print(&self, name: &str, times: u32) {
        let spent = self.spent();
        println!(
            "{name:<24} {:>10.1} {:>10.1}",
            (spent.cpu / times).as_secs_f64() * 1e6,
            (spent.wall / times).as_secs_f64() * 1e6,
        );
    }
}

async fn measure(store: Arc<dyn Store>, sessions: u32, steps: u32) -> Spent {
    let ids: Vec<SessionId> = (0..sessions).map(|_| SessionId::random()).collect();
    for id in &ids {
        let start = Event::AgentResponseStart { turn: 1 };
        drop(store.create(id, vec![entry(0, start)]).unwrap());
    }
    for id in &ids {
        store.flush(id).await.unwrap();
    }
    let start = Moment::now();
    let tasks: Vec<_> =
        ids.into_iter().map(|id| tokio::spawn(run(Arc::clone(&store), id, steps))).collect();
    for task in tasks {
        task.await.unwrap();
    }
    start.spent()
}

async fn run(store: Arc<dyn Store>, session: SessionId, steps: u32) {
    let halves = [before(), after()];
    let mut seq = 1;
    for _ in 0..steps {
        for half in &halves {
            for event in half {
                store.append(&session, vec![entry(seq, event.clone())]).unwrap();
                seq += 1;
            }
            store.flush(&session).await.unwrap();
        }
    }
}

fn before() -> [Event; 2] {
    let words = "a thought of some fifty words as a model says it ".repeat(5);
    let call = ToolCall::new("call-1", "read_file", json!({"path": "src/lib.rs"}));
    let message = Message::new(Role::Assistant, vec![Part::text(words), Part::from(call)]);
    let json = json!({
        "kind": "agent_message",
        "message": message,
        "model": "scripted/one",
        "usage": Usage { input_tokens: 900, output_tokens: 60, ..Usage::default() },
        "stop": StopReason::ToolCalls,
        "elapsed_ms": 12,
    });
    [
        serde_json::from_value(json).unwrap(),
        Event::ToolStarted {
            call_id: "call-1".into(),
            name: "read_file".into(),
            effect: Effect::Pure,
            arguments: None,
            authors: Authors::Known,
        },
    ]
}

fn after() -> [Event; 2] {
    [
        Event::ToolEnded {
            result: Arc::new(ToolResult {
                call_id: "call-1".into(),
                name: "read_file".into(),
                status: ToolStatus::Ok,
                content: vec![Part::text("what the file says, line by line. ".repeat(8))],
            }),
            elapsed_ms: 3,
        },
        Event::Note { topic: "plan".into(), data: json!({"step": 3, "done": false}) },
    ]
}

fn entry(seq: u64, event: Event) -> Arc<Entry> {
    Arc::new(Entry { seq, at: 1_700_000_000_000 + seq.cast_signed(), run: RunId::ROOT, event })
}
