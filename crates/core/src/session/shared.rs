//! What all handles of a session, its driver and its listeners share.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::AtomicU64},
    time::{SystemTime, UNIX_EPOCH},
};

use futures::future::{BoxFuture, FutureExt};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::{Attendance, Ledger, Live, PAGE, Reply, events::News};
use crate::{
    CallId, Claim, Delivery, Entry, Event, Message, ResultReader, RunId, SessionId, Store,
    StoreError,
};

/// What all handles of a session, its driver and its listeners share.
pub(crate) struct Shared {
    pub(crate) id: SessionId,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) attendance: Attendance,
    ledger: Mutex<Ledger>,
    pub(super) news: News,
    /// Held while a turn is under way.
    pub(super) turn: Arc<tokio::sync::Mutex<()>>,
    /// Who steered the turn under way and waits for its reply.
    steering: Mutex<Vec<oneshot::Sender<Reply>>>,
    /// What stops the turn under way or the last one, and why it was stopped.
    cancel: Mutex<(Option<CancellationToken>, String)>,
    /// Whether the session was put down.
    pub(super) suspended: CancellationToken,
    /// From which letter on the mailbox was not read yet.
    pub(super) unread: AtomicU64,
    _claim: Claim,
}

impl Shared {
    pub(super) fn new(
        store: Arc<dyn Store>,
        id: SessionId,
        ledger: Ledger,
        claim: Claim,
        attendance: Attendance,
    ) -> Self {
        Self {
            id,
            store,
            attendance,
            ledger: Mutex::new(ledger),
            news: News::default(),
            turn: Arc::new(tokio::sync::Mutex::new(())),
            steering: Mutex::default(),
            cancel: Mutex::default(),
            suspended: CancellationToken::new(),
            unread: AtomicU64::new(0),
            _claim: claim,
        }
    }

    pub(crate) fn ledger(&self) -> MutexGuard<'_, Ledger> {
        // A panic while the lock was held would be a defect of ours; the journal is still whole.
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Write the next entry, fold it in and tell the listeners.
    pub(crate) fn append(&self, run: RunId, event: Event) -> Result<Arc<Entry>, StoreError> {
        self.append_locked(&mut self.ledger(), run, event)
    }

    pub(crate) fn append_locked(
        &self,
        ledger: &mut Ledger,
        run: RunId,
        event: Event,
    ) -> Result<Arc<Entry>, StoreError> {
        // The clock may be set back; the journal's times are not.
        let at = now_ms().max(ledger.last_at);
        let entry = Arc::new(Entry { seq: ledger.next_seq, at, run, event });
        self.store.append(&self.id, vec![Arc::clone(&entry)])?;
        ledger.fold(&entry);
        self.news.tell(Live::Entry(Arc::clone(&entry)));
        Ok(entry)
    }

    /// Add a request to the turn under way, whose reply comes through the channel; `None` if
    /// there is no turn.
    pub(super) fn steer(
        &self,
        message: &Arc<Message>,
    ) -> Result<Option<oneshot::Receiver<Reply>>, StoreError> {
        let mut ledger = self.ledger();
        if !ledger.run(RunId::ROOT).is_some_and(|run| run.state.is_open()) {
            return Ok(None);
        }
        let message = Arc::clone(message);
        let event = Event::UserRequest { message, delivery: Delivery::Steer, expects: None };
        self.append_locked(&mut ledger, RunId::ROOT, event)?;
        let (sender, receiver) = oneshot::channel();
        self.steering.lock().unwrap_or_else(PoisonError::into_inner).push(sender);
        Ok(Some(receiver))
    }

    pub(super) fn take_steering(&self) -> Vec<oneshot::Sender<Reply>> {
        std::mem::take(&mut self.steering.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Tell what is only for the eye, where somebody looks.
    pub(crate) fn show(&self, live: impl FnOnce() -> Live) {
        if self.news.is_heard() {
            self.news.tell(live());
        }
    }

    /// A fresh token for a new turn.
    pub(crate) fn renew_cancel(&self) -> CancellationToken {
        let mut cancel = self.cancel.lock().unwrap_or_else(PoisonError::into_inner);
        let token = CancellationToken::new();
        *cancel = (Some(token.clone()), String::new());
        token
    }

    /// Stop the turn under way.
    pub(super) fn cancel(&self, reason: String) {
        let mut cancel = self.cancel.lock().unwrap_or_else(PoisonError::into_inner);
        cancel.1 = reason;
        if let Some(token) = &cancel.0 {
            token.cancel();
        }
    }

    pub(crate) fn cancel_reason(&self) -> String {
        let cancel = self.cancel.lock().unwrap_or_else(PoisonError::into_inner);
        if cancel.1.is_empty() { "cancelled".into() } else { cancel.1.clone() }
    }
}

/// Finds the results of earlier calls in the journal.
pub(crate) struct Results(pub(crate) Arc<Shared>);

impl ResultReader for Results {
    fn result_text(&self, call: CallId) -> BoxFuture<'static, Option<String>> {
        let shared = Arc::clone(&self.0);
        async move {
            let mut from = 0;
            loop {
                let page = shared.store.read(&shared.id, from, PAGE).await.ok()?;
                from += page.len() as u64;
                let found = page.iter().find_map(|entry| match &entry.event {
                    Event::ToolEnded { result, .. } if result.call_id == call => {
                        Some(result.prompt_text())
                    }
                    _ => None,
                });
                if found.is_some() || page.len() < PAGE {
                    return found;
                }
            }
        }
        .boxed()
    }
}

impl fmt::Debug for Results {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Results")
    }
}

/// Milliseconds since 1970.
pub(crate) fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
