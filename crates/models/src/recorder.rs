//! A model over a model that writes down every exchange.

use std::{
    collections::VecDeque,
    fs::{File, OpenOptions},
    io::Write as _,
    path::{Path, PathBuf},
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll},
};

use duologue_core::{CallId, Delta, DeltaStream, ErrorClass, Model, ModelError, Price, Request};
use futures::{Stream, StreamExt};

use crate::cassette::{Exchange, RecordedError, canonical};

/// Records another model into a cassette, from which a [`Replay`](crate::Replay) answers.
///
/// Each exchange is one line, written whole when the answer is whole: a process that dies leaves no
/// half exchange behind. Answers that were cancelled are not recorded. Keys are not part of a
/// request, so they are never in a cassette; what people and tools said is.
pub struct Recorder {
    model: Arc<dyn Model>,
    tape: Arc<Tape>,
}

/// The file behind a recorder.
struct Tape {
    path: PathBuf,
    file: Mutex<File>,
}

impl Recorder {
    /// Record a model into a file, after what is already there.
    pub fn new(model: Arc<dyn Model>, path: impl AsRef<Path>) -> std::io::Result<Self> {
        let path = path.as_ref().to_owned();
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            std::fs::create_dir_all(folder)?;
        }
        let file = OpenOptions::new().create(true).append(true).open(&path)?;
        Ok(Self { model, tape: Arc::new(Tape { path, file: Mutex::new(file) }) })
    }
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Recorder({} into {})", self.model.name(), self.tape.path.display())
    }
}

impl Model for Recorder {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn price(&self) -> Option<Price> {
        self.model.price()
    }

    fn ask(&self, request: Request) -> DeltaStream {
        let exchange = Exchange {
            model: self.model.name().to_owned(),
            request: canonical(&request),
            deltas: Vec::new(),
            error: None,
        };
        Box::pin(Recording {
            answer: Some(self.model.ask(request)),
            exchange,
            held: VecDeque::new(),
            tape: Arc::clone(&self.tape),
        })
    }
}

/// An answer on its way through the recorder.
struct Recording {
    /// Gone once it has ended.
    answer: Option<DeltaStream>,
    exchange: Exchange,
    /// The end of the answer, held back until it is on the tape: whoever has seen an answer whole
    /// can rely on its being recorded.
    held: VecDeque<Result<Delta, ModelError>>,
    tape: Arc<Tape>,
}

impl Stream for Recording {
    type Item = Result<Delta, ModelError>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        loop {
            let Some(answer) = &mut this.answer else {
                return Poll::Ready(this.held.pop_front());
            };
            match std::task::ready!(answer.poll_next_unpin(cx)) {
                Some(Ok(mut delta)) => {
                    name_call(&mut delta);
                    this.exchange.deltas.push((&delta).into());
                    if matches!(delta, Delta::Stop(_)) || !this.held.is_empty() {
                        this.held.push_back(Ok(delta));
                        continue;
                    }
                    return Poll::Ready(Some(Ok(delta)));
                }
                Some(Err(error)) => {
                    this.exchange.error = Some(RecordedError::from(&error));
                    this.held.push_back(Err(error));
                    this.end();
                }
                None => this.end(),
            }
        }
    }
}

/// A call that its model did not name gets its name here: later requests speak of it, and a replay
/// must make the same call.
fn name_call(delta: &mut Delta) {
    if let Delta::CallStart { id: id @ None, .. } = delta {
        *id = Some(CallId::random());
    }
}

impl Recording {
    fn end(&mut self) {
        self.answer = None;
        if let Err(error) = self.tape.write(&self.exchange) {
            self.held.clear();
            self.held.push_back(Err(error));
        }
    }
}

impl Tape {
    fn write(&self, exchange: &Exchange) -> Result<(), ModelError> {
        let failed = |why: String| {
            let text = format!("{}: the exchange cannot be recorded: {why}", self.path.display());
            ModelError::new(ErrorClass::BadRequest, text)
        };
        let mut line = serde_json::to_vec(exchange).map_err(|error| failed(error.to_string()))?;
        line.push(b'\n');
        let mut file = self
            .file
            .lock()
            .map_err(|_| failed("another thread failed while it wrote".to_owned()))?;
        // One call for the whole line: the file is in append mode, so lines never mix.
        file.write_all(&line).map_err(|error| failed(error.to_string()))
    }
}
