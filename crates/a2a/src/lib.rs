//! A2A, the protocol between agents: any agent of ours as a server of it, and any server of it as an
//! agent of ours.
//!
//! ```text
//!  JSON-RPC ─┐                         ┌─ TaskView (task, updates)
//! HTTP+JSON ─┼─▶ Service ─▶ Tasks ─▶ Session ─▶ journal ─┤
//!      gRPC ─┘                         └─ push workers
//! ```
//!
//! - [`Server`] serves an agent. A task **is** a session: its history, status and artifacts are read
//!   off the journal, and nothing else is kept.
//! - [`Remote`] is another agent, in 1.0 or 0.3; [`Remote::agent`] makes it one of ours.
//! - [`kept_tasks`] are the tasks of a store, for those who look into it without a server.
//! - [`BidirectionalAgent`] is both at once, with a router that decides who does what is asked.
//! - [`Directory`] is who else there is: known agents, how they are, and those they know.
//! - [`Access`] says who may call; everybody sees only their own tasks.
//! - [`CardKey`] signs cards; [`verify_card`] checks them against pinned keys.
//! - [`PushSettings`] says how clients are notified, [`Limits`] how much is done at once.
//!
//! The types of the protocol come from the `a2a` crates of its own project; the engine and the
//! routers are ours.

mod access;
mod bidirectional;
mod card;
mod client;
mod directory;
mod fault;
mod push;
mod server;
mod service;
mod signature;
mod task;
mod v03;
mod wire;

pub use a2a;
pub use access::{Access, AccessError, Caller};
pub use bidirectional::{
    BidirectionalAgent, BidirectionalBuilder, EXPOSED_BY_DEFAULT, RouterSettings, TOOL_NAMES,
    ToolSetupError,
};
pub use client::{Credentials, Remote, RemoteError};
pub use directory::{Directory, DirectoryError, Health, KnownAgent, Refreshed, Refreshing, Skill};
pub use push::PushSettings;
pub use server::{ServeError, Server, Serving};
pub use service::Limits;
pub use signature::{CardError, CardKey, verify_card};
pub use task::{give_artifact, kept_task, kept_tasks, reply_directly};
pub use wire::whole_numbers;

/// Choose the one TLS of the whole product, unless somebody has.
fn install_tls() {
    // Somebody else having chosen is fine.
    let _ = rustls::crypto::ring::default_provider().install_default();
}
