//! The operations of the protocol, once for all bindings.

use std::{pin::Pin, sync::Arc, task::Poll};

use a2a::{
    A2AError, AgentCard, CancelTaskRequest, DeleteTaskPushNotificationConfigRequest,
    GetTaskPushNotificationConfigRequest, GetTaskRequest, ListTaskPushNotificationConfigsRequest,
    ListTaskPushNotificationConfigsResponse, ListTasksRequest, ListTasksResponse,
    SendMessageRequest, SendMessageResponse, Task, TaskPushNotificationConfig, TaskState,
    error_code,
};
use duologue_core::SessionId;
use futures::Stream;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::{
    Caller, fault,
    task::{Begin, Cursor, Filter, Place, Tasks, Until, Update, Watch, history_length},
};

/// The updates of a task as a binding sends them.
pub(crate) type UpdateStream = Pin<Box<dyn Stream<Item = Result<Update, A2AError>> + Send>>;

/// What a binding knows of a request besides its parameters.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) caller: Caller,
    /// The extensions that the client knows.
    pub(crate) extensions: Vec<String>,
    /// The last event that a client got before its stream broke.
    pub(crate) behind: Option<Place>,
}

/// The extension by which a client asks for pieces of answers while they are written.
pub(crate) const PIECES: &str = "urn:duologue:pieces";

impl Call {
    fn wants_pieces(&self) -> bool {
        self.extensions.iter().any(|extension| extension == PIECES)
    }
}

/// What a message is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asks {
    NewTask,
    MoreOfATask,
}

impl Asks {
    fn of(request: &SendMessageRequest) -> Self {
        match request.message.task_id {
            None => Self::NewTask,
            Some(_) => Self::MoreOfATask,
        }
    }
}

/// How much one server does at once.
#[derive(Clone, Debug)]
pub struct Limits {
    /// The most bytes of a request.
    pub body: usize,
    /// The most tasks of a page.
    pub page: usize,
    /// The most streams that are open at once.
    pub streams: usize,
    /// The most requests of one caller in a second; no bound if there is none.
    pub rate: Option<u32>,
    /// How many servers a request may have gone through before it comes here.
    pub depth: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { body: 10 * 1024 * 1024, page: 100, streams: 20_000, rate: None, depth: 8 }
    }
}

/// The operations. Clones are the same.
#[derive(Clone)]
pub(crate) struct Service(Arc<Inner>);

struct Inner {
    tasks: Tasks,
    card: AgentCard,
    extended: Option<AgentCard>,
    limits: Limits,
    streams: Arc<Semaphore>,
    stop: CancellationToken,
}

impl Service {
    pub(crate) fn new(
        tasks: Tasks,
        card: AgentCard,
        extended: Option<AgentCard>,
        limits: Limits,
        stop: CancellationToken,
    ) -> Self {
        let streams = Arc::new(Semaphore::new(limits.streams));
        Self(Arc::new(Inner { tasks, card, extended, limits, streams, stop }))
    }

    pub(crate) fn card(&self) -> &AgentCard {
        &self.0.card
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.0.limits
    }

    /// Extensions without which this agent is not to be used.
    pub(crate) fn check_extensions(&self, call: &Call) -> Result<(), A2AError> {
        let declared = self.0.card.capabilities.extensions.iter().flatten();
        let mut missing = declared
            .filter(|extension| extension.required == Some(true))
            .filter(|extension| !call.extensions.contains(&extension.uri));
        match missing.next() {
            None => Ok(()),
            Some(extension) => {
                let message = format!(
                    "This agent requires the extension {}; name it in A2A-Extensions",
                    extension.uri
                );
                Err(A2AError::new(error_code::EXTENSION_SUPPORT_REQUIRED, message))
            }
        }
    }

    /// SendMessage.
    pub(crate) async fn send(
        &self,
        call: &Call,
        request: SendMessageRequest,
        begin: Begin,
    ) -> Result<SendMessageResponse, A2AError> {
        self.check_extensions(call)?;
        let config = request.configuration.as_ref();
        let length = config.and_then(|config| config.history_length);
        let history = history_length("configuration.historyLength", length)?;
        let is_hasty = config.and_then(|config| config.return_immediately).unwrap_or_default();
        let asks = Asks::of(&request);
        let mut watch = self.0.tasks.send(&call.caller, request, begin).await?;
        if is_hasty || watch.is_idle() {
            self.take_down(&watch, asks).await?;
        } else {
            watch
                .until_settled()
                .await
                .map_err(|error| fault::before_its_end(error, watch.id()))?;
        }
        let view = watch.into_view();
        Ok(match view.direct() {
            Some(message) => SendMessageResponse::Message(message.clone()),
            None => SendMessageResponse::Task(view.into_task(history)),
        })
    }

