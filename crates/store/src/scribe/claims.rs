//! Who owns a session. A claim counts as long as the process that made it is alive.

use std::{fmt, process};

use duologue_core::{SessionId, StoreError};
use rusqlite::{OptionalExtension, params};

use super::{Scribe, Trouble};
use crate::locks;

/// Who owns a session.
pub(super) enum Owner {
    /// Somebody in this process.
    Here,
    /// Another process.
    Elsewhere {
        /// Its number.
        pid: u32,
        /// Its machine.
        host: String,
    },
}

impl Owner {
    /// What others are told.
    pub(super) fn busy(&self, session: &SessionId) -> StoreError {
        StoreError::Busy { session: session.clone(), owner: self.to_string() }
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Here => f.write_str("this process"),
            Self::Elsewhere { pid, host } => write!(f, "process {pid} on {host}"),
        }
    }
}

impl Scribe {
    /// Become the owner, unless somebody is.
    pub(super) fn claim(&self, session: &SessionId, serial: i64) -> Result<(), Trouble> {
        let number = self.number(session)?;
        if let Some(owner) = self.owner(number)? {
            return Err(owner.busy(session).into());
        }
        Ok(self.take_claim(number, serial)?)
    }

    /// Become the owner of what nobody else owns.
    pub(super) fn take_claim(&self, number: i64, serial: i64) -> rusqlite::Result<()> {
        self.connection
            .prepare_cached(
                "INSERT OR REPLACE INTO claims (session, token, serial, pid, host) \
                 VALUES (?1, ?2, ?3, ?4, ?5)",
            )?
            .execute(params![
                number,
                self.presence.token(),
                serial,
                process::id(),
                locks::host()
            ])?;
        Ok(())
    }

    /// Give a claim back. The serial number keeps an old claim from ending a newer one.
    pub(super) fn release(&self, session: &SessionId, serial: i64) -> rusqlite::Result<()> {
        self.connection
            .prepare_cached(
                "DELETE FROM claims WHERE session = (SELECT number FROM sessions WHERE id = ?1) \
                 AND token = ?2 AND serial = ?3",
            )?
            .execute(params![session.as_str(), self.presence.token(), serial])?;
        Ok(())
    }

    /// The owner, if there is one alive.
    pub(super) fn owner(&self, number: i64) -> rusqlite::Result<Option<Owner>> {
        let claim = self
            .connection
            .prepare_cached("SELECT token, pid, host FROM claims WHERE session = ?1")?
            .query_row([number], |row| {
                let (token, pid, host): (String, u32, String) = row.try_into()?;
                Ok((token, pid, host))
            })
            .optional()?;
        Ok(match claim {
            Some((token, ..)) if token == self.presence.token() => Some(Owner::Here),
            Some((token, pid, host)) if self.presence.is_alive(&token) => {
                Some(Owner::Elsewhere { pid, host })
            }
            _ => None,
        })
    }

    /// Forget the claims of processes that are gone.
    pub(super) fn drop_stale_claims(&self) -> rusqlite::Result<()> {
        let tokens: Vec<String> = self
            .connection
            .prepare("SELECT DISTINCT token FROM claims")?
            .query_map([], |row| row.get(0))?
            .collect::<Result<_, _>>()?;
        for token in tokens {
            if !self.presence.is_alive(&token) {
                self.connection.execute("DELETE FROM claims WHERE token = ?1", [token])?;
            }
        }
        Ok(())
    }
}
