//! The runner of the scenarios.

pub mod matching;
pub mod play;
pub mod script;
pub mod stage;
pub mod world;
