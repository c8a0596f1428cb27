//! The file: its tables, their versions, and connections to it.

use std::{path::Path, time::Duration};

use rusqlite::{Connection, OpenFlags, TransactionBehavior, config::DbConfig};

use crate::{Durability, OpenError, SqliteOptions, files};

/// Marks the file as ours: `Duol` in ASCII.
const APPLICATION_ID: i32 = 0x4475_6f6c;

/// What turns a file of version N into one of version N + 1. Version 0 is an empty file. A line is
/// never changed once it was released; a new format is a new line.
const MIGRATIONS: &[&str] = &[V1];

/// Version 1.
///
/// An entry's key is its session's number and its place in one integer, so that a journal lies
/// together in one tree and needs no second one to be found. `journal` shows it to people.
///
/// `sessions` holds the folded summaries. In the middle of a turn (`status` is `running`) the
/// columns `entries` and `updated_at` may lag behind the journal by a little; see `live.rs`.
const V1: &str = "
    CREATE TABLE sessions (
        number INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        agent TEXT NOT NULL,
        title TEXT NOT NULL,
        created_at INTEGER NOT NULL,
        updated_at INTEGER NOT NULL,
        entries INTEGER NOT NULL,
        status TEXT NOT NULL,
        forked_from TEXT,
        forked_at INTEGER
    ) STRICT;
    CREATE INDEX sessions_by_time ON sessions (updated_at, id);
    CREATE INDEX sessions_by_agent ON sessions (agent, updated_at, id);
    CREATE INDEX sessions_by_status ON sessions (status, updated_at, id);
    CREATE INDEX sessions_by_agent_and_status ON sessions (agent, status, updated_at, id);

    CREATE TABLE entries (
        key INTEGER PRIMARY KEY,
        at INTEGER NOT NULL,
        run INTEGER NOT NULL,
        kind TEXT NOT NULL,
        body TEXT NOT NULL
    ) STRICT;
    CREATE VIEW journal AS
        SELECT sessions.id AS session, entries.key & 4294967295 AS seq,
               entries.at, entries.run, entries.kind, entries.body
        FROM entries JOIN sessions ON sessions.number = entries.key >> 32;

    CREATE TABLE mail (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        session INTEGER NOT NULL,
        body TEXT NOT NULL
    ) STRICT;
    CREATE INDEX mail_by_session ON mail (session);

    CREATE TABLE claims (
        session INTEGER PRIMARY KEY,
        token TEXT NOT NULL,
        serial INTEGER NOT NULL,
        pid INTEGER NOT NULL,
        host TEXT NOT NULL
    ) STRICT;
";

/// The latest version that this code knows.
pub(crate) const VERSION: u32 = MIGRATIONS.len() as u32;

/// How much the page cache of the writer may hold, in KiB: the last pages of some hundred live
/// sessions. With more of them a commit reads pages again, from the system's cache; a larger one
/// of our own was mostly memory that each session seemed to need.
const WRITER_CACHE_KIB: i64 = 2 * 1024;

/// To what size the log is cut when it is begun anew after it had to hold more.
const MOST_LOG_BYTES: i64 = 64 * 1024 * 1024;

/// Open the file for the writer; make it, and bring it up to date, where needed. Whoever calls
/// this holds the registry lock, so no other process of ours does the same now.
pub(crate) fn open_writer(path: &Path, options: &SqliteOptions) -> Result<Connection, OpenError> {
    files::make_private_file(path)?;
    let explain =
        |error: rusqlite::Error| OpenError::from_sqlite(path, options.busy_timeout, &error);
    let mut connection = connect(path, options.busy_timeout).map_err(explain)?;
    check_ours(&connection, path, options)?;
    let mode: String = connection
        .pragma_update_and_check(None, "journal_mode", "wal", |row| row.get(0))
        .map_err(explain)?;
    if mode != "wal" {
        return Err(OpenError::NoSharing { path: path.to_owned() });
    }
    migrate(&mut connection).map_err(explain)?;
    tune_writer(&connection, options.durability).map_err(explain)?;
    Ok(connection)
}