    /// SendStreamingMessage.
    pub(crate) async fn stream(
        &self,
        call: &Call,
        request: SendMessageRequest,
    ) -> Result<UpdateStream, A2AError> {
        self.check_extensions(call)?;
        let length = request.configuration.as_ref().and_then(|config| config.history_length);
        let history = history_length("configuration.historyLength", length)?;
        let asks = Asks::of(&request);
        let watch = self.0.tasks.send(&call.caller, request, Begin::default()).await?;
        self.take_down(&watch, asks).await?;
        let watch = watch.with_pieces(call.wants_pieces());
        self.streaming(watch, Until::Settled, history)
    }

    /// What a client is told of must survive a crash. A task that does not is not begun.
    async fn take_down(&self, watch: &Watch, asks: Asks) -> Result<(), A2AError> {
        let written = watch.flush().await;
        if written.is_err() && asks == Asks::NewTask {
            self.0.tasks.give_up(watch);
        }
        written
    }

    /// SubscribeToTask. A client that says which event it got last is sent all that came behind it,
    /// also when the task is over by now.
    pub(crate) async fn subscribe(&self, call: &Call, id: &str) -> Result<UpdateStream, A2AError> {
        let view = self.0.tasks.view(&call.caller, id).await?;
        if view.state().is_terminal() && call.behind.is_none() {
            let state = crate::task::state::name_of(view.state());
            return Err(fault::is_over(id, state));
        }
        let watch = self.0.tasks.watch(&call.caller, id, call.behind).await?;
        let watch = watch.with_pieces(call.wants_pieces());
        self.streaming(watch, Until::Over, None)
    }

    fn streaming(
        &self,
        watch: Watch,
        until: Until,
        history: Option<usize>,
    ) -> Result<UpdateStream, A2AError> {
        let Ok(slot) = Arc::clone(&self.0.streams).try_acquire_owned() else {
            return Err(A2AError::internal("Too many streams are open; poll the task instead"));
        };
        let mut updates = Box::pin(watch.stream(until, history));
        let mut stop = Box::pin(self.0.stop.clone().cancelled_owned());
        Ok(Box::pin(futures::stream::poll_fn(move |cx| {
            let _ = &slot;
            match updates.as_mut().poll_next(cx) {
                // Asked only when there is nothing to tell: most streams never wait so long.
                Poll::Pending => stop.as_mut().poll(cx).map(|()| None),
                ready => ready,
            }
        })))
    }

    /// GetTask.
    pub(crate) async fn get(&self, call: &Call, request: GetTaskRequest) -> Result<Task, A2AError> {
        let history = history_length("historyLength", request.history_length)?;
        let view = self.0.tasks.view(&call.caller, &request.id).await?;
        Ok(view.task(history, true))
    }

    /// Whether a task came through the layer that knows no rejection.
    pub(crate) async fn is_by_tasks_send(&self, call: &Call, id: &str) -> bool {
        let view = self.0.tasks.view(&call.caller, id).await;
        view.is_ok_and(|view| view.birth().is_some_and(|birth| birth.by_tasks_send))
    }

    /// Whether a caller has such a task.
    pub(crate) async fn has(&self, call: &Call, id: &str) -> bool {
        self.0.tasks.view(&call.caller, id).await.is_ok()
    }

    /// ListTasks.
    pub(crate) async fn list(
        &self,
        call: &Call,
        request: ListTasksRequest,
    ) -> Result<ListTasksResponse, A2AError> {
        let most = self.0.limits.page;
        let mut wrong = Vec::new();
        let size = match request.page_size {
            None => most.min(50),
            Some(size) => match usize::try_from(size) {
                Ok(size) if (1..=most).contains(&size) => size,
                _ => {
                    let why = format!("must be between 1 and {most} inclusive, got {size}");
                    wrong.push(("pageSize".to_owned(), why));
                    0
                }
            },
        };
        if let Some(length) = request.history_length.filter(|length| *length < 0) {
            let why = format!("must be a non-negative integer, got {length}");
            wrong.push(("historyLength".to_owned(), why));
        }
        if !wrong.is_empty() {
            return Err(fault::all_invalid(wrong));
        }
        let token = request.page_token.filter(|token| !token.is_empty());
        let behind = token.map(|token| Cursor::from_token(&token)).transpose()?;
        let filter = Filter {
            owner: call.caller.as_str().to_owned(),
            context: request.context_id.filter(|context| !context.is_empty()),
            state: request.status.filter(|state| *state != TaskState::Unspecified),
            after: request.status_timestamp_after.map(|after| after.timestamp_millis()),
        };
        let page = self.0.tasks.page(&filter, behind.as_ref(), size);
        // Who asks for no history gets none: a page of whole conversations helps nobody.
        let history = history_length("historyLength", Some(request.history_length.unwrap_or(0)))?;
        let with_artifacts = request.include_artifacts.unwrap_or_default();
        let mut tasks = Vec::with_capacity(page.ids.len());
        for id in &page.ids {
            // One that was deleted meanwhile is left out.
            if let Ok(view) = self.0.tasks.view(&call.caller, id).await {
                self.0.tasks.refresh(&SessionId::from(id.as_str()), &view);
                tasks.push(view.task(history, with_artifacts));
            }
        }
        Ok(ListTasksResponse {
            tasks,
            next_page_token: page.next.map(|cursor| cursor.to_token()).unwrap_or_default(),
            page_size: i32::try_from(size).unwrap_or(i32::MAX),
            total_size: i32::try_from(page.total).unwrap_or(i32::MAX),
        })
    }

