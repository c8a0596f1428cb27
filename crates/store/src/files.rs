//! Files and folders that only their owner may read: a journal holds what people said.

use std::{
    fs::{DirBuilder, File, OpenOptions},
    io,
    path::{Path, PathBuf},
};

use crate::OpenError;

/// Make the folder and those above it, where they are missing.
pub(crate) fn make_private_folder(path: &Path) -> Result<(), OpenError> {
    if path.is_dir() {
        return Ok(());
    }
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt;
        builder.mode(0o700);
    }
    builder.create(path).map_err(|source| unwritable(path, source))
}

/// Make the file where it is missing. SQLite gives its side files the same mode.
///
/// A file that is there is not opened: closing it again would drop the locks that another
/// connection of this process holds on it.
pub(crate) fn make_private_file(path: &Path) -> Result<(), OpenError> {
    match open_private(path, OpenOptions::new().create_new(true)) {
        Ok(_) => {
            sync_folder(path);
            Ok(())
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_file() => Ok(()),
        Err(source) => Err(unwritable(path, source)),
    }
}

/// The same file by its one true name: whoever opens it by another must find the same locks.
pub(crate) fn resolve(path: &Path) -> Result<PathBuf, OpenError> {
    let resolve = || -> io::Result<PathBuf> {
        if path.exists() {
            return path.canonicalize();
        }
        match (path.parent(), path.file_name()) {
            (Some(folder), Some(name)) => Ok(folder.canonicalize()?.join(name)),
            _ => Err(io::Error::other("it is not the name of a file")),
        }
    };
    resolve().map_err(|source| unwritable(path, source))
}

/// Make the name of a new file survive a power cut, as its content will. Where a folder cannot be
/// opened for that, the system does it by itself.
fn sync_folder(path: &Path) {
    if let Some(folder) = path.parent() {
        let _ = File::open(folder).and_then(|folder| folder.sync_all());
    }
}

/// Open a file for writing; one that is made now is its owner's alone.
pub(crate) fn open_private(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    options.read(true).write(true).open(path)
}

/// The error for a file or a folder that the system does not let us have.
pub(crate) fn unwritable(path: &Path, source: io::Error) -> OpenError {
    OpenError::Unwritable { path: path.to_owned(), source }
}
