//! What waits for the writer: jobs in the order they came, and those who want to hear that theirs
//! are done.
//!
//! Nothing here blocks longer than it takes to push onto a list, so it is called from async code.

use std::{
    collections::{HashMap, HashSet},
    mem,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use duologue_core::{Claim, Entry, Mail, SessionId, StoreError};
use futures::channel::oneshot;

use crate::{error, locks::Presence};

/// How long entries that nobody flushes may wait to be written.
const LINGER: Duration = Duration::from_millis(50);
/// How long the writer waits after a failure, when nobody flushes.
const RETRY: Duration = Duration::from_secs(1);

/// Tells somebody how it ended.
pub(crate) type Reply<T> = oneshot::Sender<Result<T, StoreError>>;

/// Something to wait for; nothing when it is so already.
pub(crate) type Settled = Result<Option<oneshot::Receiver<Result<(), StoreError>>>, StoreError>;

/// One thing for the writer to do.
pub(crate) enum Job {
    /// Begin a journal, as its owner.
    Create { session: SessionId, entries: Vec<Arc<Entry>>, serial: i64 },
    /// Put entries at the end of a journal.
    Append { session: SessionId, entries: Vec<Arc<Entry>> },
    /// Give a claim back.
    Release { session: SessionId, serial: i64 },
    /// Become the owner.
    Claim { session: SessionId, serial: i64, reply: Reply<Claim> },
    /// Leave mail.
    Post { session: SessionId, mail: Mail, reply: Reply<()> },
    /// Remove mail.
    Acknowledge { session: SessionId, up_to: u64, reply: Reply<()> },
    /// Remove a session.
    Delete { session: SessionId, reply: Reply<()> },
}

impl Job {
    /// Whether it was accepted for good, with nobody waiting for it.
    pub(crate) fn is_accepted(&self) -> bool {
        matches!(self, Self::Create { .. } | Self::Append { .. } | Self::Release { .. })
    }
}

/// Somebody who waits until everything that was queued before is written.
pub(crate) struct Waiter {
    pub(crate) wait: Wait,
    pub(crate) reply: Reply<()>,
}

/// For what somebody waits.
pub(crate) enum Wait {
    /// For one session; an append of it that was refused is told now, once.
    Flush(SessionId),
    /// For one session, to read it. What was refused is left for the next flush.
    Settle(SessionId),
    /// For all sessions.
    All,
}

/// Whether the summaries of sessions in the middle of a turn are brought up to date as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Summaries {
    /// As they are.
    MayLag,
    /// Up to date.
    Level,
}

/// What the writer takes away in one go.
#[derive(Default)]
pub(crate) struct Batch {
    pub(crate) jobs: Vec<Job>,
    pub(crate) waiters: Vec<Waiter>,
    pub(crate) versions: Vec<Reply<u64>>,
    /// Sessions with a refusal that nobody was told of yet: what follows on it is refused too.
    pub(crate) refused: HashSet<SessionId>,
    pub(crate) level: bool,
    pub(crate) closing: bool,
    generation: u64,
}

/// What became of the jobs of a batch.
pub(crate) enum Verdict {
    /// It is written.
    Done,
    /// It cannot be written, whenever it is tried.
    Refused(StoreError),
    /// An earlier refusal stands in its way.
    Skipped,
}

/// The queue between everybody and the writer.
pub(crate) struct Queue {
    state: Mutex<State>,
    wake: Condvar,
    limit: usize,
}

#[derive(Default)]
struct State {
    jobs: Vec<Job>,
    waiters: Vec<Waiter>,
    versions: Vec<Reply<u64>>,
    /// Sessions with entries that are not written yet.
    pending: HashMap<SessionId, Pending>,
    /// The first refused append of a session, until a flush tells it.
    refused: HashMap<SessionId, StoreError>,
    /// How many entries are not written yet.
    entries: usize,
    /// Jobs before this one must not take in entries that came later.
    barrier: usize,
    /// Counts the batches.
    generation: u64,
    rest: Rest,
    urgent: bool,
    level: bool,
    /// Whether the writer left summaries behind.
    lagging: bool,
    closing: bool,
    closed: bool,
}

/// Where the last entries of a session wait.
struct Pending {
    generation: u64,
    job: usize,
}

/// What the writer does, as far as waking it goes.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Rest {
    /// It works, and looks here before it rests.
    #[default]
    Awake,
    /// It looks here again soon by itself: only somebody who waits need wake it.
    Dozing,
    /// It must be woken.
    Asleep,
}

