//! The local model as everyone else sees it.

use std::{
    collections::HashMap,
    fmt,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, OnceLock, PoisonError, Weak,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use duologue_core::{Delta, DeltaStream, ErrorClass, Model, ModelError, Request};
use futures::{StreamExt, stream};
use tokio::sync::mpsc;

use crate::{
    catalogue::{Catalogue, ModelFile, cache_folder, where_is},
    engine::{self, Job, RETRY, Ticket},
};

/// How a local model runs.
#[derive(Clone, Debug, PartialEq)]
pub struct LocalOptions {
    /// Threads to compute with; by default as many as the machine runs at once.
    pub threads: Option<usize>,
    /// The most tokens of a conversation, if fewer than the model can read.
    pub context: Option<usize>,
    /// How many requests are worked on together.
    pub parallel: usize,
    /// How many requests may wait; one more is told to come again later.
    pub queue: usize,
    /// Memory for what was read before, so that a conversation is not read again at every turn.
    pub cache_bytes: usize,
    /// How freely to choose where a request does not say; 0 takes the likeliest token.
    pub temperature: f32,
    /// Only the likeliest tokens that together have this share are in play.
    pub top_p: f32,
    /// Never more than this many tokens are in play.
    pub top_k: usize,
}

impl Default for LocalOptions {
    fn default() -> Self {
        Self {
            threads: None,
            context: None,
            parallel: 4,
            queue: 64,
            cache_bytes: 256 << 20,
            temperature: 0.0,
            top_p: 0.95,
            top_k: 40,
        }
    }
}

impl LocalOptions {
    pub(crate) fn threads(&self) -> usize {
        let there = || thread::available_parallelism().map_or(1, usize::from);
        self.threads.unwrap_or_else(there).clamp(1, 64)
    }
}

/// A model that runs in this process.
///
/// Cheap to clone, and cheap to open: the file is loaded at the first request, once, however many
/// clones there are. It is unloaded when the last of them is gone.
#[derive(Clone)]
pub struct LocalModel {
    shared: Arc<Shared>,
}

struct Shared {
    name: String,
    path: PathBuf,
    options: LocalOptions,
    jobs: OnceLock<Result<mpsc::Sender<Job>, String>>,
    busy: Arc<AtomicUsize>,
}

impl fmt::Debug for LocalModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalModel")
            .field("name", &self.shared.name)
            .field("path", &self.shared.path)
            .finish_non_exhaustive()
    }
}

/// Why a model could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// It is known, but its file is not here yet.
    #[error("the model {} ({}) is not here yet: pull it first", .0.name, .0.title)]
    NotHere(Box<ModelFile>),
    /// It is neither a known name nor a file.
    #[error("{0:?} is neither a model's name (default, small) nor a file that exists")]
    Unknown(String),
}

impl LocalModel {
    /// A model by its name in the catalogue, or by the path of a GGUF file. Nothing is loaded yet.
    ///
    /// # Errors
    /// When it is not here.
    pub fn open(name_or_path: &str, options: LocalOptions) -> Result<Self, OpenError> {
        let cache = cache_folder();
        if let Some(file) = Catalogue::default().get(name_or_path) {
            return match where_is(file, &cache) {
                Some(path) => Ok(Self::from_file(format!("local/{}", file.name), &path, options)),
                None => Err(OpenError::NotHere(Box::new(file.clone()))),
            };
        }
        let path = Path::new(name_or_path);
        if !path.is_file() {
            return Err(OpenError::Unknown(name_or_path.to_owned()));
        }
        Ok(Self::from_file(format!("local:{name_or_path}"), path, options))
    }

    /// A model from a file. Nothing is read yet. A file that is already open in this process with
    /// the same options is shared, not loaded twice.
    pub fn from_file(name: impl Into<String>, path: &Path, options: LocalOptions) -> Self {
        static OPEN: Mutex<Option<HashMap<PathBuf, Vec<Weak<Shared>>>>> = Mutex::new(None);
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let name = name.into();
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        let open = open.get_or_insert_default();
        open.retain(|_, models| {
            models.retain(|model| model.strong_count() > 0);
            !models.is_empty()
        });
        let models = open.entry(path.clone()).or_default();
        let same = models
            .iter()
            .filter_map(Weak::upgrade)
            .find(|model| model.name == name && model.options == options);
        let shared = same.unwrap_or_else(|| {
            let (jobs, busy) = (OnceLock::new(), Arc::default());
            let shared = Arc::new(Shared { name, path, options, jobs, busy });
            models.push(Arc::downgrade(&shared));
            shared
        });
        Self { shared }
    }

    /// The file that it runs.
    pub fn path(&self) -> &Path {
        &self.shared.path
    }

    /// How many requests are worked on or wait. One whose stream was dropped counts until the
    /// engine has let go of it, which it does at once, in the middle of a prompt too.
    pub fn busy(&self) -> usize {
        self.shared.busy.load(Ordering::SeqCst)
    }
}

impl Shared {
    /// Where requests go; the first one starts the engine.
    fn jobs(&self) -> Result<mpsc::Sender<Job>, ModelError> {
        let started = self.jobs.get_or_init(|| {
            let (sender, receiver) = mpsc::channel(self.options.queue.max(1));
            let (path, options) = (self.path.clone(), self.options.clone());
            thread::Builder::new()
                .name("duologue-local".to_owned())
                .spawn(move || engine::serve(path, &options, receiver))
                .map(|_| sender)
                .map_err(|error| error.to_string())
        });
        started.clone().map_err(|error| {
            let text = format!("the local model could not be started: {error}");
            ModelError::new(ErrorClass::Server, text)
        })
    }

    fn submit(&self, request: Request) -> Result<Deltas, ModelError> {
        let (reply, deltas) = mpsc::unbounded_channel();
        let ticket = Ticket::new(&self.busy);
        match self.jobs()?.try_send(Job { request, reply, ticket }) {
            Ok(()) => Ok(deltas),
            Err(mpsc::error::TrySendError::Full(_)) => {
                let text =
                    format!("{} requests already wait for the local model", self.options.queue);
                Err(ModelError::new(ErrorClass::RateLimited, text).retry_after(RETRY))
            }
            Err(mpsc::error::TrySendError::Closed(_)) => {
                Err(ModelError::new(ErrorClass::Server, "the local model has stopped"))
            }
        }
    }
}

type Deltas = mpsc::UnboundedReceiver<Result<Delta, ModelError>>;

impl Model for LocalModel {
    fn name(&self) -> &str {
        &self.shared.name
    }

    fn ask(&self, request: Request) -> DeltaStream {
        // The stream keeps the model: it is not unloaded in the middle of an answer.
        let shared = Arc::clone(&self.shared);
        match shared.submit(request) {
            Ok(deltas) => stream::unfold((deltas, shared), |(mut deltas, shared)| async move {
                let delta = deltas.recv().await?;
                Some((delta, (deltas, shared)))
            })
            .boxed(),
            Err(error) => stream::once(async move { Err(error) }).boxed(),
        }
    }
}
