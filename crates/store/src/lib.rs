//! Duologue's journal on SQLite.