impl Queue {
    pub(crate) fn new(limit: usize) -> Self {
        Self { state: Mutex::default(), wake: Condvar::new(), limit: limit.max(1) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queue the first entries of a journal.
    pub(crate) fn create(
        &self,
        session: &SessionId,
        entries: Vec<Arc<Entry>>,
        serial: i64,
    ) -> Result<(), StoreError> {
        let mut state = self.open_state()?;
        state.admit(self.limit)?;
        state.entries += entries.len();
        let job = state.jobs.len();
        state.note_pending(session, job);
        state.jobs.push(Job::Create { session: session.clone(), entries, serial });
        self.stir(&state);
        Ok(())
    }

    /// Queue entries.
    pub(crate) fn append(
        &self,
        session: &SessionId,
        entries: Vec<Arc<Entry>>,
    ) -> Result<(), StoreError> {
        let mut state = self.open_state()?;
        state.admit(self.limit)?;
        state.entries += entries.len();
        if let Some(waiting) = state.waiting_append(session) {
            waiting.extend(entries);
        } else {
            let job = state.jobs.len();
            state.note_pending(session, job);
            state.jobs.push(Job::Append { session: session.clone(), entries });
        }
        self.stir(&state);
        Ok(())
    }

    /// Wait until the entries of a session are written. Nothing comes back when there is nothing
    /// to wait for.
    pub(crate) fn flush(&self, session: &SessionId) -> Settled {
        let mut state = self.state();
        if state.pending.contains_key(session) {
            return self.wait(state, Wait::Flush(session.clone())).map(Some);
        }
        state.refused.remove(session).map_or(Ok(None), Err)
    }

    /// Wait until the entries of a session can be read.
    pub(crate) fn settle(&self, session: &SessionId) -> Settled {
        let state = self.state();
        if state.pending.contains_key(session) {
            return self.wait(state, Wait::Settle(session.clone())).map(Some);
        }
        Ok(None)
    }

    /// Wait until the entries of all sessions can be read.
    pub(crate) fn settle_all(&self, summaries: Summaries) -> Settled {
        let mut state = self.state();
        let level = summaries == Summaries::Level && state.lagging;
        if state.pending.is_empty() && !level {
            return Ok(None);
        }
        state.level |= level;
        self.wait(state, Wait::All).map(Some)
    }

    /// Queue a job that somebody waits for, or that others wait for without knowing.
    pub(crate) fn push(&self, job: Job) -> Result<(), StoreError> {
        let mut state = self.open_state()?;
        state.barrier = state.jobs.len() + 1;
        state.jobs.push(job);
        self.hurry(&mut state);
        Ok(())
    }

    /// Ask whether anything changed.
    pub(crate) fn ask_version(&self, reply: Reply<u64>) -> Result<(), StoreError> {
        let mut state = self.open_state()?;
        state.versions.push(reply);
        self.hurry(&mut state);
        Ok(())
    }

    /// Let the writer finish what is queued and end.
    pub(crate) fn close(&self) {
        let mut state = self.state();
        state.closing = true;
        self.hurry(&mut state);
    }

    fn open_state(&self) -> Result<MutexGuard<'_, State>, StoreError> {
        let state = self.state();
        if state.closing || state.closed {
            return Err(error::closed());
        }
        Ok(state)
    }

    fn wait(
        &self,
        mut state: MutexGuard<'_, State>,
        wait: Wait,
    ) -> Result<oneshot::Receiver<Result<(), StoreError>>, StoreError> {
        if state.closed {
            return Err(error::closed());
        }
        let (reply, answer) = oneshot::channel();
        state.waiters.push(Waiter { wait, reply });
        self.hurry(&mut state);
        Ok(answer)
    }

    /// There is something to write, and no haste.
    fn stir(&self, state: &State) {
        if state.rest == Rest::Asleep {
            self.wake.notify_one();
        }
    }

    /// Somebody waits. Waking costs both sides a system call, so it is done once.
    fn hurry(&self, state: &mut State) {
        if !mem::replace(&mut state.urgent, true) && state.rest != Rest::Awake {
            self.wake.notify_one();
        }
    }

    /// For the writer: rest until there is work, then take all of it. `kept` tells whether it
    /// still has something from a batch that failed.
    pub(crate) fn take(&self, kept: bool) -> Batch {
        let mut state = self.state();
        let mut dozed = false;
        while !state.urgent {
            if state.jobs.is_empty() && !kept && dozed {
                state.rest = Rest::Asleep;
                state = self.wake.wait(state).unwrap_or_else(PoisonError::into_inner);
                dozed = false;
            } else if dozed {
                break;
            } else {
                state.rest = Rest::Dozing;
                let linger = if kept { RETRY } else { LINGER };
                let (back, timeout) =
                    self.wake.wait_timeout(state, linger).unwrap_or_else(PoisonError::into_inner);
                state = back;
                dozed = timeout.timed_out();
            }
        }
        state.rest = Rest::Awake;
        state.urgent = false;
        state.barrier = 0;
        let batch = Batch {
            jobs: mem::take(&mut state.jobs),
            waiters: mem::take(&mut state.waiters),
            versions: mem::take(&mut state.versions),
            refused: state.refused.keys().cloned().collect(),
            level: mem::take(&mut state.level) || state.closing,
            closing: state.closing,
            generation: state.generation,
        };
        state.generation += 1;
        batch
    }

    /// For the writer: the batch is written. Tells those who waited for entries, and gives back
    /// the rest of the batch.
    pub(crate) fn written(&self, mut batch: Batch, verdicts: &[Verdict], lagging: bool) -> Batch {
        let mut state = self.state();
        state.lagging = lagging;
        for (job, verdict) in batch.jobs.iter().zip(verdicts) {
            if let Job::Create { session, entries, .. } | Job::Append { session, entries } = job {
                state.entries = state.entries.saturating_sub(entries.len());
                let is_last = |pending: &Pending| pending.generation <= batch.generation;
                if state.pending.get(session).is_some_and(is_last) {
                    state.pending.remove(session);
                }
                if let Verdict::Refused(error) = verdict {
                    state.refused.entry(session.clone()).or_insert_with(|| error.clone());
                }
            }
        }
        Self::answer(state, mem::take(&mut batch.waiters), None);
        batch
    }

    /// For the writer: nothing of the batch is written. Tells those who waited for entries, and
    /// gives back the rest of the batch.
    pub(crate) fn failed(&self, mut batch: Batch, error: &StoreError) -> Batch {
        let mut state = self.state();
        state.lagging = false;
        Self::answer(state, mem::take(&mut batch.waiters), Some(error));
        batch
    }

    fn answer(mut state: MutexGuard<'_, State>, waiters: Vec<Waiter>, error: Option<&StoreError>) {
        let answers: Vec<_> = waiters
            .into_iter()
            .map(|waiter| (waiter.reply, state.answer_to(&waiter.wait, error)))
            .collect();
        // With the lock free, nobody who is woken runs into it.
        drop(state);
        for (reply, answer) in answers {
            // Somebody who no longer waits need not know.
            let _ = reply.send(answer);
        }
    }

    /// For the writer: it ends. Whoever still waits hears that the store is closed.
    pub(crate) fn ended(&self) {
        let mut state = self.state();
        state.closed = true;
        let left = (
            mem::take(&mut state.jobs),
            mem::take(&mut state.waiters),
            mem::take(&mut state.versions),
        );
        drop(state);
        // Replies that are dropped unanswered read as closed. A claim among them comes back here.
        drop(left);
    }
}

impl State {
    /// Whether there is room. What waits is counted before, not after: a caller's own batch is in
    /// memory already, however large.
    fn admit(&self, limit: usize) -> Result<(), StoreError> {
        if self.entries + self.refused.len() < limit {
            return Ok(());
        }
        Err(StoreError::Io(format!(
            "{} entries wait to be written, more than the store takes; flush and try again",
            self.entries
        )))
    }

