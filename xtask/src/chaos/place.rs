//! Where a fault run happens: a folder of its own, and a `duo` that was never used there.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};

/// The folder and the program.
pub(super) struct Place {
    root: PathBuf,
    duo: PathBuf,
}

impl Place {
    /// A fresh folder, at this path or among the temporary ones.
    pub(super) fn new(root: Option<&Path>, duo: PathBuf) -> Result<Self> {
        let name = format!("duologue-chaos-{}", std::process::id());
        let root = root.map_or_else(|| env::temp_dir().join(name), Path::to_owned);
        fs::create_dir_all(&root).with_context(|| format!("making {}", root.display()))?;
        let is_empty = fs::read_dir(&root)?.next().is_none();
        anyhow::ensure!(is_empty, "{} is not empty; choose another --folder", root.display());
        let root = root.canonicalize().context("the folder")?;
        Ok(Self { root, duo })
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// A folder in it.
    pub(super) fn folder(&self, name: &str) -> Result<PathBuf> {
        let path = self.root.join(name);
        fs::create_dir_all(&path).with_context(|| format!("making {}", path.display()))?;
        Ok(path)
    }

    /// `duo` with these arguments, in a folder.
    pub(super) fn duo(&self, folder: &Path, args: &[&str]) -> Command {
        let mut command = Command::new(&self.duo);
        command
            .args(args)
            .current_dir(folder)
            .env_clear()
            .env("HOME", folder)
            .env("PATH", env::var_os("PATH").unwrap_or_default())
            .env("USER", "chaos")
            // Nothing is fetched by accident.
            .env("DUOLOGUE_MODELS", "/dev/null/models");
        if let Some(browser) = env::var_os("CHROME_PATH") {
            command.env("CHROME_PATH", browser);
        }
        command
    }

    /// Delete it.
    pub(super) fn clear(&self) {
        let _ = fs::remove_dir_all(&self.root);
    }
}
