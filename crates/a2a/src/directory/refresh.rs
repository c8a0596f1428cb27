//! Looking after the directory in the background.

use std::time::Duration;

use futures::StreamExt;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::{
    Directory, DirectoryError, Health, KnownAgent,
    learn::{AT_ONCE, LIST_AGENTS},
    now_ms,
};

/// The longest time in which an agent that does not answer is left alone.
const LONGEST_REST: Duration = Duration::from_secs(60 * 60);
/// How often an agent that was only heard of may fail before it is forgotten.
const MOST_FAILURES: u32 = 5;

/// What a look at all agents came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refreshed {
    /// How many answered.
    pub up: usize,
    /// How many did not.
    pub down: usize,
    /// How many were learned of.
    pub learned: usize,
}

/// A directory that is looked after. It ends with [`stop`](Self::stop) or when this is dropped.
#[derive(Debug)]
pub struct Refreshing {
    stop: CancellationToken,
    running: JoinHandle<()>,
}

impl Refreshing {
    /// End it, also in the middle of a round.
    pub async fn stop(mut self) {
        self.stop.cancel();
        // A task that was ended has ended.
        let _ = (&mut self.running).await;
    }
}

impl Drop for Refreshing {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Directory {
    /// Look at all agents, and again after every such while. One that does not answer is tried
    /// less and less often.
    pub fn refresh_every(&self, pause: Duration) -> Refreshing {
        let stop = CancellationToken::new();
        let (directory, stopped) = (self.clone(), stop.clone());
        let running = tokio::spawn(async move {
            loop {
                tokio::select! {
                    () = stopped.cancelled() => return,
                    round = directory.refresh(pause) => {
                        if let Err(error) = round {
                            tracing::warn!(%error, "the agent directory was not written");
                        }
                    }
                }
                tokio::select! {
                    () = stopped.cancelled() => return,
                    () = tokio::time::sleep(pause) => {}
                }
            }
        });
        Refreshing { stop, running }
    }

    /// Look at all agents once, those that another process wrote into the file included, ask those who tell of others, and look at the new ones. `rest` is
    /// how long an agent that failed once is left alone; it doubles with every failure.
    pub async fn refresh(&self, rest: Duration) -> Result<Refreshed, DirectoryError> {
        // Somebody may have added one in another process.
        self.reread().await?;
        let now = now_ms();
        let due = self.list().into_iter().filter(|agent| is_due(agent, rest, now));
        let mut looked = self.look_at_all(due.map(|agent| agent.id).collect()).await;
        let tellers: Vec<String> = looked
            .iter()
            .filter(|agent| agent.health == Health::Up && agent.has_skill(LIST_AGENTS))
            .map(|agent| agent.id.clone())
            .collect();
        let heard: Vec<Vec<String>> = futures::stream::iter(tellers)
            .map(|id| async move { self.hear(&id).await.unwrap_or_default() })
            .buffer_unordered(AT_ONCE)
            .collect()
            .await;
        let new: Vec<String> = heard.into_iter().flatten().collect();
        let learned = self.look_at_all(new).await;
        let count = learned.iter().filter(|agent| agent.health == Health::Up).count();
        looked.extend(learned);
        self.forget_hearsay();
        self.save().await?;
        let up = looked.iter().filter(|agent| agent.health == Health::Up).count();
        Ok(Refreshed { up, down: looked.len() - up, learned: count })
    }

    async fn look_at_all(&self, ids: Vec<String>) -> Vec<KnownAgent> {
        futures::stream::iter(ids)
            .map(|id| async move { self.look_at(&id).await })
            .buffer_unordered(AT_ONCE)
            .filter_map(|looked| async { looked.ok() })
            .collect()
            .await
    }

    /// Forget those that were only heard of and never answered.
    fn forget_hearsay(&self) {
        self.state().agents.retain(|_, agent| {
            let is_hearsay = agent.learned_from.is_some() && agent.last_seen.is_none();
            let failures = match agent.health {
                Health::Down { failures, .. } => failures,
                Health::Unknown | Health::Up => 0,
            };
            !(is_hearsay && failures >= MOST_FAILURES)
        });
    }
}

fn is_due(agent: &KnownAgent, rest: Duration, now: i64) -> bool {
    let (Health::Down { failures, .. }, Some(tried)) = (&agent.health, agent.last_tried) else {
        return true;
    };
    let factor = 2u32.saturating_pow(failures.saturating_sub(1));
    let rest = rest.saturating_mul(factor).min(LONGEST_REST);
    u128::try_from(now.saturating_sub(tried)).unwrap_or_default() >= rest.as_millis()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_that_does_not_answer_is_tried_less_and_less_often() {
        let mut agent = KnownAgent::new("a".into(), "A".into(), "http://x".into(), 0);
        let rest = Duration::from_secs(60);
        assert!(is_due(&agent, rest, 0));
        agent.missed("no".into(), 0);
        assert!(!is_due(&agent, rest, 59_000));
        assert!(is_due(&agent, rest, 60_000));
        agent.missed("no".into(), 60_000);
        assert!(!is_due(&agent, rest, 179_000));
        assert!(is_due(&agent, rest, 180_000));
        for _ in 0..100 {
            agent.missed("no".into(), 0);
        }
        assert!(is_due(&agent, rest, 60 * 60 * 1000));
    }
}
