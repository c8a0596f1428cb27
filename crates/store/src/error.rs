//! What goes wrong with a file, in words for the person who has to put it right.

use std::{
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use duologue_core::StoreError;
use rusqlite::{Error, ErrorCode};

/// Why a journal file did not open.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Some other kind of file is there.
    #[error("{}: not a journal: the file is no SQLite database", path.display())]
    NotADatabase {
        /// The file.
        path: PathBuf,
    },
    /// A database of some other program is there.
    #[error("{}: not a journal: the database belongs to another program", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// A later version of this program wrote it.
    #[error(
        "{}: written by a later version (format {found}, this one knows up to {known}); \
         update duologue to open it",
        path.display()
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// The version of its format.
        found: u32,
        /// The latest version that this program knows.
        known: u32,
    },
    /// A file or a folder could not be made or opened.
    #[error("{}: cannot be opened for writing: {source}", path.display())]
    Unwritable {
        /// The file or the folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Another process did not let go of it in time.
    #[error(
        "{}: another process keeps it locked (waited {waited:?}); end that process or try again",
        path.display()
    )]
    Locked {
        /// The file.
        path: PathBuf,
        /// For how long this one waited.
        waited: Duration,
    },
    /// The file system cannot share a journal between processes.
    #[error(
        "{}: this file system cannot keep a write-ahead log; put the journal on a local disk",
        path.display()
    )]
    NoSharing {
        /// The file.
        path: PathBuf,
    },
    /// Anything else that SQLite says.
    #[error("{}: {reason}", path.display())]
    Sqlite {
        /// The file.
        path: PathBuf,
        /// What it said.
        reason: String,
    },
}

impl OpenError {
    /// What an error of SQLite means while `path` is opened.
    pub(crate) fn from_sqlite(path: &Path, waited: Duration, error: &Error) -> Self {
        let path = path.to_owned();
        match error.sqlite_error_code() {
            Some(ErrorCode::NotADatabase) => Self::NotADatabase { path },
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                Self::Locked { path, waited }
            }
            Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
                Self::Unwritable { path, source: io::Error::other(error.to_string()) }
            }
            _ => Self::Sqlite { path, reason: error.to_string() },
        }
    }
}

impl From<OpenError> for StoreError {
    fn from(error: OpenError) -> Self {
        Self::Io(error.to_string())
    }
}

/// What an error of SQLite means once the file is open.
pub(crate) fn explain(path: &Path, error: &Error) -> StoreError {
    let path = path.display();
    StoreError::Io(match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => format!(
            "{path}: the disk is full; what was accepted is kept in memory and written when there is space"
        ),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            format!("{path}: another process keeps it locked; what was accepted is written later")
        }
        Some(ErrorCode::ReadOnly) => format!("{path}: the file is read-only"),
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            format!("{path}: the file is damaged: {error}")
        }
        _ => format!("{path}: {error}"),
    })
}

/// The writer is gone: the store was closed.
pub(crate) fn closed() -> StoreError {
    StoreError::Io("the store is closed".into())
}
