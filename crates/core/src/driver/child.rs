//! Running other agents under this one.

use std::sync::Arc;

use futures::stream::{FuturesUnordered, StreamExt};

use super::{Driver, Progress, Said, internal};
use crate::{ChildTurn, Event, Outcome, RunId, StoreError};

impl Driver {
    /// Give children their turns, side by side, and wait until each has ended or waits for
    /// somebody.
    pub(super) async fn run_children(&self, turns: Vec<ChildTurn>) -> Result<Progress, StoreError> {
        let mut drivers = Vec::new();
        for ChildTurn { key, input, expects } in turns {
            let Some(child) = self.child(&key)? else {
                let error = format!("the agent {} has no child {key}", self.agent.name());
                return Ok(Progress::End(internal(&error)));
            };
            let driver = self.of_run(child);
            if driver.owes_a_reply() {
                // The process died before the parent heard of it: that turn comes first.
                if driver.can_go_on() {
                    driver.reopen()?;
                }
            } else {
                driver.begin(Said { message: Arc::new(input), expects }).await?;
            }
            drivers.push((key, driver));
        }
        let mut running: FuturesUnordered<_> = drivers
            .iter()
            .map(|(key, driver)| async move { (key, driver.run, driver.drive_or_recall().await) })
            .collect();
        let mut waits = false;
        while let Some((key, child, outcome)) = running.next().await {
            let outcome = outcome?;
            if matches!(outcome, Outcome::InputRequired { .. }) {
                waits = true;
                continue;
            }
            let message =
                self.shared.ledger().run(child).and_then(|run| run.state.last_message().cloned());
            self.append(Event::ChildReplied { child, key: key.clone(), outcome, message })?;
        }
        if waits && !self.cancel.is_cancelled() {
            return Ok(Progress::End(self.input_required()));
        }
        Ok(Progress::GoOn)
    }

    /// The run of a child, begun if need be.
    fn child(&self, key: &str) -> Result<Option<RunId>, StoreError> {
        let Some(agent) = self.agent.child(key) else {
            return Ok(None);
        };
        let mut ledger = self.shared.ledger();
        let known = ledger.run(self.run).and_then(|run| run.children.get(key).copied());
        if known.is_some() {
            return Ok(known);
        }
        let child = ledger.next_run();
        let event =
            Event::ChildStarted { child, key: key.to_owned(), agent: agent.name().to_owned() };
        self.shared.append_locked(&mut ledger, self.run, event)?;
        Ok(Some(child))
    }

    /// Whether the parent has not heard the end of this run's last task.
    fn owes_a_reply(&self) -> bool {
        self.shared.ledger().run(self.run).is_some_and(|run| run.tasks > run.replies)
    }

    /// Drive the turn under way, or recall how it ended.
    async fn drive_or_recall(&self) -> Result<Outcome, StoreError> {
        let ended = {
            let ledger = self.shared.ledger();
            let run = ledger.run(self.run);
            run.filter(|run| !run.state.is_open()).and_then(|run| run.state.outcome().cloned())
        };
        match ended {
            Some(outcome) => Ok(outcome),
            None => self.drive().await,
        }
    }
}
