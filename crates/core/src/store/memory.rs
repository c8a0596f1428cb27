//! Journals in memory, for tests and for conversations that nobody keeps.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::AtomicU64, atomic::Ordering},
};

use futures::future::{BoxFuture, FutureExt, ready};

use super::{Claim, ListQuery, Mail, SessionSummary, Store, StoreError};
use crate::{Entry, SessionId};

/// How many entries a short conversation has.
const SHORT: usize = 6;

/// A store that is gone with the process.
#[derive(Clone, Debug, Default)]
pub struct MemoryStore {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    /// Boxed, because the table moves what it holds whenever it grows.
    sessions: Mutex<HashMap<SessionId, Box<Kept>>>,
    version: AtomicU64,
}

#[derive(Debug)]
struct Kept {
    entries: Vec<Arc<Entry>>,
    summary: SessionSummary,
    claimed: bool,
    mail: Vec<(u64, Mail)>,
    next_mail: u64,
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<SessionId, Box<Kept>>> {
        self.shared.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<T>(
        &self,
        session: &SessionId,
        work: impl FnOnce(&mut Kept) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        match self.sessions().get_mut(session) {
            Some(kept) => work(kept),
            None => Err(StoreError::NotFound(session.clone())),
        }
    }
}

impl MemoryStore {
    /// A claim that gives the session back.
    fn release_of(&self, session: &SessionId) -> Claim {
        let store = self.clone();
        let id = session.clone();
        Claim::new(move || {
            // A deleted session has nothing to give back.
            let _ = store.with(&id, |kept| {
                kept.claimed = false;
                Ok(())
            });
        })
    }
}

impl Kept {
    fn push(&mut self, entries: Vec<Arc<Entry>>) -> Result<(), StoreError> {
        for entry in entries {
            let expected = self.entries.len() as u64;
            if entry.seq != expected {
                return Err(StoreError::OutOfOrder {
                    session: self.summary.id.clone(),
                    found: entry.seq,
                    expected,
                });
            }
            self.summary.fold(&entry);
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
        let mut sessions = self.sessions();
        if sessions.contains_key(session) {
            return Err(StoreError::Exists(session.clone()));
        }
        let mut kept = Box::new(Kept {
            entries: Vec::with_capacity(SHORT),
            summary: SessionSummary::new(session.clone()),
            claimed: true,
            mail: Vec::new(),
            next_mail: 1,
        });
        kept.push(entries)?;
        sessions.insert(session.clone(), kept);
        drop(sessions);
        Ok(self.release_of(session))
    }

    fn append(&self, session: &SessionId, entries: Vec<Arc<Entry>>) -> Result<(), StoreError> {
        self.with(session, |kept| kept.push(entries))
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
        now(Ok(self.sessions().get(session).map(|kept| kept.summary.clone())))
    }

    fn list(&self, query: ListQuery) -> BoxFuture<'_, Result<Vec<SessionSummary>, StoreError>> {
        let limit = if query.limit == 0 { 50 } else { query.limit };
        let mut found: Vec<SessionSummary> = self
            .sessions()
            .values()
            .map(|kept| &kept.summary)
            .filter(|summary| query.before.is_none_or(|before| summary.updated_at < before))
            .filter(|summary| query.agent.as_ref().is_none_or(|agent| *agent == summary.agent))
            .filter(|summary| query.status.as_ref().is_none_or(|status| *status == summary.status))
            .cloned()
            .collect();
        found.sort_by(|a, b| (b.updated_at, &b.id).cmp(&(a.updated_at, &a.id)));
        found.truncate(limit);
        now(Ok(found))
    }

    fn find(
        &self,
        prefix: &str,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<SessionId>, StoreError>> {
        let mut found: Vec<SessionId> =
            self.sessions().keys().filter(|id| id.as_str().starts_with(prefix)).cloned().collect();
        found.sort();
        found.truncate(limit);
        now(Ok(found))
    }

    fn delete(&self, session: &SessionId) -> BoxFuture<'_, Result<(), StoreError>> {
        now(match self.sessions().remove(session) {
            Some(_) => Ok(()),
            None => Err(StoreError::NotFound(session.clone())),
        })
    }

    fn claim(&self, session: &SessionId) -> BoxFuture<'_, Result<Claim, StoreError>> {
        let store = self.clone();
        let id = session.clone();
        now(self.with(session, move |kept| {
            if kept.claimed {
                return Err(StoreError::Busy { session: id, owner: "this process".into() });
            }
            kept.claimed = true;
            Ok(Claim::new(move || {
                let _ = store.with(&id, |kept| {
                    kept.claimed = false;
                    Ok(())
                });
            }))
        }))
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

    fn version(&self) -> BoxFuture<'_, Result<u64, StoreError>> {
        now(Ok(self.shared.version.load(Ordering::Relaxed)))
    }
}
