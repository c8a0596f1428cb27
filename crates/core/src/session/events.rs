//! The live stream of a session: every entry once and in order, and deltas for the eye.

use std::{collections::VecDeque, sync::Arc};

use tokio::sync::broadcast::{self, error::RecvError};

use super::Shared;
use crate::{Delta, Entry, RunId, StoreError};

/// How many events a listener may fall behind before it is caught up from the journal. The channel
/// holds room for all of them, for every session that somebody listens to.
pub(super) const BACKLOG: usize = 32;

/// How many entries are read at a time when a listener is caught up.
const PAGE: usize = 256;

/// Something that happens in a session, as a listener hears it.
#[derive(Clone, Debug)]
pub enum Live {
    /// A journal entry. Nobody misses one and nobody gets one twice.
    Entry(Arc<Entry>),
    /// A piece of an answer that is under way. For the eye: the whole answer follows as an entry,
    /// and a slow listener may miss pieces.
    Delta {
        /// The run that speaks.
        run: RunId,
        /// The piece.
        delta: Arc<Delta>,
    },
    /// The answer under way failed and begins anew; what was shown of it does not count.
    Restart {
        /// The run that speaks.
        run: RunId,
    },
}

/// A listener to a session. A slow one never holds up the agent or another listener.
pub struct Events {
    shared: Arc<Shared>,
    receiver: broadcast::Receiver<Live>,
    next_seq: u64,
    /// Whether the journal has entries that the channel no longer has.
    behind: bool,
    caught_up: VecDeque<Arc<Entry>>,
}

impl Events {
    pub(super) fn new(shared: Arc<Shared>, receiver: broadcast::Receiver<Live>, from: u64) -> Self {
        let behind = from < shared.ledger().next_seq;
        Self { shared, receiver, next_seq: from, behind, caught_up: VecDeque::new() }
    }

    /// The next event. It waits until there is one.
    pub async fn next(&mut self) -> Result<Live, StoreError> {
        loop {
            if let Some(entry) = self.caught_up.pop_front() {
                self.next_seq = entry.seq + 1;
                return Ok(Live::Entry(entry));
            }
            if self.behind {
                self.catch_up().await?;
                continue;
            }
            match self.receiver.recv().await {
                Ok(Live::Entry(entry)) if entry.seq < self.next_seq => {}
                Ok(Live::Entry(entry)) if entry.seq == self.next_seq => {
                    self.next_seq += 1;
                    return Ok(Live::Entry(entry));
                }
                Ok(Live::Entry(_)) | Err(RecvError::Lagged(_)) => self.behind = true,
                Ok(other) => return Ok(other),
                // The session itself holds a sender, so the channel does not close before it.
                Err(RecvError::Closed) => std::future::pending().await,
            }
        }
    }

    /// Whether it has heard every entry that was written so far.
    pub fn is_caught_up(&self) -> bool {
        self.next_seq >= self.shared.ledger().next_seq
    }

    async fn catch_up(&mut self) -> Result<(), StoreError> {
        let shared = &self.shared;
        let entries = shared.store.read(&shared.id, self.next_seq, PAGE).await?;
        self.behind = entries.len() == PAGE;
        self.caught_up.extend(entries);
        Ok(())
    }
}
