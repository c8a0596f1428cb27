//! Holding many conversations and measuring them.

use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;

use crate::{Orders, Pace, Usage, conversation, raise_open_files};

/// One way to hold the benchmark's conversation.
pub trait Arm: Send + Sync + 'static {
    /// Hold one whole conversation and give back the final answer's text. Calls
    /// [`FirstEvent::seen`] at the first piece of text that its user would see.
    fn converse(
        &self,
        pace: Pace,
        first_event: &mut FirstEvent,
    ) -> impl Future<Output = Result<String>> + Send;
}

/// Measures how long a user waits for the first sign of life.
#[derive(Debug)]
pub struct FirstEvent {
    started: Instant,
    after: Option<Duration>,
}

impl FirstEvent {
    fn awaited() -> Self {
        Self { started: Instant::now(), after: None }
    }

    /// An event came; only the first one counts.
    pub fn seen(&mut self) {
        if self.after.is_none() {
            self.after = Some(self.started.elapsed());
        }
    }
}

/// What an arm found out, as one line of JSON on its standard output.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// CPU time per step, in microseconds.
    pub cpu_us_per_step: f64,
    /// The median wait for the first event, in microseconds.
    pub first_event_us: f64,
    /// How much the peak of resident memory grew per conversation under way, in kilobytes of
    /// 1,024 bytes.
    pub kb_per_agent: f64,
    /// Wall-clock time of the measured part, in seconds.
    pub seconds: f64,
}

/// Carry out the orders in a runtime of its own and print the report.
#[allow(clippy::print_stdout, reason = "the report is the product of an arm's process")]
pub fn run<A: Arm>(arm: impl AsyncFnOnce(&Orders) -> Result<A>, orders: &Orders) -> Result<()> {
    raise_open_files()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(orders.threads)
        .enable_all()
        .build()
        .context("starting the runtime")?;
    let report = runtime.block_on(async {
        let arm = Arc::new(arm(orders).await?);
        measure(&arm, orders).await
    })?;
    println!("{}", serde_json::to_string(&report)?);
    Ok(())
}

async fn measure<A: Arm>(arm: &Arc<A>, orders: &Orders) -> Result<Report> {
    ensure!(
        orders.agents > 0 && orders.at_once > 0,
        "nothing to measure: --agents and --at-once must be at least 1"
    );
    let warm_at_once = orders.at_once.min(orders.warm_up);
    hold(arm, Pace::Free, orders.warm_up, warm_at_once).await?;

    let before = Usage::now()?;
    let started = Instant::now();
    let waits = hold(arm, orders.pace, orders.agents, orders.at_once).await?;
    let seconds = started.elapsed().as_secs_f64();
    let after = Usage::now()?;

    let steps = (orders.agents * conversation::STEPS) as f64;
    let under_way = orders.at_once.min(orders.agents) as f64;
    let grown = after.peak_bytes.saturating_sub(before.peak_bytes) as f64;
    Ok(Report {
        cpu_us_per_step: (after.cpu - before.cpu).as_secs_f64() * 1e6 / steps,
        first_event_us: median(waits.iter().map(|wait| wait.as_secs_f64() * 1e6)),
        kb_per_agent: grown / 1024.0 / under_way,
        seconds,
    })
}

/// Hold a number of conversations, so many at once, and say how long each first event took.
async fn hold<A: Arm>(
    arm: &Arc<A>,
    pace: Pace,
    agents: usize,
    at_once: usize,
) -> Result<Vec<Duration>> {
    let begun = Arc::new(AtomicUsize::new(0));
    let mut seats = JoinSet::new();
    for _ in 0..at_once.min(agents) {
        let (arm, begun) = (Arc::clone(arm), Arc::clone(&begun));
        seats.spawn(async move {
            let mut waits = Vec::new();
            while begun.fetch_add(1, Ordering::Relaxed) < agents {
                let mut first_event = FirstEvent::awaited();
                let answer = arm.converse(pace, &mut first_event).await?;
                ensure!(
                    answer == conversation::turn_text(),
                    "the conversation ended with the wrong answer: {answer:?}"
                );
                waits.push(first_event.after.context("no event was seen")?);
            }
            anyhow::Ok(waits)
        });
    }
    let mut waits = Vec::with_capacity(agents);
    while let Some(seat) = seats.join_next().await {
        waits.extend(seat.context("a conversation panicked")??);
    }
    Ok(waits)
}

/// The middle value; the mean of the two middle ones for an even number; 0 of nothing.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = values.into_iter().collect();
    sorted.sort_by(f64::total_cmp);
    let at = |index: usize| sorted.get(index).copied().unwrap_or(0.0);
    match sorted.len() {
        0 => 0.0,
        odd if odd % 2 == 1 => at(odd / 2),
        even => f64::midpoint(at(even / 2 - 1), at(even / 2)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Parrot;

    impl Arm for Parrot {
        async fn converse(&self, _: Pace, first_event: &mut FirstEvent) -> Result<String> {
            tokio::time::sleep(Duration::from_millis(5)).await;
            first_event.seen();
            tokio::time::sleep(Duration::from_millis(50)).await;
            first_event.seen();
            Ok(conversation::turn_text())
        }
    }

    struct Mumbler;

    impl Arm for Mumbler {
        async fn converse(&self, _: Pace, first_event: &mut FirstEvent) -> Result<String> {
            first_event.seen();
            Ok("something else".into())
        }
    }

    fn orders() -> Orders {
        Orders {
            url: String::new(),
            agents: 6,
            warm_up: 1,
            at_once: 3,
            pace: Pace::Free,
            threads: 1,
        }
    }

    #[tokio::test]
    async fn the_first_event_is_timed_and_later_ones_are_not() {
        let report = measure(&Arc::new(Parrot), &orders()).await.unwrap();
        assert!(report.first_event_us >= 5_000.0);
        assert!(report.first_event_us < 50_000.0, "{report:?}");
        assert!(report.seconds >= 0.11, "two rounds of 55 ms: {report:?}");
    }

    #[tokio::test]
    async fn a_wrong_answer_spoils_the_measurement() {
        let error = measure(&Arc::new(Mumbler), &orders()).await.unwrap_err();
        assert!(error.to_string().contains("something else"), "{error}");
    }

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!(median([]), 0.0);
        assert_eq!(median([3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median([4.0, 1.0, 2.0, 3.0]), 2.5);
    }
}
