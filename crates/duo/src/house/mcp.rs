//! The MCP servers of a house: from the configuration and from a `.mcp.json`, started when an agent
//! needs them.

use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    io::{IsTerminal, Write},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use duologue_core::Tool;
use duologue_mcp::{ServerConfig, ServerEntry, Servers, Status, Transport, read_mcp_json};

use super::House;
use crate::{
    config::{keys, origin::Origin},
    failure::Failure,
};

/// How long a conversation waits for servers before it begins without them.
const MOST_WAIT: Duration = Duration::from_secs(10);

/// The ecosystem's file of servers.
const FILE: &str = ".mcp.json";

/// A server that the house knows, and who says so.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    pub(crate) name: String,
    pub(crate) config: ServerConfig,
    /// Whether a file of the project says it, which may be somebody else's.
    pub(crate) of_project: bool,
}

impl House {
    /// Start the servers and wait until they are ready, but not for long. What is wrong with one is
    /// said once and holds up nobody.
    pub(crate) async fn bring_servers(&self) -> Result<(), Failure> {
        self.servers().await.map(|_| ())
    }

    /// All servers, started.
    pub(crate) async fn servers(&self) -> Result<&Servers, Failure> {
        let start = || async { self.start_servers(self.known_servers()?).await };
        self.mcp.get_or_try_init(start).await
    }

    /// One server, started alone.
    pub(crate) async fn server(&self, name: &str) -> Result<Servers, Failure> {
        let mut known = self.known_servers()?;
        let names: Vec<String> = known.iter().map(|it| it.name.clone()).collect();
        known.retain(|it| it.name == name);
        if known.is_empty() {
            let there = match names.as_slice() {
                [] => "there is none; `duo mcp list` says how to name one".to_owned(),
                names => format!("there are {}", names.join(", ")),
            };
            return Err(Failure::usage(format!("unknown MCP server \"{name}\"; {there}")));
        }
        self.start_servers(known).await
    }

    async fn start_servers(&self, known: Vec<Known>) -> Result<Servers, Failure> {
        let wanted = self.permitted(known)?;
        let servers = Servers::start(wanted.into_iter().map(|it| (it.name, it.config)));
        servers.settled(MOST_WAIT).await;
        for server in servers.iter() {
            let problem = match server.status() {
                Status::Up { .. } => continue,
                Status::Down { reason, .. } => reason,
                Status::Connecting | Status::Stopped => "it is still starting".to_owned(),
            };
            let name = server.name();
            writeln!(std::io::stderr(), "duo: MCP server {name}: {problem}")?;
        }
        Ok(servers)
    }

    /// The tools of the servers that an agent has: all, or those that it names, where `NAME__*`
    /// names all of a server.
    pub(super) fn server_tools(&self, named: Option<&[String]>) -> Vec<Arc<dyn Tool>> {
        let all = self.mcp.get().map(Servers::tools).unwrap_or_default();
        let Some(named) = named else { return all };
        let is_named = |tool: &Arc<dyn Tool>| {
            let name = tool.spec().name.as_str();
            named.iter().any(|wanted| match wanted.strip_suffix('*') {
                Some(beginning) => name.starts_with(beginning),
                None => wanted == name,
            })
        };
        all.into_iter().filter(is_named).collect()
    }

    /// Every server that the configuration and a `.mcp.json` name and that is switched on. The
    /// configuration counts more.
    pub(crate) fn known_servers(&self) -> Result<Vec<Known>, Failure> {
        let mut known = BTreeMap::new();
        let file = self.config().workspace.join(FILE);
        let lookup = |name: &str| std::env::var(name).ok();
        if file.is_file() {
            let text = std::fs::read_to_string(&file)
                .map_err(|error| Failure::usage(format!("{}: {error}", file.display())))?;
            let read = read_mcp_json(&text, lookup)
                .map_err(|error| Failure::usage(format!("{}: {error}", file.display())))?;
            for (name, config) in read {
                let it = Known { name: name.clone(), config, of_project: true };
                known.insert(name, it);
            }
        }
        for (name, section) in &self.config().mcp_servers {
            if !section.enabled {
                known.remove(name);
                continue;
            }
            let config = server_config(name, section)
                .and_then(|config| config.filled_in(name, lookup).map_err(|e| e.to_string()))
                .map_err(|error| Failure::usage(format!("mcp_servers.{name}: {error}")))?;
            let begins = format!("mcp_servers.{name}.");
            let of_project = self.loaded.provenance.rows.iter().any(|row| {
                row.key.starts_with(&begins) && matches!(row.origin, Origin::Project(_))
            });
            known.insert(name.clone(), Known { name: name.clone(), config, of_project });
        }
        Ok(known.into_values().collect())
    }

