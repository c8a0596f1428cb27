//! The program `duo`, for examples that run it as a person would.

use std::{error::Error, path::PathBuf, process::Command};

/// The program, built as this example was.
pub(crate) fn built() -> Result<PathBuf, Box<dyn Error>> {
    let this = std::env::current_exe()?;
    let folder = this.parent().and_then(|examples| examples.parent()).ok_or("no target folder")?;
    let mut build = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    build.args(["build", "--package", "duo"]);
    if folder.ends_with("release") {
        build.arg("--release");
    }
    if !build.status()?.success() {
        return Err("duo cannot be built".into());
    }
    Ok(folder.join("duo"))
}
