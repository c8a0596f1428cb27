//! Sessions that somebody works on or listens to. They are held open so long, and taken up again
//! from the journal when they are needed.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use duologue_core::{
    Agent, Attendance, Budget, Metadata, Session, SessionError, SessionId, SessionOptions, Store,
    StoreError,
};
use foldhash::fast::RandomState;

/// How often a session that is just being let go is tried again, and how long it takes between.
const TRIES: u32 = 50;
const PAUSE: Duration = Duration::from_millis(20);

/// A session that is open.
#[derive(Debug)]
pub(crate) struct Open {
    pub(crate) session: Session,
}

/// All sessions that are open.
pub(crate) struct OpenSessions {
    agent: Agent,
    store: Arc<dyn Store>,
    open: Mutex<HashMap<SessionId, Weak<Open>, RandomState>>,
    /// One at a time takes up the same session.
    opening: Mutex<HashMap<SessionId, Arc<tokio::sync::Mutex<()>>>>,
}

impl OpenSessions {
    pub(crate) fn new(agent: Agent, store: Arc<dyn Store>) -> Self {
        Self { agent, store, open: Mutex::default(), opening: Mutex::default() }
    }

    /// Begin a session.
    pub(crate) fn start(
        &self,
        id: &SessionId,
        metadata: Metadata,
        budget: Budget,
    ) -> Result<Arc<Open>, SessionError> {
        let options = SessionOptions {
            id: Some(id.clone()),
            metadata,
            attendance: Attendance::Attended,
            budget,
        };
        let session = Session::start(&self.agent, Arc::clone(&self.store), options)?;
        Ok(self.keep(id, session))
    }

    /// The session if it is open, and otherwise taken up from its journal.
    pub(crate) async fn open(&self, id: &SessionId) -> Result<Arc<Open>, SessionError> {
        if let Some(open) = self.find(id) {
            return Ok(open);
        }
        let turnstile = Arc::clone(lock(&self.opening).entry(id.clone()).or_default());
        let opened = {
            let _one_at_a_time = turnstile.lock().await;
            self.take_up(id).await
        };
        drop(turnstile);
        // Whoever is the last to leave takes the turnstile away: the map holds one of them too.
        lock(&self.opening).retain(|_, turnstile| Arc::strong_count(turnstile) > 1);
        opened
    }

    async fn take_up(&self, id: &SessionId) -> Result<Arc<Open>, SessionError> {
        let mut tries = 0;
        loop {
            if let Some(open) = self.find(id) {
                return Ok(open);
            }
            let options =
                SessionOptions { attendance: Attendance::Attended, ..SessionOptions::default() };
            match Session::open(&self.agent, Arc::clone(&self.store), id, options).await {
                Ok(session) => return Ok(self.keep(id, session)),
                // Whoever had it last may be about to let it go.
                Err(SessionError::Store(StoreError::Busy { .. })) if tries < TRIES => {
                    tries += 1;
                    tokio::time::sleep(PAUSE).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Put all of them down as they are, so that the next server goes on with them.
    pub(crate) async fn suspend(&self) {
        let all: Vec<Arc<Open>> = lock(&self.open).values().filter_map(Weak::upgrade).collect();
        let all = all.iter().map(|open| open.session.suspend());
        for suspended in futures::future::join_all(all).await {
            if let Err(error) = suspended {
                tracing::warn!(%error, "a task was not put down in order");
            }
        }
    }

    fn find(&self, id: &SessionId) -> Option<Arc<Open>> {
        lock(&self.open).get(id).and_then(Weak::upgrade)
    }

    fn keep(&self, id: &SessionId, session: Session) -> Arc<Open> {
        let open = Arc::new(Open { session });
        let mut all = lock(&self.open);
        // What was let go is cleared away when the map has grown by as much.
        if all.len() == all.capacity() {
            all.retain(|_, open| open.strong_count() > 0);
        }
        all.insert(id.clone(), Arc::downgrade(&open));
        open
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
