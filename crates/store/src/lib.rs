//! Duologue's journal on SQLite: [`SqliteStore`] keeps sessions in one file that several processes
//! share.
//!
//! ```
//! use std::sync::Arc;
//!
//! use duologue_core::{Entry, Event, RunId, SessionId, Store};
//! use duologue_store::{SqliteOptions, SqliteStore};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # futures::executor::block_on(async {
//! # let folder = tempfile::tempdir()?;
//! let store = SqliteStore::open(folder.path().join("journal.db"), SqliteOptions::default()).await?;
//! let session = SessionId::random();
//! let entry = Arc::new(Entry {
//!     seq: 0,
//!     at: 1_700_000_000_000,
//!     run: RunId::ROOT,
//!     event: Event::AgentResponseStart { turn: 1 },
//! });
//! // Whoever begins a session owns it, here and in every other process, until the claim is dropped.
//! let claim = store.create(&session, vec![Arc::clone(&entry)])?;
//! store.flush(&session).await?;
//! assert_eq!(store.read(&session, 0, 100).await?, [entry]);
//! drop(claim);
//! store.close().await?;
//! # Ok(())
//! # })
//! # }
//! ```
//!
//! # The way of an entry
//!
//! ```text
//! append ──▶ queue ──▶ writer ──▶ scribe ──▶ file ◀── readers ◀── read, list, find, mail
//!              ▲          │       one transaction      two threads
//! flush ───────┘          └──▶ flush is answered
//! ```
//!
//! - `store` is the trait's side: it never blocks, it queues and waits.
//! - `queue` gathers what is to be written and who waits for it, and wakes the writer only when
//!   somebody waits.
//! - `writer` is the one thread that writes. It takes all that waits at once, so that a thousand
//!   sessions that flush together cost one commit.
//! - `scribe` does the writing: journals, claims and mail. `live` keeps the summaries of
//!   the sessions that are being written, so that they are folded and not read back.
//! - `readers` are threads with connections of their own; `queries` is what they ask, and `rows`
//!   is what a row means.
//! - `schema` is the file and its versions, `files` its permissions.
//! - `locks` tells which processes are alive, so that a claim ends with its process, however that
//!   ends.

mod error;
mod files;
mod live;
mod locks;
mod options;
mod queries;
mod queue;
mod readers;
mod rows;
mod schema;
mod scribe;
mod store;
mod writer;

pub use error::OpenError;
pub use options::{Durability, SqliteOptions};
pub use store::SqliteStore;
