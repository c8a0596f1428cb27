//! The store itself: the queue, the writer and the readers behind the trait.

use std::{
    fmt,
    path::{self, Path, PathBuf},
    sync::{Arc, Mutex, PoisonError, Weak},
    thread::{self, JoinHandle},
};

use duologue_core::{Claim, Entry, ListQuery, Mail, SessionId, SessionSummary, Store, StoreError};
use futures::{
    channel::oneshot,
    future::{BoxFuture, FutureExt, Shared, ready},
};

use crate::{
    OpenError, SqliteOptions, error,
    files::{make_private_folder, resolve, unwritable},
    locks::{Presence, Registry},
    queries,
    queue::{self, Job, Queue, Reply, Settled, Summaries},
    readers::Readers,
    schema,
    scribe::Scribe,
    writer::Writer,
};

/// Journals in an SQLite file, shared by all processes that open it.
///
/// Clones are the same store. It is closed by [`close`](Self::close), or when the last clone is
/// dropped; dropping waits for what is queued, so prefer `close` in async code.
///
/// A claim that is dropped is given back by the writer, a moment later. Within this store that
/// makes no difference, because the next claim stands behind it in the queue.
///
/// # When the file cannot be written
///
/// What `create` and `append` accepted is kept in memory and tried again: with every flush, and
/// every second. The flush that fails tells why, for as long as it fails; once there is space
/// again, or the other process lets go, a flush succeeds and nothing is missing. Meanwhile the
/// queue grows up to [`SqliteOptions::queue`], then appends are refused.
///
/// An append that can never be written, because it does not follow on the last entry or its session
/// does not exist, is dropped, and the next flush of that session says so, once. Whatever else
/// was appended to the session before that flush is dropped with it: nothing is written behind a
/// hole.
#[derive(Clone)]
pub struct SqliteStore {
    inner: Arc<Inner>,
}

struct Inner {
    path: PathBuf,
    desk: Desk,
    readers: Readers,
    writer: Mutex<Option<JoinHandle<()>>>,
    /// Comes when the writer has closed the file.
    closed: Shared<oneshot::Receiver<()>>,
}

/// The way to the writer. The writer ends when it is dropped.
struct Desk {
    queue: Arc<Queue>,
    /// The writer's, and that of every claim: with the last of them, this process lets go.
    presence: Weak<Presence>,
}

impl Desk {
    fn presence(&self) -> Result<Arc<Presence>, StoreError> {
        self.presence.upgrade().ok_or_else(error::closed)
    }
}

impl SqliteStore {
    /// Open the journal file at `path`. The file and its folder are made where they are missing,
    /// for the eyes of their owner only.
    pub async fn open(path: impl AsRef<Path>, options: SqliteOptions) -> Result<Self, OpenError> {
        let path =
            path::absolute(path.as_ref()).map_err(|source| unwritable(path.as_ref(), source))?;
        let readers = Readers::new(path.clone(), options.busy_timeout);
        let (reply, opened) = oneshot::channel();
        let (end, closed) = oneshot::channel();
        let file = path.clone();
        let work = move || {
            match open_writer(&file, &options) {
                Ok((desk, writer)) => {
                    if reply.send(Ok(desk)).is_ok() {
                        writer.run();
                    }
                }
                // Somebody who no longer waits need not know.
                Err(error) => drop(reply.send(Err(error))),
            }
            drop(end);
        };
        let writer = thread::Builder::new()
            .name("duologue-writer".into())
            .spawn(work)
            .map_err(|source| unwritable(&path, source))?;
        let desk = opened.await.unwrap_or_else(|_| {
            Err(OpenError::Sqlite {
                path: path.clone(),
                reason: "the writer ended while it opened the file".into(),
            })
        })?;
        Ok(Self {
            inner: Arc::new(Inner {
                path,
                desk,
                readers,
                writer: Mutex::new(Some(writer)),
                closed: closed.shared(),
            }),
        })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.inner.path
    }

    /// Write what is queued and close the file. If it cannot be written, the store stays open and
    /// keeps what it has. After it is closed, every use is an error.
    pub async fn close(&self) -> Result<(), StoreError> {
        let inner = &self.inner;
        wait(inner.desk.queue.settle_all(Summaries::Level)).await?;
        // Senders that are dropped are the news here: a thread has ended, its connection closed. The
        // writer is the last, and leaves the file without a log.
        let _ = inner.readers.close().await;
        inner.desk.queue.close();
        let _ = inner.closed.clone().await;
        Ok(())
    }

    /// Hand a job to the writer and wait for its answer.
    fn ask<T: Send + 'static>(
        &self,
        job: impl FnOnce(Reply<T>) -> Job,
    ) -> BoxFuture<'static, Result<T, StoreError>> {
        let (reply, answer) = oneshot::channel();
        match self.inner.desk.queue.push(job(reply)) {
            Ok(()) => answer.map(told).boxed(),
            Err(error) => ready(Err(error)).boxed(),
        }
    }
}

fn open_writer(path: &Path, options: &SqliteOptions) -> Result<(Desk, Writer), OpenError> {
    if let Some(folder) = path.parent() {
        make_private_folder(folder)?;
    }
    let registry = Registry::enter(&resolve(path)?, options.busy_timeout)?;
    let connection = schema::open_writer(path, options)?;
    let presence = Arc::new(registry.announce()?);
    registry.clean();
    let scribe = Scribe::new(connection, path.to_owned(), Arc::clone(&presence))
        .map_err(|error| OpenError::from_sqlite(path, options.busy_timeout, &error))?;
    let queue = Arc::new(Queue::new(options.queue));
    let desk = Desk { queue: Arc::clone(&queue), presence: Arc::downgrade(&presence) };
    Ok((desk, Writer::new(queue, presence, scribe)))
}

