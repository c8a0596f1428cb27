//! Models for Duologue: everything that answers a [`Request`](duologue_core::Request).
//!
//! | model | answers from | made by |
//! |---|---|---|
//! | a provider's | an API: Anthropic, OpenAI, Gemini, any server that speaks OpenAI's chat | [`Providers::model`] |
//! | [`Scripted`] | turns or rules in code or in a file | [`Scripted::new`], [`Scripted::from_file`] |
//! | [`Recorder`] | another model, and writes it down | [`Recorder::new`] |
//! | [`Replay`] | a recording or a journal | [`Replay::from_cassette`], [`Replay::from_journal`] |
//!
//! They are all the same to an agent, and they wrap each other:
//!
//! ```
//! use std::sync::Arc;
//! use duologue_core::{Accumulator, Message, Model, Request};
//! use duologue_models::{Recorder, Replay, Scripted};
//! use futures::StreamExt;
//!
//! async fn ask(model: &dyn Model, text: &str) -> Result<String, Box<dyn std::error::Error>> {
//!     let messages = Arc::new(vec![Arc::new(Message::user(text))]);
//!     let mut deltas = model.ask(Request { messages, ..Request::default() });
//!     let mut answer = Accumulator::default();
//!     while let Some(delta) = deltas.next().await {
//!         answer.push(delta?);
//!     }
//!     Ok(answer.finish().message.text())
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let tape = folder.path().join("tape.jsonl");
//! let model = Recorder::new(Arc::new(Scripted::new(["Hello."])), &tape)?;
//! assert_eq!(ask(&model, "Hi!").await?, "Hello.");
//!
//! let replay = Replay::from_cassette(&tape)?;
//! assert_eq!(ask(&replay, "Hi!").await?, "Hello.");
//! assert!(ask(&replay, "Bye!").await.is_err());
//! # Ok(())
//! # }
//! ```
//!
//! # Where to look
//!
//! - `providers` finds the model of a name like `anthropic/claude-sonnet-4-5`: the known providers
//!   (`known`), the configured ones (`config`), their keys, and whether they answer (`status`).
//!   - `openai_chat` is our own client for OpenAI's chat wire, with its `sse` parser.
//!   - `genai_wire` puts the `genai` crate's clients behind our types for the other wires.
//!   - `errors` says what a refusal means, `redact` keeps keys out of it.
//! - `scripted` has its file format in `scripted/file.rs`.
//! - `cassette` is what `recorder` writes and `replay` reads.
//! - `price` lists what models cost.
//!
//! Retrying is not done here: models only say what went wrong, and how long to wait.
//!
//! # Features
//!
//! `providers`, on by default, brings in everything that talks HTTP. Without it the crate is light.

mod cassette;
mod price;
#[cfg(feature = "providers")]
mod providers;
mod recorder;
mod replay;
mod scripted;

pub use price::known_price;
#[cfg(feature = "providers")]
pub use providers::{
    KeyStatus, ProviderConfig, ProviderError, ProviderStatus, Providers, Reached, Wire,
};
pub use recorder::Recorder;
pub use replay::{CassetteError, Replay};
pub use scripted::{Rule, ScriptError, Scripted, Turn, TurnCall};
