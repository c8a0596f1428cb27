//! The browser and its tools against pages on loopback, in the installed Chromium.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    missing_docs,
    unreachable_pub
)]

mod injection;
mod pages;
mod support;
mod walls;
