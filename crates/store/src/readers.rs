//! The threads that read. Each has its own connection; they are started when there is something
//! to read, and never wait for the writer.

use std::{
    collections::VecDeque,
    path::PathBuf,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use duologue_core::StoreError;
use futures::channel::oneshot;
use rusqlite::Connection;

use crate::{
    error::{self, explain},
    schema,
};

/// How many readers there are at most.
const MOST: usize = 2;

/// What a reader does. Without a connection, it is told why.
type Work = Box<dyn FnOnce(Result<&Connection, StoreError>) + Send>;

/// A few threads that read.
pub(crate) struct Readers {
    shared: Arc<Shared>,
}

struct Shared {
    path: PathBuf,
    busy_timeout: Duration,
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Default)]
struct State {
    work: VecDeque<Work>,
    threads: usize,
    idle: usize,
    closed: bool,
    ends: Vec<oneshot::Sender<()>>,
}

impl Readers {
    pub(crate) fn new(path: PathBuf, busy_timeout: Duration) -> Self {
        Self {
            shared: Arc::new(Shared {
                path,
                busy_timeout,
                state: Mutex::default(),
                wake: Condvar::new(),
            }),
        }
    }

    /// Read something.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        query: impl FnOnce(&Connection) -> Result<T, QueryError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        let path = self.shared.path.clone();
        self.push(Box::new(move |connection| {
            if reply.is_canceled() {
                return;
            }
            let result = connection.and_then(|connection| {
                query(connection).map_err(|error| match error {
                    QueryError::Sqlite(error) => explain(&path, &error),
                    QueryError::Store(error) => error,
                })
            });
            // Somebody who no longer waits need not know.
            drop(reply.send(result));
        }))?;
        answer.await.unwrap_or_else(|_| Err(error::closed()))
    }

    /// Let the threads do what they have and end. What comes back is there when they have.
    pub(crate) fn close(&self) -> oneshot::Receiver<()> {
        let (end, ended) = oneshot::channel();
        let mut state = self.shared.state();
        state.closed = true;
        // Kept until the last thread drops it: that is the news.
        if state.threads > 0 {
            state.ends.push(end);
        }
        drop(state);
        self.shared.wake.notify_all();
        ended
    }

    fn push(&self, work: Work) -> Result<(), StoreError> {
        let mut state = self.shared.state();
        if state.closed {
            return Err(error::closed());
        }
        if state.idle <= state.work.len() && state.threads < MOST {
            match self.start() {
                Ok(()) => state.threads += 1,
                // One that runs will come to it.
                Err(_) if state.threads > 0 => {}
                Err(error) => {
                    return Err(StoreError::Io(format!("no thread to read with: {error}")));
                }
            }
        }
        state.work.push_back(work);
        drop(state);
        self.shared.wake.notify_one();
        Ok(())
    }

    fn start(&self) -> std::io::Result<()> {
        let shared = Arc::clone(&self.shared);
        thread::Builder::new().name("duologue-reader".into()).spawn(move || shared.run()).map(drop)
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        drop(self.close());
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        // Declared first, it is dropped last: the connection is closed by then.
        let _leave = Leave(self);
        let mut connection = None;
        while let Some(work) = self.next() {
            if connection.is_none() {
                match schema::open_reader(&self.path, self.busy_timeout) {
                    Ok(opened) => connection = Some(opened),
                    Err(error) => {
                        work(Err(explain(&self.path, &error)));
                        continue;
                    }
                }
            }
            if let Some(connection) = &connection {
                work(Ok(connection));
            }
        }
    }

    /// The next thing to do; nothing when the readers are closed and all is done.
    fn next(&self) -> Option<Work> {
        let mut state = self.state();
        loop {
            if let Some(work) = state.work.pop_front() {
                return Some(work);
            }
            if state.closed {
                return None;
            }
            state.idle += 1;
            state = self.wake.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.idle -= 1;
        }
    }
}

/// Says that a thread is gone, however it ends.
struct Leave<'a>(&'a Shared);

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.threads -= 1;
        if state.threads == 0 {
            state.ends.clear();
        }
    }
}

/// Why a query has no answer.
pub(crate) enum QueryError {
    /// There is none.
    Store(StoreError),
    /// The file could not be read.
    Sqlite(rusqlite::Error),
}

impl From<rusqlite::Error> for QueryError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<StoreError> for QueryError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}
