//! Opening a file, and what is told when it cannot be opened.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

mod common;

use std::{fs, path::Path, time::Duration};

use common::{all, begin, id, notes, open, open_new, quick};
use duologue_core::StoreError;
use duologue_store::{Durability, OpenError, SqliteOptions, SqliteStore};
use rusqlite::Connection;

async fn refused(path: impl AsRef<Path>) -> OpenError {
    let options = SqliteOptions { busy_timeout: Duration::from_millis(50), ..quick() };
    SqliteStore::open(path, options).await.unwrap_err()
}

#[tokio::test]
async fn a_journal_is_there_again_after_it_was_closed() {
    for durability in [Durability::Disk, Durability::Process] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.db");
        let options = SqliteOptions { durability, ..SqliteOptions::default() };
        let store = SqliteStore::open(&path, options.clone()).await.unwrap();
        assert_eq!(store.path(), path);
        begin(&store, &id("one"), notes(0..5)).await.unwrap();
        store.close().await.unwrap();
        let store = SqliteStore::open(&path, options).await.unwrap();
        assert_eq!(all(&store, &id("one")).await, notes(0..5));
    }
}

#[cfg(unix)]
#[tokio::test]
async fn what_is_made_is_for_its_owner_only() {
    use std::os::unix::fs::PermissionsExt;

    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("some").join("where");
    let store = SqliteStore::open(home.join("journal.db"), quick()).await.unwrap();
    begin(&store, &id("one"), notes(0..1)).await.unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder.path().join("some")), 0o700);
    assert_eq!(mode(&home), 0o700);
    let mut files = 0;
    for file in fs::read_dir(&home).unwrap().chain(fs::read_dir(home.join("locks")).unwrap()) {
        let path = file.unwrap().path();
        let expected = if path.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(mode(&path), expected, "{}", path.display());
        files += 1;
    }
    assert_eq!(files, 6, "the file, its log, its index, the locks, the registry, our lock");
}

#[tokio::test]
async fn a_file_of_another_kind_is_refused_and_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes.txt");
    let text = "Some notes that are no database. ".repeat(50);
    fs::write(&path, &text).unwrap();
    let error = refused(&path).await;
    assert!(matches!(error, OpenError::NotADatabase { .. }), "{error:?}");
    assert_eq!(
        error.to_string(),
        format!("{}: not a journal: the file is no SQLite database", path.display())
    );
    assert_eq!(
        StoreError::from(error).to_string(),
        format!("{}: not a journal: the file is no SQLite database", path.display())
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
}

#[tokio::test]
async fn a_database_of_another_program_is_refused_and_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("other.db");
    let other = Connection::open(&path).unwrap();
    other.execute_batch("CREATE TABLE recipes (name TEXT)").unwrap();
    drop(other);
    let before = fs::read(&path).unwrap();
    let error = refused(&path).await;
    assert!(matches!(error, OpenError::Foreign { .. }), "{error:?}");
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[tokio::test]
async fn a_file_of_a_later_version_is_refused_with_what_to_do() {
    let (folder, store) = open_new().await;
    begin(&store, &id("one"), notes(0..1)).await.unwrap();
    store.close().await.unwrap();
    let path = folder.path().join("journal.db");
    let later = Connection::open(&path).unwrap();
    later.pragma_update(None, "user_version", 99).unwrap();
    drop(later);
    assert_eq!(
        refused(&path).await.to_string(),
        format!(
            "{}: written by a later version (format 99, this one knows up to 1); \
             update duologue to open it",
            path.display()
        )
    );
}

#[tokio::test]
async fn a_place_where_no_file_can_be_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    for path in
        [file.join("journal.db"), file.join("deep").join("journal.db"), folder.path().into()]
    {
        let error = refused(&path).await;
        assert!(matches!(error, OpenError::Unwritable { .. }), "{error:?}");
        assert!(error.to_string().contains("cannot be opened for writing"), "{error}");
    }
}

#[tokio::test]
async fn a_file_that_may_only_be_read_is_refused() {
    let (folder, store) = open_new().await;
    begin(&store, &id("one"), notes(0..1)).await.unwrap();
    store.close().await.unwrap();
    let path = folder.path().join("journal.db");
    let mut permissions = fs::metadata(&path).unwrap().permissions();
    permissions.set_readonly(true);
    fs::set_permissions(&path, permissions).unwrap();
    if fs::OpenOptions::new().append(true).open(&path).is_ok() {
        // The superuser may write everything; then the store may, too.
        open(&folder).await.close().await.unwrap();
        return;
    }
    let error = refused(&path).await;
    assert!(matches!(error, OpenError::Unwritable { .. }), "{error:?}");
}

#[tokio::test]
async fn a_file_that_another_program_keeps_locked_is_told_so() {
    let (folder, store) = open_new().await;
    store.close().await.unwrap();
    let path = folder.path().join("journal.db");
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = refused(&path).await;
    assert!(matches!(error, OpenError::Locked { .. }), "{error:?}");
    other.execute_batch("ROLLBACK").unwrap();
    open(&folder).await;
}

#[tokio::test]
async fn an_empty_file_becomes_a_journal() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("journal.db"), "").unwrap();
    let store = open(&folder).await;
    begin(&store, &id("one"), notes(0..1)).await.unwrap();
}

#[tokio::test]
async fn people_can_look_into_the_file() {
    let (folder, store) = open_new().await;
    begin(&store, &id("one"), notes(0..2)).await.unwrap();
    store.close().await.unwrap();
    let file = Connection::open(folder.path().join("journal.db")).unwrap();
    let row: (String, i64, String, String) = file
        .query_row(
            "SELECT session, seq, kind, body ->> '$.data.text' FROM journal ORDER BY seq DESC",
            [],
            |row| row.try_into(),
        )
        .unwrap();
    assert_eq!(row, ("one".into(), 1, "note".into(), "number 1".into()));
}