    /// What somebody is told when the batch that they waited for is written, or failed with `error`.
    fn answer_to(&mut self, wait: &Wait, error: Option<&StoreError>) -> Result<(), StoreError> {
        let failed = error.filter(|_| match wait {
            Wait::Flush(session) | Wait::Settle(session) => self.pending.contains_key(session),
            Wait::All => true,
        });
        match (failed, wait) {
            (Some(error), _) => Err(error.clone()),
            (None, Wait::Flush(session)) => self.refused.remove(session).map_or(Ok(()), Err),
            (None, Wait::Settle(_) | Wait::All) => Ok(()),
        }
    }

    fn note_pending(&mut self, session: &SessionId, job: usize) {
        let generation = self.generation;
        if let Some(pending) = self.pending.get_mut(session) {
            *pending = Pending { generation, job };
        } else {
            self.pending.insert(session.clone(), Pending { generation, job });
        }
    }

    /// The entries of this session that wait in the queue, if more may be put behind them.
    fn waiting_append(&mut self, session: &SessionId) -> Option<&mut Vec<Arc<Entry>>> {
        let pending = self.pending.get(session)?;
        if pending.generation != self.generation || pending.job < self.barrier {
            return None;
        }
        match self.jobs.get_mut(pending.job)? {
            Job::Append { entries, .. } => Some(entries),
            // A beginning is refused as a whole; what comes later must not be part of it.
            _ => None,
        }
    }
}

/// A claim whose end is one more job.
pub(crate) fn claim(
    queue: &Arc<Queue>,
    presence: &Arc<Presence>,
    session: &SessionId,
    serial: i64,
) -> Claim {
    let queue = Arc::clone(queue);
    // As long as a claim is held, this process is seen to be alive, even if the store is closed.
    let presence = Arc::clone(presence);
    let session = session.clone();
    Claim::new(move || {
        // After the store was closed, the claim ends with the presence.
        let _ = queue.push(Job::Release { session, serial });
        drop(presence);
    })
}
