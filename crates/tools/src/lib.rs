//! Built-in tools for Duologue agents, and argument checks by JSON Schema.
