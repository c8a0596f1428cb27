//! Where journals are kept.

use std::{fmt, sync::Arc};

use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};

use crate::{Answer, CallId, Entry, Event, ForkPoint, Message, Outcome, RunId, SessionId};

mod memory;

pub use memory::MemoryStore;

/// A place that keeps journals.
///
/// `append` only queues; `flush` waits until everything appended to a session before is safe. The
/// driver flushes before every side effect and at the end of every turn.
pub trait Store: Send + Sync + 'static {
    /// Begin a journal with its first entries. Whoever begins it owns it.
    fn create(&self, session: &SessionId, entries: Vec<Arc<Entry>>) -> Result<Claim, StoreError>;

    /// Queue entries at the end of a journal, in order. An error of an earlier append comes out
    /// at the next `flush`.
    fn append(&self, session: &SessionId, entries: Vec<Arc<Entry>>) -> Result<(), StoreError>;

    /// Wait until all that was appended to the session is durable.
    fn flush(&self, session: &SessionId) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Up to `limit` entries from sequence number `from` on, queued ones included.
    fn read(
        &self,
        session: &SessionId,
        from: u64,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Arc<Entry>>, StoreError>>;

    /// The summary of one session.
    fn summary(
        &self,
        session: &SessionId,
    ) -> BoxFuture<'_, Result<Option<SessionSummary>, StoreError>>;

    /// Sessions, the last changed first.
    fn list(&self, query: ListQuery) -> BoxFuture<'_, Result<Vec<SessionSummary>, StoreError>>;

    /// The ids that begin with `prefix`, at most `limit`.
    fn find(&self, prefix: &str, limit: usize)
    -> BoxFuture<'_, Result<Vec<SessionId>, StoreError>>;

    /// Delete a session for good.
    fn delete(&self, session: &SessionId) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Become the only one who writes the session, until the claim is dropped or the process
    /// ends, however it ends.
    fn claim(&self, session: &SessionId) -> BoxFuture<'_, Result<Claim, StoreError>>;

    /// Leave something for whoever owns the session, now or later.
    fn post(&self, session: &SessionId, mail: Mail) -> BoxFuture<'_, Result<(), StoreError>>;

    /// What was posted and not yet acknowledged, oldest first, with a number for each.
    fn mail(&self, session: &SessionId) -> BoxFuture<'_, Result<Vec<(u64, Mail)>, StoreError>>;

    /// Forget mail up to and with this number; its content is in the journal now.
    fn acknowledge(&self, session: &SessionId, up_to: u64)
    -> BoxFuture<'_, Result<(), StoreError>>;

    /// How many sessions that are over it keeps, where it forgets the oldest by itself.
    fn keeps(&self) -> Option<usize> {
        None
    }

    /// A number that changes whenever another process changed something; cheap to ask often.
    fn version(&self) -> BoxFuture<'_, Result<u64, StoreError>>;
}

/// Input for a session that comes from another process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "mail", rename_all = "snake_case")]
pub enum Mail {
    /// An answer to an inquiry.
    Answer {
        /// The inquiry.
        id: CallId,
        /// The answer.
        #[serde(flatten)]
        answer: Answer,
        /// Who answered.
        #[serde(default)]
        by: Option<String>,
    },
    /// A message for the agent.
    Request {
        /// The message; its id keeps it from being delivered twice.
        message: Message,
    },
    /// Stop what you do.
    Cancel {
        /// Why.
        reason: String,
    },
}

/// The right to write a session, given back when dropped.
pub struct Claim(Option<Box<dyn FnOnce() + Send + Sync>>);

impl Claim {
    /// A claim that runs `release` when it is dropped.
    pub fn new(release: impl FnOnce() + Send + Sync + 'static) -> Self {
        Self(Some(Box::new(release)))
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if let Some(release) = self.0.take() {
            release();
        }
    }
}

impl fmt::Debug for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Claim")
    }
}

/// Why a store did not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// There is no such session.
    #[error("there is no session {0}")]
    NotFound(SessionId),
    /// Somebody else writes it now.
    #[error("session {session} is in use by {owner}")]
    Busy {
        /// The session.
        session: SessionId,
        /// Who has it, for a person.
        owner: String,
    },
    /// The session exists already.
    #[error("session {0} exists already")]
    Exists(SessionId),
    /// An entry does not follow the last one.
    #[error("session {session}: entry {found} does not follow, {expected} is next")]
    OutOfOrder {
        /// The session.
        session: SessionId,
        /// What came.
        found: u64,
        /// What was due.
        expected: u64,
    },
    /// The store itself failed.
    #[error("{0}")]
    Io(String),
}

/// Which sessions to list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListQuery {
    /// At most this many; 0 means 50.
    pub limit: usize,
    /// Only those whose last change is before this time, for the next page.
    pub before: Option<i64>,
    /// Only those of this agent.
    pub agent: Option<String>,
    /// Only those whose last outcome has this name, such as `input_required`; `running` stands
    /// for those in the middle of a turn.
    pub status: Option<String>,
}

/// What a list shows of a session. It is folded from the entries, like everything else.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionSummary {
    /// Its id.
    pub id: SessionId,
    /// Its agent.
    pub agent: String,
    /// The first line of the first request.
    pub title: String,
    /// When it began, in milliseconds since 1970.
    pub created_at: i64,
    /// When its last entry was written.
    pub updated_at: i64,
    /// How many entries it has.
    pub entries: u64,
    /// The last outcome's name, `running` in the middle of a turn, or `new`.
    pub status: String,
    /// Where it was copied from.
    pub forked_from: Option<ForkPoint>,
}

impl SessionSummary {
    /// The most characters of a title.
    const TITLE_CHARS: usize = 80;

    /// Nothing known yet.
    pub fn new(id: SessionId) -> Self {
        Self {
            id,
            agent: String::new(),
            title: String::new(),
            created_at: 0,
            updated_at: 0,
            entries: 0,
            status: "new".into(),
            forked_from: None,
        }
    }

    /// Take in the next entry.
    pub fn fold(&mut self, entry: &Entry) {
        if self.entries == 0 {
            self.created_at = entry.at;
        }
        self.entries = entry.seq + 1;
        self.updated_at = entry.at;
        match &entry.event {
            Event::SessionStarted { agent, forked_from, .. } => {
                self.agent.clone_from(agent);
                self.forked_from.clone_from(forked_from);
            }
            Event::UserRequest { message, .. }
                if entry.run == RunId::ROOT && self.title.is_empty() =>
            {
                self.title = title_of(message);
            }
            Event::AgentResponseStart { .. } if entry.run == RunId::ROOT => {
                "running".clone_into(&mut self.status);
            }
            Event::AgentResponseEnd { outcome, .. } if entry.run == RunId::ROOT => {
                outcome.name().clone_into(&mut self.status);
            }
            _ => {}
        }
    }

    /// Whether the session waits for somebody.
    pub fn waits(&self) -> bool {
        self.status == Outcome::InputRequired { inquiries: Vec::new() }.name()
    }
}

fn title_of(message: &Message) -> String {
    let text = message.text();
    let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
    let mut title: String = line.chars().take(SessionSummary::TITLE_CHARS).collect();
    if title.len() < line.len() {
        title.push('…');
    }
    title
}
