//! Replacing files whole: a reader sees the old content or the new one, never a part of it.

use std::{
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use cap_std::fs::{Dir, Metadata, OpenOptions};
use duologue_core::ToolError;

use super::{Workspace, WorkspacePath};

/// What a write did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    Created,
    Replaced,
}

/// The state of a file that a change was worked out from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    length: u64,
    modified: Option<cap_std::time::SystemTime>,
}

impl Stamp {
    pub(crate) fn of(metadata: &Metadata) -> Self {
        Self { length: metadata.len(), modified: metadata.modified().ok() }
    }
}

impl Workspace {
    /// Put content at a path. Missing folders are made.
    pub(crate) fn write(&self, path: &WorkspacePath, content: &[u8]) -> Result<Written, ToolError> {
        let _writing = self.lock_writing();
        let place = self.place(path)?;
        self.put(&place, content, path)
    }

    /// Replace a file by what `change` makes of it. Nothing is written if the file changes
    /// meanwhile.
    pub(crate) fn change<T>(
        &self,
        path: &WorkspacePath,
        change: impl FnOnce(cap_std::fs::File) -> Result<(Vec<u8>, T), ToolError>,
    ) -> Result<T, ToolError> {
        let _writing = self.lock_writing();
        let file = self.open_file(path)?;
        let before = Stamp::of(&file.metadata()?);
        let (content, report) = change(file)?;
        if Stamp::of(&self.metadata(path)?) != before {
            return Err(ToolError(format!(
                "\"{path}\" was changed by somebody else meanwhile; nothing was written: read it \
                 again"
            )));
        }
        let place = self.place(path)?;
        self.put(&place, &content, path)?;
        Ok(report)
    }

    /// Where the file of a path really is: links are followed, inside the workspace.
    fn place(&self, path: &WorkspacePath) -> Result<Place, ToolError> {
        let explain = |error: io::Error| self.explain(&error, path);
        refuse_git(path.as_path())?;
        let real: PathBuf = match self.dir().symlink_metadata(path.as_path()) {
            Ok(metadata) if metadata.is_symlink() => {
                self.dir().canonicalize(path.as_path()).map_err(|error| match error.kind() {
                    io::ErrorKind::NotFound => {
                        ToolError(format!("\"{path}\" is a link to something that is not there"))
                    }
                    _ => explain(error),
                })?
            }
            Ok(_) => path.as_path().to_owned(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => path.as_path().to_owned(),
            Err(error) => return Err(explain(error)),
        };
        let name = real
            .file_name()
            .ok_or_else(|| ToolError(format!("\"{path}\" is a folder, not a file")))?;
        let folder = match real.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => {
                self.dir().create_dir_all(parent).map_err(explain)?;
                // The folder may be reached through a link, so its real name is looked at.
                refuse_git(&self.dir().canonicalize(parent).map_err(explain)?)?;
                self.dir().open_dir(parent).map_err(explain)?
            }
            _ => self.dir().try_clone().map_err(explain)?,
        };
        let existing = match folder.symlink_metadata(name) {
            Ok(metadata) if metadata.is_file() => Some(metadata),
            Ok(metadata) if metadata.is_dir() => {
                return Err(ToolError(format!("\"{path}\" is a folder, not a file")));
            }
            Ok(_) => return Err(ToolError(format!("\"{path}\" is not a regular file"))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(explain(error)),
        };
        Ok(Place { folder, name: PathBuf::from(name), existing })
    }

    fn put(
        &self,
        place: &Place,
        content: &[u8],
        path: &WorkspacePath,
    ) -> Result<Written, ToolError> {
        let temporary = PathBuf::from(format!(".duo-{:016x}.tmp", fastrand::u64(..)));
        let result = place.put(&temporary, content);
        if result.is_err() {
            // It may not exist; what matters is the first error.
            let _ = place.folder.remove_file(&temporary);
        }
        result.map_err(|error| self.explain(&error, path))?;
        Ok(match place.existing {
            Some(_) => Written::Replaced,
            None => Written::Created,
        })
    }
}

/// The folder handle, the name in it and what is there now.
struct Place {
    folder: Dir,
    name: PathBuf,
    existing: Option<Metadata>,
}

impl Place {
    fn put(&self, temporary: &Path, content: &[u8]) -> io::Result<()> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        let mut file = self.folder.open_with(temporary, &options)?;
        if let Some(existing) = &self.existing {
            file.set_permissions(existing.permissions())?;
        }
        file.write_all(content)?;
        // Without this a crash of the machine could leave an empty file under the new name.
        file.sync_all()?;
        drop(file);
        self.folder.rename(temporary, &self.folder, &self.name)?;
        // The folder's handle is only a place in the tree; syncing needs one that is open. Not
        // every system can do it, and the content itself is safe already.
        #[cfg(unix)]
        let _ = self.folder.open(".").and_then(|folder| folder.sync_all());
        Ok(())
    }
}

/// What is in `.git` runs: hooks and configured commands. Editing it is a way out of the
/// workspace.
fn refuse_git(path: &Path) -> Result<(), ToolError> {
    let inside =
        path.components().any(|component| component.as_os_str().eq_ignore_ascii_case(".git"));
    if inside {
        return Err(ToolError(
            "files in a .git folder cannot be written; use git itself to change it".to_owned(),
        ));
    }
    Ok(())
}
