//! Our side of a connection: what a server may ask of us, and what it tells us.

use std::{
    fmt,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use rmcp::{
    ClientHandler, ErrorData, RoleClient,
    model::{
        ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, ElicitationAction,
        ElicitationCapability, Implementation, ProgressNotificationParam,
    },
    service::{NotificationContext, RequestContext},
};
use tokio::{
    sync::{Notify, broadcast, mpsc, oneshot, watch},
    time::Instant,
};

use super::{answer::Form, server::Activity};

/// How many events somebody who looks on may fall behind.
const BACKLOG: usize = 64;

/// Something that a server wants to know from the person, in the middle of a call.
#[derive(Debug)]
pub(super) struct Ask {
    pub(super) form: Form,
    pub(super) reply: oneshot::Sender<ElicitResult>,
}

/// Where a server's messages and the calls that they are about come together.
pub(super) struct Desk {
    /// The calls under way, the youngest last.
    calls: Mutex<Vec<(u64, mpsc::Sender<Ask>)>>,
    next: AtomicU64,
    /// Wakes whoever keeps the list of tools.
    pub(super) list_changed: Notify,
    /// When the server last showed that it works on something.
    pub(super) sign: watch::Sender<Instant>,
    pub(super) activity: broadcast::Sender<Activity>,
}

impl Desk {
    pub(super) fn new() -> Self {
        Self {
            calls: Mutex::default(),
            next: AtomicU64::new(0),
            list_changed: Notify::new(),
            sign: watch::Sender::new(Instant::now()),
            activity: broadcast::Sender::new(BACKLOG),
        }
    }

    /// Be there for what the server asks, until the place is dropped.
    pub(super) fn take_place(self: &Arc<Self>) -> (Place, mpsc::Receiver<Ask>) {
        let (sender, asks) = mpsc::channel(1);
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.calls().push((number, sender));
        (Place { desk: Arc::clone(self), number }, asks)
    }

    fn calls(&self) -> std::sync::MutexGuard<'_, Vec<(u64, mpsc::Sender<Ask>)>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Let the person answer. The protocol does not say which call a question belongs to; with
    /// several under way it is taken for the youngest one's.
    async fn ask(&self, form: Form) -> Option<ElicitResult> {
        let call = self.calls().last().map(|(_, sender)| sender.clone())?;
        let (reply, answer) = oneshot::channel();
        call.send(Ask { form, reply }).await.ok()?;
        answer.await.ok()
    }
}

impl fmt::Debug for Desk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Desk").field("calls", &self.calls().len()).finish_non_exhaustive()
    }
}

/// A call's place at the desk.
#[derive(Debug)]
pub(super) struct Place {
    desk: Arc<Desk>,
    number: u64,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.desk.calls().retain(|(number, _)| *number != self.number);
    }
}

/// What rmcp calls when a server says something by itself.
#[derive(Clone, Debug)]
pub(super) struct Handler(pub(super) Arc<Desk>);

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let mut able = ClientCapabilities::default();
        able.elicitation = Some(ElicitationCapability::default());
        ClientConfig::new(able, Implementation::new("duologue", env!("CARGO_PKG_VERSION")))
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let answer = self.0.ask(Form::new(request)).await;
        Ok(answer.unwrap_or_else(|| ElicitResult::new(ElicitationAction::Cancel)))
    }

    async fn on_progress(
        &self,
        progress: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        self.0.sign.send_replace(Instant::now());
        // Nobody need look on.
        let _ = self.0.activity.send(Activity::Progress {
            progress: progress.progress,
            total: progress.total,
            message: progress.message,
        });
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.0.list_changed.notify_one();
    }

    async fn on_resource_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.0.list_changed.notify_one();
    }

    async fn on_prompt_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.0.list_changed.notify_one();
    }
}
