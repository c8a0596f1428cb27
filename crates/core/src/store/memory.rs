//! Journals in memory, for tests and for conversations that nobody keeps.

use std::{
    collections::{HashMap, VecDeque},
    hash::BuildHasher,
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::AtomicU64, atomic::Ordering},
};

use foldhash::fast::RandomState;
use futures::future::{BoxFuture, FutureExt, ready};

use super::{Claim, ListQuery, Mail, SessionSummary, Store, StoreError};
use crate::{Entry, SessionId};

/// How many entries a short conversation has.
const SHORT: usize = 6;

/// How many shelves there are.
const SHELVES: usize = 16;

/// A store that is gone with the process.
///
/// It keeps everything, unless it is told how much: a server that runs for months would otherwise
/// grow with every task it ever had.
#[derive(Clone, Debug, Default)]
pub struct MemoryStore {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    /// Each has its own lock: sessions that have nothing to do with each other rarely meet.
    shelves: [Mutex<Shelf>; SHELVES],
    places: RandomState,
    version: AtomicU64,
    /// How many sessions that are over and let go are kept.
    keeps: Option<usize>,
    /// Those that are over and were let go, the first of them first. One that was taken up again
    /// stands here still.
    over: Mutex<VecDeque<SessionId>>,
}

/// Sessions, boxed because the table moves what it holds whenever it grows.
type Shelf = HashMap<SessionId, Box<Kept>, RandomState>;

#[derive(Debug)]
struct Kept {
    entries: Vec<Arc<Entry>>,
    /// What a list says of it, as far as somebody has asked. Most sessions are never listed.
    summary: Option<Box<SessionSummary>>,
    claimed: bool,
    mail: Vec<(u64, Mail)>,
    next_mail: u64,
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty store that forgets what was over first, once more than `sessions` are over and
    /// nobody has them open. What waits for an answer is kept however long it takes.
    pub fn keeping(sessions: usize) -> Self {
        Self { shared: Arc::new(Shared { keeps: Some(sessions), ..Shared::default() }) }
    }

