//! The built-in tools from outside, as an agent's driver uses them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod bench;
#[cfg(unix)]
mod confinement;
mod files;
mod others;
#[cfg(unix)]
mod shell;
