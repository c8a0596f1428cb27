//! The commands, one file each.

pub(crate) mod a2a;
pub(crate) mod bench;
#[cfg(feature = "browser")]
pub(crate) mod browse;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod lessons;
#[cfg(feature = "mcp")]
pub(crate) mod mcp;
pub(crate) mod models;
pub(crate) mod run;
pub(crate) mod sessions;
pub(crate) mod tools;
