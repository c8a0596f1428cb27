//! How a journal file is kept.

use std::time::Duration;

/// How a [`SqliteStore`](crate::SqliteStore) keeps its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqliteOptions {
    /// What a flush promises.
    pub durability: Durability,
    /// How long to wait for another process that writes.
    pub busy_timeout: Duration,
    /// How many entries may wait to be written. Past it, an append is refused: it means that
    /// somebody appends and never flushes, or that the disk is full.
    pub queue: usize,
}

impl Default for SqliteOptions {
    fn default() -> Self {
        Self {
            durability: Durability::default(),
            busy_timeout: Duration::from_secs(5),
            queue: 100_000,
        }
    }
}

/// What is certain after a flush.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// It survives a power cut: every commit waits for the disk.
    #[default]
    Disk,
    /// It survives the end of the process, however it ends. A power cut may take the last moments
    /// with it, in order: the journal then ends earlier, without a gap.
    Process,
}
