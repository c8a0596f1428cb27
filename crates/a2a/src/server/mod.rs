//! Serving an agent to others: one engine behind three bindings.
//!
//! JSON-RPC, HTTP+JSON and gRPC are served on one port; gRPC can have one of its own as well.

mod call;
mod grpc;
mod jsonrpc;
mod legacy;
mod legacy_rest;
mod rate;
mod rest;
mod router;
mod sse;

use std::{
    fmt, io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use a2a::AgentCard;
use axum::{Router, serve::ListenerExt};
use duologue_core::{Agent, Store, StoreError};
use tokio::{net::TcpListener, task::JoinHandle};
use tokio_util::sync::CancellationToken;

use crate::{
    Access, CardKey, Limits, PushSettings,
    card::{Reached, card_of},
    push::Pushes,
    service::Service,
    task::{TaskSettings, Tasks},
};

/// How long open connections may take to end when the server does.
const GRACE: Duration = Duration::from_secs(5);

/// An agent that is about to be served.
///
/// ```no_run
/// # use std::sync::Arc;
/// # async fn example(agent: duologue_core::Agent) -> Result<(), duologue_a2a::ServeError> {
/// use duologue_a2a::Server;
/// use duologue_core::MemoryStore;
///
/// let serving = Server::new(agent, Arc::new(MemoryStore::new())).start().await?;
/// println!("reached at {}", serving.url());
/// # Ok(())
/// # }
/// ```
#[must_use]
pub struct Server {
    agent: Agent,
    store: Arc<dyn Store>,
    bind: SocketAddr,
    grpc: Option<SocketAddr>,
    url: Option<String>,
    access: Access,
    allow_unauthenticated: bool,
    push: PushSettings,
    limits: Limits,
    amend: Vec<Amend>,
    extended: Option<AgentCard>,
    signer: Option<CardKey>,
}

type Amend = Box<dyn FnOnce(&mut AgentCard) + Send>;

/// Why an agent cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// An address cannot be listened on.
    #[error("cannot listen on {address}: {source}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// Why not.
        source: io::Error,
    },
    /// The tasks of an earlier process cannot be read.
    #[error("the tasks of earlier runs cannot be read: {0}")]
    Store(#[from] StoreError),
    /// Something that serving needs is missing.
    #[error("{0}")]
    Setup(String),
}

impl Server {
    /// Serve this agent, its tasks kept in this store, on a free port of this machine.
    pub fn new(agent: Agent, store: Arc<dyn Store>) -> Self {
        Self {
            agent,
            store,
            bind: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            grpc: None,
            url: None,
            access: Access::open(),
            allow_unauthenticated: false,
            push: PushSettings::default(),
            limits: Limits::default(),
            amend: Vec::new(),
            extended: None,
            signer: None,
        }
    }

    /// Where to listen. Without rules of [access](Self::access), an address that others reach is
    /// replaced by one of this machine alone.
    pub fn bind(mut self, address: SocketAddr) -> Self {
        self.bind = address;
        self
    }

    /// Where to listen for gRPC as well.
    pub fn grpc(mut self, address: SocketAddr) -> Self {
        self.grpc = Some(address);
        self
    }

    /// The address by which others reach the server, where it is not the one that it listens on.
    pub fn url(mut self, url: impl Into<String>) -> Self {
        self.url = Some(url.into().trim_end_matches('/').to_owned());
        self
    }

    /// Who may call.
    pub fn access(mut self, access: Access) -> Self {
        self.access = access;
        self
    }

    /// Let everybody who reaches the server call, from other machines too.
    pub fn allow_unauthenticated(mut self) -> Self {
        self.allow_unauthenticated = true;
        self
    }

    /// How notifications are sent.
    pub fn push(mut self, push: PushSettings) -> Self {
        self.push = push;
        self
    }

    /// How much it does at once.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Change the card that was made from the agent. The agent reads what its card says it reads.
    pub fn card(mut self, amend: impl FnOnce(&mut AgentCard) + Send + 'static) -> Self {
        self.amend.push(Box::new(amend));
        self
    }

    /// The card for callers who are known.
    pub fn extended_card(mut self, card: AgentCard) -> Self {
        self.extended = Some(card);
        self
    }

    /// Sign the card, so that clients who pinned the key know it for the agent's own.
    pub fn sign(mut self, key: CardKey) -> Self {
        self.signer = Some(key);
        self
    }

    /// The card that a server of this agent would have, as far as that is known before it listens.
    pub fn card_of(agent: &Agent, url: &str) -> AgentCard {
        card_of(agent, &Access::open(), &Reached { url, grpc: None }, true)
    }