    /// Where a session stands, if there is one of this id.
    fn shelf(&self, session: &SessionId) -> MutexGuard<'_, Shelf> {
        let at = self.shared.places.hash_one(session) % SHELVES as u64;
        let [first, ..] = &self.shared.shelves;
        // It is always one of them.
        lock(self.shared.shelves.get(at as usize).unwrap_or(first))
    }

    fn with<T>(
        &self,
        session: &SessionId,
        work: impl FnOnce(&mut Kept) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        match self.shelf(session).get_mut(session) {
            Some(kept) => work(kept),
            None => Err(StoreError::NotFound(session.clone())),
        }
    }

    /// A claim that gives the session back.
    fn release_of(&self, session: &SessionId) -> Claim {
        let store = self.clone();
        let id = session.clone();
        Claim::new(move || store.let_go(id))
    }

    fn let_go(&self, id: SessionId) {
        let is_over = match self.shelf(&id).get_mut(&id) {
            Some(kept) => {
                kept.claimed = false;
                self.shared.keeps.is_some() && kept.is_over(&id)
            }
            // A deleted session has nothing to give back.
            None => return,
        };
        let Some(keeps) = self.shared.keeps else { return };
        let mut over = lock(&self.shared.over);
        if is_over {
            over.push_back(id);
        }
        let too_many = over.len().saturating_sub(keeps);
        let oldest: Vec<SessionId> = over.drain(..too_many).collect();
        drop(over);
        for id in oldest {
            let mut shelf = self.shelf(&id);
            if shelf.get_mut(&id).is_some_and(|kept| kept.is_over(&id)) {
                shelf.remove(&id);
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Kept {
    /// Whether nobody writes it, nobody is to answer, and no turn is open.
    fn is_over(&mut self, id: &SessionId) -> bool {
        let is_free = !self.claimed && self.mail.is_empty();
        let summary = self.summary(id);
        let is_open = matches!(&*summary.status, "new" | "running") || summary.waits();
        is_free && !is_open
    }

    /// What a list says of it now.
    fn summary(&mut self, id: &SessionId) -> &SessionSummary {
        let new = || Box::new(SessionSummary::new(id.clone()));
        let summary = self.summary.get_or_insert_with(new);
        let known = usize::try_from(summary.entries).unwrap_or(usize::MAX);
        for entry in self.entries.iter().skip(known) {
            summary.fold(entry);
        }
        summary
    }

    fn push(&mut self, id: &SessionId, entries: Vec<Arc<Entry>>) -> Result<(), StoreError> {
        for entry in entries {
            let expected = self.entries.len() as u64;
            if entry.seq != expected {
                let session = id.clone();
                return Err(StoreError::OutOfOrder { session, found: entry.seq, expected });
            }
            self.entries.push(entry);
        }
        Ok(())
    }
}

/// An answer that is there already.
fn now<'a, T: Send + 'a>(value: T) -> BoxFuture<'a, T> {
    ready(value).boxed()
}

impl Store for MemoryStore {
    fn create(&self, session: &SessionId, entries: Vec<Arc<Entry>>) -> Result<Claim, StoreError> {
        let mut shelf = self.shelf(session);
        if shelf.contains_key(session) {
            return Err(StoreError::Exists(session.clone()));
        }
        let mut kept = Box::new(Kept {
            entries: Vec::with_capacity(SHORT),
            summary: None,
            claimed: true,
            mail: Vec::new(),
            next_mail: 1,
        });
        kept.push(session, entries)?;
        shelf.insert(session.clone(), kept);
        drop(shelf);
        Ok(self.release_of(session))
    }

    fn append(&self, session: &SessionId, entries: Vec<Arc<Entry>>) -> Result<(), StoreError> {
        self.with(session, |kept| kept.push(session, entries))
    }

    fn flush(&self, _session: &SessionId) -> BoxFuture<'_, Result<(), StoreError>> {
        now(Ok(()))
    }

    fn read(
        &self,
        session: &SessionId,
        from: u64,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Arc<Entry>>, StoreError>> {
        let from = usize::try_from(from).unwrap_or(usize::MAX);
        now(self.with(session, |kept| {
            Ok(kept.entries.iter().skip(from).take(limit).cloned().collect())
        }))
    }

    fn summary(
        &self,
        session: &SessionId,
    ) -> BoxFuture<'_, Result<Option<SessionSummary>, StoreError>> {
        let mut shelf = self.shelf(session);
        now(Ok(shelf.get_mut(session).map(|kept| kept.summary(session).clone())))
    }

    fn list(&self, query: ListQuery) -> BoxFuture<'_, Result<Vec<SessionSummary>, StoreError>> {
        let limit = if query.limit == 0 { 50 } else { query.limit };
        let fits = |summary: &SessionSummary| {
            query.before.is_none_or(|before| summary.updated_at < before)
                && query.agent.as_ref().is_none_or(|agent| *agent == summary.agent)
                && query.status.as_ref().is_none_or(|status| *status == summary.status)
        };
        let mut found: Vec<SessionSummary> = Vec::new();
        for shelf in &self.shared.shelves {
            let mut shelf = lock(shelf);
            let summaries = shelf.iter_mut().map(|(id, kept)| kept.summary(id));
            found.extend(summaries.filter(|summary| fits(summary)).cloned());
        }
        found.sort_by(|a, b| (b.updated_at, &b.id).cmp(&(a.updated_at, &a.id)));
        found.truncate(limit);
        now(Ok(found))
    }

    fn find(
        &self,
        prefix: &str,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<SessionId>, StoreError>> {
        let mut found: Vec<SessionId> = Vec::new();
        for shelf in &self.shared.shelves {
            let shelf = lock(shelf);
            found.extend(shelf.keys().filter(|id| id.as_str().starts_with(prefix)).cloned());
        }
        found.sort();
        found.truncate(limit);
        now(Ok(found))
    }

    fn delete(&self, session: &SessionId) -> BoxFuture<'_, Result<(), StoreError>> {
        now(match self.shelf(session).remove(session) {
            Some(_) => Ok(()),
            None => Err(StoreError::NotFound(session.clone())),
        })
    }

    fn claim(&self, session: &SessionId) -> BoxFuture<'_, Result<Claim, StoreError>> {
        let claimed = self.with(session, |kept| {
            if kept.claimed {
                let owner = "this process".into();
                return Err(StoreError::Busy { session: session.clone(), owner });
            }
            kept.claimed = true;
            Ok(())
        });
        now(claimed.map(|()| self.release_of(session)))
    }

    fn post(&self, session: &SessionId, mail: Mail) -> BoxFuture<'_, Result<(), StoreError>> {
        let posted = self.with(session, |kept| {
            kept.mail.push((kept.next_mail, mail));
            kept.next_mail += 1;
            Ok(())
        });
        self.shared.version.fetch_add(1, Ordering::Relaxed);
        now(posted)
    }

    fn mail(&self, session: &SessionId) -> BoxFuture<'_, Result<Vec<(u64, Mail)>, StoreError>> {
        now(self.with(session, |kept| Ok(kept.mail.clone())))
    }

    fn acknowledge(
        &self,
        session: &SessionId,
        up_to: u64,
    ) -> BoxFuture<'_, Result<(), StoreError>> {
        now(self.with(session, |kept| {
            kept.mail.retain(|(number, _)| *number > up_to);
            Ok(())
        }))
    }

    fn keeps(&self) -> Option<usize> {
        self.shared.keeps
    }

    fn version(&self) -> BoxFuture<'_, Result<u64, StoreError>> {
        now(Ok(self.shared.version.load(Ordering::Relaxed)))
    }
}
