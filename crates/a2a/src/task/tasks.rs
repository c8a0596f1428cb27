//! The tasks of one agent: begun, gone on with, listed, cancelled, and found again after a restart.

use std::{
    future::poll_fn,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::Poll,
    time::Duration,
};

use a2a::{A2AError, SendMessageRequest, Task};
use duologue_core::{
    Agent, Message, Metadata, Reply, Session, SessionError, SessionId, Store, StoreError, WhenBusy,
    detach, read_all,
};
use serde_json::json;

use super::{
    answer::{Refused, answers_in},
    check::check_send,
    convert::message_from_wire,
    delegation,
    follow::{Turn, Watch},
    index::{Cursor, Filter, Index, Listed, Page},
    open::{Open, OpenSessions},
    recall,
    record::{BIRTH, Birth, Place, SAID, Said},
    state::{is_settled, name_of},
    view::{Purpose, TaskView},
};
use crate::{Caller, fault, push::Pushes};

/// How long a cancelled task may take to end.
const CANCEL_PATIENCE: Duration = Duration::from_secs(10);
/// How often a task is told again to stop, in case its turn was only beginning.
const CANCEL_AGAIN: Duration = Duration::from_millis(200);
/// How often a message for a task is tried again when the task changed meanwhile.
const FOLLOW_UP_TRIES: u32 = 5;
/// How often is looked for a task that another request is beginning.
const BEGIN_TRIES: u32 = 100;
/// How long is waited in between.
const FOLLOW_UP_PAUSE: Duration = Duration::from_millis(20);
/// How many tasks that a message refers to are looked at.
const MOST_REFERENCES: usize = 5;
/// Where a client gives a key by which a repeated request is known.
pub(crate) const KEY: &str = "duologue/idempotencyKey";

/// What the tasks of an agent go by.
#[derive(Clone, Debug)]
pub(crate) struct TaskSettings {
    /// The media types that the agent reads.
    pub(crate) input_modes: Vec<String>,
    /// The server's own address.
    pub(crate) url: String,
    /// How often a request may be passed on before it comes here.
    pub(crate) deepest: usize,
}

/// How a new task is begun.
#[derive(Clone, Debug, Default)]
pub(crate) struct Begin {
    /// The id that the client chose, where the protocol's version lets it.
    pub(crate) id: Option<String>,
    /// Whether it came through the oldest layer.
    pub(crate) by_tasks_send: bool,
}

/// The tasks of one agent. Clones are the same.
#[derive(Clone)]
pub(crate) struct Tasks(pub(super) Arc<Inner>);

pub(super) struct Inner {
    pub(super) agent: Agent,
    pub(super) store: Arc<dyn Store>,
    settings: TaskSettings,
    pub(super) sessions: OpenSessions,
    index: Mutex<Index>,
    pushes: Pushes,
    /// What is written down with a request that nobody passed on.
    straight: Metadata,
}

impl Tasks {
    pub(crate) fn new(
        agent: Agent,
        store: Arc<dyn Store>,
        settings: TaskSettings,
        pushes: Pushes,
    ) -> Self {
        let sessions = OpenSessions::new(agent.clone(), Arc::clone(&store));
        let index = Mutex::new(Index::keeping(store.keeps()));
        let straight = delegation::straight(&settings.url);
        Self(Arc::new(Inner { agent, store, settings, sessions, index, pushes, straight }))
    }

    /// Take a message: begin a task with it, or go on with the one that it names. What comes of it
    /// is to be watched, and flushed before a client is told. Changes are told once it is a stream.
    pub(crate) async fn send(
        &self,
        caller: &Caller,
        mut request: SendMessageRequest,
        begin: Begin,
    ) -> Result<Watch, A2AError> {
        let TaskSettings { input_modes, url, deepest } = &self.0.settings;
        check_send(&mut request, input_modes)?;
        let way = delegation::way_of(&request.message, url, *deepest)?;
        let mut message = message_from_wire(&request.message);
        delegation::keep(&mut message, way, &self.0.straight);
        match request.message.task_id.clone() {
            // Boxed, as is all that is rare: a new task should not be as large as this.
            Some(id) => Box::pin(self.follow_up(caller, &id, &request.message, message)).await,
            None => self.begin(caller, &request, message, begin).await,
        }
    }