impl Drop for Desk {
    fn drop(&mut self) {
        self.queue.close();
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        drop(self.readers.close());
        self.desk.queue.close();
        let writer = self.writer.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(writer) = writer {
            // A writer that panicked has nothing left to say.
            let _ = writer.join();
        }
    }
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SqliteStore").field(&self.inner.path).finish()
    }
}

impl Store for SqliteStore {
    fn create(&self, session: &SessionId, entries: Vec<Arc<Entry>>) -> Result<Claim, StoreError> {
        let desk = &self.inner.desk;
        let presence = desk.presence()?;
        let serial = presence.next_serial();
        desk.queue.create(session, entries, serial)?;
        Ok(queue::claim(&desk.queue, &presence, session, serial))
    }

    fn append(&self, session: &SessionId, entries: Vec<Arc<Entry>>) -> Result<(), StoreError> {
        self.inner.desk.queue.append(session, entries)
    }

    fn flush(&self, session: &SessionId) -> BoxFuture<'_, Result<(), StoreError>> {
        match self.inner.desk.queue.flush(session) {
            Ok(Some(answer)) => answer.map(told).boxed(),
            Ok(None) => ready(Ok(())).boxed(),
            Err(error) => ready(Err(error)).boxed(),
        }
    }

    fn read(
        &self,
        session: &SessionId,
        from: u64,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Arc<Entry>>, StoreError>> {
        let settled = self.inner.desk.queue.settle(session);
        let session = session.clone();
        async move {
            wait(settled).await?;
            let query = move |file: &_| queries::entries(file, &session, from, limit);
            self.inner.readers.read(query).await
        }
        .boxed()
    }

    fn summary(
        &self,
        session: &SessionId,
    ) -> BoxFuture<'_, Result<Option<SessionSummary>, StoreError>> {
        let settled = self.inner.desk.queue.settle(session);
        let session = session.clone();
        async move {
            wait(settled).await?;
            let query = move |file: &_| queries::summary(file, &session);
            self.inner.readers.read(query).await
        }
        .boxed()
    }

    fn list(&self, query: ListQuery) -> BoxFuture<'_, Result<Vec<SessionSummary>, StoreError>> {
        let settled = self.inner.desk.queue.settle_all(Summaries::Level);
        async move {
            // With a full disk, a list still shows what is there.
            let _ = wait(settled).await;
            let query = move |file: &_| queries::list(file, &query);
            self.inner.readers.read(query).await
        }
        .boxed()
    }

    fn find(
        &self,
        prefix: &str,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<SessionId>, StoreError>> {
        let settled = self.inner.desk.queue.settle_all(Summaries::MayLag);
        let prefix = prefix.to_owned();
        async move {
            let _ = wait(settled).await;
            let query = move |file: &_| queries::find(file, &prefix, limit);
            self.inner.readers.read(query).await
        }
        .boxed()
    }

    fn delete(&self, session: &SessionId) -> BoxFuture<'_, Result<(), StoreError>> {
        let session = session.clone();
        self.ask(|reply| Job::Delete { session, reply })
    }

    fn claim(&self, session: &SessionId) -> BoxFuture<'_, Result<Claim, StoreError>> {
        let session = session.clone();
        let serial = match self.inner.desk.presence() {
            Ok(presence) => presence.next_serial(),
            Err(error) => return ready(Err(error)).boxed(),
        };
        self.ask(|reply| Job::Claim { session, serial, reply })
    }

    fn post(&self, session: &SessionId, mail: Mail) -> BoxFuture<'_, Result<(), StoreError>> {
        let session = session.clone();
        self.ask(|reply| Job::Post { session, mail, reply })
    }

    fn mail(&self, session: &SessionId) -> BoxFuture<'_, Result<Vec<(u64, Mail)>, StoreError>> {
        // A session that was begun a moment ago must be found.
        let settled = self.inner.desk.queue.settle(session);
        let session = session.clone();
        async move {
            wait(settled).await?;
            let query = move |file: &_| queries::mail(file, &session);
            self.inner.readers.read(query).await
        }
        .boxed()
    }

    fn acknowledge(
        &self,
        session: &SessionId,
        up_to: u64,
    ) -> BoxFuture<'_, Result<(), StoreError>> {
        let session = session.clone();
        self.ask(|reply| Job::Acknowledge { session, up_to, reply })
    }

    fn version(&self) -> BoxFuture<'_, Result<u64, StoreError>> {
        let (reply, answer) = oneshot::channel();
        match self.inner.desk.queue.ask_version(reply) {
            Ok(()) => answer.map(told).boxed(),
            Err(error) => ready(Err(error)).boxed(),
        }
    }
}

/// An answer of the writer, who may have ended before it gave one.
fn told<T>(answer: Result<Result<T, StoreError>, oneshot::Canceled>) -> Result<T, StoreError> {
    answer.unwrap_or_else(|_| Err(error::closed()))
}

async fn wait(settled: Settled) -> Result<(), StoreError> {
    match settled? {
        Some(answer) => told(answer.await),
        None => Ok(()),
    }
}