/// A connection that only reads.
pub(crate) fn open_reader(
    path: &Path,
    busy_timeout: Duration,
) -> Result<Connection, rusqlite::Error> {
    let connection = connect(path, busy_timeout)?;
    connection.pragma_update(None, "query_only", true)?;
    Ok(connection)
}

fn connect(path: &Path, busy_timeout: Duration) -> Result<Connection, rusqlite::Error> {
    // The file exists by now: without CREATE, one that was moved away is an error, not a new one.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(busy_timeout)?;
    // The file may come from somebody else: its schema must not be able to run anything.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_prepared_statement_cache_capacity(32);
    Ok(connection)
}

/// Refuse a file that some other program or a later version wrote, before anything is changed.
fn check_ours(
    connection: &Connection,
    path: &Path,
    options: &SqliteOptions,
) -> Result<(), OpenError> {
    let explain =
        |error: rusqlite::Error| OpenError::from_sqlite(path, options.busy_timeout, &error);
    let application: i32 =
        connection.pragma_query_value(None, "application_id", |row| row.get(0)).map_err(explain)?;
    let tables: i64 = connection
        .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
        .map_err(explain)?;
    if application != APPLICATION_ID && (application != 0 || tables > 0) {
        return Err(OpenError::Foreign { path: path.to_owned() });
    }
    let found = version_of(connection).map_err(explain)?;
    if found > VERSION {
        return Err(OpenError::Newer { path: path.to_owned(), found, known: VERSION });
    }
    Ok(())
}

fn version_of(connection: &Connection) -> Result<u32, rusqlite::Error> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

fn migrate(connection: &mut Connection) -> Result<(), rusqlite::Error> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Exclusive)?;
    let found = version_of(&transaction)?;
    for (migration, version) in MIGRATIONS.iter().zip(1..).skip(found as usize) {
        transaction.execute_batch(migration)?;
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        transaction.pragma_update(None, "user_version", version)?;
    }
    transaction.commit()
}

fn tune_writer(connection: &Connection, durability: Durability) -> Result<(), rusqlite::Error> {
    let synchronous = match durability {
        Durability::Disk => "FULL",
        Durability::Process => "NORMAL",
    };
    connection.pragma_update(None, "synchronous", synchronous)?;
    // Only macOS knows the difference: there, an ordinary sync stops at the disk's own cache.
    let full = durability == Durability::Disk;
    connection.pragma_update(None, "fullfsync", full)?;
    connection.pragma_update(None, "cache_size", -WRITER_CACHE_KIB)?;
    connection.pragma_update(None, "journal_size_limit", MOST_LOG_BYTES)?;
    // The writer folds the log in itself, after it has answered those who wait.
    connection.pragma_update(None, "wal_autocheckpoint", 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_version_of_the_format_has_its_migration() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection).unwrap();
        assert_eq!(version_of(&connection).unwrap(), VERSION);
        migrate(&mut connection).unwrap();
        assert_eq!(version_of(&connection).unwrap(), VERSION);
    }

    #[test]
    fn lists_are_answered_from_an_index_without_sorting() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection).unwrap();
        for filter in
            ["", "agent = 'a' AND", "status = 's' AND", "agent = 'a' AND status = 's' AND"]
        {
            let plan: String = connection
                .prepare(&format!(
                    "EXPLAIN QUERY PLAN SELECT * FROM sessions WHERE {filter} updated_at < 9 \
                     ORDER BY updated_at DESC, id DESC"
                ))
                .unwrap()
                .query_map([], |row| row.get::<_, String>(3))
                .unwrap()
                .map(Result::unwrap)
                .collect();
            assert!(plan.contains("USING INDEX"), "{filter}: {plan}");
            assert!(!plan.contains("TEMP B-TREE"), "{filter}: {plan}");
        }
    }
}
