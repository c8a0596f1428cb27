//! Who is alive: every process that has a journal open holds a lock on a file of its own, which
//! the system gives up for it however it ends.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io, mem,
    path::{Path, PathBuf},
    sync::atomic::{AtomicI64, Ordering},
    thread,
    time::{Duration, Instant},
};

use crate::{
    OpenError,
    files::{make_private_folder, open_private, unwritable},
};

/// The folder of the lock files, beside the database.
const FOLDER: &str = "locks";
/// The file that is locked while a process opens a journal.
const REGISTRY: &str = "registry";
/// How often a lock that another process holds is tried again.
const RETRY: Duration = Duration::from_millis(5);

/// The sign of life of this opening of the journal.
#[derive(Debug)]
pub(crate) struct Presence {
    folder: PathBuf,
    token: String,
    serial: AtomicI64,
    /// Held, not read: closing it is what ends the lock.
    _file: File,
}

/// The right to open or clean: one process at a time.
#[derive(Debug)]
pub(crate) struct Registry {
    folder: PathBuf,
    file: File,
}

impl Registry {
    /// Wait for the right to open the database at `path`.
    pub(crate) fn enter(path: &Path, patience: Duration) -> Result<Self, OpenError> {
        let folder = path.with_file_name(FOLDER);
        make_private_folder(&folder)?;
        let registry = folder.join(REGISTRY);
        let file = open_private(&registry, OpenOptions::new().create(true))
            .map_err(|source| unwritable(&registry, source))?;
        let start = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Self { folder, file }),
                Err(TryLockError::WouldBlock) if start.elapsed() < patience => thread::sleep(RETRY),
                Err(TryLockError::WouldBlock) => {
                    return Err(OpenError::Locked { path: path.to_owned(), waited: patience });
                }
                Err(TryLockError::Error(source)) => return Err(unwritable(&registry, source)),
            }
        }
    }

    /// Take a token. Under the registry lock nobody can find the new file before it is locked, and
    /// take it for one that was left behind.
    pub(crate) fn announce(&self) -> Result<Presence, OpenError> {
        let token = format!("{:016x}", fastrand::u64(..));
        let path = self.folder.join(&token);
        let announce = || -> io::Result<File> {
            let file = open_private(&path, OpenOptions::new().create_new(true))?;
            file.try_lock()?;
            Ok(file)
        };
        Ok(Presence {
            folder: self.folder.clone(),
            serial: AtomicI64::new(1),
            _file: announce().map_err(|source| unwritable(&path, source))?,
            token,
        })
    }

    /// Remove the files of processes that are gone. What cannot be removed stays for the next.
    pub(crate) fn clean(&self) {
        let Ok(files) = fs::read_dir(&self.folder) else {
            return;
        };
        for file in files.flatten() {
            let name = file.file_name();
            let gone = |token: &str| is_token(token) && !is_alive(&self.folder, token);
            if name.to_str().is_some_and(gone) {
                // Somebody else may have been faster; the file is gone either way.
                let _ = fs::remove_file(file.path());
            }
        }
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        // Closing the file would do the same; a failure leaves it to that.
        let _ = self.file.unlock();
    }
}

impl Presence {
    /// What names this process in a claim.
    pub(crate) fn token(&self) -> &str {
        &self.token
    }

    /// A number that no other claim of this token has.
    pub(crate) fn next_serial(&self) -> i64 {
        self.serial.fetch_add(1, Ordering::Relaxed)
    }

    /// Whether the process behind a token still runs.
    pub(crate) fn is_alive(&self, token: &str) -> bool {
        is_token(token) && is_alive(&self.folder, token)
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        // A file that stays is removed by the next process that opens the journal.
        let _ = fs::remove_file(self.folder.join(mem::take(&mut self.token)));
    }
}

/// A shared lock is asked for, so that two who look at the same time do not see each other.
fn is_alive(folder: &Path, token: &str) -> bool {
    match File::open(folder.join(token)) {
        Ok(file) => match file.try_lock_shared() {
            Ok(()) => false,
            // A lock that cannot be tried counts as held: two owners are worse than none.
            Err(TryLockError::WouldBlock | TryLockError::Error(_)) => true,
        },
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    }
}

/// Tokens come out of a file: nothing else may become part of a path.
fn is_token(text: &str) -> bool {
    text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The name of this machine, for people.
pub(crate) fn host() -> String {
    #[cfg(unix)]
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    #[cfg(not(unix))]
    let name = std::env::var("COMPUTERNAME").unwrap_or_else(|_| "this machine".into());
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_lives_as_long_as_its_presence() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.db");
        let registry = Registry::enter(&path, Duration::ZERO).unwrap();
        let (one, two) = (registry.announce().unwrap(), registry.announce().unwrap());
        let token = two.token().to_owned();
        assert!(one.is_alive(&token));
        drop(two);
        assert!(!one.is_alive(&token));
    }

    #[test]
    fn files_of_the_dead_are_removed_and_those_of_the_living_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.db");
        let registry = Registry::enter(&path, Duration::ZERO).unwrap();
        let alive = registry.announce().unwrap();
        let dead = registry.folder.join("0123456789abcdef");
        let foreign = registry.folder.join("notes.txt");
        fs::write(&dead, "").unwrap();
        fs::write(&foreign, "").unwrap();
        registry.clean();
        assert!(!dead.exists());
        assert!(foreign.exists());
        assert!(registry.folder.join(alive.token()).exists());
    }

    #[test]
    fn a_name_that_is_no_token_is_never_looked_up() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.db");
        let presence = Registry::enter(&path, Duration::ZERO).unwrap().announce().unwrap();
        assert!(!presence.is_alive("../locks/registry"));
    }

    #[test]
    fn only_one_process_opens_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.db");
        let first = Registry::enter(&path, Duration::ZERO).unwrap();
        assert!(matches!(
            Registry::enter(&path, Duration::from_millis(20)),
            Err(OpenError::Locked { .. })
        ));
        drop(first);
        Registry::enter(&path, Duration::ZERO).unwrap();
    }
}
