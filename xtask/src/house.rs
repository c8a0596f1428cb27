//! Where things are in the repository.

use std::{
    env,
    path::{Path, PathBuf},
};

/// The repository's top folder.
pub(crate) fn root() -> PathBuf {
    let here = env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    here.parent().map_or_else(|| here.clone(), Path::to_path_buf)
}

/// Where cargo builds, and where tools for the tests are put.
pub(crate) fn target() -> PathBuf {
    match env::var_os("CARGO_TARGET_DIR") {
        Some(elsewhere) => root().join(elsewhere),
        None => root().join("target"),
    }
}

/// The name of the variable that tells the tests where the model server is.
pub(crate) const AIMOCK: &str = "DUOLOGUE_AIMOCK";

/// The name of the variable that tells the tests where others' A2A SDKs are.
pub(crate) const A2A_TOOLS: &str = "DUOLOGUE_A2A_TOOLS";

/// Tells tests where others' MCP servers and client are.
pub(crate) const MCP_TOOLS: &str = "DUOLOGUE_MCP_TOOLS";

/// The name of the variable that tells the tests that there is a browser, and where.
pub(crate) const BROWSER: &str = "DUOLOGUE_BROWSER";

/// The name of the variable that tells the tests where the pages of MiniWoB++ are.
pub(crate) const MINIWOB: &str = "DUOLOGUE_MINIWOB";

/// The name of the variable that tells how many episodes of each task are played.
pub(crate) const MINIWOB_SEEDS: &str = "DUOLOGUE_MINIWOB_SEEDS";

/// The name of the variable that tells the tests which local model to run.
pub(crate) const TEST_MODEL: &str = "DUOLOGUE_TEST_MODEL";