    async fn begin(
        &self,
        caller: &Caller,
        request: &SendMessageRequest,
        said: Message,
        begin: Begin,
    ) -> Result<Watch, A2AError> {
        let message = &request.message;
        let key: Option<Arc<str>> = key_in(message).map(Arc::from);
        if let Some(key) = &key
            && let Some(known) = self.known_by_key(caller, key)
        {
            return Box::pin(self.watch(caller, &known, None)).await;
        }
        let birth = Birth {
            context: message
                .context_id
                .as_deref()
                .map_or_else(|| SessionId::random().as_str().into(), Arc::from),
            owner: caller.clone(),
            key: key.clone(),
            by_tasks_send: begin.by_tasks_send,
        };
        let config = request.configuration.as_ref();
        let config = config.and_then(|config| config.task_push_notification_config.as_ref());
        let target = config.map(|config| self.0.pushes.target(config)).transpose()?;
        let budget = delegation::budget_in(message)?;
        let remembered = match (&message.context_id, &message.reference_task_ids) {
            (None, None) => Vec::new(),
            _ => Box::pin(self.recall(caller, message)).await?,
        };
        // All that may be refused was looked at: from here on there is a task.
        let id = begin.id.map_or_else(SessionId::random, SessionId::from);
        if let Some(key) = &key {
            let other = self.index().claim_key(caller, key, &id);
            if let Some(other) = other {
                return Box::pin(self.begun_meanwhile(caller, other.as_str())).await;
            }
        }
        let open = self.0.sessions.start(&id, [(BIRTH, json!(birth))].into(), budget).map_err(
            |error| {
                if let Some(key) = &key {
                    self.index().give_up_key(caller, key);
                }
                fault::of_session(&error)
            },
        )?;
        let entries = 1 + remembered.len() as u64;
        for message in remembered {
            open.session.observe(message).map_err(|error| fault::of_session(&error))?;
        }
        // Nothing is read back: what the first entries say is known here.
        let now = chrono::Utc::now().timestamp_millis();
        let view = Box::new(TaskView::born(id.as_str(), birth, now, entries));
        let mut watch = self.new_watch(Arc::clone(&open), view.clone());
        // Until the task was heard of, nobody is told of changes.
        watch.watch_for(Purpose::Snapshot);
        if let Some(target) = target {
            self.0.pushes.note(&open.session, &target)?;
        }
        let heard = said.id.as_str().to_owned();
        let session = open.session.clone();
        let turn = self.run(&open, view, async move { session.reply(said).await });
        watch = watch.with_turn(turn);
        if let Err(error) = self.until_heard(&mut watch, &heard).await {
            self.give_up(&watch);
            return Err(error);
        }
        if !watch.view().targets().is_empty() {
            watch.flush().await?;
            self.0.pushes.attend(self, watch.open(), watch.view());
        }
        Ok(watch)
    }

    /// What the agent should know of the conversation, and of the tasks that a message refers to.
    async fn recall(
        &self,
        caller: &Caller,
        message: &a2a::Message,
    ) -> Result<Vec<Message>, A2AError> {
        let mut all = Vec::new();
        let references = message.reference_task_ids.iter().flatten();
        for id in references.take(MOST_REFERENCES) {
            // A reference to nothing, or to somebody else's, says nothing.
            if let Ok(view) = self.view(caller, id).await {
                all.extend(recall::answer_of(id, &view.task(Some(0), true)));
            }
        }
        let newest = message.context_id.as_deref().and_then(|context| {
            self.index().newest_in(caller.as_str(), context).map(str::to_owned)
        });
        if let Some(id) = newest {
            all.extend(recall::conversation(&self.entries(&id).await?));
        }
        Ok(all)
    }

    fn known_by_key(&self, caller: &Caller, key: &str) -> Option<String> {
        self.index().with_key(caller.as_str(), key).map(str::to_owned)
    }

    /// Wait until the message is written and the task at work.
    async fn until_heard(&self, watch: &mut Watch, message: &str) -> Result<(), A2AError> {
        while watch.view().heard() != Some(message) || is_settled(watch.view().state()) {
            if watch.view().state().is_terminal() {
                return Err(fault::is_over(watch.id(), name_of(watch.view().state())));
            }
            watch.step().await?;
        }
        watch.skip_ready();
        Ok(())
    }

