//! The commands, one file each.

pub(crate) mod a2a;
pub(crate) mod bench;
pub(crate) mod config;
pub(crate) mod lessons;
pub(crate) mod models;
pub(crate) mod run;
pub(crate) mod sessions;
pub(crate) mod tools;
