//! The one thread that writes: it takes everything that waits, writes it in one transaction, and
//! tells those who waited. What comes in meanwhile gathers for the next.

use std::{mem, sync::Arc};

use duologue_core::StoreError;

use crate::{
    locks::Presence,
    queue::{Batch, Job, Queue, Reply, Verdict, claim},
    scribe::Scribe,
};

/// Writes what is queued. It lives on its own thread.
pub(crate) struct Writer {
    queue: Arc<Queue>,
    presence: Arc<Presence>,
    scribe: Scribe,
}

impl Writer {
    pub(crate) fn new(queue: Arc<Queue>, presence: Arc<Presence>, scribe: Scribe) -> Self {
        Self { queue, presence, scribe }
    }

    /// Work until the queue is closed.
    pub(crate) fn run(mut self) {
        // Entries of a batch that failed. They were accepted, so they are tried again.
        let mut kept = Vec::new();
        loop {
            let mut batch = self.queue.take(!kept.is_empty());
            let closing = batch.closing;
            if !kept.is_empty() {
                kept.append(&mut batch.jobs);
                batch.jobs = mem::take(&mut kept);
            }
            match self.scribe.write(&batch) {
                Ok(verdicts) => self.finish(batch, verdicts),
                Err(error) => kept = self.put_off(batch, &error),
            }
            if closing {
                return;
            }
            self.scribe.fold_log();
        }
    }

    /// The batch is written: tell everybody, those who wait for entries first.
    fn finish(&mut self, batch: Batch, verdicts: Vec<Verdict>) {
        let Batch { jobs, versions, .. } = self.queue.written(batch, &verdicts, self.scribe.lags());
        for (job, verdict) in jobs.into_iter().zip(verdicts) {
            let result = match verdict {
                Verdict::Done => Ok(()),
                Verdict::Refused(error) => Err(error),
                Verdict::Skipped => continue,
            };
            self.answer(job, result);
        }
        self.answer_versions(versions);
    }

    /// The batch is not written. What somebody waits for fails, and they know. What was accepted
    /// comes back, to be kept.
    fn put_off(&mut self, batch: Batch, error: &StoreError) -> Vec<Job> {
        let Batch { jobs, versions, .. } = self.queue.failed(batch, error);
        let (kept, failed): (Vec<Job>, Vec<Job>) = jobs.into_iter().partition(Job::is_accepted);
        for job in failed {
            self.answer(job, Err(error.clone()));
        }
        self.answer_versions(versions);
        kept
    }

    fn answer(&self, job: Job, result: Result<(), StoreError>) {
        match job {
            Job::Create { .. } | Job::Append { .. } | Job::Release { .. } => {}
            Job::Claim { session, serial, reply } => {
                let claim = || claim(&self.queue, &self.presence, &session, serial);
                tell(reply, result.map(|()| claim()));
            }
            Job::Post { reply, .. }
            | Job::Acknowledge { reply, .. }
            | Job::Delete { reply, .. } => tell(reply, result),
        }
    }

    fn answer_versions(&mut self, versions: Vec<Reply<u64>>) {
        if versions.is_empty() {
            return;
        }
        let version = self.scribe.version();
        for reply in versions {
            tell(reply, version.clone());
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // However the thread ends, nobody must go on waiting for it.
        self.queue.ended();
    }
}

/// Somebody who no longer waits need not know. A claim that nobody takes is given back.
fn tell<T>(reply: Reply<T>, answer: Result<T, StoreError>) {
    drop(reply.send(answer));
}