    /// Those that may run. A program that a project's file names is started only after its person
    /// said yes to exactly that, once.
    fn permitted(&self, known: Vec<Known>) -> Result<Vec<Known>, Failure> {
        let mut permitted = Vec::new();
        let mut trust = Trust::load();
        for it in known {
            if !it.of_project || trust.has(&it) {
                permitted.push(it);
                continue;
            }
            let Known { name, config, .. } = &it;
            let what = match &config.transport {
                Transport::Stdio { command, args, .. } => {
                    format!("start {command} {}", args.join(" "))
                }
                Transport::Http { url, .. } => format!("speak with {url}"),
            };
            let mut err = std::io::stderr();
            let yes = if self.yes {
                true
            } else if std::io::stdin().is_terminal() && err.is_terminal() {
                write!(err, "This project wants to {what} as MCP server {name}. Allow it? [y/N] ")?;
                err.flush()?;
                let mut answer = String::new();
                std::io::stdin().read_line(&mut answer)?;
                answer.trim().eq_ignore_ascii_case("y")
            } else {
                writeln!(
                    err,
                    "duo: MCP server {name} of this project is not used: it would {what}; allow it \
                     with `duo mcp test {name} --yes`"
                )?;
                false
            };
            if yes {
                trust.add(&it)?;
                permitted.push(it);
            }
        }
        Ok(permitted)
    }
}

/// What a section says, as the client wants it.
fn server_config(name: &str, section: &keys::McpServer) -> Result<ServerConfig, String> {
    let entry = ServerEntry {
        command: section.command.clone(),
        args: section.args.clone(),
        env: section.env.templates().clone(),
        cwd: section.cwd.clone(),
        url: section.url.clone(),
        headers: section.headers.templates().clone(),
        ..ServerEntry::default()
    };
    let transport = entry.transport(name).map_err(|error| error.to_string())?;
    Ok(ServerConfig {
        tools: section.tools.clone(),
        startup: Duration::from_secs(section.startup_seconds),
        timeout: Duration::from_secs(section.timeout_seconds),
        ..ServerConfig::new(transport)
    })
}

/// What its person allowed projects to start: lines that say exactly what.
struct Trust {
    file: Option<PathBuf>,
    lines: Vec<String>,
}

impl Trust {
    fn load() -> Self {
        let data = crate::config::dirs::Dirs::find(crate::config::dirs::Platform::HERE, |name| {
            std::env::var_os(name)
        })
        .data;
        let file = data.map(|data| data.join("duologue").join("trusted-mcp.txt"));
        let text = file.as_ref().and_then(|file| std::fs::read_to_string(file).ok());
        let lines = text.unwrap_or_default().lines().map(str::to_owned).collect();
        Self { file, lines }
    }

    /// A server with all that makes it what it is. Values that may be secret are only a mark: a
    /// variable that is set otherwise makes another program of it.
    fn line(it: &Known) -> String {
        let mut mark = DefaultHasher::new();
        match &it.config.transport {
            Transport::Stdio { env, .. } => env.hash(&mut mark),
            Transport::Http { headers, .. } => headers.hash(&mut mark),
        }
        let mark = mark.finish();
        format!("{} {:?} {mark:016x}", it.name, it.config.transport).replace('\n', " ")
    }

    fn has(&self, it: &Known) -> bool {
        self.lines.contains(&Self::line(it))
    }

    fn add(&mut self, it: &Known) -> Result<(), Failure> {
        self.lines.push(Self::line(it));
        let Some(file) = &self.file else { return Ok(()) };
        if let Some(folder) = file.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let mut text = self.lines.join("\n");
        text.push('\n');
        std::fs::write(file, text)?;
        Ok(())
    }
}
