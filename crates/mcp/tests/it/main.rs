//! MCP with servers and a client that nobody here wrote.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod client;
mod server;
mod support;
