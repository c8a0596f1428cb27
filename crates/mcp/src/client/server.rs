//! One server: kept connected, asked, and started again when it dies.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use duologue_core::{Part, Tool};
use rmcp::{
    RoleClient,
    model::{
        CallToolRequestParams, GetPromptRequestParams, ReadResourceRequestParams, ServerPeerInfo,
    },
    service::{RunningService, ServiceError},
};
use serde_json::{Map, Value};
use tokio::{
    sync::{broadcast, watch},
    task::JoinHandle,
    time::Instant,
};
use tokio_util::sync::CancellationToken;

use super::{
    call::{Call, Held},
    connect::{Connection, connect},
    content::{self, Prompt, Resource},
    handler::{Desk, Handler},
    names::Names,
    tool::McpTool,
};
use crate::ServerConfig;

/// The first wait before a server is tried again, and the longest.
const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// A server that lived as long as this is taken to be well.
const WELL: Duration = Duration::from_secs(30);
/// How long a call waits for a server that is just being connected.
const MOST_CONNECTING: Duration = Duration::from_secs(10);

/// Why something could not be had from a server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum McpError {
    /// It is not connected.
    #[error("the MCP server \"{server}\" is not available: {reason}")]
    Unavailable {
        /// The server.
        server: String,
        /// Why, and what is done about it.
        reason: String,
    },
    /// It said no, or the connection broke.
    #[error("{0}")]
    Failed(String),
}

/// How a server does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    /// It is being connected for the first time, or again.
    Connecting,
    /// It is connected.
    Up {
        /// Its name for itself, with its version.
        program: String,
        /// The version of the protocol that is spoken with it.
        protocol: String,
    },
    /// It could not be reached, or broke down, and is tried again.
    Down {
        /// Why.
        reason: String,
        /// When the next try is.
        retry_in: Duration,
    },
    /// It was stopped.
    Stopped,
}

/// What a server does while somebody looks on.
#[derive(Clone, Debug, PartialEq)]
pub enum Activity {
    /// A call got further.
    Progress {
        /// How far.
        progress: f64,
        /// Of how much.
        total: Option<f64>,
        /// In words.
        message: Option<String>,
    },
    /// It is connected.
    Up,
    /// It is gone.
    Down {
        /// Why.
        reason: String,
    },
    /// Its tools are others now.
    Tools,
}

enum State {
    Connecting,
    Up(Arc<Up>),
    Down { reason: String, retry_at: Instant },
    Stopped,
}

/// A connection that works.
struct Up {
    service: Arc<RunningService<RoleClient, Handler>>,
}

/// An MCP server.
#[derive(Debug)]
pub struct Server {
    name: String,
    config: ServerConfig,
    desk: Arc<Desk>,
    state: watch::Sender<State>,
    /// The tools as they were listed last; they stay known while the server is away.
    tools: Mutex<Arc<Vec<rmcp::model::Tool>>>,
    changed: Arc<watch::Sender<u64>>,
    held: Held,
    stop: CancellationToken,
    keeper: Mutex<Option<JoinHandle<()>>>,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Connecting => "Connecting",
            Self::Up(_) => "Up",
            Self::Down { .. } => "Down",
            Self::Stopped => "Stopped",
        })
    }
}

impl Server {
    pub(super) fn start(
        name: String,
        config: ServerConfig,
        changed: Arc<watch::Sender<u64>>,
    ) -> Arc<Self> {
        let server = Arc::new(Self {
            name,
            config,
            desk: Arc::new(Desk::new()),
            state: watch::Sender::new(State::Connecting),
            tools: Mutex::default(),
            changed,
            held: Held::default(),
            stop: CancellationToken::new(),
            keeper: Mutex::new(None),
        });
        let keeper = tokio::spawn(Arc::clone(&server).keep());
        *lock(&server.keeper) = Some(keeper);
        server
    }

    /// Its name in the configuration.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How it is set up.
    pub fn config(&self) -> &ServerConfig {
        &self.config
    }

    /// How it does.
    pub fn status(&self) -> Status {
        match &*self.state.borrow() {
            State::Connecting => Status::Connecting,
            State::Up(up) => {
                let info = up.service.peer_info();
                let program = info.as_ref().and_then(|info| info.server_info.as_ref());
                Status::Up {
                    program: program
                        .map(|it| format!("{} {}", it.name, it.version))
                        .unwrap_or_else(|| "a server without a name".to_owned()),
                    protocol: info
                        .map(|info| info.protocol_version.to_string())
                        .unwrap_or_default(),
                }
            }
            State::Down { reason, retry_at } => Status::Down {
                reason: reason.clone(),
                retry_in: retry_at.saturating_duration_since(Instant::now()),
            },
            State::Stopped => Status::Stopped,
        }
    }

