//! Entries and the summaries that are folded from them.

use std::sync::Arc;

use duologue_core::{Entry, Event, SessionId, SessionSummary, StoreError};
use rusqlite::{
    CachedStatement, Connection, ErrorCode, params,
    types::{ToSqlOutput, ValueRef},
};

use super::{Scribe, Trouble, claims::Owner};
use crate::{live::Live, queue::Batch, rows};

impl Scribe {
    /// Begin a journal, whole or not at all.
    pub(super) fn create(
        &mut self,
        session: &SessionId,
        entries: &[Arc<Entry>],
        serial: i64,
    ) -> Result<(), Trouble> {
        let mut summary = SessionSummary::new(session.clone());
        for entry in entries {
            check_place(&summary, entry)?;
            summary.fold(entry);
        }
        let number = insert_session(&self.connection, &summary)?;
        if let Err(trouble) = self.put_all(number, entries) {
            self.erase(number)?;
            return Err(trouble);
        }
        self.take_claim(number, serial)?;
        let live = Live::new(number, summary.clone(), summary);
        self.live.insert(session.clone(), live);
        Ok(())
    }

    /// Put entries at the end of a journal, up to the first that does not fit.
    pub(super) fn append(
        &mut self,
        session: &SessionId,
        entries: &[Arc<Entry>],
    ) -> Result<(), Trouble> {
        if self.live.get(session).is_none() {
            let live = self.load(session)?;
            self.live.insert(session.clone(), live);
        }
        let Some(live) = self.live.get(session) else {
            return Err(StoreError::NotFound(session.clone()).into());
        };
        let mut insert = insert_entry(&self.connection)?;
        let mut trouble = None;
        for entry in entries {
            let put = check_place(live.summary(), entry)
                .map_err(Trouble::from)
                .and_then(|()| put(&mut insert, &mut self.body, live.number, entry));
            if let Err(error) = put {
                trouble = Some(error);
                break;
            }
            live.fold(entry);
        }
        if live.is_due() {
            update_session(&self.connection, live)?;
            live.saved();
        } else {
            self.lagging = true;
        }
        trouble.map_or(Ok(()), Err)
    }

    /// Delete a session with everything that belongs to it.
    pub(super) fn delete(&mut self, session: &SessionId) -> Result<(), Trouble> {
        let number = self.number(session)?;
        // What another process writes now is not pulled away under it.
        if let Some(owner @ Owner::Elsewhere { .. }) = self.owner(number)? {
            return Err(owner.busy(session).into());
        }
        self.erase(number)?;
        self.live.remove(session);
        Ok(())
    }

    /// At the end of a batch: write the rows that must not be left behind.
    pub(super) fn save_rows(&mut self, batch: &Batch) -> rusqlite::Result<()> {
        for live in self.live.make_room() {
            update_session(&self.connection, &live)?;
        }
        if batch.level {
            for live in self.live.lagging() {
                update_session(&self.connection, live)?;
                live.saved();
            }
            self.lagging = false;
        }
        Ok(())
    }

    /// The number of a session.
    pub(super) fn number(&self, session: &SessionId) -> Result<i64, Trouble> {
        rows::find_number(&self.connection, session)?
            .ok_or_else(|| StoreError::NotFound(session.clone()).into())
    }

    fn load(&self, session: &SessionId) -> Result<Live, Trouble> {
        let (number, saved) = rows::find_summary(&self.connection, session)?
            .ok_or_else(|| StoreError::NotFound(session.clone()))?;
        let mut summary = saved.clone();
        rows::catch_up(&self.connection, number, &mut summary)?;
        Ok(Live::new(number, saved, summary))
    }

    fn put_all(&mut self, number: i64, entries: &[Arc<Entry>]) -> Result<(), Trouble> {
        let mut insert = insert_entry(&self.connection)?;
        entries.iter().try_for_each(|entry| put(&mut insert, &mut self.body, number, entry))
    }

