//! When the journal cannot be written, such as on a full disk.
//!
//! A turn ends there, because nothing may be done that is not on record. What was accepted goes on
//! once the journal can be written again. What was refused does not: its sender may send it again.

use std::{sync::Arc, time::Duration};

use duologue_core::{Reply, SessionError, StoreError, detach};

use super::{follow::Watch, open::Open, tasks::Tasks, view::TaskView};

/// The waits between two looks at the journal, the first and the longest.
const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(15);
/// Why a task was given up.
const UNWRITTEN: &str = "the request could not be written down, and its sender was told so";

impl Tasks {
    /// See to a turn that has ended: one that the journal broke off goes on later.
    pub(super) fn mind(&self, watch: &Watch, reply: &Result<Reply, SessionError>) {
        if let Err(SessionError::Store(error @ StoreError::Io(_))) = reply {
            let task = watch.id();
            tracing::error!(task, %error, "the journal broke a task off; it goes on when it can");
            self.go_on_later(Arc::clone(watch.open()), watch.view().clone());
        }
    }

    fn go_on_later(&self, open: Arc<Open>, view: TaskView) {
        let server = Arc::downgrade(&self.0);
        tokio::spawn(async move {
            let mut wait = FIRST_WAIT;
            let tasks = loop {
                tokio::time::sleep(wait).await;
                // The next server goes on with it.
                let Some(tasks) = server.upgrade().map(Self) else { return };
                // A model is asked only when what it says can be kept.
                if tasks.store().flush(open.session.id()).await.is_ok() {
                    break tasks;
                }
                wait = wait.saturating_mul(2).min(LONGEST_WAIT);
            };
            tracing::warn!(task = %open.session.id(), "the journal works again, and the task goes on");
            let session = open.session.clone();
            drop(tasks.run(&open, Box::new(view), async move { session.resume().await }));
        });
    }

    /// End a task whose sender is told that it was not taken. Nothing was done yet: what has effects
    /// waits until it is on record.
    pub(crate) fn give_up(&self, watch: &Watch) {
        // With a key it may come again, and finds the task that it began.
        if watch.view().birth().is_some_and(|birth| birth.key.is_some()) {
            return;
        }
        let session = watch.open().session.clone();
        session.cancel(UNWRITTEN);
        drop(detach(async move { session.abandon(UNWRITTEN).await }));
    }
}
