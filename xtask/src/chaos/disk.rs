//! A small disk of its own for the journals, which can be filled up.

use std::{
    fs::{self, File},
    io::{ErrorKind, Write},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result};

/// How large it is. The journals of an hour take less than half of it.
const SIZE: &str = "256m";

/// A file system that only journals live on.
pub(super) struct Disk {
    path: PathBuf,
    is_small: bool,
}

impl Disk {
    /// A small disk at this place; an ordinary folder where none can be mounted.
    pub(super) fn new(path: PathBuf) -> Result<Self> {
        fs::create_dir_all(&path).with_context(|| format!("making {}", path.display()))?;
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={SIZE}"), "tmpfs"]).arg(&path);
        Ok(Self { is_small: is_done(&mut mount), path })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it can be filled up without harm to others.
    pub(super) fn is_small(&self) -> bool {
        self.is_small
    }

    /// Take all the room that is left. Again and again: others may have freed some.
    pub(super) fn fill(&self) -> Result<()> {
        let path = self.ballast();
        let mut ballast = File::options().create(true).append(true).open(&path);
        for size in [1 << 20, 1 << 16, 1 << 12] {
            let bytes = vec![1; size];
            loop {
                match ballast.as_mut().map(|file| file.write_all(&bytes)) {
                    Ok(Ok(())) => {}
                    Ok(Err(error)) if error.kind() == ErrorKind::StorageFull => break,
                    Err(error) if error.kind() == ErrorKind::StorageFull => return Ok(()),
                    Ok(Err(error)) => return Err(error).context("filling the disk"),
                    Err(error) => {
                        return Err(std::io::Error::from(error.kind())).context("filling the disk");
                    }
                }
            }
        }
        Ok(())
    }

    /// Give the room back.
    pub(super) fn empty(&self) {
        let _ = fs::remove_file(self.ballast());
    }

    /// Copy what is on it to a folder, and take it away.
    pub(super) fn take_away(&self, keep_in: Option<&Path>) {
        self.empty();
        if !self.is_small {
            return;
        }
        if let Some(folder) = keep_in {
            let _ = fs::create_dir_all(folder);
            for entry in fs::read_dir(&self.path).into_iter().flatten().flatten() {
                let _ = fs::copy(entry.path(), folder.join(entry.file_name()));
            }
        }
        is_done(Command::new("umount").arg(&self.path));
    }

    fn ballast(&self) -> PathBuf {
        self.path.join("ballast")
    }
}

fn is_done(command: &mut Command) -> bool {
    let command = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
