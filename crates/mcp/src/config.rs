//! How a server is reached, as the ecosystem writes it down.

use std::{collections::BTreeMap, fmt, path::PathBuf, time::Duration};

use serde::Deserialize;

/// How long a server may take to start and to list its tools, unless it says otherwise.
const STARTUP: Duration = Duration::from_secs(30);
/// How long a call may go on without a sign of progress, unless the server says otherwise.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A server, and how it is dealt with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerConfig {
    /// How it is reached.
    pub transport: Transport,
    /// The tools that are offered to agents; all of them where this is `None`.
    pub tools: Option<Vec<String>>,
    /// How long it may take to start.
    pub startup: Duration,
    /// How long a call may go on without a sign of progress.
    pub timeout: Duration,
}

impl ServerConfig {
    /// A server with the usual patience.
    pub fn new(transport: Transport) -> Self {
        Self { transport, tools: None, startup: STARTUP, timeout: TIMEOUT }
    }
}

/// How a server is reached.
#[derive(Clone, PartialEq, Eq)]
pub enum Transport {
    /// A program of ours, spoken to over its standard input and output.
    Stdio {
        /// The program.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Variables that it gets besides the harmless ones of this process.
        env: BTreeMap<String, String>,
        /// The folder that it starts in.
        cwd: Option<PathBuf>,
    },
    /// A server somewhere, over streamable HTTP.
    Http {
        /// Its address.
        url: String,
        /// Headers that go with every request.
        headers: BTreeMap<String, String>,
    },
}

/// Values of variables and headers are often secrets, so only their names are shown.
impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdio { command, args, env, cwd } => f
                .debug_struct("Stdio")
                .field("command", command)
                .field("args", args)
                .field("env", &env.keys())
                .field("cwd", cwd)
                .finish(),
            Self::Http { url, headers } => {
                f.debug_struct("Http").field("url", url).field("headers", &headers.keys()).finish()
            }
        }
    }
}

/// Why a configuration cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The file is not what it should be.
    #[error("it is not a file of MCP servers: {0}")]
    Shape(String),
    /// A server says neither how it is started nor where it is.
    #[error("server \"{0}\" needs a command or a url")]
    NoTransport(String),
    /// A server says both.
    #[error("server \"{0}\" has a command and a url; it can have only one")]
    TwoTransports(String),
    /// A server speaks a transport that is no longer part of the protocol.
    #[error("server \"{server}\" wants the transport \"{kind}\"; stdio and http are spoken here")]
    UnknownTransport {
        /// The server.
        server: String,
        /// What it wants.
        kind: String,
    },
    /// A value names a variable that is not set.
    #[error("server \"{server}\" needs the environment variable {variable}, which is not set")]
    Unset {
        /// The server.
        server: String,
        /// The variable.
        variable: String,
    },
}

#[derive(Deserialize)]
struct File {
    #[serde(rename = "mcpServers")]
    servers: BTreeMap<String, ServerEntry>,
}

/// A server as files say it.
// Unknown fields are other programs' settings, so they are let pass.
#[derive(Clone, Default, Deserialize)]
#[serde(default)]
pub struct ServerEntry {
    /// The transport's name, where it is said.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// The program.
    pub command: Option<String>,
    /// Its arguments.
    pub args: Vec<String>,
    /// Its variables.
    pub env: BTreeMap<String, String>,
    /// Its folder.
    pub cwd: Option<PathBuf>,
    /// The address, where there is no program.
    pub url: Option<String>,
    /// Headers for that address.
    pub headers: BTreeMap<String, String>,
    /// Whether it is switched off.
    pub disabled: bool,
}

/// Only what cannot be a secret.
impl fmt::Debug for ServerEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("ServerEntry");
        shown.field("command", &self.command).field("url", &self.url).finish_non_exhaustive()
    }
}

/// Read a `.mcp.json`. `${NAME}` and `${NAME:-otherwise}` stand for environment variables, which
/// `lookup` knows. Servers that are switched off are left out.
pub fn read_mcp_json(
    text: &str,
    lookup: impl Fn(&str) -> Option<String>,
) -> Result<BTreeMap<String, ServerConfig>, ConfigError> {
    let file: File =
        serde_json::from_str(text).map_err(|error| ConfigError::Shape(error.to_string()))?;
    let enabled = file.servers.into_iter().filter(|(_, entry)| !entry.disabled);
    enabled
        .map(|(name, entry)| {
            let config = ServerConfig::new(entry.transport(&name)?).filled_in(&name, &lookup)?;
            Ok((name, config))
        })
        .collect()
}

