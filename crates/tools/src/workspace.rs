//! The folder that an agent's files stay in.
//!
//! Every path is opened through the folder's own handle (`cap-std`: `openat2` with
//! `RESOLVE_BENEATH` where the system has it, else a walk that follows no link blindly). The
//! check and the opening are one act, so a link that is swapped in between leads nowhere.

use std::{
    fs,
    io::{self, Read as _},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use cap_std::{
    ambient_authority,
    fs::{Dir, File, Metadata, OpenOptions},
};
use duologue_core::ToolError;

mod path;
mod walk;
mod write;

pub(crate) use path::WorkspacePath;
pub(crate) use walk::{FoundKind, Ignored, Walk, WalkEnd};
pub(crate) use write::Written;

use crate::suggest::did_you_mean;

/// A folder and what is in it. Nothing outside can be reached through it: not by `..`, not by an
/// absolute path, not by a link.
///
/// Clones are the same workspace.
#[derive(Clone, Debug)]
pub struct Workspace {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    root: PathBuf,
    dir: Dir,
    /// Held while a file is replaced, so that two edits of one file do not lose each other.
    writing: Mutex<()>,
}

/// A folder that cannot be a workspace.
#[derive(Debug, thiserror::Error)]
#[error("cannot use {} as the workspace folder: {source}", folder.display())]
pub struct WorkspaceError {
    /// The folder as it was given.
    pub folder: PathBuf,
    /// Why not.
    pub source: io::Error,
}

impl Workspace {
    /// The workspace of a folder, which must exist.
    pub fn open(folder: impl AsRef<Path>) -> Result<Self, WorkspaceError> {
        let folder = folder.as_ref();
        let open = || -> io::Result<Inner> {
            let root = fs::canonicalize(folder)?;
            let dir = Dir::open_ambient_dir(&root, ambient_authority())?;
            Ok(Inner { root, dir, writing: Mutex::new(()) })
        };
        match open() {
            Ok(inner) => Ok(Self { inner: Arc::new(inner) }),
            Err(source) => Err(WorkspaceError { folder: folder.to_owned(), source }),
        }
    }

    /// The folder, as an absolute path.
    pub fn root(&self) -> &Path {
        &self.inner.root
    }

    /// Put bytes into a file, by its path from the folder on. Missing folders are made.
    pub fn write_bytes(&self, path: &str, content: &[u8]) -> Result<(), ToolError> {
        self.write(&WorkspacePath::try_from(path.to_owned()).map_err(ToolError)?, content)?;
        Ok(())
    }

    /// The bytes of a file, by its path from the folder on; one of more than `most` is refused.
    pub fn read_bytes(&self, path: &str, most: u64) -> Result<Vec<u8>, ToolError> {
        let path = WorkspacePath::try_from(path.to_owned()).map_err(ToolError)?;
        let mut content = Vec::new();
        let read = self.open_file(&path)?.take(most + 1).read_to_end(&mut content)?;
        if read as u64 > most {
            return Err(ToolError(format!("\"{path}\" is larger than {most} bytes")));
        }
        Ok(content)
    }

    fn dir(&self) -> &Dir {
        &self.inner.dir
    }

    fn lock_writing(&self) -> MutexGuard<'_, ()> {
        // The lock guards no data, so a thread that died in it left nothing broken.
        self.inner.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Open a file to read it. Folders, pipes and devices are refused.
    pub(crate) fn open_file(&self, path: &WorkspacePath) -> Result<File, ToolError> {
        let file = self
            .dir()
            .open_with(path.as_path(), &reading())
            .map_err(|error| self.explain(&error, path))?;
        let metadata = file.metadata().map_err(|error| self.explain(&error, path))?;
        if metadata.is_dir() {
            return Err(ToolError(format!("\"{path}\" is a folder, not a file")));
        }
        if !metadata.is_file() {
            return Err(ToolError(format!("\"{path}\" is not a regular file")));
        }
        Ok(file)
    }

    /// What is at a path, with links followed inside the workspace.
    pub(crate) fn metadata(&self, path: &WorkspacePath) -> Result<Metadata, ToolError> {
        self.dir().metadata(path.as_path()).map_err(|error| self.explain(&error, path))
    }

    /// Whether there is anything at a path.
    pub(crate) fn exists(&self, path: &WorkspacePath) -> bool {
        !matches!(self.dir().metadata(path.as_path()), Err(error) if error.kind() == io::ErrorKind::NotFound)
    }

    /// That there is nothing at a path, in words that a model can act on.
    pub(crate) fn missing(&self, path: &WorkspacePath) -> ToolError {
        self.explain(&io::ErrorKind::NotFound.into(), path)
    }

    /// An I/O error in words that a model can act on.
    fn explain(&self, error: &io::Error, path: &WorkspacePath) -> ToolError {
        ToolError(match error.kind() {
            io::ErrorKind::NotFound => {
                format!("there is no \"{path}\"{}", self.similar(path))
            }
            // The refusals of `cap-std` itself carry no number of the system's.
            io::ErrorKind::PermissionDenied if error.raw_os_error().is_none() => format!(
                "\"{path}\" leads out of the workspace folder through a link; only files inside \
                 it can be used"
            ),
            io::ErrorKind::NotADirectory => {
                format!("\"{path}\": a part of the path before the last is a file, not a folder")
            }
            _ => format!("\"{path}\": {error}"),
        })
    }

    /// The name in the same folder that was probably meant.
    fn similar(&self, path: &WorkspacePath) -> String {
        /// A hint is not worth reading a huge folder for.
        const MOST_NAMES: usize = 1000;
        let (folder, name) = path.split();
        let Ok(entries) = self.dir().read_dir(folder) else {
            return match folder.as_os_str() == "." {
                true => String::new(),
                false => format!(": there is no folder \"{}\"", folder.display()),
            };
        };
        let names: Vec<String> = entries
            .take(MOST_NAMES)
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .collect();
        did_you_mean(&name.to_string_lossy(), names.iter().map(String::as_str))
    }
}

/// Reading that does not wait for a writer, should the path be a named pipe.
fn reading() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use cap_std::fs::OpenOptionsExt;
        options.custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed());
    }
    options
}
