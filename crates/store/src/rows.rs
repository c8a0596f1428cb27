//! Rows as what they mean, and back.

use duologue_core::{Entry, ForkPoint, RunId, SessionId, SessionSummary};
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::live::RUNNING;

/// The columns of a summary, in the order that [`summary`] reads them.
macro_rules! summary_columns {
    () => {
        "number, id, agent, title, created_at, updated_at, entries, status, forked_from, forked_at"
    };
}
pub(crate) use summary_columns;

/// The most entries of a session: a place is one half of a key.
pub(crate) const MOST_ENTRIES: u64 = 1 << 32;

/// The key of an entry: the session's number, then the place.
pub(crate) fn key(number: i64, seq: u64) -> i64 {
    (number << 32) | seq.min(MOST_ENTRIES - 1).cast_signed()
}

/// The place of an entry.
pub(crate) fn seq(key: i64) -> u64 {
    key.cast_unsigned() % MOST_ENTRIES
}

/// A session's number, and its summary as the row tells it.
pub(crate) fn summary(row: &Row<'_>) -> rusqlite::Result<(i64, SessionSummary)> {
    let forked_from: Option<String> = row.get(8)?;
    let forked_at: Option<i64> = row.get(9)?;
    let summary = SessionSummary {
        id: row.get::<_, String>(1)?.into(),
        agent: row.get(2)?,
        title: row.get(3)?,
        created_at: row.get(4)?,
        updated_at: row.get(5)?,
        entries: row.get::<_, i64>(6)?.cast_unsigned(),
        status: row.get(7)?,
        forked_from: forked_from
            .zip(forked_at)
            .map(|(session, at)| ForkPoint { session: session.into(), at: at.cast_unsigned() }),
    };
    Ok((row.get(0)?, summary))
}

/// The row of one session.
pub(crate) fn find_summary(
    connection: &Connection,
    session: &SessionId,
) -> rusqlite::Result<Option<(i64, SessionSummary)>> {
    connection
        .prepare_cached(concat!("SELECT ", summary_columns!(), " FROM sessions WHERE id = ?1"))?
        .query_row([session.as_str()], summary)
        .optional()
}

/// The number of one session.
pub(crate) fn find_number(
    connection: &Connection,
    session: &SessionId,
) -> rusqlite::Result<Option<i64>> {
    connection
        .prepare_cached("SELECT number FROM sessions WHERE id = ?1")?
        .query_row([session.as_str()], |row| row.get(0))
        .optional()
}

/// Bring a summary up to date with the last entry, where its row may lag behind.
pub(crate) fn catch_up(
    connection: &Connection,
    number: i64,
    summary: &mut SessionSummary,
) -> rusqlite::Result<()> {
    if summary.status != RUNNING {
        return Ok(());
    }
    let last = connection
        .prepare_cached(
            "SELECT key, at FROM entries WHERE key BETWEEN ?1 AND ?2 ORDER BY key DESC LIMIT 1",
        )?
        .query_row(params![key(number, 0), key(number, u64::MAX)], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .optional()?;
    if let Some((key, at)) = last {
        summary.entries = seq(key) + 1;
        summary.updated_at = at;
    }
    Ok(())
}

/// An entry, or why its text cannot be read.
pub(crate) fn entry(row: &Row<'_>) -> rusqlite::Result<Result<Entry, String>> {
    let seq = seq(row.get(0)?);
    let (at, run) = (row.get(1)?, RunId(row.get(2)?));
    let event = serde_json::from_slice(row.get_ref(3)?.as_bytes()?);
    Ok(match event {
        Ok(event) => Ok(Entry { seq, at, run, event }),
        Err(error) => Err(format!("entry {seq} cannot be read: {error}")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_a_session_lie_together_and_in_order() {
        assert_eq!(key(1, 0), 1 << 32);
        assert_eq!(seq(key(7, 12)), 12);
        assert!(key(1, u64::MAX) < key(2, 0));
        assert_eq!(seq(key(3, MOST_ENTRIES - 1)), MOST_ENTRIES - 1);
        assert!(key((1 << 31) - 1, MOST_ENTRIES - 1) > 0);
    }
}
