//! Connections to MCP servers, and what the servers offer.

mod answer;
mod call;
mod connect;
mod content;
mod handler;
mod names;
mod server;
mod tool;

use std::{sync::Arc, time::Duration};

use duologue_core::Tool;
use futures::future::join_all;
use tokio::sync::watch;

pub use self::{
    content::{Prompt, Resource},
    server::{Activity, McpError, Server, Status},
};
use crate::ServerConfig;

/// Servers that are kept connected.
///
/// Dropping it ends every connection, and every process that was started for one.
#[derive(Debug)]
pub struct Servers {
    servers: Vec<Arc<Server>>,
    changes: watch::Receiver<u64>,
}

impl Servers {
    /// Begin to connect to servers. It needs a runtime and does not wait for them.
    pub fn start(configs: impl IntoIterator<Item = (String, ServerConfig)>) -> Self {
        let (changed, changes) = watch::channel(0);
        let changed = Arc::new(changed);
        let servers = configs
            .into_iter()
            .map(|(name, config)| Server::start(name, config, Arc::clone(&changed)))
            .collect();
        Self { servers, changes }
    }

    /// Wait until each server is connected or has failed, but not longer than this.
    pub async fn settled(&self, most: Duration) {
        let all = join_all(self.servers.iter().map(|server| server.settled()));
        // Whoever is late is not waited for; its tools come with the next change.
        let _ = tokio::time::timeout(most, all).await;
    }

    /// All servers, in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Server>> {
        self.servers.iter()
    }

    /// The server of a name.
    pub fn get(&self, name: &str) -> Option<&Arc<Server>> {
        self.servers.iter().find(|server| server.name() == name)
    }

    /// The tools of all servers that were connected at least once. Their names begin with the
    /// server's.
    pub fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let mut taken = names::Names::default();
        let mut tools: Vec<Arc<dyn Tool>> = Vec::new();
        for server in &self.servers {
            tools.extend(server.agent_tools(&mut taken));
        }
        tools.extend(tool::for_resources(&self.servers));
        tools
    }

    /// Changes whenever the tools do.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.clone()
    }

    /// End all connections, and wait until the processes have ended.
    pub async fn stop(self) {
        join_all(self.servers.iter().map(|server| server.stop())).await;
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        for server in &self.servers {
            server.stop_soon();
        }
    }
}
