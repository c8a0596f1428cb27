//! A model that answers from a recording, and fails loudly where the recording has no answer.

mod journal;

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use duologue_core::{Delta, DeltaStream, Entry, ErrorClass, Model, ModelError, Request, RunId};
use futures::{StreamExt, stream};
use serde_json::Value;
use similar::TextDiff;

use self::journal::JournalAnswers;
use crate::cassette::{Exchange, canonical, readable, sorted};

/// How many lines of a difference are shown.
const MAX_DIFF_LINES: usize = 60;

/// Answers from a cassette or from a journal.
///
/// A request that the recording does not have is an error of class
/// [`ReplayMiss`](ErrorClass::ReplayMiss), which is never retried and says what is different.
pub struct Replay {
    name: String,
    source: Source,
}

enum Source {
    Cassette(Cassette),
    Journal(JournalAnswers),
}

/// Why a cassette cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CassetteError {
    /// The file cannot be read.
    #[error("{}: {error}", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// A line is not an exchange.
    #[error("{}:{line}: not a recorded exchange: {problem}", .path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong.
        problem: String,
    },
}

impl Replay {
    /// Answer from what a [`Recorder`](crate::Recorder) wrote. Requests are matched by content,
    /// whatever their ids; equal requests are answered in the order of the recording.
    pub fn from_cassette(path: impl AsRef<Path>) -> Result<Self, CassetteError> {
        let path = path.as_ref();
        let text = std::fs::read_to_string(path)
            .map_err(|error| CassetteError::Unreadable { path: path.to_owned(), error })?;
        let mut exchanges: Vec<Exchange> = Vec::new();
        for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            exchanges.push(serde_json::from_str(line).map_err(|error| {
                CassetteError::Malformed {
                    path: path.to_owned(),
                    line: at + 1,
                    problem: error.to_string(),
                }
            })?);
        }
        let name =
            exchanges.first().map_or_else(|| "empty".to_owned(), |first| first.model.clone());
        Ok(Self {
            name: format!("replay/{name}"),
            source: Source::Cassette(Cassette::new(path.display().to_string(), exchanges)),
        })
    }

    /// Answer what one run of a journal was answered, in its order. What entered the conversation
    /// since the last answer must be what the journal says.
    ///
    /// An answer that was cut off in the middle stops with the reason `cut off`, because nobody is
    /// there to cut it off again.
    pub fn from_journal(entries: &[Arc<Entry>], run: RunId) -> Self {
        let answers = JournalAnswers::of(entries, run);
        Self { name: format!("replay/{}", answers.model()), source: Source::Journal(answers) }
    }
}

impl std::fmt::Debug for Replay {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Replay({})", self.name)
    }
}

impl Model for Replay {
    fn name(&self) -> &str {
        &self.name
    }

    fn ask(&self, request: Request) -> DeltaStream {
        let answer = match &self.source {
            Source::Cassette(cassette) => cassette.answer(&request),
            Source::Journal(answers) => answers.answer(&request),
        };
        match answer {
            Ok(deltas) => stream::iter(deltas).boxed(),
            Err(miss) => stream::iter([Err(miss)]).boxed(),
        }
    }
}

type Answer = Vec<Result<Delta, ModelError>>;

struct Cassette {
    origin: String,
    exchanges: Vec<Exchange>,
    /// Where the answers to each request are, and how many of them were given.
    places: Mutex<HashMap<String, Places>>,
}

struct Places {
    all: Vec<usize>,
    given: usize,
}

impl Cassette {
    fn new(origin: String, exchanges: Vec<Exchange>) -> Self {
        let mut places: HashMap<String, Places> = HashMap::new();
        for (at, exchange) in exchanges.iter().enumerate() {
            let key = sorted(exchange.request.clone()).to_string();
            let entry = places.entry(key).or_insert_with(|| Places { all: Vec::new(), given: 0 });
            entry.all.push(at);
        }
        Self { origin, exchanges, places: Mutex::new(places) }
    }

    fn answer(&self, request: &Request) -> Result<Answer, ModelError> {
        let asked = canonical(request);
        let mut places = self
            .places
            .lock()
            .map_err(|_| miss(format!("{}: another thread failed", self.origin)))?;
        let Some(found) = places.get_mut(&asked.to_string()) else {
            return Err(miss(self.no_such_request(&asked)));
        };
        let Some(exchange) = found.all.get(found.given).and_then(|at| self.exchanges.get(*at))
        else {
            return Err(miss(format!(
                "{}: this request was recorded {} times and is asked once more",
                self.origin,
                found.all.len()
            )));
        };
        found.given += 1;
        let mut answer: Answer =
            exchange.deltas.iter().map(|delta| Ok(delta.clone().into())).collect();
        answer.extend(exchange.error.clone().map(|error| Err(error.into())));
        Ok(answer)
    }

    fn no_such_request(&self, asked: &Value) -> String {
        let count = self.exchanges.len();
        let asked = readable(asked);
        let recorded: Vec<String> =
            self.exchanges.iter().map(|exchange| readable(&exchange.request)).collect();
        let closest = recorded
            .iter()
            .enumerate()
            .max_by_key(|(at, text)| (common_lines(text, &asked), std::cmp::Reverse(*at)));
        match closest {
            None => format!("{}: nothing is recorded; asked was\n{asked}", self.origin),
            Some((at, closest)) => format!(
                "{}: none of the {count} recorded exchanges has this request; the closest is number {}:\n{}",
                self.origin,
                at + 1,
                difference(closest, &asked)
            ),
        }
    }
}

fn miss(text: String) -> ModelError {
    ModelError::new(ErrorClass::ReplayMiss, text)
}

/// How many lines two texts share, wherever they stand.
fn common_lines(a: &str, b: &str) -> usize {
    let mut lines: HashMap<&str, usize> = HashMap::new();
    for line in a.lines() {
        *lines.entry(line).or_default() += 1;
    }
    b.lines()
        .filter(|line| {
            lines.get_mut(line).is_some_and(|left| {
                let found = *left > 0;
                *left = left.saturating_sub(1);
                found
            })
        })
        .count()
}

/// The difference between what was recorded and what was asked, in lines.
fn difference(recorded: &str, asked: &str) -> String {
    let diff = TextDiff::from_lines(recorded, asked);
    let unified = diff.unified_diff().context_radius(2).header("recorded", "asked").to_string();
    let total = unified.lines().count();
    let mut text: Vec<&str> = unified.lines().take(MAX_DIFF_LINES).collect();
    let more = format!("… {} more lines", total.saturating_sub(MAX_DIFF_LINES));
    if total > MAX_DIFF_LINES {
        text.push(&more);
    }
    text.join("\n")
}