    fn erase(&self, number: i64) -> rusqlite::Result<()> {
        self.connection
            .prepare_cached("DELETE FROM entries WHERE key BETWEEN ?1 AND ?2")?
            .execute([rows::key(number, 0), rows::key(number, u64::MAX)])?;
        for sql in [
            "DELETE FROM mail WHERE session = ?1",
            "DELETE FROM claims WHERE session = ?1",
            "DELETE FROM sessions WHERE number = ?1",
        ] {
            self.connection.prepare_cached(sql)?.execute([number])?;
        }
        Ok(())
    }
}

/// An entry must follow on the last one.
fn check_place(summary: &SessionSummary, entry: &Entry) -> Result<(), StoreError> {
    if entry.seq != summary.entries {
        return Err(StoreError::OutOfOrder {
            session: summary.id.clone(),
            found: entry.seq,
            expected: summary.entries,
        });
    }
    if entry.seq >= rows::MOST_ENTRIES {
        return Err(StoreError::Io(format!(
            "session {} is full: it has {} entries",
            summary.id,
            rows::MOST_ENTRIES
        )));
    }
    Ok(())
}

fn insert_session(connection: &Connection, summary: &SessionSummary) -> Result<i64, Trouble> {
    let fork = summary.forked_from.as_ref();
    let inserted = connection
        .prepare_cached(
            "INSERT INTO sessions (id, agent, title, created_at, updated_at, entries, status, \
             forked_from, forked_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        )?
        .insert(params![
            summary.id.as_str(),
            summary.agent,
            summary.title,
            summary.created_at,
            summary.updated_at,
            summary.entries.cast_signed(),
            summary.status,
            fork.map(|fork| fork.session.as_str()),
            fork.map(|fork| fork.at.cast_signed()),
        ]);
    inserted.map_err(|error| match error.sqlite_error_code() {
        Some(ErrorCode::ConstraintViolation) => StoreError::Exists(summary.id.clone()).into(),
        _ => error.into(),
    })
}

fn update_session(connection: &Connection, live: &Live) -> rusqlite::Result<()> {
    let summary = live.summary();
    let fork = summary.forked_from.as_ref();
    connection
        .prepare_cached(
            "UPDATE sessions SET agent = ?2, title = ?3, created_at = ?4, updated_at = ?5, \
             entries = ?6, status = ?7, forked_from = ?8, forked_at = ?9 WHERE number = ?1",
        )?
        .execute(params![
            live.number,
            summary.agent,
            summary.title,
            summary.created_at,
            summary.updated_at,
            summary.entries.cast_signed(),
            summary.status,
            fork.map(|fork| fork.session.as_str()),
            fork.map(|fork| fork.at.cast_signed()),
        ])?;
    Ok(())
}

/// Entries are only ever inserted: one that is there already makes the statement fail.
fn insert_entry(connection: &Connection) -> rusqlite::Result<CachedStatement<'_>> {
    connection.prepare_cached(
        "INSERT INTO entries (key, at, run, kind, body) VALUES (?1, ?2, ?3, ?4, ?5)",
    )
}

fn put(
    insert: &mut CachedStatement<'_>,
    body: &mut Vec<u8>,
    number: i64,
    entry: &Entry,
) -> Result<(), Trouble> {
    let unstorable = |reason: &dyn std::fmt::Display| {
        StoreError::Io(format!("entry {} cannot be kept: {reason}", entry.seq))
    };
    let kind = entry.event.kind();
    if let Event::Unknown(value) = &entry.event
        && value.get("kind").is_none_or(|kind| !kind.is_string())
    {
        return Err(unstorable(&"it has no kind").into());
    }
    body.clear();
    serde_json::to_writer(&mut *body, &entry.event).map_err(|error| unstorable(&error))?;
    let put = insert.execute(params![
        rows::key(number, entry.seq),
        entry.at,
        entry.run.0,
        kind,
        // JSON is UTF-8: no need to look at every byte again.
        ToSqlOutput::Borrowed(ValueRef::Text(body)),
    ]);
    match put {
        Ok(_) => Ok(()),
        Err(error) => Err(match error.sqlite_error_code() {
            Some(ErrorCode::TooBig | ErrorCode::ConstraintViolation) => unstorable(&error).into(),
            _ => error.into(),
        }),
    }
}
