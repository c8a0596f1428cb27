//! The project's own chores, as `cargo xtask`.

fn main() {}
