//! A browser, and the pages of MiniWoB++, for the tests of `duologue-browser`.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Result, bail};

use super::{node, sdks};
use crate::{packages, process::run as run_program};

/// The version of the PyPI package `miniwob`.
const MINIWOB: &str = "1.1.0";

/// The version of the npm package `playwright-core`.
const PLAYWRIGHT: &str = "1.65.0";

/// Where Chromium or Chrome is; installed if it can be.
pub(super) fn chromium() -> Result<PathBuf> {
    if let Some(found) = find() {
        return Ok(found);
    }
    if packages::install(&["chromium"])?
        && let Some(found) = find()
    {
        return Ok(found);
    }
    bail!(
        "Chromium or Chrome is needed; install it (on Debian and Ubuntu the package chromium), or \
         say where it is with CHROME_PATH, and run `cargo xtask setup` again"
    )
}

fn find() -> Option<PathBuf> {
    if let Some(named) = env::var_os("CHROME_PATH") {
        return Some(PathBuf::from(named)).filter(|path| path.is_file());
    }
    let folders = env::var_os("PATH")?;
    let names = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
    let folders: Vec<PathBuf> = env::split_paths(&folders).collect();
    let mut places = names.iter().flat_map(|name| folders.iter().map(move |f| f.join(name)));
    places.find(|place| place.is_file())
}

/// The folder of MiniWoB++'s pages; installed if it can be.
pub(crate) fn miniwob(folder: &Path) -> Result<PathBuf> {
    let pages = folder.join("miniwob/html");
    // Written last, so that an installation that was interrupted is done again.
    let stamp = folder.join("installed.txt");
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == MINIWOB) {
        return Ok(pages);
    }
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    // In an environment of its own, as a bare system's Python has no pip.
    let environment = folder.join("py");
    sdks::make_environment(&environment)?;
    let mut pip = Command::new(environment.join("bin/pip"));
    pip.args(["install", "--quiet", "--disable-pip-version-check", "--no-deps"]);
    pip.arg("--target").arg(folder).arg(format!("miniwob=={MINIWOB}"));
    run_program(pip)?;
    if !pages.join("miniwob/click-test.html").is_file() {
        bail!("pip did not install the pages of MiniWoB++ to {}", pages.display());
    }
    fs::write(stamp, MINIWOB)?;
    Ok(pages)
}

/// Playwright, for the benchmark; it drives the browser that is here and brings none of its own.
pub(super) fn playwright(folder: &Path) -> Result<PathBuf> {
    node::package("playwright-core", PLAYWRIGHT, folder)?;
    Ok(folder.to_owned())
}
