//! Watching a task: every update once and in order, from the journal.

use std::{collections::VecDeque, sync::Arc};

use a2a::A2AError;
use duologue_core::{Broken, Delta, Detached, Events, Live, Reply, RunId, SessionError, Store};
use futures::Stream;

use super::{
    open::Open,
    record::Update,
    state::is_settled,
    view::{Purpose, TaskView},
};
use crate::fault;

/// A turn at work, or over already.
pub(crate) type Turn = Detached<Result<Reply, SessionError>>;

/// Somebody who watches a task. A slow one is caught up from the journal and holds up nobody.
pub(crate) struct Watch {
    open: Arc<Open>,
    store: Arc<dyn Store>,
    /// Boxed: a watch is handed from one to the next.
    view: Box<TaskView>,
    events: Events,
    /// The turn that this watch began, which may fail to be written.
    turn: Option<Turn>,
    ready: VecDeque<Update>,
    /// Whether pieces of answers are wanted while they are written.
    wants_pieces: bool,
    /// Whether the turn that this watch began came too late to join another.
    came_late: bool,
}

impl Watch {
    /// Watch from where the view has come to.
    pub(crate) fn new(open: Arc<Open>, store: Arc<dyn Store>, view: Box<TaskView>) -> Self {
        let events = open.session.events_from(view.next_seq());
        Self {
            open,
            store,
            view,
            events,
            turn: None,
            ready: VecDeque::new(),
            wants_pieces: false,
            came_late: false,
        }
    }

    /// Also hear of it when a turn cannot be written.
    pub(crate) fn with_turn(mut self, turn: Turn) -> Self {
        self.turn = Some(turn);
        self
    }

    /// Also tell pieces of answers while they are written, if they are wanted.
    pub(crate) fn with_pieces(mut self, wanted: bool) -> Self {
        self.wants_pieces = wanted;
        self
    }

    /// Tell these updates first.
    pub(crate) fn with_ready(mut self, updates: impl IntoIterator<Item = Update>) -> Self {
        self.ready.extend(updates);
        self
    }

    pub(crate) fn view(&self) -> &TaskView {
        &self.view
    }

    pub(crate) fn into_view(self) -> Box<TaskView> {
        self.view
    }

    /// Watch for this alone from now on.
    pub(crate) fn watch_for(&mut self, purpose: Purpose) {
        self.view.fold_for(purpose);
    }

    pub(crate) fn open(&self) -> &Arc<Open> {
        &self.open
    }

    /// Whether what was said came too late for the turn that it was meant for.
    pub(crate) fn came_late(&self) -> bool {
        self.came_late
    }

    /// The next update. One after which nothing follows is safe on record before it is told.
    pub(crate) async fn next(&mut self) -> Result<Update, A2AError> {
        loop {
            // It is taken only when it can be told: whoever stops waiting here loses nothing.
            match self.ready.front() {
                None => self.step().await?,
                Some(update) if update.settles() => {
                    self.flush().await?;
                    break;
                }
                Some(_) => break,
            }
        }
        self.next_unflushed().await
    }

    /// The next update, perhaps before it is safe on record.
    pub(crate) async fn next_unflushed(&mut self) -> Result<Update, A2AError> {
        loop {
            if let Some(update) = self.ready.pop_front() {
                return Ok(update);
            }
            self.step().await?;
        }
    }

    /// Take in one more event, and keep what it changes for later.
    pub(crate) async fn step(&mut self) -> Result<(), A2AError> {
        let live = match &mut self.turn {
            None => self.events.next().await,
            Some(turn) => tokio::select! {
                biased;
                live = self.events.next() => live,
                ended = turn => {
                    self.turn = None;
                    self.came_late = matches!(&ended, Ok(Err(SessionError::NotUnderWay)));
                    return failed(ended);
                }
            },
        };
        match live.map_err(|error| fault::of_store(&error))? {
            Live::Entry(entry) => self.ready.extend(self.view.fold(&entry)),
            Live::Delta { run: RunId::ROOT, delta } if self.wants_pieces => {
                if let Delta::Text(text) = &*delta {
                    self.ready.push_back(self.view.piece(Some(text)));
                }
            }
            Live::Restart { run: RunId::ROOT } if self.wants_pieces => {
                self.ready.push_back(self.view.piece(None));
            }
            // For the eye: the whole follows as an entry.
            Live::Delta { .. } | Live::Restart { .. } => {}
        }
        Ok(())
    }

    /// Take in all that was written so far.
    pub(crate) async fn catch_up(&mut self) -> Result<(), A2AError> {
        while !self.events.is_caught_up() {
            self.step().await?;
        }
        Ok(())
    }

    /// What the view says covers these updates: they are not told.
    pub(crate) fn skip_ready(&mut self) {
        self.ready.clear();
    }

    /// Whether nothing will happen by itself.
    pub(crate) fn is_idle(&self) -> bool {
        self.turn.is_none() && self.ready.is_empty() && is_settled(self.view.state())
    }

    /// The task's id.
    pub(crate) fn id(&self) -> &str {
        self.open.session.id().as_str()
    }

    /// Wait for the next time that nothing happens any more without somebody, and give what came
    /// last.
    pub(crate) async fn settled(&mut self) -> Result<Update, A2AError> {
        loop {
            let update = self.next().await?;
            if update.settles() {
                return Ok(update);
            }
        }
    }

    /// Wait until nothing happens any more without somebody, and until that is safe on record. The
    /// view then tells what came of it.
    pub(crate) async fn until_settled(&mut self) -> Result<(), A2AError> {
        self.watch_for(Purpose::Snapshot);
        while !is_settled(self.view.state()) {
            self.step().await?;
        }
        self.flush().await
    }

    /// Wait until what was written so far survives a crash.
    pub(crate) async fn flush(&self) -> Result<(), A2AError> {
        let id = self.open.session.id();
        self.store.flush(id).await.map_err(|error| fault::of_store(&error))
    }

    /// The updates as a stream that begins with the task.
    pub(crate) fn stream(
        mut self,
        until: Until,
        history: Option<usize>,
    ) -> impl Stream<Item = Result<Update, A2AError>> + Send + 'static {
        let first = self.view.snapshot(history);
        self.view.fold_for(Purpose::Changes);
        let ends_at_once = self.is_idle() && (until == Until::Settled || first.ends());
        let state = (self, Some(first), ends_at_once);
        futures::stream::unfold(state, move |(mut watch, first, is_over)| async move {
            if let Some(first) = first {
                return Some((Ok(first), (watch, None, is_over)));
            }
            if is_over {
                return None;
            }
            let next = watch.next().await;
            let is_over = match &next {
                Err(_) => true,
                Ok(update) => match until {
                    Until::Settled => update.settles(),
                    Until::Over => update.ends(),
                },
            };
            Some((next, (watch, None, is_over)))
        })
    }
}

/// When a stream closes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Until {
    /// When the task is over, or waits for somebody.
    Settled,
    /// When the task is over.
    Over,
}

fn failed(ended: Result<Result<Reply, SessionError>, Broken>) -> Result<(), A2AError> {
    match ended {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(error)) => Err(fault::of_session(&error)),
        Err(_) => Err(A2AError::internal("The turn ended by a defect")),
    }
}
