//! Reading: what is asked of the file.

use std::{cmp::Reverse, sync::Arc};

use duologue_core::{Entry, ListQuery, Mail, SessionId, SessionSummary, StoreError};
use rusqlite::{Connection, ToSql, params};

use crate::{
    readers::QueryError,
    rows::{self, summary_columns},
};

/// How many sessions a list has when nobody says.
const LIST_LIMIT: usize = 50;

macro_rules! list_sql {
    ($filter:literal) => {
        concat!(
            "SELECT ",
            summary_columns!(),
            " FROM sessions WHERE ",
            $filter,
            " updated_at <= ?1 ORDER BY updated_at DESC, id DESC"
        )
    };
}

/// Up to `limit` entries from `from` on.
pub(crate) fn entries(
    connection: &Connection,
    session: &SessionId,
    from: u64,
    limit: usize,
) -> Result<Vec<Arc<Entry>>, QueryError> {
    let number = number(connection, session)?;
    if from >= rows::MOST_ENTRIES {
        return Ok(Vec::new());
    }
    let mut statement = connection.prepare_cached(
        "SELECT key, at, run, body FROM entries WHERE key BETWEEN ?1 AND ?2 ORDER BY key LIMIT ?3",
    )?;
    let bounds = params![
        rows::key(number, from),
        rows::key(number, u64::MAX),
        i64::try_from(limit).unwrap_or(i64::MAX)
    ];
    let mut entries = Vec::new();
    for entry in statement.query_map(bounds, rows::entry)? {
        let entry =
            entry?.map_err(|reason| StoreError::Io(format!("session {session}: {reason}")))?;
        entries.push(Arc::new(entry));
    }
    Ok(entries)
}

/// The summary of one session.
pub(crate) fn summary(
    connection: &Connection,
    session: &SessionId,
) -> Result<Option<SessionSummary>, QueryError> {
    // The row and the last entry are read from the same moment.
    let moment = connection.unchecked_transaction()?;
    let Some((number, mut summary)) = rows::find_summary(&moment, session)? else {
        return Ok(None);
    };
    rows::catch_up(&moment, number, &mut summary)?;
    Ok(Some(summary))
}

/// Sessions, the last changed first.
pub(crate) fn list(
    connection: &Connection,
    query: &ListQuery,
) -> Result<Vec<SessionSummary>, QueryError> {
    let limit = match query.limit {
        0 => LIST_LIMIT,
        limit => limit,
    };
    let before = query.before.unwrap_or(i64::MAX);
    let mut parameters: Vec<&dyn ToSql> = vec![&before];
    parameters.extend(query.agent.as_ref().map(|agent| agent as &dyn ToSql));
    parameters.extend(query.status.as_ref().map(|status| status as &dyn ToSql));
    // A statement for each set of filters: each has its index.
    let sql = match (&query.agent, &query.status) {
        (None, None) => list_sql!(""),
        (Some(_), None) => list_sql!("agent = ?2 AND"),
        (None, Some(_)) => list_sql!("status = ?2 AND"),
        (Some(_), Some(_)) => list_sql!("agent = ?2 AND status = ?3 AND"),
    };
    let moment = connection.unchecked_transaction()?;
    let mut statement = moment.prepare_cached(sql)?;
    let mut found = statement.query(&*parameters)?;
    let mut list = Vec::new();
    while list.len() < limit
        && let Some(row) = found.next()?
    {
        let (number, mut summary) = rows::summary(row)?;
        rows::catch_up(&moment, number, &mut summary)?;
        // One that moved on since its row was written was on an earlier page.
        if summary.updated_at < before || query.before.is_none() {
            list.push(summary);
        }
    }
    list.sort_by(|a, b| Reverse((a.updated_at, &a.id)).cmp(&Reverse((b.updated_at, &b.id))));
    Ok(list)
}

/// The ids that begin with `prefix`.
pub(crate) fn find(
    connection: &Connection,
    prefix: &str,
    limit: usize,
) -> Result<Vec<SessionId>, QueryError> {
    let mut statement =
        connection.prepare_cached("SELECT id FROM sessions WHERE id >= ?1 ORDER BY id")?;
    let mut rows = statement.query([prefix])?;
    let mut found = Vec::new();
    while found.len() < limit
        && let Some(row) = rows.next()?
    {
        let id: String = row.get(0)?;
        if !id.starts_with(prefix) {
            break;
        }
        found.push(id.into());
    }
    Ok(found)
}

/// What was posted to a session and not acknowledged.
pub(crate) fn mail(
    connection: &Connection,
    session: &SessionId,
) -> Result<Vec<(u64, Mail)>, QueryError> {
    let number = number(connection, session)?;
    let mut statement = connection
        .prepare_cached("SELECT number, body FROM mail WHERE session = ?1 ORDER BY number")?;
    let mut rows = statement.query([number])?;
    let mut mail = Vec::new();
    while let Some(row) = rows.next()? {
        let number: i64 = row.get(0)?;
        let letter = serde_json::from_slice(row.get_ref(1)?.as_bytes().unwrap_or_default())
            .map_err(|error| {
                StoreError::Io(format!("session {session}: mail {number} cannot be read: {error}"))
            })?;
        mail.push((number.cast_unsigned(), letter));
    }
    Ok(mail)
}

fn number(connection: &Connection, session: &SessionId) -> Result<i64, QueryError> {
    rows::find_number(connection, session)?
        .ok_or_else(|| StoreError::NotFound(session.clone()).into())
}
