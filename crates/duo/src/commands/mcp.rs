//! `duo mcp`: MCP servers, tried by hand, and our own.

use std::{io::Write, net::SocketAddr, sync::Arc, time::Duration};

use clap::{Args, Subcommand};
use duologue_core::{
    CallId, Content, Part, Questions, ResultReader, SessionId, ToolContext, ToolError,
};
use duologue_mcp::{Activity, Offer, Server, Servers, Status};
use futures::future::BoxFuture;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use crate::{
    cli::Recording,
    exit::Exit,
    failure::{Done, Failure},
    house::{House, is_servers},
    terminal::{Style, clip},
};

#[derive(Debug, Subcommand)]
pub(crate) enum Mcp {
    /// List the servers, how they do and what they offer.
    #[command(after_help = "Example:\n  duo mcp list\n\n\
        Servers stand in `[mcp_servers.NAME]` of duologue.toml, or in a `.mcp.json`.")]
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Connect to one server and say what comes of it.
    #[command(after_help = "Examples:\n  duo mcp test files\n  \
        duo mcp test files --yes     and allow this project to start it from now on")]
    Test {
        /// The server.
        server: String,
    },
    /// Call a tool of a server.
    #[command(
        after_help = "Example:\n  duo mcp call time get_current_time '{\"timezone\": \"UTC\"}'"
    )]
    Call {
        /// The server.
        server: String,
        /// The tool, as the server calls it.
        tool: String,
        /// Its arguments, as JSON.
        #[arg(default_value = "{}")]
        arguments: String,
    },
    /// Read a resource of a server.
    #[command(after_help = "Example:\n  duo mcp read docs file:///readme.md")]
    Read {
        /// The server.
        server: String,
        /// The resource, as `duo mcp list --json` names it.
        uri: String,
    },
    /// Print a prompt of a server, filled in.
    #[command(
        after_help = "Example:\n  duo mcp prompt docs review '{\"file\": \"a.rs\"}' | duo run -"
    )]
    Prompt {
        /// The server.
        server: String,
        /// The prompt.
        prompt: String,
        /// What is filled in, as JSON.
        #[arg(default_value = "{}")]
        arguments: String,
    },
    /// Offer agents and tools to MCP clients, over standard input and output or HTTP.
    Serve(Serve),
}

#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    duo mcp serve                              the agent of the configuration, over stdio\n  \
    duo mcp serve --offer planned --offer dual\n  \
    duo mcp serve --tool read_file --tool search_files\n  \
    duo mcp serve --http 127.0.0.1:8090        at http://127.0.0.1:8090/mcp\n\n\
    In a client's configuration: {\"command\": \"duo\", \"args\": [\"mcp\", \"serve\"]}. What an agent \
    needs a yes for is asked through the client; a tool that is named here runs without asking.")]
pub(crate) struct Serve {
    /// An agent to offer. May be given several times; without it and without a tool, it is the
    /// agent of the configuration.
    #[arg(long, value_name = "AGENT")]
    pub(crate) offer: Vec<String>,

    /// A tool to offer. May be given several times.
    #[arg(long, value_name = "TOOL")]
    pub(crate) tool: Vec<String>,

    /// Listen for HTTP at this address instead.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) http: Option<SocketAddr>,
}

pub(crate) async fn mcp(house: &House, args: Mcp) -> Done {
    match args {
        Mcp::List { json } => list(house, json).await,
        Mcp::Test { server } => test(house, &server).await,
        Mcp::Call { server, tool, arguments } => call(house, &server, &tool, &arguments).await,
        Mcp::Read { server, uri } => {
            let servers = house.server(&server).await?;
            let parts = up(&servers, &server)?.read(&uri).await.map_err(Failure::new)?;
            print(&parts)?;
            Ok(Exit::Completed)
        }
        Mcp::Prompt { server, prompt, arguments } => {
            let arguments = object(&arguments)?;
            let servers = house.server(&server).await?;
            let text =
                up(&servers, &server)?.prompt(&prompt, arguments).await.map_err(Failure::new)?;
            writeln!(std::io::stdout(), "{text}")?;
            Ok(Exit::Completed)
        }
        Mcp::Serve(args) => serve(house, args).await,
    }
}

