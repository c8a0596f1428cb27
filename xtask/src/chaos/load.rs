//! The load, from the first job to the last answer.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    thread,
    time::{Duration, Instant},
};

use fastrand::Rng;
use serde_json::Value;

use super::{
    GRACE, Run, bench, faults, is_interrupted,
    memory::Memory,
    sender::{self, Sent, end_of},
    served::Served,
    surfer::Surfer,
};

/// How many senders each server has.
const SENDERS: usize = 2;
/// How often memory is looked at.
const LOOK: Duration = Duration::from_secs(1);
/// How often progress is told.
const PROGRESS: Duration = Duration::from_secs(30);

/// What a fault run found, before it is judged.
pub(super) struct Found {
    /// What the clients of the server that is killed were told, and what it says of its tasks.
    pub(super) frail: Side,
    /// The same of the one that is not.
    pub(super) steady: Side,
    pub(super) memory: Memory,
    pub(super) benchmarks: usize,
    pub(super) visits: usize,
    /// How long things took to settle.
    pub(super) settled: Duration,
}

/// One server and its clients.
#[derive(Default)]
pub(super) struct Side {
    pub(super) sent: Vec<Sent>,
    pub(super) tasks: Vec<Value>,
}

/// Let it all happen, and settle.
pub(super) fn carry(run: &Run, seed: u64) -> Found {
    let mut rng = Rng::with_seed(seed);
    let surfer = match Surfer::new(run) {
        Ok(surfer) => Some(surfer),
        Err(error) => {
            run.wrong(format!("the browser's part cannot begin: {error:#}"));
            None
        }
    };
    let next = AtomicU64::new(1);
    let mut found = thread::scope(|scope| {
        let surfer = surfer.as_ref();
        let mut send = |served| {
            let workers: Vec<_> = (0..SENDERS)
                .map(|_| {
                    let (next, rng) = (&next, rng.fork());
                    scope.spawn(move || sender::work(run, served, next, rng))
                })
                .collect();
            workers
        };
        let (frail, steady) = (send(&run.frail), send(&run.steady));
        let surfing = scope.spawn(move || surfer.map_or(0, |surfer| surfer.work(run)));
        let benchmarks = scope.spawn(move || bench::work(run));
        let memory = scope.spawn(move || watch(run));
        let killing = rng.fork();
        let faults = scope.spawn(move || faults::strike(run, surfer, killing));
        let full = scope.spawn(move || faults::fill_the_disk(run));
        scope.spawn(move || faults::take_the_model_away(run));
        scope.spawn(move || progress(run));
        let join = |workers: Vec<thread::ScopedJoinHandle<'_, Vec<Sent>>>| {
            let sent = workers.into_iter().flat_map(|worker| match worker.join() {
                Ok(sent) => sent,
                Err(_) => {
                    run.wrong("a sender's thread of this program broke".into());
                    Vec::new()
                }
            });
            Side { sent: sent.collect(), tasks: Vec::new() }
        };
        let count = |worker: thread::ScopedJoinHandle<'_, usize>| worker.join().unwrap_or_default();
        if faults.join().is_err() {
            run.wrong("the faults broke".into());
        }
        let [mut frail, mut steady] = [frail, steady].map(join);
        let [for_frail, for_steady] = full.join().unwrap_or_default();
        frail.sent.extend(for_frail);
        steady.sent.extend(for_steady);
        Found {
            frail,
            steady,
            memory: memory.join().unwrap_or_default(),
            benchmarks: count(benchmarks),
            visits: count(surfing),
            settled: Duration::ZERO,
        }
    });
    if let Some(surfer) = &surfer {
        surfer.clear();
    }
    run.model.get_well();
    if is_interrupted() {
        return found;
    }
    println!("[{:>5} s] no more faults; everything may settle", run.began.elapsed().as_secs());
    let began = Instant::now();
    found.frail.tasks = settle(run, &run.frail, began);
    found.steady.tasks = settle(run, &run.steady, began);
    found.settled = began.elapsed();
    found
}

/// Wait until all tasks of a server are over; what it says of them then.
fn settle(run: &Run, served: &Served, began: Instant) -> Vec<Value> {
    loop {
        let tasks = served.tasks();
        let is_open = |task: &&Value| {
            let (state, _) = end_of(task);
            state == "TASK_STATE_WORKING" || state == "TASK_STATE_SUBMITTED"
        };
        let is_late = began.elapsed() > GRACE || is_interrupted();
        match tasks {
            Ok(tasks) if is_late || !tasks.iter().any(|task| is_open(&task)) => return tasks,
            Err(error) if is_late => {
                run.wrong(format!("server {} does not list its tasks: {error}", served.letter));
                return Vec::new();
            }
            _ => thread::sleep(Duration::from_millis(500)),
        }
    }
}

fn watch(run: &Run) -> Memory {
    let mut memory = Memory::default();
    let first = run.steady.process();
    while !run.is_over() {
        match run.steady.process() {
            Some(process) if process_lives(process) => memory.look(process),
            _ if is_interrupted() => {}
            _ => {
                run.wrong("the server that nobody killed ended by itself".into());
                run.over.store(true, Ordering::SeqCst);
            }
        }
        run.pause(LOOK);
    }
    if run.steady.process() != first {
        run.wrong("the server that nobody killed was started again".into());
    }
    memory
}

fn process_lives(process: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    status.lines().any(|line| line.starts_with("State:") && !line.contains('Z'))
}

fn progress(run: &Run) {
    while !run.is_over() {
        run.pause(PROGRESS.min(run.length / 4));
        let tally = run.tally();
        let kills: u64 = tally.kills.values().sum();
        let faults: u64 = run.model.given().faults.values().sum();
        println!(
            "[{:>5} s] {} sent, {} accepted, {} refused, {kills} kills, {faults} faults of the \
             model, {} wrong",
            run.began.elapsed().as_secs(),
            tally.sent,
            tally.accepted,
            tally.refused,
            tally.wrong.len()
        );
    }
    // Nobody waits for what was interrupted.
    if is_interrupted() {
        run.crew.end_all();
    }
}