impl ServerEntry {
    /// How the server is reached.
    pub fn transport(self, server: &str) -> Result<Transport, ConfigError> {
        match self.kind.as_deref() {
            None | Some("stdio" | "http" | "streamable-http" | "streamable_http") => {}
            Some(kind) => {
                let kind = kind.to_owned();
                return Err(ConfigError::UnknownTransport { server: server.to_owned(), kind });
            }
        }
        let Self { command, args, env, cwd, url, headers, .. } = self;
        match (command, url) {
            (Some(command), None) => Ok(Transport::Stdio { command, args, env, cwd }),
            (None, Some(url)) => Ok(Transport::Http { url, headers }),
            (None, None) => Err(ConfigError::NoTransport(server.to_owned())),
            (Some(_), Some(_)) => Err(ConfigError::TwoTransports(server.to_owned())),
        }
    }
}

impl ServerConfig {
    /// The same with variables filled in, as in a `.mcp.json`.
    pub fn filled_in(
        mut self,
        server: &str,
        lookup: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, ConfigError> {
        let fill = |text: &mut String| -> Result<(), ConfigError> {
            *text = fill_in(text, server, &lookup)?;
            Ok(())
        };
        match &mut self.transport {
            Transport::Stdio { command, args, env, .. } => {
                std::iter::once(command).chain(args).chain(env.values_mut()).try_for_each(fill)?;
            }
            Transport::Http { url, headers } => {
                std::iter::once(url).chain(headers.values_mut()).try_for_each(fill)?;
            }
        }
        Ok(self)
    }
}

/// Put variables in. What does not look like one stays as it is.
fn fill_in(
    text: &str,
    server: &str,
    lookup: &impl Fn(&str) -> Option<String>,
) -> Result<String, ConfigError> {
    let mut filled = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        let Some((inside, behind)) = after.split_once('}') else { break };
        filled.push_str(before);
        let (name, otherwise) = match inside.split_once(":-") {
            Some((name, otherwise)) => (name, Some(otherwise)),
            None => (inside, None),
        };
        match (lookup(name), otherwise) {
            (Some(value), _) => filled.push_str(&value),
            (None, Some(otherwise)) => filled.push_str(otherwise),
            (None, None) => {
                let (server, variable) = (server.to_owned(), name.to_owned());
                return Err(ConfigError::Unset { server, variable });
            }
        }
        rest = behind;
    }
    filled.push_str(rest);
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<BTreeMap<String, ServerConfig>, ConfigError> {
        read_mcp_json(text, |name| (name == "KEY").then(|| "s3cret".to_owned()))
    }

    #[test]
    fn both_kinds_of_server_are_read_with_variables_filled_in() {
        let read = read(
            r#"{"mcpServers": {
                "files": {"command": "npx", "args": ["-y", "server", "${DIR:-/tmp}"],
                          "env": {"TOKEN": "${KEY}"}, "autoApprove": ["x"]},
                "far": {"type": "http", "url": "http://localhost:1/mcp",
                        "headers": {"Authorization": "Bearer ${KEY}"}},
                "off": {"command": "x", "disabled": true}
            }}"#,
        )
        .unwrap();
        assert_eq!(read.keys().collect::<Vec<_>>(), ["far", "files"]);
        let Transport::Stdio { args, env, .. } = &read["files"].transport else { panic!() };
        assert_eq!((args[2].as_str(), env["TOKEN"].as_str()), ("/tmp", "s3cret"));
        let Transport::Http { headers, .. } = &read["far"].transport else { panic!() };
        assert_eq!(headers["Authorization"], "Bearer s3cret");
        assert!(!format!("{read:?}").contains("s3cret"));
    }

    #[test]
    fn what_cannot_be_used_is_said_with_the_servers_name() {
        let error = |text: &str| read(text).unwrap_err().to_string();
        assert!(error("[]").starts_with("it is not a file of MCP servers"));
        assert_eq!(error(r#"{"mcpServers": {"a": {}}}"#), "server \"a\" needs a command or a url");
        assert_eq!(
            error(r#"{"mcpServers": {"a": {"type": "sse", "url": "x"}}}"#),
            "server \"a\" wants the transport \"sse\"; stdio and http are spoken here"
        );
        assert_eq!(
            error(r#"{"mcpServers": {"a": {"command": "${NOPE}"}}}"#),
            "server \"a\" needs the environment variable NOPE, which is not set"
        );
    }
}
