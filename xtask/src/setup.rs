//! `cargo xtask setup`: what the tests need besides Rust.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};

use crate::{
    house,
    process::{cargo, run as run_program},
};

mod browser;
mod node;
mod sdks;

pub(crate) use node::path;

/// Install what the tests need besides Rust
///
/// Puts into `target/tools`:
///
///   aimock   a model server that nobody here wrote, which the tests of the model providers talk
///            to; an npm package, pinned in `crates/models/tests/aimock`
///   a2a      SDKs of the A2A protocol that nobody here wrote, two for Python and one for
///            JavaScript, pinned in `crates/a2a/tests/foreign`
///   mcp      MCP servers and a client that nobody here wrote, pinned in
///            `crates/mcp/tests/foreign`
///   miniwob  the pages of MiniWoB++, a benchmark for browser agents; a PyPI package
///
/// It needs Node.js 20.15 or newer with npm, and Python 3.10 or newer with venv. Where they are
/// missing and you are root on a system with apt-get, they are installed. So is Chromium, which the
/// tests of `duologue-browser` drive. Where Node.js is older, npm puts a newer one into
/// `target/tools/node`, for the tests alone.
///
/// And into the cache of models, where it stays:
///
///   small    the small local model (491 MB), which the end-to-end tests of `duologue-local` run;
///            fetched by `duo models pull`, which is built for that. Where it cannot be had, these
///            tests say that they skip
///
/// Does nothing, quickly, when everything is there.
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {}

/// What the tests can use.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Tools {
    /// The program of the model server.
    pub(crate) aimock: Option<PathBuf>,
    /// The folder of others' A2A SDKs.
    pub(crate) sdks: Option<PathBuf>,
    /// The folder of others' MCP servers and client.
    pub(crate) mcp: Option<PathBuf>,
    /// The browser.
    pub(crate) browser: Option<PathBuf>,
    /// The folder of MiniWoB++'s pages.
    pub(crate) miniwob: Option<PathBuf>,
    /// The local model that is here to be run: a name or a file.
    pub(crate) model: Option<String>,
    /// What could not be had, and what to do about it.
    pub(crate) gaps: Vec<String>,
    /// What could not be had and need not be: a machine without a way to it is no fault.
    pub(crate) absent: Vec<String>,
}

/// The local model that tests run unless told otherwise.
pub(crate) const MODEL: &str = "small";

/// Said instead of a model's name, no model is run.
pub(crate) const NO_MODEL: &str = "none";

pub(crate) fn run(_: &Args) -> Result<()> {
    let tools = install(MODEL)?;
    if let Some(aimock) = &tools.aimock {
        println!("aimock   {}", aimock.display());
    }
    if let Some(sdks) = &tools.sdks {
        println!("a2a      {}", sdks.display());
    }
    if let Some(mcp) = &tools.mcp {
        println!("mcp      {}", mcp.display());
    }
    if let Some(browser) = &tools.browser {
        println!("browser  {}", browser.display());
    }
    if let Some(miniwob) = &tools.miniwob {
        println!("miniwob  {}", miniwob.display());
    }
    if let Some(model) = &tools.model {
        println!("model    {model}");
    }
    tools.tell_absent();
    if !tools.gaps.is_empty() {
        bail!("{}", tools.gaps.join("\n"));
    }
    Ok(())
}

impl Tools {
    /// Say what is not here, and what follows from it.
    pub(crate) fn tell_absent(&self) {
        for absent in &self.absent {
            eprintln!("warning: {absent}\nwarning: the tests that need it will say that they skip");
        }
    }
}

/// Install what is missing, with a local model by its name or file.
pub(crate) fn install(model: &str) -> Result<Tools> {
    let folder = house::target().join("tools");
    fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
    // Two test runs at once must not install over each other.
    let lock = File::create(folder.join("lock")).context("creating the lock of target/tools")?;
    lock.lock().context("waiting for another setup")?;

    let mut tools = Tools::default();
    let wanted = house::root().join("crates/models/tests/aimock");
    if wanted.join("package.json").exists() {
        match aimock(&wanted, &folder.join("aimock")) {
            Ok(program) => tools.aimock = Some(program),
            Err(error) => tools.gaps.push(format!("aimock: {error:#}")),
        }
    }
    let wanted = house::root().join("crates/a2a/tests/foreign");
    match sdks::a2a(&wanted, &folder.join("a2a")) {
        Ok(folder) => tools.sdks = Some(folder),
        Err(error) => tools.gaps.push(format!("a2a: {error:#}")),
    }
    let wanted = house::root().join("crates/mcp/tests/foreign");
    match sdks::mcp(&wanted, &folder.join("mcp")) {
        Ok(folder) => tools.mcp = Some(folder),
        Err(error) => tools.gaps.push(format!("mcp: {error:#}")),
    }
    match browser::chromium() {
        Ok(browser) => tools.browser = Some(browser),
        Err(error) => tools.gaps.push(format!("browser: {error:#}")),
    }
    match browser::miniwob(&folder.join("miniwob")) {
        Ok(pages) => tools.miniwob = Some(pages),
        Err(error) => tools.gaps.push(format!("miniwob: {error:#}")),
    }
    if model != NO_MODEL {
        match local_model(model) {
            Ok(()) => tools.model = Some(model.to_owned()),
            Err(error) => tools.absent.push(format!("the local model {model}: {error:#}")),
        }
    }
    Ok(tools)
}

/// Where a browser is; installed if it can be.
pub(crate) fn browser() -> Result<PathBuf> {
    browser::chromium()
}

/// The folder of MiniWoB++'s pages; installed if it can be.
pub(crate) fn miniwob() -> Result<PathBuf> {
    browser::miniwob(&house::target().join("tools/miniwob"))
}

/// The folder with playwright-core in it; installed if it can be.
pub(crate) fn playwright() -> Result<PathBuf> {
    node::node()?;
    browser::playwright(&house::target().join("tools/playwright"))
}

/// See that a local model is in its cache.
fn local_model(name: &str) -> Result<()> {
    if Path::new(name).is_file() {
        return Ok(());
    }
    // Built as the tests are built, so that they find it done.
    run_program(cargo(["build", "--workspace", "--bin", "duo"]))?;
    let mut duo = Command::new(house::target().join("debug").join("duo"));
    duo.args(["models", "pull", name]);
    run_program(duo)
}

fn aimock(wanted: &Path, folder: &Path) -> Result<PathBuf> {
    node::pinned(wanted, folder)?;
    let program = folder.join("node_modules/@copilotkit/aimock/dist/cli.js");
    if !program.exists() {
        bail!("npm did not install {}", program.display());
    }
    Ok(program)
}
