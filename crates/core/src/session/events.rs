//! The live stream of a session: every entry once and in order, and deltas for the eye.

use std::{
    collections::VecDeque,
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use tokio::sync::Notify;

use super::Shared;
use crate::{Delta, Entry, RunId, StoreError};

/// How many events a listener may fall behind before it is caught up from the journal.
const BACKLOG: usize = 32;

/// How many entries are kept while nobody listens, for whoever comes a moment later.
const QUIET_BACKLOG: usize = 8;

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

/// What was told last, and who is to be woken when there is more.
#[derive(Debug, Default)]
pub(crate) struct News {
    recent: Mutex<Recent>,
    more: Notify,
    listeners: AtomicUsize,
}

/// The last events. Each has a place, counted from the first of the session.
#[derive(Debug, Default)]
struct Recent {
    /// The place of the oldest that is kept.
    first: u64,
    kept: VecDeque<Live>,
}

impl Recent {
    fn end(&self) -> u64 {
        self.first + self.kept.len() as u64
    }

    /// Let go of what came before a place, but for so many of the last events.
    fn forget_before(&mut self, place: u64, keep: usize) {
        while self.first < place && self.kept.len() > keep {
            self.kept.pop_front();
            self.first += 1;
        }
    }

    /// The place from which on everything since an entry can be heard here.
    fn place_of(&self, seq: u64) -> Option<u64> {
        let is_it = |live: &Live| matches!(live, Live::Entry(entry) if entry.seq == seq);
        self.kept.iter().rposition(is_it).map(|at| self.first + at as u64)
    }
}

impl News {
    /// Tell all listeners. It never waits for one.
    pub(super) fn tell(&self, live: Live) {
        let most = if self.is_heard() { BACKLOG } else { QUIET_BACKLOG };
        let mut recent = self.recent();
        recent.kept.push_back(live);
        while recent.kept.len() > most {
            recent.kept.pop_front();
            recent.first += 1;
        }
        drop(recent);
        self.more.notify_waiters();
    }

    /// Whether anybody listens.
    pub(super) fn is_heard(&self) -> bool {
        self.listeners.load(Ordering::Relaxed) > 0
    }

    fn recent(&self) -> MutexGuard<'_, Recent> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A listener to a session. A slow one never holds up the agent or another listener.
pub struct Events {
    shared: Arc<Shared>,
    /// The place of the next event.
    place: u64,
    next_seq: u64,
    /// Whether the journal has entries that are no longer among the recent events.
    behind: bool,
    caught_up: VecDeque<Arc<Entry>>,
}

impl Events {
    /// Listen from an entry on, or from the next one on.
    pub(super) fn new(shared: Arc<Shared>, from: Option<u64>) -> Self {
        // Nothing is written while the ledger is held, so that nothing falls in between.
        let ledger = shared.ledger();
        let from = from.unwrap_or(ledger.next_seq);
        let recent = shared.news.recent();
        let found = recent.place_of(from);
        let behind = found.is_none() && from < ledger.next_seq;
        let place = found.unwrap_or(recent.end());
        shared.news.listeners.fetch_add(1, Ordering::Relaxed);
        drop(recent);
        drop(ledger);
        Self { shared, place, next_seq: from, behind, caught_up: VecDeque::new() }
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
            if let Some(live) = self.hear() {
                return Ok(live);
            }
            if self.behind {
                continue;
            }
            // Taken before the last look, so that what comes after it wakes this.
            let shared = Arc::clone(&self.shared);
            let more = shared.news.more.notified();
            match self.hear() {
                Some(live) => return Ok(live),
                None if self.behind => {}
                None => more.await,
            }
        }
    }

    /// The next of the recent events, if there is one. It may turn out that some were missed.
    fn hear(&mut self) -> Option<Live> {
        let mut recent = self.shared.news.recent();
        if self.place < recent.first {
            self.place = recent.first;
            self.behind = true;
            return None;
        }
        let live = loop {
            let at = usize::try_from(self.place - recent.first).unwrap_or(usize::MAX);
            let live = recent.kept.get(at)?;
            if let Live::Entry(entry) = live {
                if entry.seq > self.next_seq {
                    self.behind = true;
                    return None;
                }
                self.place += 1;
                if entry.seq < self.next_seq {
                    continue;
                }
                self.next_seq += 1;
            } else {
                self.place += 1;
            }
            break live.clone();
        };
        // Whoever listens alone needs nothing twice, and long answers come in many pieces.
        if self.shared.news.listeners.load(Ordering::Relaxed) == 1 {
            recent.forget_before(self.place, QUIET_BACKLOG);
        }
        Some(live)
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

impl Drop for Events {
    fn drop(&mut self) {
        self.shared.news.listeners.fetch_sub(1, Ordering::Relaxed);
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Events").field("next_seq", &self.next_seq).finish_non_exhaustive()
    }
}
