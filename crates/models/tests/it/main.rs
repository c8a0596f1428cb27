//! The models as a program meets them: over sockets, from files, against servers of every temper.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

mod aimock;
mod genai_wire;
mod openai_chat;
mod providers;
mod replay;
mod session;
mod support;
