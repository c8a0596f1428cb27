//! Writing. All that waits is one transaction; what each job does in it is in the modules below.

use std::{
    collections::HashSet,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use duologue_core::{SessionId, StoreError};
use rusqlite::Connection;

use crate::{
    error::explain,
    live::LiveSessions,
    locks::Presence,
    queue::{Batch, Job, Verdict},
};

mod claims;
mod journals;
mod mail;

/// After how many pages of the write-ahead log it is folded into the file: small enough that the
/// disk blocks of the log are soon used again, which is cheaper than growing it.
const LOG_PAGES: usize = 2_000;

/// Writes batches. It lives on the writer's thread.
pub(crate) struct Scribe {
    connection: Connection,
    path: PathBuf,
    presence: Arc<Presence>,
    live: LiveSessions,
    /// Whether a row was left behind since all were brought up to date.
    lagging: bool,
    /// One entry as JSON; here to be used again.
    body: Vec<u8>,
    /// What SQLite counts of the changes of others.
    seen: i64,
    /// Counts changes of others, and mail from here.
    version: u64,
    log_pages: Arc<AtomicUsize>,
    /// At how many pages the log is folded in next.
    fold_at: usize,
}

/// Why a job is not done.
enum Trouble {
    /// It cannot be done, whenever it is tried. The rest of the batch goes on.
    Refused(StoreError),
    /// The file cannot be written now. The whole batch is tried again later.
    Sqlite(rusqlite::Error),
}

impl From<rusqlite::Error> for Trouble {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<StoreError> for Trouble {
    fn from(error: StoreError) -> Self {
        Self::Refused(error)
    }
}

impl Scribe {
    pub(crate) fn new(
        mut connection: Connection,
        path: PathBuf,
        presence: Arc<Presence>,
    ) -> rusqlite::Result<Self> {
        let log_pages = Arc::new(AtomicUsize::new(0));
        let pages = Arc::clone(&log_pages);
        connection.wal_hook(Some(move |_: &mut _, count: i32| {
            pages.store(usize::try_from(count).unwrap_or(0), Ordering::Relaxed);
            Ok(())
        }))?;
        let mut scribe = Self {
            connection,
            path,
            presence,
            live: LiveSessions::default(),
            lagging: false,
            body: Vec::new(),
            seen: 0,
            version: 0,
            log_pages,
            fold_at: LOG_PAGES,
        };
        scribe.look_around()?;
        scribe.drop_stale_claims()?;
        Ok(scribe)
    }

    /// Whether rows of running sessions are behind.
    pub(crate) fn lags(&self) -> bool {
        self.lagging
    }

    /// A number that changes with every change of another process, and with mail from this one.
    pub(crate) fn version(&mut self) -> Result<u64, StoreError> {
        self.look_around().map_err(|error| explain(&self.path, &error))?;
        Ok(self.version)
    }

    /// Write a batch. After an error nothing of it is written, and all of it can be tried again.
    pub(crate) fn write(&mut self, batch: &Batch) -> Result<Vec<Verdict>, StoreError> {
        if batch.jobs.is_empty() && !(batch.level && self.lagging) {
            return Ok(Vec::new());
        }
        self.transact(batch).map_err(|error| {
            if !self.connection.is_autocommit() {
                // If this fails as well, so does the next BEGIN, and that error is told.
                let _ = self.run("ROLLBACK");
            }
            self.forget();
            explain(&self.path, &error)
        })
    }

    fn transact(&mut self, batch: &Batch) -> rusqlite::Result<Vec<Verdict>> {
        self.run("BEGIN IMMEDIATE")?;
        // From here on nobody else writes, so what is remembered of sessions is true.
        self.look_around()?;
        let mut refused = batch.refused.clone();
        let mut verdicts = Vec::with_capacity(batch.jobs.len());
        for job in &batch.jobs {
            verdicts.push(self.judge(job, &mut refused)?);
        }
        self.save_rows(batch)?;
        self.run("COMMIT")?;
        let posts = |job: &&Job| matches!(job, Job::Post { .. });
        self.version += batch.jobs.iter().filter(posts).count() as u64;
        Ok(verdicts)
    }

    /// Do a job. Once an append is refused, so is all that follows on it, until somebody was told:
    /// a journal must not go on behind a hole.
    fn judge(&mut self, job: &Job, refused: &mut HashSet<SessionId>) -> rusqlite::Result<Verdict> {
        let follows_on = match job {
            Job::Create { session, .. } | Job::Append { session, .. } => Some(session),
            _ => None,
        };
        if follows_on.is_some_and(|session| refused.contains(session)) {
            return Ok(Verdict::Skipped);
        }
        match self.carry_out(job) {
            Ok(()) => Ok(Verdict::Done),
            Err(Trouble::Refused(error)) => {
                refused.extend(follows_on.cloned());
                Ok(Verdict::Refused(error))
            }
            Err(Trouble::Sqlite(error)) => Err(error),
        }
    }

    fn carry_out(&mut self, job: &Job) -> Result<(), Trouble> {
        match job {
            Job::Create { session, entries, serial } => self.create(session, entries, *serial),
            Job::Append { session, entries } => self.append(session, entries),
            Job::Release { session, serial } => Ok(self.release(session, *serial)?),
            Job::Claim { session, serial, .. } => self.claim(session, *serial),
            Job::Post { session, mail, .. } => self.post(session, mail),
            Job::Acknowledge { session, up_to, .. } => self.acknowledge(session, *up_to),
            Job::Delete { session, .. } => self.delete(session),
        }
    }

    /// Fold the log into the file when it is long. Done after those who wait were answered.
    pub(crate) fn fold_log(&mut self) {
        let pages = self.log_pages.load(Ordering::Relaxed);
        if pages + LOG_PAGES < self.fold_at {
            // The log was begun anew since.
            self.fold_at = LOG_PAGES;
        }
        if pages >= self.fold_at {
            // A reader may hold it back, or the disk be full: then it is done a little later.
            let _ = self.run("PRAGMA wal_checkpoint(PASSIVE)");
            self.fold_at = pages + LOG_PAGES;
        }
    }

    /// Notice what other processes wrote.
    fn look_around(&mut self) -> rusqlite::Result<()> {
        let seen = self
            .connection
            .prepare_cached("PRAGMA data_version")?
            .query_row([], |row| row.get(0))?;
        if seen != self.seen {
            self.seen = seen;
            self.version += 1;
            self.forget();
        }
        Ok(())
    }

    fn forget(&mut self) {
        self.live.clear();
        self.lagging = false;
    }

    fn run(&self, sql: &str) -> rusqlite::Result<()> {
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut rows = statement.query([])?;
        while rows.next()?.is_some() {}
        Ok(())
    }
}