async fn list(house: &House, as_json: bool) -> Done {
    let servers = house.servers().await?;
    let mut out = std::io::stdout();
    let mut listed = Vec::new();
    for server in servers.iter() {
        let tools = tools_of(servers, server);
        let (resources, prompts) = (server.resources().await, server.prompts().await);
        if as_json {
            listed.push(json!({
                "name": server.name(),
                "status": status(server),
                "tools": tools,
                "resources": resources.unwrap_or_default(),
                "prompts": prompts.unwrap_or_default(),
            }));
            continue;
        }
        let name = house.paint.text(Style::Tool, server.name());
        writeln!(out, "{name}  {}", status(server))?;
        for (tool, about) in &tools {
            writeln!(out, "  {tool:<40} {}", clip(about, 80))?;
        }
        for resource in resources.unwrap_or_default().iter().take(10) {
            let about = resource.description.as_deref().unwrap_or(&resource.name);
            writeln!(out, "  resource {:<31} {}", resource.uri, clip(about, 80))?;
        }
        for prompt in prompts.unwrap_or_default() {
            let about = prompt.description.unwrap_or_default();
            writeln!(out, "  prompt {:<33} {}", prompt.name, clip(&about, 80))?;
        }
    }
    if as_json {
        writeln!(out, "{}", serde_json::to_string_pretty(&listed)?)?;
    } else if servers.iter().next().is_none() {
        writeln!(
            out,
            "no MCP server; name one in duologue.toml:\n\n  [mcp_servers.time]\n  \
             command = \"uvx\"\n  args = [\"mcp-server-time\"]"
        )?;
    }
    Ok(Exit::Completed)
}

/// A server's tools by the names that agents know, with what they do.
fn tools_of(servers: &Servers, server: &Server) -> Vec<(String, String)> {
    let begins = format!("{}__", server.name());
    let all = servers.tools();
    let own = all.iter().map(|tool| tool.spec()).filter(|spec| spec.name.starts_with(&begins));
    own.map(|spec| (spec.name.clone(), spec.description.clone())).collect()
}

fn status(server: &Server) -> String {
    match server.status() {
        Status::Up { program, protocol } => format!("{program}, protocol {protocol}"),
        Status::Down { reason, .. } => format!("down: {reason}"),
        Status::Connecting => "still starting".to_owned(),
        Status::Stopped => "stopped".to_owned(),
    }
}

/// The server of a name among those that were started, if it is up. What is wrong with it was
/// already said.
fn up<'a>(servers: &'a Servers, name: &str) -> Result<&'a Arc<Server>, Failure> {
    match servers.get(name) {
        Some(server) if matches!(server.status(), Status::Up { .. }) => Ok(server),
        _ => Err(Failure::new(format!("the MCP server {name} is not available"))),
    }
}

async fn test(house: &House, name: &str) -> Done {
    let servers = &house.server(name).await?;
    let server = up(servers, name)?;
    let mut out = std::io::stdout();
    writeln!(out, "{name}: {}", status(server))?;
    let tools = tools_of(servers, server).len();
    let resources = server.resources().await.map_err(Failure::new)?.len();
    let prompts = server.prompts().await.map_err(Failure::new)?.len();
    writeln!(out, "{tools} tools, {resources} resources, {prompts} prompts")?;
    Ok(Exit::Completed)
}

fn object(text: &str) -> Result<Map<String, Value>, Failure> {
    match serde_json::from_str(text) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(_) => Err(Failure::usage("the arguments must be a JSON object, such as {\"a\": 1}")),
        Err(error) => Err(Failure::usage(format!("the arguments are not JSON: {error}"))),
    }
}

async fn call(house: &House, name: &str, tool: &str, arguments: &str) -> Done {
    let arguments = Value::Object(object(arguments)?);
    let servers = &house.server(name).await?;
    let server = up(servers, name)?;
    let ends = format!("__{tool}");
    let begins = format!("{name}__");
    let of_server = |known: &str| known.starts_with(&begins) && known.ends_with(&ends);
    let all = servers.tools();
    let Some(found) = all.iter().find(|known| of_server(&known.spec().name)) else {
        return Err(Failure::usage(format!(
            "{name} has no tool \"{tool}\"; `duo mcp list` shows what it has"
        )));
    };
    found.check(&arguments).map_err(|error| Failure::usage(format!("the arguments: {error}")))?;
    let stop = CancellationToken::new();
    let call_id = CallId::random();
    let mut answers = Vec::new();
    let mut activity = server.activity();
    loop {
        let questions = Questions::with_answers(answers.clone());
        let context = ToolContext {
            session: SessionId::random(),
            idempotency_key: call_id.to_string(),
            call_id: call_id.clone(),
            cancel: stop.clone(),
            results: Arc::new(NoResults),
            questions: questions.clone(),
        };
        let work = found.call(arguments.clone(), context);
        tokio::pin!(work);
        let output = loop {
            tokio::select! {
                output = &mut work => break output,
                _ = tokio::signal::ctrl_c() => stop.cancel(),
                Ok(seen) = activity.recv() => show(&seen)?,
            }
        };
        match output {
            Ok(Content(parts)) => {
                print(&parts)?;
                return Ok(Exit::Completed);
            }
            Err(ToolError(error)) => match questions.asked() {
                Some((question, choices)) => answers.push(ask(&question, &choices)?),
                None if stop.is_cancelled() => return Ok(Exit::Aborted),
                None => return Err(Failure::new(error)),
            },
        }
    }
}

