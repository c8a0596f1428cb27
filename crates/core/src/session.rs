//! Sessions: a conversation with an agent, live.

use std::{
    fmt,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::OwnedMutexGuard;

use crate::{
    Agent, Answer, Budget, CallId, Entry, Event, Expectation, ForkPoint, Inquiry, InquiryKind,
    Mail, Message, Metadata, Outcome, RunId, SCHEMA_VERSION, SessionId, Store, StoreError, Usage,
    detach,
    driver::{self, Said},
};

mod channels;
mod error;
mod events;
mod ledger;
mod shared;

pub use channels::Input;
pub use error::SessionError;
pub use events::{Events, Live};
pub(crate) use ledger::Ledger;
pub(crate) use shared::{Results, Shared, now_ms};

/// Where the first entry says what the session may use.
pub(crate) const GIVEN_BUDGET: &str = "given_budget";

/// How many entries are read at a time.
const PAGE: usize = 1000;

/// How long a turn that just begins or ends is waited for before it is looked at again.
const JUST: Duration = Duration::from_millis(1);

/// A conversation with an agent. Clones are the same conversation.
///
/// ```
/// # use std::sync::Arc;
/// # use duologue_core::*;
/// # struct Parrot;
/// # impl Model for Parrot {
/// #     fn name(&self) -> &str { "test/parrot" }
/// #     fn ask(&self, request: Request) -> DeltaStream {
/// #         let text = request.messages.last().map(|m| m.text()).unwrap_or_default();
/// #         let deltas = [Ok(Delta::Text(text)), Ok(Delta::Stop(StopReason::Completed))];
/// #         Box::pin(futures::stream::iter(deltas))
/// #     }
/// # }
/// # struct Once;
/// # impl Behavior for Once {
/// #     type State = ();
/// #     fn name(&self) -> &'static str { "once" }
/// #     fn decide(&self, run: &RunState, _: &()) -> Step {
/// #         match run.latest() {
/// #             Latest::Input => Step::Ask(Ask::default()),
/// #             _ => Step::End(Outcome::Completed),
/// #         }
/// #     }
/// # }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), SessionError> {
/// # let agent = Agent::builder("parrot", Once).model(Arc::new(Parrot)).build();
/// let session = Session::start(&agent, Arc::new(MemoryStore::new()), SessionOptions::default())?;
/// let reply = session.reply("Hello").await?;
/// assert_eq!(reply.outcome, Outcome::Completed);
/// assert_eq!(reply.text(), "Hello");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Session {
    shared: Arc<Shared>,
}

/// How a session is begun or taken up.
#[derive(Clone, Debug, Default)]
pub struct SessionOptions {
    /// What it may use besides what its agent may. It is written into the first entry.
    pub budget: Budget,
    /// Its id; a random one otherwise.
    pub id: Option<SessionId>,
    /// What the application wants to find again in the first entry.
    pub metadata: Metadata,
    /// Whether somebody is there to be asked when a budget is used up.
    pub attendance: Attendance,
}

/// Whether anybody is there to be asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Attendance {
    /// Nobody: a used-up budget ends the turn.
    #[default]
    Unattended,
    /// Somebody, now or later: a used-up budget pauses and asks.
    Attended,
}

/// What a request does when the session is busy with another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenBusy {
    /// It waits for its own turn.
    #[default]
    Queue,
    /// It joins the turn under way, before the next step.
    Steer,
    /// It is an error.
    Refuse,
    /// It joins the turn under way; that there is none is an error.
    Join,
}

/// How a turn ended and what was said.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    /// Which turn it was.
    pub turn: u32,
    /// How it ended.
    pub outcome: Outcome,
    /// What the agent said last.
    pub message: Option<Arc<Message>>,
    /// What the task used so far, children included.
    pub usage: Usage,
}

impl Reply {
    /// The answer that was given by calling the tool of an [`Expectation`].
    pub fn structured(&self, name: &str) -> Option<&Value> {
        self.message.as_ref().and_then(|message| message.structured(name))
    }

    /// The text of the message, or nothing.
    pub fn text(&self) -> String {
        self.message.as_ref().map(|message| message.text()).unwrap_or_default()
    }
}

/// A session that can be carried elsewhere: its journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SessionState {
    /// The version of the schema.
    pub schema: u32,
    /// All entries.
    pub entries: Vec<Arc<Entry>>,
}

