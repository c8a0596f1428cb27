//! The protocol from outside: a real server on a free port, real HTTP, a scripted model.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    unreachable_pub
)]

mod access;
mod bindings;
mod client;
mod directory;
mod foreign;
mod full_disk;
mod grpc_tls;
mod legacy;
mod nonsense;
mod push;
mod restart;
mod router;
mod support;
mod tasks;