    async fn follow_up(
        &self,
        caller: &Caller,
        id: &str,
        wire: &a2a::Message,
        message: Message,
    ) -> Result<Watch, A2AError> {
        let mut tries = 0;
        loop {
            let (open, view) = self.open(caller, id).await?;
            if key_in(wire).is_some()
                && view.has_heard(message.id.as_str())
                && !open.session.pending().iter().any(|asked| view.is_half_answered(&asked.id))
            {
                return self.heard_before(open, view, message.id.as_str()).await;
            }
            if view.state().is_terminal() {
                return Err(fault::is_over(id, name_of(view.state())));
            }
            if wire.context_id.as_ref().is_some_and(|context| context != view.context()) {
                let wrong = format!("task {id} belongs to another context");
                return Err(fault::invalid("message.contextId", wrong));
            }
            let heard = message.id.as_str().to_owned();
            let pending = open.session.pending();
            let turn = if pending.is_empty() || !is_settled(view.state()) {
                let session = open.session.clone();
                let message = message.clone();
                // An agent that waits without having asked is told in a turn of its own.
                let when = if is_settled(view.state()) { WhenBusy::Queue } else { WhenBusy::Join };
                let say = async move { session.reply_when_busy(message, when).await };
                self.run(&open, view.clone(), say)
            } else {
                match self.answer(&open.session, wire, &message, caller) {
                    Ok(()) => {
                        let session = open.session.clone();
                        self.run(&open, view.clone(), async move { session.resume().await })
                    }
                    // Somebody else was faster: look again at how things stand.
                    Err(Refused::Changed) if tries < FOLLOW_UP_TRIES => {
                        tries += 1;
                        continue;
                    }
                    Err(Refused::Changed) => {
                        return Err(A2AError::internal("The task changes too fast; try again"));
                    }
                    Err(Refused::Wrong(error)) => return Err(error),
                }
            };
            let mut watch = self.new_watch(open, view).with_turn(turn);
            match self.until_heard(&mut watch, &heard).await {
                Ok(()) => return Ok(watch),
                // Its turn was over, or had not begun: look again at how things stand.
                Err(_) if watch.came_late() && tries < FOLLOW_UP_TRIES => {
                    tries += 1;
                    tokio::time::sleep(FOLLOW_UP_PAUSE).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Go on where a message was taken in already, of which its sender was not told.
    async fn heard_before(
        &self,
        open: Arc<Open>,
        view: Box<TaskView>,
        message: &str,
    ) -> Result<Watch, A2AError> {
        let was_answered = is_settled(view.state())
            && !view.state().is_terminal()
            && open.session.pending().is_empty();
        if !was_answered {
            return Ok(self.new_watch(open, view));
        }
        // The process ended between the answer and the turn that it leads to.
        let session = open.session.clone();
        let turn = self.run(&open, view.clone(), async move { session.resume().await });
        let mut watch = self.new_watch(open, view).with_turn(turn);
        self.until_heard(&mut watch, message).await?;
        Ok(watch)
    }

    /// The task that another request of the same key is just beginning.
    async fn begun_meanwhile(&self, caller: &Caller, id: &str) -> Result<Watch, A2AError> {
        for _ in 0..BEGIN_TRIES {
            match self.watch(caller, id, None).await {
                Err(error) if error.code == a2a::error_code::TASK_NOT_FOUND => {
                    tokio::time::sleep(FOLLOW_UP_PAUSE).await;
                }
                watch => return watch,
            }
        }
        Err(A2AError::internal("The same request is just being taken in; try again"))
    }

    fn answer(
        &self,
        session: &Session,
        wire: &a2a::Message,
        message: &Message,
        caller: &Caller,
    ) -> Result<(), Refused> {
        let answers = answers_in(wire, &session.pending()).map_err(Refused::Wrong)?;
        if answers.is_empty() {
            return Err(Refused::Changed);
        }
        let ids = answers.iter().map(|(id, _)| id.clone()).collect();
        let said = Said { message: message.clone(), answers: ids };
        session.note(SAID, json!(said)).map_err(Refused::of)?;
        for (id, answer) in answers {
            let by = Some(caller.as_str().to_owned());
            session.answer(&id, answer, by).map_err(Refused::of)?;
        }
        Ok(())
    }

    /// Let a turn happen, whoever watches, and keep the index level with it.
    pub(super) fn run(
        &self,
        open: &Arc<Open>,
        view: Box<TaskView>,
        turn: impl Future<Output = Result<Reply, SessionError>> + Send + 'static,
    ) -> Turn {
        let tasks = self.clone();
        let open = Arc::clone(open);
        detach(async move {
            let mut turn = std::pin::pin!(turn);
            // Many a turn never waits: its end is all there is to list.
            let at_once = poll_fn(|cx| Poll::Ready(turn.as_mut().poll(cx))).await;
            if let Poll::Ready(Ok(reply)) = at_once {
                match Listed::ended(&view, &reply.outcome, open.session.updated_at()) {
                    Some(listed) => tasks.index().end(open.session.id(), listed),
                    None => tasks.read_along(&mut tasks.along(open, view)).await,
                }
                return Ok(reply);
            }
            let mut watch = tasks.along(open, view);
            let reply = match at_once {
                Poll::Ready(reply) => reply,
                Poll::Pending => loop {
                    tokio::select! {
                        // A turn that is over is listed once.
                        biased;
                        reply = &mut turn => break reply,
                        step = watch.step() => match step {
                            Ok(()) => tasks.list(&watch),
                            // A turn that cannot be read along is still carried to its end.
                            Err(_) => break turn.await,
                        }
                    }
                },
            };
            tasks.read_along(&mut watch).await;
            tasks.mind(&watch, &reply);
            reply
        })
    }

    /// A watch that reads along, for the index.
    fn along(&self, open: Arc<Open>, view: Box<TaskView>) -> Watch {
        let mut watch = self.new_watch(open, view);
        watch.watch_for(Purpose::State);
        watch
    }

    /// Take in all that was written, and list what came of it.
    async fn read_along(&self, watch: &mut Watch) {
        if watch.catch_up().await.is_ok() {
            self.list(watch);
        }
    }

    fn list(&self, watch: &Watch) {
        self.refresh(watch.open().session.id(), watch.view());
    }

    fn new_watch(&self, open: Arc<Open>, view: Box<TaskView>) -> Watch {
        Watch::new(open, Arc::clone(&self.0.store), view)
    }

    /// Watch a task from now on, or from a place of its journal on.
    pub(crate) async fn watch(
        &self,
        caller: &Caller,
        id: &str,
        behind: Option<Place>,
    ) -> Result<Watch, A2AError> {
        let (open, view) = self.open(caller, id).await?;
        match behind.filter(|place| place.seq < view.next_seq()) {
            Some(place) => self.watch_behind(open, place).await,
            None => Ok(self.new_watch(open, view)),
        }
    }

    /// Watch a task as it was at a place, and what came behind it.
    pub(crate) async fn watch_behind(
        &self,
        open: Arc<Open>,
        place: Place,
    ) -> Result<Watch, A2AError> {
        let id = open.session.id().as_str();
        let entries = self.entries(id).await?;
        let mut view = Box::new(TaskView::new(id));
        let mut rest = Vec::new();
        for entry in entries.iter().take_while(|entry| entry.seq <= place.seq) {
            rest = view.fold(entry);
        }
        rest.retain(|update| update.place > Some(place));
        Ok(self.new_watch(open, view).with_ready(rest))
    }

    /// A task of this caller, open.
    async fn open(
        &self,
        caller: &Caller,
        id: &str,
    ) -> Result<(Arc<Open>, Box<TaskView>), A2AError> {
        // Looked at first, so that nobody opens what they may not see.
        self.view(caller, id).await?;
        let open = self
            .0
            .sessions
            .open(&SessionId::from(id))
            .await
            .map_err(|error| fault::of_session(&error))?;
        let view = self.view(caller, id).await?;
        Ok((open, view))
    }

    /// A task of this caller as it is now.
    pub(crate) async fn view(&self, caller: &Caller, id: &str) -> Result<Box<TaskView>, A2AError> {
        let is_others = self.index().get(id).is_some_and(|l| l.owner() != caller.as_str());
        if is_others {
            return Err(fault::not_found(id));
        }
        let view = Box::new(TaskView::of(id, &self.entries(id).await?));
        match view.birth() {
            Some(birth) if birth.owner == *caller => Ok(view),
            _ => Err(fault::not_found(id)),
        }
    }

    async fn entries(&self, id: &str) -> Result<Vec<Arc<duologue_core::Entry>>, A2AError> {
        match read_all(&*self.0.store, &SessionId::from(id)).await {
            Ok(entries) => Ok(entries),
            Err(StoreError::NotFound(_)) => Err(fault::not_found(id)),
            Err(error) => Err(fault::of_store(&error)),
        }
    }

    /// What a journal says now goes before what the index knew: another process may have written.
    pub(crate) fn refresh(&self, id: &SessionId, view: &TaskView) {
        let mut index = self.index();
        let is_level =
            |known: &Listed| known.at == view.status_at() && known.state == *view.state();
        if !index.get(id.as_str()).is_some_and(is_level)
            && let Some(listed) = Listed::of(view)
        {
            index.put(id, listed);
        }
    }

    /// A page of this caller's tasks.
    pub(crate) fn page(&self, filter: &Filter, behind: Option<&Cursor>, size: usize) -> Page {
        self.index().page(filter, behind, size)
    }

    /// Stop a task, with everything that it started.
    pub(crate) async fn cancel(&self, caller: &Caller, id: &str) -> Result<Task, A2AError> {
        let (open, view) = self.open(caller, id).await?;
        if view.state().is_terminal() {
            return Err(fault::not_cancelable(id, name_of(view.state())));
        }
        let mut watch = self.new_watch(Arc::clone(&open), view);
        if is_settled(watch.view().state()) {
            let session = open.session.clone();
            let given_up = async move { session.abandon(CANCELLED).await };
            drop(self.run(&open, Box::new(watch.view().clone()), given_up));
        }
        let patience = tokio::time::sleep(CANCEL_PATIENCE);
        tokio::pin!(patience);
        loop {
            open.session.cancel(CANCELLED);
            tokio::select! {
                update = watch.settled() => {
                    let update = update?;
                    if update.ends() {
                        break;
                    }
                    // It came to a question in the same moment.
                    open.session
                        .abandon(CANCELLED)
                        .await
                        .map_err(|error| fault::of_session(&error))?;
                }
                () = tokio::time::sleep(CANCEL_AGAIN) => {}
                () = &mut patience => break,
            }
        }
        if !matches!(watch.view().state(), a2a::TaskState::Canceled) {
            let state = name_of(watch.view().state());
            return Err(fault::not_cancelable(id, state));
        }
        Ok(watch.view().task(None, true))
    }

    /// Put all tasks down as they are, so that the next server goes on with them.
    pub(crate) async fn suspend(&self) {
        self.0.sessions.suspend().await;
    }

    pub(crate) async fn attend_pushes(&self, id: &SessionId, view: &TaskView) {
        match self.0.sessions.open(id).await {
            Ok(open) => self.0.pushes.attend(self, &open, view),
            Err(error) => {
                tracing::warn!(task = %id, %error, "notifications cannot be gone on with");
            }
        }
    }

    /// A task of this caller whose session is to be written to.
    pub(crate) async fn writable(
        &self,
        caller: &Caller,
        id: &str,
    ) -> Result<(Arc<Open>, Box<TaskView>), A2AError> {
        self.open(caller, id).await
    }

    /// Wait until what was written to a session survives a crash.
    pub(crate) async fn flush(&self, session: &Session) -> Result<(), A2AError> {
        self.0.store.flush(session.id()).await.map_err(|error| fault::of_store(&error))
    }

    pub(crate) fn pushes(&self) -> &Pushes {
        &self.0.pushes
    }

    pub(crate) fn store(&self) -> &Arc<dyn Store> {
        &self.0.store
    }

    pub(super) fn index(&self) -> MutexGuard<'_, Index> {
        self.0.index.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The key by which a repeated message is known.
pub(super) fn key_in(message: &a2a::Message) -> Option<&str> {
    message.metadata.as_ref()?.get(KEY)?.as_str()
}

/// Why a task was stopped.
const CANCELLED: &str = "cancelled by the client";
