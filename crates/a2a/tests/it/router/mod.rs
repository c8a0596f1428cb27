//! The bidirectional agent and its router: every decision, every default, every way out.

mod chain;
mod decisions;
mod experiments;
mod stage;
mod tools;
