//! Packages of the system that this runs on.

use std::process::Command;

use anyhow::Result;
use nix::unistd::geteuid;

use crate::process::{answers, run, with_version};

/// Install packages if that can be done here: by root, with apt-get. Whether it was.
pub(crate) fn install(names: &[&str]) -> Result<bool> {
    if !geteuid().is_root() || !answers(with_version("apt-get")) {
        return Ok(false);
    }
    let apt_get = |words: &[&str]| {
        let mut command = Command::new("apt-get");
        command.env("DEBIAN_FRONTEND", "noninteractive").args(words);
        run(command)
    };
    apt_get(&["update"])?;
    apt_get(&[&["install", "--yes", "--no-install-recommends"], names].concat())?;
    Ok(true)
}