/// Progress, for whoever looks on.
fn show(seen: &Activity) -> Result<(), Failure> {
    if let Activity::Progress { progress, total, message } = seen {
        let of = total.map(|total| format!(" of {total}")).unwrap_or_default();
        let message = message.as_deref().unwrap_or_default();
        writeln!(std::io::stderr(), "… {progress}{of} {message}")?;
    }
    Ok(())
}

/// Ask whoever sits at the terminal; an empty line declines.
fn ask(question: &str, choices: &[String]) -> Result<Option<Vec<Part>>, Failure> {
    let mut err = std::io::stderr();
    writeln!(err, "{question}")?;
    if !choices.is_empty() {
        writeln!(err, "({})", choices.join(", "))?;
    }
    write!(err, "> ")?;
    err.flush()?;
    let mut line = String::new();
    std::io::stdin().read_line(&mut line)?;
    let line = line.trim();
    Ok((!line.is_empty()).then(|| vec![Part::text(line)]))
}

#[derive(Debug)]
struct NoResults;

impl ResultReader for NoResults {
    fn result_text(&self, _: CallId) -> BoxFuture<'static, Option<String>> {
        Box::pin(async { None })
    }
}

fn print(parts: &[Part]) -> Result<(), Failure> {
    let mut out = std::io::stdout();
    for part in parts {
        match part {
            Part::Text { text } => writeln!(out, "{text}")?,
            Part::Data { value } => writeln!(out, "{}", serde_json::to_string_pretty(value)?)?,
            Part::File { media_type, .. } => writeln!(out, "[a file, {media_type}]")?,
            other => writeln!(out, "{}", serde_json::to_string(other)?)?,
        }
    }
    Ok(())
}

async fn serve(house: &House, args: Serve) -> Done {
    let mut offer = Offer::new(house.store().await?);
    let mut names = args.offer;
    if names.is_empty() && args.tool.is_empty() {
        names.push(house.config().agent.clone());
    }
    for name in names {
        let plan = house.plan_for(&name, None)?;
        offer = offer.agent(house.agent(&plan, &Recording::default()).await?);
    }
    if !args.tool.is_empty() {
        // A tool of this program needs no servers, one of which may be this very program.
        if args.tool.iter().any(|name| is_servers(name)) {
            house.bring_servers().await?;
        }
        let toolbox = house.tools(&house.config().workspace, Some(&args.tool))?;
        let policy = house.config().permissions.policy().map_err(Failure::usage)?;
        offer = toolbox.iter().cloned().fold(offer.policy(policy), Offer::tool);
    }
    let Some(address) = args.http else {
        let stop = CancellationToken::new();
        let serving = offer.serve_stdio(stop.clone());
        tokio::pin!(serving);
        let ended = tokio::select! {
            ended = &mut serving => ended,
            _ = tokio::signal::ctrl_c() => {
                stop.cancel();
                serving.await
            }
        };
        ended.map_err(Failure::new)?;
        return Ok(Exit::Completed);
    };
    if !address.ip().is_loopback() {
        return Err(Failure::usage(format!(
            "{address} is reached from elsewhere, and there is no key; use a loopback address"
        )));
    }
    let serving = offer.serve_http(address).await.map_err(Failure::new)?;
    writeln!(std::io::stdout(), "http://{}/mcp", serving.address())?;
    std::io::stdout().flush()?;
    let _ = tokio::signal::ctrl_c().await;
    // A client that streams would hold the end up.
    let _ = tokio::time::timeout(Duration::from_secs(3), serving.stop()).await;
    Ok(Exit::Completed)
}