    /// Look on: progress of calls, ups and downs.
    pub fn activity(&self) -> broadcast::Receiver<Activity> {
        self.desk.activity.subscribe()
    }

    /// What the server tells models about its use.
    pub fn instructions(&self) -> Option<String> {
        self.info().and_then(|info| info.instructions.clone())
    }

    /// What it lets read.
    pub async fn resources(&self) -> Result<Vec<Resource>, McpError> {
        if !self.has_resources() {
            return Ok(Vec::new());
        }
        let service = self.service().await?;
        let all = self.bounded(service.peer().list_all_resources()).await?;
        Ok(all.into_iter().map(Resource::from).collect())
    }

    /// Read a resource.
    pub async fn read(&self, uri: &str) -> Result<Vec<Part>, McpError> {
        let service = self.service().await?;
        let read = service.read_resource(ReadResourceRequestParams::new(uri));
        Ok(self.bounded(read).await?.contents.into_iter().map(content::contents).collect())
    }

    /// The prompts that it offers.
    pub async fn prompts(&self) -> Result<Vec<Prompt>, McpError> {
        if self.info().is_none_or(|info| info.capabilities.prompts.is_none()) {
            return Ok(Vec::new());
        }
        let service = self.service().await?;
        let all = self.bounded(service.peer().list_all_prompts()).await?;
        Ok(all.into_iter().map(Prompt::from).collect())
    }

    /// A prompt as a text, with what is filled in.
    pub async fn prompt(
        &self,
        name: &str,
        arguments: Map<String, Value>,
    ) -> Result<String, McpError> {
        let service = self.service().await?;
        let mut params = GetPromptRequestParams::new(name);
        params.arguments = (!arguments.is_empty()).then_some(arguments);
        Ok(content::prompt_text(self.bounded(service.get_prompt(params)).await?))
    }

    /// Wait until it is connected, or has failed.
    pub(super) async fn settled(&self) {
        let mut states = self.state.subscribe();
        // The sender lives as long as we do.
        let _ = states.wait_for(|state| !matches!(state, State::Connecting)).await;
    }

    /// End the connection, and wait until the process has ended.
    pub(super) async fn stop(&self) {
        self.stop.cancel();
        let keeper = lock(&self.keeper).take();
        if let Some(keeper) = keeper {
            let _ = keeper.await;
        }
    }

    /// Begin to end the connection.
    pub(super) fn stop_soon(&self) {
        self.stop.cancel();
    }

    pub(super) fn held(&self) -> &Held {
        &self.held
    }

    pub(super) fn has_resources(&self) -> bool {
        self.info().is_some_and(|info| info.capabilities.resources.is_some())
    }

    /// The tools for agents, as they were listed last.
    pub(super) fn agent_tools(self: &Arc<Self>, names: &mut Names) -> Vec<Arc<dyn Tool>> {
        let tools = Arc::clone(&lock(&self.tools));
        let is_wanted = |tool: &&rmcp::model::Tool| match &self.config.tools {
            Some(wanted) => wanted.iter().any(|name| *name == tool.name),
            None => true,
        };
        tools
            .iter()
            .filter(is_wanted)
            .map(|tool| {
                let name = names.give(&self.name, &tool.name);
                Arc::new(McpTool::new(self, name, tool)) as Arc<dyn Tool>
            })
            .collect()
    }

    /// Send a call.
    pub(super) async fn call(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
    ) -> Result<Call, McpError> {
        let service = self.service().await?;
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        Ok(Call::send(&service, &self.desk, params))
    }

    fn info(&self) -> Option<Arc<ServerPeerInfo>> {
        match &*self.state.borrow() {
            State::Up(up) => up.service.peer_info(),
            _ => None,
        }
    }

    /// The connection, if it is there or comes soon.
    async fn service(&self) -> Result<Arc<RunningService<RoleClient, Handler>>, McpError> {
        let _ = tokio::time::timeout(MOST_CONNECTING, self.settled()).await;
        let reason = match &*self.state.borrow() {
            State::Up(up) => return Ok(Arc::clone(&up.service)),
            State::Connecting => "it is still starting; try again later".to_owned(),
            State::Down { reason, retry_at } => {
                let wait = retry_at.saturating_duration_since(Instant::now()).as_secs() + 1;
                format!("{reason} (it is tried again in {wait} s)")
            }
            State::Stopped => "it was stopped".to_owned(),
        };
        Err(McpError::Unavailable { server: self.name.clone(), reason })
    }