impl Session {
    /// Begin a session.
    pub fn start(
        agent: &Agent,
        store: Arc<dyn Store>,
        options: SessionOptions,
    ) -> Result<Self, SessionError> {
        let SessionOptions { budget, id, mut metadata, attendance } = options;
        let id = id.unwrap_or_else(SessionId::random);
        if budget != Budget::default() {
            let given = serde_json::to_value(budget).unwrap_or_default();
            metadata.insert(GIVEN_BUDGET.to_owned(), given);
        }
        let first = Entry {
            seq: 0,
            at: now_ms(),
            run: RunId::ROOT,
            event: Event::SessionStarted {
                schema: SCHEMA_VERSION,
                agent: agent.name().to_owned(),
                forked_from: None,
                metadata,
            },
        };
        Self::begin(agent, store, id, vec![Arc::new(first)], attendance)
    }

    /// Take up a session that exists, whatever state its last process left it in.
    pub async fn open(
        agent: &Agent,
        store: Arc<dyn Store>,
        id: &SessionId,
        options: SessionOptions,
    ) -> Result<Self, SessionError> {
        let claim = store.claim(id).await?;
        let mut ledger = Ledger::new(agent.clone());
        for entry in read_all(&*store, id).await? {
            check_schema(&entry)?;
            ledger.fold(&entry);
        }
        let shared = Shared::new(store, id.clone(), ledger, claim, options.attendance);
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Begin a session with the state of another, under a new id.
    pub fn load_state(
        agent: &Agent,
        store: Arc<dyn Store>,
        state: &SessionState,
        options: SessionOptions,
    ) -> Result<Self, SessionError> {
        if state.schema > SCHEMA_VERSION {
            return Err(SessionError::NewerSchema { found: state.schema });
        }
        let id = options.id.unwrap_or_else(SessionId::random);
        Self::begin(agent, store, id, state.entries.clone(), options.attendance)
    }

    fn begin(
        agent: &Agent,
        store: Arc<dyn Store>,
        id: SessionId,
        entries: Vec<Arc<Entry>>,
        attendance: Attendance,
    ) -> Result<Self, SessionError> {
        let mut ledger = Ledger::new(agent.clone());
        for entry in &entries {
            check_schema(entry)?;
            ledger.fold(entry);
        }
        let claim = store.create(&id, entries)?;
        let shared = Shared::new(store, id, ledger, claim, attendance);
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Its id.
    pub fn id(&self) -> &SessionId {
        &self.shared.id
    }

    /// Say something and wait for the end of the turn. A busy session takes it up afterwards.
    ///
    /// The turn goes on when the returned future is dropped; [`cancel`](Self::cancel) ends it.
    pub async fn reply(&self, message: impl Into<Message>) -> Result<Reply, SessionError> {
        self.reply_when_busy(message, WhenBusy::Queue).await
    }

    /// Say something that must be answered with a structure, which
    /// [`Expectation::read`] then reads from the reply's message. A model that answers in prose all
    /// the same is asked for the structure a few times; if it never gives one, the turn ends
    /// completed with the prose, and it is for the caller to take a safe default.
    pub async fn reply_expecting(
        &self,
        message: impl Into<Message>,
        expectation: Expectation,
    ) -> Result<Reply, SessionError> {
        let guard = Arc::clone(&self.shared.turn).lock_owned().await;
        let message = Arc::new(message.into());
        self.take_turn(guard, Some(Said { message, expects: Some(Arc::new(expectation)) })).await
    }

    /// Say something, with a choice of what happens when a turn is under way.
    pub async fn reply_when_busy(
        &self,
        message: impl Into<Message>,
        when_busy: WhenBusy,
    ) -> Result<Reply, SessionError> {
        let message = Arc::new(message.into());
        if when_busy == WhenBusy::Join {
            return self.join(&message).await;
        }
        let guard = match (Arc::clone(&self.shared.turn).try_lock_owned(), when_busy) {
            (Ok(guard), _) => guard,
            (Err(_), WhenBusy::Refuse) => return Err(SessionError::Busy),
            (Err(_), WhenBusy::Queue) => Arc::clone(&self.shared.turn).lock_owned().await,
            (Err(_), WhenBusy::Steer | WhenBusy::Join) => {
                if let Some(reply) = self.shared.steer(&message)? {
                    let lost = || SessionError::Defect("the turn ended without a reply".into());
                    return reply.await.map_err(|_| lost());
                }
                Arc::clone(&self.shared.turn).lock_owned().await
            }
        };
        self.take_turn(guard, Some(Said { message, expects: None })).await
    }

    /// Go on with a turn that a process left in the middle, or that waited for answers which are
    /// there now. Nothing to go on with gives the last reply again.
    pub async fn resume(&self) -> Result<Reply, SessionError> {
        let guard = Arc::clone(&self.shared.turn).lock_owned().await;
        self.take_turn(guard, None).await
    }

    /// Join the turn under way.
    async fn join(&self, message: &Arc<Message>) -> Result<Reply, SessionError> {
        loop {
            if Arc::clone(&self.shared.turn).try_lock_owned().is_ok() {
                return Err(SessionError::NotUnderWay);
            }
            if let Some(reply) = self.shared.steer(message)? {
                let lost = || SessionError::Defect("the turn ended without a reply".into());
                return reply.await.map_err(|_| lost());
            }
            // It is just beginning, or just over.
            tokio::time::sleep(JUST).await;
        }
    }

    /// Put the session down as it is, a turn under way included, as if the process had ended:
    /// whoever opens it next goes on with it. Nothing more can be done with these handles.
    pub async fn suspend(&self) -> Result<(), SessionError> {
        self.shared.suspended.cancel();
        drop(self.shared.turn.lock().await);
        self.shared.store.flush(&self.shared.id).await?;
        Ok(())
    }

    async fn take_turn(
        &self,
        guard: OwnedMutexGuard<()>,
        said: Option<Said>,
    ) -> Result<Reply, SessionError> {
        let shared = Arc::clone(&self.shared);
        // A caller that goes away does not leave a turn half done.
        let turn = detach(async move {
            let reply = tokio::select! {
                biased;
                () = shared.suspended.cancelled() => Err(SessionError::Suspended),
                reply = driver::turn(&shared, said) => reply.map_err(SessionError::from),
            };
            for steering in shared.take_steering() {
                if let Ok(reply) = &reply {
                    // A caller that went away does not want it.
                    let _ = steering.send(reply.clone());
                }
            }
            drop(guard);
            reply
        });
        match turn.await {
            Ok(reply) => reply,
            Err(error) => Err(SessionError::Defect(error.to_string())),
        }
    }

    /// Let the agent know something that it need not answer.
    pub fn observe(&self, message: impl Into<Message>) -> Result<(), SessionError> {
        let message = Arc::new(message.into());
        self.shared.append(RunId::ROOT, Event::Observed { message })?;
        Ok(())
    }

    /// Answer something that the session waits for. The agent goes on at once if it is at work,
    /// and otherwise with [`resume`](Self::resume).
    pub fn answer(
        &self,
        id: &CallId,
        answer: Answer,
        by: Option<String>,
    ) -> Result<(), SessionError> {
        let mut ledger = self.shared.ledger();
        let Some(inquiry) = ledger.pending().find(|inquiry| inquiry.id == *id) else {
            let waiting = ledger.pending().map(|inquiry| inquiry.id.clone()).collect();
            return Err(SessionError::NotPending { id: id.clone(), waiting });
        };
        if let Some(expected) = misfit(&inquiry.kind, &answer) {
            return Err(SessionError::DoesNotFit { id: id.clone(), expected });
        }
        let run = inquiry.run;
        let event = Event::ExternalActionResult { id: id.clone(), answer, by };
        self.shared.append_locked(&mut ledger, run, event)?;
        Ok(())
    }

    /// Write something down that the agent does not read, such as what a protocol has to find
    /// again. The topic gets an `@` in front, so that nobody takes it for the agent's own note.
    pub fn note(&self, topic: &str, data: Value) -> Result<(), SessionError> {
        let topic = format!("@{topic}");
        self.shared.append(RunId::ROOT, Event::Note { topic, data })?;
        Ok(())
    }

    /// Give up a task that waits for answers: what waited is passed over, and the task ends as
    /// aborted. A turn under way is [cancelled](Self::cancel) instead; a session that waits for
    /// nothing stays as it is and gives its last reply.
    pub async fn abandon(&self, reason: impl Into<String>) -> Result<Reply, SessionError> {
        let guard = Arc::clone(&self.shared.turn).lock_owned().await;
        let reply = driver::abandon(&self.shared, reason.into()).await;
        drop(guard);
        Ok(reply?)
    }

    /// What the session waits for.
    pub fn pending(&self) -> Vec<Inquiry> {
        self.shared.ledger().pending().cloned().collect()
    }

    /// Whether a process left a turn in the middle that [`resume`](Self::resume) would go on with.
    pub fn is_unfinished(&self) -> bool {
        self.shared.ledger().run(RunId::ROOT).is_some_and(|run| {
            run.state.is_open() || (run.state.outcome().is_none() && run.state.can_go_on())
        })
    }

    /// Stop the turn under way, with everything that it started. Partial work is kept.
    pub fn cancel(&self, reason: impl Into<String>) {
        self.shared.cancel(reason.into());
    }

    /// Listen from now on.
    pub fn events(&self) -> Events {
        Events::new(Arc::clone(&self.shared), None)
    }

    /// Listen from an entry on, also to what is already written.
    pub fn events_from(&self, seq: u64) -> Events {
        Events::new(Arc::clone(&self.shared), Some(seq))
    }

    /// All entries so far, to be carried elsewhere.
    pub async fn state(&self) -> Result<SessionState, SessionError> {
        let entries = read_all(&*self.shared.store, &self.shared.id).await?;
        Ok(SessionState { schema: SCHEMA_VERSION, entries })
    }

    /// When its last entry was written, in milliseconds since 1970.
    pub fn updated_at(&self) -> i64 {
        self.shared.ledger().last_at
    }

    /// How the last turn ended, if there was one.
    pub fn last_outcome(&self) -> Option<Outcome> {
        self.shared.ledger().run(RunId::ROOT).and_then(|run| run.state.outcome().cloned())
    }

    /// Take in what other processes posted for this session. Answers and cancellations take
    /// effect; requests are returned for the caller to [`reply`](Self::reply) to, in order. A
    /// request stays in the mailbox, and is returned again, until it stands in the journal.
    pub async fn collect_mail(&self) -> Result<Vec<Message>, SessionError> {
        let Shared { id: session, store, unread, .. } = &*self.shared;
        let first = unread.load(Ordering::Relaxed);
        let mut requests = Vec::new();
        let mut kept = None;
        for (number, letter) in store.mail(session).await? {
            match letter {
                Mail::Request { message } => {
                    if !self.shared.ledger().knows_request(&message.id) {
                        requests.push(message);
                    }
                }
                // It had its effect, and is there because a request before it has no reply yet.
                _ if number < first => {}
                // Mail that was taken in before a crash comes again and no longer fits anything.
                Mail::Answer { id, answer, by } => match self.answer(&id, answer, by) {
                    Ok(())
                    | Err(SessionError::NotPending { .. } | SessionError::DoesNotFit { .. }) => {}
                    Err(error) => return Err(error),
                },
                Mail::Cancel { reason } => self.cancel(reason),
            }
            unread.fetch_max(number + 1, Ordering::Relaxed);
            if requests.is_empty() {
                kept = Some(number);
            }
        }
        if let Some(kept) = kept {
            store.flush(session).await?;
            store.acknowledge(session, kept).await?;
        }
        Ok(requests)
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("id", &self.shared.id).finish_non_exhaustive()
    }
}

/// Copy a session up to and with an entry into a new one, which goes its own way from there.
pub async fn fork(
    store: &dyn Store,
    from: &SessionId,
    at: Option<u64>,
) -> Result<SessionId, SessionError> {
    let mut entries = read_all(store, from).await?;
    let last = entries.last().map_or(0, |entry| entry.seq);
    let at = at.unwrap_or(last).min(last);
    entries.retain(|entry| entry.seq <= at);
    if let Some(first) = entries.first_mut() {
        let mut copy = Entry::clone(first);
        if let Event::SessionStarted { forked_from, .. } = &mut copy.event {
            *forked_from = Some(ForkPoint { session: from.clone(), at });
        }
        *first = Arc::new(copy);
    }
    let id = SessionId::random();
    drop(store.create(&id, entries)?);
    store.flush(&id).await?;
    Ok(id)
}

/// All entries of a session.
pub async fn read_all(store: &dyn Store, id: &SessionId) -> Result<Vec<Arc<Entry>>, StoreError> {
    let mut all: Vec<Arc<Entry>> = Vec::new();
    loop {
        let page = store.read(id, all.len() as u64, PAGE).await?;
        let is_last = page.len() < PAGE;
        all.extend(page);
        if is_last {
            return Ok(all);
        }
    }
}

fn check_schema(entry: &Entry) -> Result<(), SessionError> {
    match entry.event {
        Event::SessionStarted { schema, .. } if schema > SCHEMA_VERSION => {
            Err(SessionError::NewerSchema { found: schema })
        }
        _ => Ok(()),
    }
}

/// What would fit, where an answer does not.
fn misfit(kind: &InquiryKind, answer: &Answer) -> Option<&'static str> {
    let fits = match kind {
        InquiryKind::Approval { .. } => true,
        InquiryKind::Question { .. } | InquiryKind::Execution { .. } => {
            matches!(answer, Answer::Result { .. } | Answer::Deny { .. })
        }
        InquiryKind::Credentials { .. } => !matches!(answer, Answer::Edit { .. }),
        InquiryKind::Budget { .. } => {
            matches!(answer, Answer::Approve | Answer::ApproveAlways | Answer::Deny { .. })
        }
    };
    if fits {
        return None;
    }
    Some(match kind {
        InquiryKind::Question { .. } | InquiryKind::Execution { .. } => "give a result, or deny it",
        InquiryKind::Budget { .. } => "approve or deny it",
        InquiryKind::Approval { .. } | InquiryKind::Credentials { .. } => {
            "approve it, deny it or give a result"
        }
    })
}
