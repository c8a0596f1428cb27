//! A language model inside the process.
mod answer;
mod engine;
mod gguf;
mod grammar;
mod half;
mod kernel;
mod memory;
mod model;
mod net;
mod pack;
mod prompt;
mod sample;
mod tokenizer;
pub use gguf::GgufError;
pub use model::{LocalModel, LocalOptions};
