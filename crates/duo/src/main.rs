//! `duo`: build, run, connect and measure LLM agents.

fn main() {}
