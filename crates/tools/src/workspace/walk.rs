//! Going through the files of a folder, the nearest first, within bounds.

use std::{
    collections::VecDeque,
    io::Read as _,
    ops::ControlFlow,
    path::{Path, PathBuf},
    sync::Arc,
};

use cap_std::fs::Dir;
use duologue_core::ToolError;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use tokio_util::sync::CancellationToken;

use super::{Workspace, WorkspacePath, reading};

/// A walk ends after this many entries, wherever it is.
const MOST_ENTRIES: usize = 200_000;
/// Ignore files longer than this are not read.
const LONGEST_IGNORE_FILE: u64 = 1 << 20;
/// Files that say what to leave out; a later one overrides an earlier one.
const IGNORE_FILES: [&str; 2] = [".gitignore", ".ignore"];

/// What a walk does with files that `.gitignore` names. A `.git` folder is always left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ignored {
    LeftOut,
    Included,
}

/// Where to walk.
pub(crate) struct Walk<'a> {
    pub(crate) workspace: &'a Workspace,
    pub(crate) folder: &'a WorkspacePath,
    pub(crate) ignored: Ignored,
    /// How many levels down; 1 is the folder itself.
    pub(crate) depth: usize,
    pub(crate) cancel: &'a CancellationToken,
}

/// An entry on the way.
pub(crate) struct Found<'a> {
    /// Its path from the workspace folder on.
    pub(crate) path: &'a Path,
    /// Its path from the folder on that the walk began in.
    pub(crate) below: &'a Path,
    pub(crate) kind: FoundKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum FoundKind {
    File,
    Folder,
    Link,
    Other,
}

/// How a walk ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WalkEnd {
    /// Everything was seen.
    Done,
    /// The visitor had enough.
    Stopped,
    /// There were more entries than a walk looks at.
    TooMany,
}

/// The ignore files from the workspace folder down, each with the folder that it is in.
type Rules = Arc<Vec<(PathBuf, Gitignore)>>;

impl Walk<'_> {
    /// Visit every entry below the folder, level by level, by name inside each folder.
    pub(crate) fn run(
        &self,
        mut visit: impl FnMut(&Found<'_>) -> ControlFlow<()>,
    ) -> Result<WalkEnd, ToolError> {
        let start = match self.folder.is_root() {
            true => PathBuf::new(),
            false => self.folder.as_path().to_owned(),
        };
        let mut seen = 0;
        let mut queue = VecDeque::from([(start.clone(), 1, self.rules_above(&start))]);
        while let Some((folder, level, rules)) = queue.pop_front() {
            let dir = match self.open(&folder) {
                Ok(dir) => dir,
                // The folder that was asked for must be there; one below may vanish or be closed.
                Err(error) if folder == start => {
                    return Err(self.workspace.explain(&error, self.folder));
                }
                Err(_) => continue,
            };
            let rules = self.with_rules_of(&dir, &folder, rules);
            for (name, kind) in entries(&dir, MOST_ENTRIES - seen, self.cancel)? {
                seen += 1;
                let path = folder.join(&name);
                if name == ".git" || self.is_ignored(&rules, &path, kind) {
                    continue;
                }
                let below = path.strip_prefix(&start).unwrap_or(&path);
                let found = Found { path: &path, below, kind };
                if visit(&found).is_break() {
                    return Ok(WalkEnd::Stopped);
                }
                if kind == FoundKind::Folder && level < self.depth {
                    queue.push_back((path, level + 1, Arc::clone(&rules)));
                }
            }
            if seen >= MOST_ENTRIES {
                return Ok(WalkEnd::TooMany);
            }
        }
        Ok(WalkEnd::Done)
    }

    fn open(&self, folder: &Path) -> std::io::Result<Dir> {
        match folder.as_os_str().is_empty() {
            true => self.workspace.dir().try_clone(),
            false => self.workspace.dir().open_dir(folder),
        }
    }

    /// The rules of the folders that the start is in.
    fn rules_above(&self, start: &Path) -> Rules {
        let mut rules = Rules::default();
        let mut above: Vec<&Path> = start.ancestors().skip(1).collect();
        above.reverse();
        for folder in above {
            if let Ok(dir) = self.open(folder) {
                rules = self.with_rules_of(&dir, folder, rules);
            }
        }
        rules
    }

    fn with_rules_of(&self, dir: &Dir, folder: &Path, mut rules: Rules) -> Rules {
        if self.ignored == Ignored::Included {
            return rules;
        }
        for name in IGNORE_FILES {
            if let Some(own) = read_rules(dir, name) {
                Arc::make_mut(&mut rules).push((folder.to_owned(), own));
            }
        }
        rules
    }

    /// The nearest file that says something about an entry decides.
    fn is_ignored(&self, rules: &Rules, path: &Path, kind: FoundKind) -> bool {
        let is_folder = kind == FoundKind::Folder;
        for (folder, own) in rules.iter().rev() {
            let Ok(relative) = path.strip_prefix(folder) else { continue };
            let verdict = own.matched(relative, is_folder);
            if !verdict.is_none() {
                return verdict.is_ignore();
            }
        }
        false
    }
}

fn read_rules(dir: &Dir, name: &str) -> Option<Gitignore> {
    let file = dir.open_with(name, &reading()).ok()?;
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut text = Vec::new();
    file.take(LONGEST_IGNORE_FILE).read_to_end(&mut text).ok()?;
    // Entries are matched by their path below this folder, so its own path is ".".
    let mut builder = GitignoreBuilder::new(".");
    for line in String::from_utf8_lossy(&text).lines() {
        // A line that is no pattern is skipped, as git does.
        let _ = builder.add_line(None, line);
    }
    builder.build().ok()
}

fn entries(
    dir: &Dir,
    most: usize,
    cancel: &CancellationToken,
) -> Result<Vec<(std::ffi::OsString, FoundKind)>, ToolError> {
    if cancel.is_cancelled() {
        return Err(ToolError::new("cancelled"));
    }
    let mut found = Vec::new();
    for entry in dir.entries()?.take(most) {
        // An entry that vanished meanwhile is not there.
        let Ok(entry) = entry else { continue };
        let Ok(kind) = entry.file_type() else { continue };
        let kind = if kind.is_file() {
            FoundKind::File
        } else if kind.is_dir() {
            FoundKind::Folder
        } else if kind.is_symlink() {
            FoundKind::Link
        } else {
            FoundKind::Other
        };
        found.push((entry.file_name(), kind));
    }
    found.sort();
    Ok(found)
}
