//! Others' programs for the protocols that we speak, which the tests talk to.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};

use super::node;
use crate::{
    packages,
    process::{answers, run as run_program, with_version},
};

/// Install the SDKs of A2A that are missing; the folder that they are in.
pub(super) fn a2a(wanted: &Path, folder: &Path) -> Result<PathBuf> {
    for version in ["v1", "v03"] {
        let list = wanted.join(format!("requirements-{version}.txt"));
        python(&list, &folder.join(version)).with_context(|| format!("a2a-sdk {version}"))?;
    }
    node::pinned(wanted, &folder.join("js")).context("@a2a-js/sdk")?;
    Ok(folder.to_owned())
}

/// Install the MCP servers and the client that are missing; the folder that they are in.
pub(super) fn mcp(wanted: &Path, folder: &Path) -> Result<PathBuf> {
    python(&wanted.join("requirements.txt"), &folder.join("py")).context("mcp, mcp-server-time")?;
    node::pinned(wanted, &folder.join("js")).context("@modelcontextprotocol servers")?;
    Ok(folder.to_owned())
}

/// An environment of its own with the packages of a list.
fn python(list: &Path, folder: &Path) -> Result<()> {
    let pinned = fs::read_to_string(list).context("reading the pinned versions")?;
    // Written last, so that an installation that was interrupted is done again.
    let stamp = folder.join("installed.txt");
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == pinned) {
        return Ok(());
    }
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("clearing {}", folder.display()))?;
    }
    make_environment(folder)?;
    let mut pip = Command::new(folder.join("bin/pip"));
    pip.args(["install", "--quiet", "--disable-pip-version-check", "-r"]).arg(list);
    run_program(pip)?;
    fs::write(stamp, pinned)?;
    Ok(())
}

/// An environment of Python, with its pip.
pub(super) fn make_environment(folder: &Path) -> Result<()> {
    let make = || {
        let mut command = Command::new("python3");
        command.args(["-m", "venv"]).arg(folder);
        run_program(command)
    };
    if answers(with_version("python3")) && make().is_ok() {
        return Ok(());
    }
    if packages::install(&["python3-venv"])? {
        return make();
    }
    bail!("Python 3.10 or newer with venv is needed; install it and run `cargo xtask setup` again")
}
