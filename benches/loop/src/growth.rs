//! Whether a step's cost grows with the conversation.
//!
//! One session has many turns of one tool call each, with a model that answers at once and costs
//! next to nothing, so that what is measured is ours. The CPU of the last turns is held against
//! that of the first.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use bench_arm::{Bar, Usage, figure, median};
use clap::{Args, value_parser};
use duologue_behaviors::ReAct;
use duologue_core::{
    Agent, Delta, DeltaStream, Effect, Memory, MemoryStore, Model, Outcome, Request, Role, Session,
    SessionOptions, StopReason, Store, ToolError, Toolbox, WindowLimit, tool,
};
use duologue_store::{SqliteOptions, SqliteStore};
use schemars::JsonSchema;
use serde::Deserialize;

/// The most that the last turns may cost over the first.
const BAR: f64 = 1.3;

/// How the benchmark is run.
#[derive(Args, Clone, Debug)]
pub(crate) struct Plan {
    /// Turns of the conversation
    #[arg(long, default_value_t = 2_000, value_parser = value_parser!(u32).range(2..=1_000_000))]
    turns: u32,
    /// Turns at each end that are held against each other
    #[arg(long, default_value_t = 100, value_parser = value_parser!(u32).range(1..=100_000))]
    window: u32,
    /// How often a whole conversation is measured; the table shows medians
    #[arg(long, default_value_t = 7, value_parser = value_parser!(u32).range(1..=1_000))]
    repeats: u32,
}

/// Measure and print the table.
pub(crate) fn run(plan: &Plan) -> Result<()> {
    ensure!(
        plan.window * 2 <= plan.turns,
        "--window {} is more than half of --turns {}",
        plan.window,
        plan.turns
    );
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .context("starting the runtime")?
        .block_on(measure(plan))
}

#[allow(clippy::print_stdout, reason = "the table is the product")]
async fn measure(plan: &Plan) -> Result<()> {
    let folder = tempfile::tempdir().context("making a folder for the journal")?;
    let sqlite =
        SqliteStore::open(folder.path().join("journal.db"), SqliteOptions::default()).await?;
    let sqlite: Arc<dyn Store> = Arc::new(sqlite);

    println!("journal  prompt     first µs/turn  last µs/turn  last/first (aim: at most {BAR})");
    for (journal, prompt) in [
        (Journal::Memory, Prompt::Trimmed),
        (Journal::Memory, Prompt::Whole),
        (Journal::Sqlite, Prompt::Trimmed),
    ] {
        let store = || match journal {
            Journal::Memory => Arc::new(MemoryStore::new()) as Arc<dyn Store>,
            Journal::Sqlite => Arc::clone(&sqlite),
        };
        // The first conversation of a process pays for memory that later ones find in place.
        converse(store(), prompt, plan).await?;
        let mut ends = Vec::new();
        for _ in 0..plan.repeats {
            ends.push(converse(store(), prompt, plan).await?);
        }
        let first = median(ends.iter().map(|ends| ends.first));
        let last = median(ends.iter().map(|ends| ends.last));
        let ratio = median(ends.iter().map(|ends| ends.last / ends.first));
        let (journal, prompt) = (format!("{journal:?}"), format!("{prompt:?}"));
        let what = format!("growth: last turns × first, {journal}, {prompt} prompt").to_lowercase();
        figure(&what, ratio, Bar::AtMost(BAR));
        println!("{journal:<7}  {prompt:<8}  {first:>14.1}  {last:>12.1}  {ratio:>10.2}");
    }
    println!(
        "\n{} turns of one tool call, the first and the last {}, {} repeats",
        plan.turns, plan.window, plan.repeats
    );
    Ok(())
}

/// Where the journal is.
#[derive(Clone, Copy, Debug)]
enum Journal {
    Memory,
    Sqlite,
}

/// What the model is sent.
#[derive(Clone, Copy, Debug)]
enum Prompt {
    /// What fits into the default window.
    Trimmed,
    /// The whole conversation: the hardest case, which no model would read.
    Whole,
}

/// CPU per turn at both ends of a conversation, in microseconds.
struct Ends {
    first: f64,
    last: f64,
}

async fn converse(store: Arc<dyn Store>, prompt: Prompt, plan: &Plan) -> Result<Ends> {
    let calls = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&calls);
    let note = tool("note", "Note a number.", Effect::Pure, move |note: Note, _| {
        let count = Arc::clone(&count);
        async move {
            count.fetch_add(1, Ordering::Relaxed);
            Ok::<_, ToolError>(format!("noted {}", note.number))
        }
    });
    let memory = match prompt {
        Prompt::Trimmed => Memory::default(),
        Prompt::Whole => Memory { window: WindowLimit::Unlimited, ..Memory::default() },
    };
    let agent = Agent::builder("clerk", ReAct::default())
        .system("You note numbers.")
        .model(Arc::new(Clerk))
        .memory(memory)
        .tools(Toolbox::new().with(note))
        .build();
    let session = Session::start(&agent, store, SessionOptions::default())?;

    let mut marks = Vec::new();
    for turn in 0..plan.turns {
        if [0, plan.window, plan.turns - plan.window].contains(&turn) {
            marks.push(Usage::now()?.cpu);
        }
        let reply = session.reply(format!("Note the number {turn}.")).await?;
        ensure!(reply.outcome == Outcome::Completed, "turn {turn} ended as {:?}", reply.outcome);
    }
    marks.push(Usage::now()?.cpu);
    ensure!(
        calls.load(Ordering::Relaxed) == plan.turns as usize,
        "the tool did not run once per turn"
    );

    let per_turn =
        |from: Duration, to: Duration| (to - from).as_secs_f64() * 1e6 / f64::from(plan.window);
    match marks.as_slice() {
        // Both windows meet in the middle.
        [start, middle, end] => {
            Ok(Ends { first: per_turn(*start, *middle), last: per_turn(*middle, *end) })
        }
        [start, after, before, end] => {
            Ok(Ends { first: per_turn(*start, *after), last: per_turn(*before, *end) })
        }
        _ => anyhow::bail!("the windows were not measured"),
    }
}

#[derive(Deserialize, JsonSchema)]
struct Note {
    number: u64,
}

/// A model that calls the tool after every request and is content with every result. It looks at
/// the last message alone, so that its own cost does not grow.
struct Clerk;

impl Model for Clerk {
    fn name(&self) -> &str {
        "bench/clerk"
    }

    fn ask(&self, request: Request) -> DeltaStream {
        let last = request.messages.last().map(|message| message.role);
        let deltas = match last {
            Some(Role::Tool) => {
                vec![Delta::Text("It is noted.".into()), Delta::Stop(StopReason::Completed)]
            }
            _ => vec![
                Delta::Text("I note it.".into()),
                Delta::CallStart { index: 0, id: None, name: "note".into() },
                Delta::CallArguments { index: 0, fragment: r#"{"number":12}"#.into() },
                Delta::Stop(StopReason::ToolCalls),
            ],
        };
        Box::pin(futures::stream::iter(deltas.into_iter().map(Ok)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn both_ends_of_a_conversation_are_measured() {
        for turns in [4, 9] {
            let plan = Plan { turns, window: 2, repeats: 1 };
            let ends = converse(Arc::new(MemoryStore::new()), Prompt::Whole, &plan).await.unwrap();
            assert!(ends.first > 0.0 && ends.last > 0.0);
        }
    }
}