    /// Begin to serve. Tasks that an earlier process left in the middle go on.
    pub async fn start(self) -> Result<Serving, ServeError> {
        if self.extended.is_some() && self.access.is_open() {
            let why =
                "a card for known callers needs a way to know them: set an API key or token keys";
            return Err(ServeError::Setup(why.to_owned()));
        }
        let warning = self.warning();
        let (bind, grpc) = match &warning {
            Some(warning) => {
                tracing::warn!("{warning}");
                (loopback(self.bind), self.grpc.map(loopback))
            }
            None => (self.bind, self.grpc),
        };
        let (listener, address) = listen(bind).await?;
        let grpc_listener = match grpc {
            Some(address) => Some(listen(address).await?),
            None => None,
        };
        let grpc_address = grpc_listener.as_ref().map_or(address, |(_, address)| *address);
        let url = self.url.unwrap_or_else(|| format!("http://{}", reachable(address)));
        let reached = Reached { url: &url, grpc: Some(&reachable(grpc_address).to_string()) };
        let mut card = card_of(&self.agent, &self.access, &reached, self.push.enabled);
        card.capabilities.extended_agent_card = Some(self.extended.is_some());
        for amend in self.amend {
            amend(&mut card);
        }
        if let Some(key) = &self.signer {
            key.sign(&mut card).map_err(|error| ServeError::Setup(error.to_string()))?;
        }
        let settings = TaskSettings {
            input_modes: card.default_input_modes.clone(),
            url: url.clone(),
            deepest: self.limits.depth,
        };
        let setup = |error: a2a::A2AError| ServeError::Setup(error.message);
        let pushes = Pushes::new(self.push).map_err(setup)?;
        let tasks = Tasks::new(self.agent, self.store, settings, pushes);
        let resumed = tasks.recover().await?;
        let stop = CancellationToken::new();
        let service =
            Service::new(tasks.clone(), card.clone(), self.extended, self.limits, stop.clone());
        let gate = router::Gate::new(self.access, &service, &url, bind.ip().is_loopback());
        let router = router::router(service, gate);
        let mut running = vec![run(listener, router.clone(), &stop)];
        if let Some((listener, _)) = grpc_listener {
            running.push(run(listener, router, &stop));
        }
        Ok(Serving { card, url, address, grpc_address, warning, resumed, stop, running, tasks })
    }

    /// What to tell a person whose server would have been open to everybody.
    fn warning(&self) -> Option<String> {
        let is_private = |address: &SocketAddr| address.ip().is_loopback();
        let all = [Some(self.bind), self.grpc];
        let is_open = all.iter().flatten().any(|address| !is_private(address));
        (is_open && self.access.is_open() && !self.allow_unauthenticated).then(|| {
            format!(
                "{} can be reached by others and nobody is asked who they are: listening on {} \
                 instead. Set an API key or token keys, or allow_unauthenticated.",
                self.bind,
                loopback(self.bind)
            )
        })
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("agent", &self.agent.name())
            .field("bind", &self.bind)
            .finish_non_exhaustive()
    }
}

/// A server at work. It ends with [`stop`](Self::stop) or when this is dropped.
pub struct Serving {
    card: AgentCard,
    url: String,
    address: SocketAddr,
    grpc_address: SocketAddr,
    warning: Option<String>,
    resumed: usize,
    stop: CancellationToken,
    running: Vec<JoinHandle<()>>,
    tasks: Tasks,
}

impl Serving {
    /// The agent's card.
    pub fn card(&self) -> &AgentCard {
        &self.card
    }

    /// Where it is reached.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where it listens for gRPC.
    pub fn grpc_address(&self) -> SocketAddr {
        self.grpc_address
    }

    /// What a person should know, if there is something.
    pub fn warning(&self) -> Option<&str> {
        self.warning.as_deref()
    }

    /// How many tasks it went on with that an earlier process had left in the middle.
    pub fn resumed(&self) -> usize {
        self.resumed
    }

    /// Wait until it ends.
    pub async fn ended(&mut self) {
        for running in &mut self.running {
            // A task that was ended has ended.
            let _ = running.await;
        }
    }

    /// End it: streams close, and requests under way have a moment to finish. Tasks that are not
    /// over are put down as they are and go on when the server is started again.
    pub async fn stop(mut self) {
        self.stop.cancel();
        if tokio::time::timeout(GRACE, self.ended()).await.is_err() {
            for running in &self.running {
                running.abort();
            }
        }
        self.tasks.suspend().await;
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.stop.cancel();
        let tasks = self.tasks.clone();
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { tasks.suspend().await });
        }
    }
}

impl fmt::Debug for Serving {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Serving").field("url", &self.url).finish_non_exhaustive()
    }
}

async fn listen(address: SocketAddr) -> Result<(TcpListener, SocketAddr), ServeError> {
    let failed = |source| ServeError::Bind { address, source };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    Ok((listener, address))
}

fn run(listener: TcpListener, router: Router, stop: &CancellationToken) -> JoinHandle<()> {
    let stop = stop.clone();
    // Without this, the small pieces of a stream wait for each other.
    let listener = listener.tap_io(|socket| {
        if let Err(error) = socket.set_nodelay(true) {
            tracing::debug!(%error, "a connection stays slow");
        }
    });
    tokio::spawn(async move {
        let served = axum::serve(listener, router).with_graceful_shutdown(stop.cancelled_owned());
        if let Err(error) = served.await {
            tracing::error!(%error, "the server ended");
        }
    })
}

fn loopback(address: SocketAddr) -> SocketAddr {
    match address.ip() {
        ip if ip.is_loopback() => address,
        _ => SocketAddr::from((Ipv4Addr::LOCALHOST, address.port())),
    }
}

/// An address that a client can use, for one that means all of this machine's.
fn reachable(address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => loopback(address),
        IpAddr::V6(ip) if ip.is_unspecified() => loopback(address),
        _ => address,
    }
}
