//! `duo`: build, run, connect and measure LLM agents.

#[allow(
    dead_code,
    unused_imports,
    reason = "the commands that use all of it come with their parts"
)]
mod config;

fn main() {}
