//! What `cargo xtask setup` installs, and calls as an agent makes them.

use std::{
    collections::BTreeMap,
    io::Write as _,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use duologue_core::{
    CallId, Content, Part, Questions, ResultReader, SessionId, Tool, ToolContext, ToolError,
};
use duologue_mcp::{ServerConfig, Servers, Status, Transport};
use futures::future::BoxFuture;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

/// Where something that setup installs is, if it is there.
pub(crate) fn installed(what: &str) -> Option<PathBuf> {
    let root = std::env::var_os("DUOLOGUE_MCP_TOOLS")
        .map(PathBuf::from)
        .unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools/mcp"));
    let path = root.join(what);
    if path.exists() {
        return Some(path);
    }
    let note = format!("SKIPPED: mcp/{what} is not installed; `cargo xtask setup` installs it\n");
    // Not by a macro: the test runner would keep that to itself.
    let _ = std::io::stderr().write_all(note.as_bytes());
    None
}

pub(crate) fn everything() -> Option<ServerConfig> {
    node("@modelcontextprotocol/server-everything", &["stdio"])
}

/// An npm package's server.
pub(crate) fn node(package: &str, args: &[&str]) -> Option<ServerConfig> {
    let script = installed("js/node_modules")?.join(package).join("dist/index.js");
    let script = script.to_str().unwrap().to_owned();
    let args = std::iter::once(script).chain(args.iter().map(ToString::to_string)).collect();
    Some(program("node", args))
}

pub(crate) fn program(command: &str, args: Vec<String>) -> ServerConfig {
    ServerConfig::new(Transport::Stdio {
        command: command.to_owned(),
        args,
        env: BTreeMap::new(),
        cwd: None,
    })
}

pub(crate) async fn connected(configs: Vec<(&str, ServerConfig)>) -> Servers {
    let configs = configs.into_iter().map(|(name, config)| (name.to_owned(), config));
    let servers = Servers::start(configs);
    servers.settled(Duration::from_secs(30)).await;
    for server in servers.iter() {
        let status = server.status();
        assert!(matches!(status, Status::Up { .. }), "{}: {status:?}", server.name());
    }
    servers
}

pub(crate) fn tool(servers: &Servers, name: &str) -> Arc<dyn Tool> {
    let tools = servers.tools();
    let names: Vec<&str> = tools.iter().map(|tool| tool.spec().name.as_str()).collect();
    let found = tools.iter().find(|tool| tool.spec().name == name).cloned();
    found.unwrap_or_else(|| panic!("no {name} among {names:?}"))
}

#[derive(Debug)]
struct NoResults;

impl ResultReader for NoResults {
    fn result_text(&self, _: CallId) -> BoxFuture<'static, Option<String>> {
        Box::pin(async { None })
    }
}

pub(crate) fn context() -> ToolContext {
    ToolContext {
        session: SessionId::random(),
        call_id: CallId::random(),
        idempotency_key: CallId::random().to_string(),
        cancel: CancellationToken::new(),
        results: Arc::new(NoResults),
        questions: Questions::default(),
    }
}

/// Make a call and give its texts.
pub(crate) async fn call(
    servers: &Servers,
    name: &str,
    arguments: Value,
) -> Result<String, String> {
    let tool = tool(servers, name);
    tool.check(&arguments)?;
    match tool.call(arguments, context()).await {
        Ok(Content(parts)) => Ok(parts.iter().map(words).collect::<Vec<_>>().join("\n")),
        Err(ToolError(text)) => Err(text),
    }
}

fn words(part: &Part) -> String {
    match part {
        Part::Text { text } => text.clone(),
        Part::File { media_type, .. } => format!("[{media_type}]"),
        other => serde_json::to_string(other).unwrap(),
    }
}