    /// CancelTask.
    pub(crate) async fn cancel(
        &self,
        call: &Call,
        request: CancelTaskRequest,
    ) -> Result<Task, A2AError> {
        self.0.tasks.cancel(&call.caller, &request.id).await
    }

    /// CreateTaskPushNotificationConfig. `is_old` targets are told in the words of 0.3.
    pub(crate) async fn create_push(
        &self,
        call: &Call,
        config: TaskPushNotificationConfig,
        is_old: bool,
    ) -> Result<TaskPushNotificationConfig, A2AError> {
        let pushes = self.0.tasks.pushes();
        pushes.check_enabled()?;
        let task = config.task_id.clone();
        let (open, view) = self.0.tasks.writable(&call.caller, &task).await?;
        let session = &open.session;
        let mut target = pushes.target(&config)?;
        target.is_old = is_old;
        pushes.check_room(view.targets(), &target.id)?;
        pushes.note(session, &target)?;
        self.0.tasks.flush(session).await?;
        let view = self.0.tasks.view(&call.caller, &task).await?;
        self.0.tasks.attend_pushes(session.id(), &view).await;
        Ok(pushes.config(&task, &target))
    }

    /// GetTaskPushNotificationConfig.
    pub(crate) async fn get_push(
        &self,
        call: &Call,
        request: GetTaskPushNotificationConfigRequest,
    ) -> Result<TaskPushNotificationConfig, A2AError> {
        let pushes = self.0.tasks.pushes();
        pushes.check_enabled()?;
        let view = self.0.tasks.view(&call.caller, &request.task_id).await?;
        match view.targets().get(&request.id) {
            Some(target) => Ok(pushes.config(&request.task_id, target)),
            None => Err(A2AError::new(
                error_code::TASK_NOT_FOUND,
                format!("Task {} has no notification target {}", request.task_id, request.id),
            )),
        }
    }

    /// ListTaskPushNotificationConfigs.
    pub(crate) async fn list_pushes(
        &self,
        call: &Call,
        request: ListTaskPushNotificationConfigsRequest,
    ) -> Result<ListTaskPushNotificationConfigsResponse, A2AError> {
        let pushes = self.0.tasks.pushes();
        pushes.check_enabled()?;
        let view = self.0.tasks.view(&call.caller, &request.task_id).await?;
        // A task has few, so they are one page.
        let targets = view.targets().values();
        let configs = targets.map(|target| pushes.config(&request.task_id, target)).collect();
        Ok(ListTaskPushNotificationConfigsResponse { configs, next_page_token: None })
    }

    /// DeleteTaskPushNotificationConfig.
    pub(crate) async fn delete_push(
        &self,
        call: &Call,
        request: DeleteTaskPushNotificationConfigRequest,
    ) -> Result<(), A2AError> {
        let pushes = self.0.tasks.pushes();
        pushes.check_enabled()?;
        let (open, view) = self.0.tasks.writable(&call.caller, &request.task_id).await?;
        if view.targets().contains_key(&request.id) {
            pushes.note_deleted(&open.session, &request.id)?;
            self.0.tasks.flush(&open.session).await?;
        }
        Ok(())
    }

    /// GetExtendedAgentCard.
    pub(crate) fn extended_card(&self) -> Result<&AgentCard, A2AError> {
        let declared = self.0.card.capabilities.extended_agent_card.unwrap_or_default();
        match (&self.0.extended, declared) {
            (Some(card), true) => Ok(card),
            (None, true) => Err(A2AError::extended_card_not_configured()),
            (_, false) => Err(A2AError::unsupported_operation("This agent has one card for all")),
        }
    }
}
