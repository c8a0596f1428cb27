//! One connection: a process or an address becomes a running service.

use std::{
    borrow::Cow,
    collections::VecDeque,
    future::Future,
    process::Stdio,
    sync::{Arc, Mutex, PoisonError},
};

use http::{HeaderName, HeaderValue};
use process_wrap::tokio::{CommandWrap, KillOnDrop, ProcessGroup};
use rmcp::{
    RoleClient,
    model::ProtocolVersion,
    service::{
        ClientLifecycleMode, ClientServiceExt as _, RunningService, RxJsonRpcMessage,
        TxJsonRpcMessage,
    },
    transport::{
        StreamableHttpClientTransport, TokioChildProcess, Transport as Wire,
        streamable_http_client::StreamableHttpClientTransportConfig,
    },
};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader},
    process::{ChildStderr, Command},
};
use tokio_util::sync::CancellationToken;

use super::handler::Handler;
use crate::Transport;

/// Lines of a server's own words that are kept to explain its end.
const MOST_LINES: usize = 5;
/// Bytes of such a line that are read.
const MOST_LINE_BYTES: u64 = 4 << 10;

/// Tells a server's process how many servers down it is: a server that is an agent itself, and finds
/// itself among its own servers, would start itself again without end.
const DEPTH: &str = "DUOLOGUE_MCP_DEPTH";
/// How far down servers are started.
const DEEPEST: u32 = 2;

/// What a server's process gets of our environment: nothing that could be a secret.
const HARMLESS: [&str; 14] = [
    "HOME",
    "PATH",
    "USER",
    "LOGNAME",
    "SHELL",
    "TERM",
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "TMPDIR",
    "TZ",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
];

/// A connection.
pub(super) struct Connection {
    pub(super) service: RunningService<RoleClient, Handler>,
    /// Cancelled when the other side is gone.
    pub(super) closed: CancellationToken,
    /// What its process said last.
    pub(super) words: LastWords,
}

/// What a process wrote to its standard error, the last lines of it.
#[derive(Clone, Debug, Default)]
pub(super) struct LastWords(Arc<Mutex<VecDeque<String>>>);

impl LastWords {
    fn add(&self, line: String) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == MOST_LINES {
            lines.pop_front();
        }
        lines.push_back(line);
    }

    /// An error with the words behind it.
    pub(super) fn explain(&self, error: impl Into<String>) -> String {
        let error = error.into();
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match lines.len() {
            0 => error,
            _ => {
                let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
                format!("{error}; it said: {}", lines.join(" / "))
            }
        }
    }
}

/// Connect. The newest protocol is tried first; a server that does not know it is greeted in the
/// older way.
pub(super) async fn connect(transport: &Transport, handler: Handler) -> Result<Connection, String> {
    let words = LastWords::default();
    let closed = CancellationToken::new();
    let service = match transport {
        Transport::Stdio { .. } => {
            let process = spawn(transport, &words)?;
            // A process that waits for `initialize` may take anything else amiss, and none that
            // is started for one client gains from the newer way.
            serve(handler, process, &closed, ClientLifecycleMode::Initialize).await
        }
        Transport::Http { url, headers } => {
            let mut config = StreamableHttpClientTransportConfig::with_uri(url.as_str());
            for (name, value) in headers {
                let header = HeaderName::try_from(name)
                    .map_err(|_| format!("\"{name}\" cannot be the name of a header"))?;
                let value = HeaderValue::try_from(value)
                    .map_err(|_| format!("the header {name} has characters no header can have"))?;
                config.custom_headers.insert(header, value);
            }
            // A client cannot be built before a TLS provider is chosen; somebody else's choice
            // stands.
            let _ = rustls::crypto::ring::default_provider().install_default();
            let wire = StreamableHttpClientTransport::from_config(config);
            let lifecycle = ClientLifecycleMode::Auto {
                preferred_versions: vec![ProtocolVersion::LATEST],
                legacy_version: None,
            };
            serve(handler, wire, &closed, lifecycle).await
        }
    };
    match service {
        Ok(service) => Ok(Connection { service, closed, words }),
        Err(error) => {
            // Its last words are often still on their way.
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            Err(words.explain(error))
        }
    }
}

async fn serve<T>(
    handler: Handler,
    wire: T,
    closed: &CancellationToken,
    lifecycle: ClientLifecycleMode,
) -> Result<RunningService<RoleClient, Handler>, String>
where
    T: Wire<RoleClient> + 'static,
{
    let watched = Watched { wire, closed: closed.clone() };
    handler.serve_with_lifecycle(watched, lifecycle).await.map_err(|error| error.to_string())
}

/// How many servers down this process is itself.
fn depth() -> u32 {
    std::env::var(DEPTH).ok().and_then(|deep| deep.parse().ok()).unwrap_or(0)
}

/// Start a server's process, in a group of its own that ends as one.
fn spawn(transport: &Transport, words: &LastWords) -> Result<TokioChildProcess, String> {
    let Transport::Stdio { command: program, args, env, cwd } = transport else {
        return Err("it is not a program".to_owned());
    };
    let deep = depth();
    if deep >= DEEPEST {
        return Err(format!(
            "MCP servers start one another here, {deep} deep; give the one that is an agent itself a \
             folder of its own with `cwd`, where it does not find the same servers again"
        ));
    }
    let mut command = Command::new(program);
    command.args(args).env_clear();
    command.envs(HARMLESS.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
    command.envs(env).env(DEPTH, (deep + 1).to_string());
    if let Some(cwd) = cwd {
        command.current_dir(cwd);
    }
    let mut wrapped = CommandWrap::from(command);
    wrapped.wrap(KillOnDrop);
    #[cfg(unix)]
    wrapped.wrap(ProcessGroup::leader());
    let (process, stderr) = TokioChildProcess::builder(wrapped)
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => {
                format!("there is no program \"{program}\"; install it, or give its path")
            }
            _ => format!("\"{program}\" cannot be started: {error}"),
        })?;
    if let Some(stderr) = stderr {
        tokio::spawn(listen(stderr, words.clone()));
    }
    Ok(process)
}

/// Read what a process says until it ends; it would stop when nobody did.
async fn listen(stderr: ChildStderr, words: LastWords) {
    let mut reader = BufReader::new(stderr);
    loop {
        let mut line = Vec::new();
        match (&mut reader).take(MOST_LINE_BYTES).read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {
                let line = String::from_utf8_lossy(&line).trim().to_owned();
                if !line.is_empty() {
                    words.add(line);
                }
            }
        }
    }
}

/// A wire that says when the other side is gone.
struct Watched<T> {
    wire: T,
    closed: CancellationToken,
}

impl<T: Wire<RoleClient>> Wire<RoleClient> for Watched<T> {
    type Error = T::Error;

    fn name() -> Cow<'static, str> {
        T::name()
    }

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.wire.send(item)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        let message = self.wire.receive().await;
        if message.is_none() {
            self.closed.cancel();
        }
        message
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.closed.cancel();
        self.wire.close().await
    }
}

impl<T> Drop for Watched<T> {
    fn drop(&mut self) {
        self.closed.cancel();
    }
}
