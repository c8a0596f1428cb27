//! What others leave for whoever owns a session.

use duologue_core::{Mail, SessionId, StoreError};
use rusqlite::params;

use super::{Scribe, Trouble};

impl Scribe {
    /// Leave mail.
    pub(super) fn post(&self, session: &SessionId, mail: &Mail) -> Result<(), Trouble> {
        let number = self.number(session)?;
        let body = serde_json::to_string(mail)
            .map_err(|error| StoreError::Io(format!("the mail cannot be kept: {error}")))?;
        self.connection
            .prepare_cached("INSERT INTO mail (session, body) VALUES (?1, ?2)")?
            .execute(params![number, body])?;
        Ok(())
    }

    /// Remove mail up to and with a number.
    pub(super) fn acknowledge(&self, session: &SessionId, up_to: u64) -> Result<(), Trouble> {
        let number = self.number(session)?;
        self.connection
            .prepare_cached("DELETE FROM mail WHERE session = ?1 AND number <= ?2")?
            .execute(params![number, i64::try_from(up_to).unwrap_or(i64::MAX)])?;
        Ok(())
    }
}