    /// Something that is asked of the server, within its time.
    async fn bounded<T>(
        &self,
        asked: impl Future<Output = Result<T, ServiceError>>,
    ) -> Result<T, McpError> {
        match tokio::time::timeout(self.config.timeout, asked).await {
            Ok(answer) => answer.map_err(|error| self.explain(&error)),
            Err(_) => Err(McpError::Failed(format!(
                "the MCP server \"{}\" did not answer within {:?}",
                self.name, self.config.timeout
            ))),
        }
    }

    /// An error in words.
    pub(super) fn explain(&self, error: &ServiceError) -> McpError {
        match error {
            ServiceError::McpError(said) => McpError::Failed(said.message.to_string()),
            ServiceError::TransportClosed | ServiceError::TransportSend(_) => {
                McpError::Unavailable {
                    server: self.name.clone(),
                    reason: "the connection broke in the middle; whether it did something by \
                             then is not known"
                        .to_owned(),
                }
            }
            other => McpError::Failed(other.to_string()),
        }
    }

    /// Keep the server connected until it is stopped.
    async fn keep(self: Arc<Self>) {
        let mut wait = FIRST_WAIT;
        loop {
            self.state.send_replace(State::Connecting);
            let began = Instant::now();
            let connected = tokio::select! {
                connected = self.connect() => connected,
                () = self.stop.cancelled() => break,
            };
            let reason = match connected {
                Ok(connection) => match self.stay(connection).await {
                    Some(reason) => reason,
                    None => break,
                },
                Err(reason) => reason,
            };
            wait = if began.elapsed() > WELL { FIRST_WAIT } else { wait };
            self.held.clear();
            // Many servers that went down together do not come back in step.
            let pause = wait.mul_f64(0.8 + 0.4 * fastrand::f64());
            let retry_at = Instant::now() + pause;
            self.state.send_replace(State::Down { reason: reason.clone(), retry_at });
            let _ = self.desk.activity.send(Activity::Down { reason });
            tokio::select! {
                () = tokio::time::sleep_until(retry_at) => {}
                () = self.stop.cancelled() => break,
            }
            wait = (wait * 2).min(LONGEST_WAIT);
        }
        self.held.clear();
        self.state.send_replace(State::Stopped);
    }

    /// Connect and list the tools, within the time for that.
    async fn connect(&self) -> Result<Connection, String> {
        let handler = Handler(Arc::clone(&self.desk));
        let begin = async {
            let connection = connect(&self.config.transport, handler).await?;
            let listed = self.list(&connection.service).await;
            listed.map_err(|error| connection.words.explain(error))?;
            Ok(connection)
        };
        match tokio::time::timeout(self.config.startup, begin).await {
            Ok(connected) => connected,
            Err(_) => Err(format!("it did not get ready within {:?}", self.config.startup)),
        }
    }

    /// List the tools anew, and tell whoever waits for changes.
    async fn list(&self, service: &RunningService<RoleClient, Handler>) -> Result<(), String> {
        let offers = service.peer_info().is_some_and(|info| info.capabilities.tools.is_some());
        let listed = match offers {
            true => service.peer().list_all_tools().await.map_err(|error| error.to_string())?,
            false => Vec::new(),
        };
        let differs = {
            let mut tools = lock(&self.tools);
            let differs = **tools != listed;
            *tools = Arc::new(listed);
            differs
        };
        if differs {
            self.changed.send_modify(|count| *count += 1);
            let _ = self.desk.activity.send(Activity::Tools);
        }
        Ok(())
    }

    /// Be connected until the server is gone, which gives the reason, or is stopped.
    async fn stay(&self, connection: Connection) -> Option<String> {
        let Connection { service, closed, words } = connection;
        let service = Arc::new(service);
        self.state.send_replace(State::Up(Arc::new(Up { service: Arc::clone(&service) })));
        let _ = self.desk.activity.send(Activity::Up);
        let stopped = loop {
            tokio::select! {
                () = closed.cancelled() => break false,
                () = self.stop.cancelled() => break true,
                () = self.desk.list_changed.notified() => {
                    // A list that cannot be had now is the old one; the next change brings it.
                    let _ = tokio::time::timeout(self.config.timeout, self.list(&service)).await;
                }
            }
        };
        self.state.send_replace(State::Connecting);
        self.held.clear();
        if stopped {
            service.cancellation_token().cancel();
            // Whoever still holds the service is told that it is over; the process is given time
            // to end by itself.
            let _ = tokio::time::timeout(Duration::from_secs(5), closed.cancelled()).await;
            return None;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
        Some(words.explain("its end of the connection was closed"))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
