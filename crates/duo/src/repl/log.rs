//! The log of a chat: its journals as a text that people read, one turn after the other.

use std::{collections::BTreeMap, fs::OpenOptions, io::Write};

use duologue_core::{Session, SessionId};

use super::Repl;
use crate::{commands::sessions::markdown_of, failure::Failure};

/// How many entries are read at a time.
const PAGE: usize = 500;

/// How far each session is in the log.
#[derive(Default)]
pub(super) struct Logged(BTreeMap<SessionId, u64>);

impl Repl {
    /// Append what happened in a session since the last time to the log, if one is kept.
    pub(super) async fn log(&mut self, session: &Session) -> Result<(), Failure> {
        let Some(file) = self.house.config().repl.log.clone() else { return Ok(()) };
        let store = self.house.store().await?;
        let id = session.id().clone();
        let mut next = self.logged.0.get(&id).copied().unwrap_or_default();
        let mut text = if next == 0 { format!("# Session {id}\n") } else { String::new() };
        loop {
            let entries = store.read(&id, next, PAGE).await?;
            let Some(last) = entries.last() else { break };
            next = last.seq + 1;
            text.push_str(&markdown_of(&entries));
        }
        self.logged.0.insert(id, next);
        let wrong = |error: std::io::Error| Failure::new(format!("{}: {error}", file.display()));
        let mut opened = OpenOptions::new().create(true).append(true).open(&file).map_err(wrong)?;
        opened.write_all(text.as_bytes()).map_err(wrong)
    }
}
