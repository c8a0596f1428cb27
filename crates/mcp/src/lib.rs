//! MCP, both ways: the tools of MCP servers for our agents, and our agents as an MCP server.
//!
//! [`Servers`] keeps connections to servers and offers what they have as ordinary tools. A server
//! that dies is started again, and until then its tools answer with the reason; one that hangs
//! holds up nobody. [`Offer`] turns agents and tools into a server of its own.
//!
//! ```no_run
//! use std::{collections::BTreeMap, time::Duration};
//! use duologue_core::Toolbox;
//! use duologue_mcp::{ServerConfig, Servers, read_mcp_json};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let text = r#"{"mcpServers": {"time": {"command": "mcp-server-time"}}}"#;
//! let configs: BTreeMap<String, ServerConfig> = read_mcp_json(text, |_| None)?;
//! let servers = Servers::start(configs);
//! servers.settled(Duration::from_secs(10)).await;
//! let toolbox = servers.tools().into_iter().fold(Toolbox::new(), Toolbox::with_shared);
//! # servers.stop().await;
//! # Ok(())
//! # }
//! ```

mod client;
mod config;
mod server;

pub use client::{Activity, McpError, Prompt, Resource, Server, Servers, Status};
pub use config::{ConfigError, ServerConfig, ServerEntry, Transport, read_mcp_json};
pub use server::{Offer, Serving};
