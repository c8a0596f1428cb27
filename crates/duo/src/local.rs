//! The embedded model: which one, and fetching it when it is first used.

use std::{
    io::{self, IsTerminal, Write},
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use duologue_core::Model;
use duologue_local::{
    Catalogue, LocalModel, LocalOptions, ModelFile, Progress, PullError, PullOptions, cache_folder,
    where_is,
};
use tokio_util::sync::CancellationToken;

use crate::{
    exit::Exit,
    failure::{Done, Failure},
    house::{House, NO_MODEL},
    terminal::{Paint, Style},
};

/// Whether a name means a model that runs in this process.
pub(crate) fn is_local(name: &str) -> bool {
    name == "local" || name.starts_with("local/") || name.starts_with("local:")
}

/// The model of a name: `local`, `local/small` or `local:FILE`. Its file is fetched if need be.
pub(crate) async fn model(house: &House, name: &str) -> Result<Arc<dyn Model>, Failure> {
    if let Some(path) = name.strip_prefix("local:") {
        let model = LocalModel::open(path, LocalOptions::default()).map_err(Failure::usage)?;
        return Ok(Arc::new(model));
    }
    let file = file_of(name.strip_prefix("local/"))?;
    let path = match where_is(&file, &cache_folder()) {
        Some(path) => path,
        None => {
            agree(house, &file)?;
            let fetched = fetch(house.paint, &file, None).await;
            fetched.map_err(|failure| failure.with_advice(NO_MODEL))?
        }
    };
    let name = format!("local/{}", file.name);
    Ok(Arc::new(LocalModel::from_file(name, &path, LocalOptions::default())))
}

/// What somebody who talks to a local model should know.
pub(crate) fn notice(name: &str) -> Option<String> {
    if !is_local(name) || name.starts_with("local:") {
        return None;
    }
    let file = file_of(name.strip_prefix("local/")).ok()?;
    Some(format!(
        "{} runs in this process; it is small, so keep requests simple. For more: --model \
         anthropic/…, openai/…, ollama/…, or a bigger file as local:FILE (docs/models.md)",
        file.title
    ))
}

/// `duo models pull`.
pub(crate) async fn pull(house: &House, name: Option<String>, from: Option<PathBuf>) -> Done {
    let file = file_of(name.as_deref())?;
    if let Some(path) = where_is(&file, &cache_folder()) {
        writeln!(io::stdout(), "{} is here already: {}", file.title, path.display())?;
        return Ok(Exit::Completed);
    }
    let path = fetch(house.paint, &file, from).await?;
    writeln!(io::stdout(), "{}", path.display())?;
    Ok(Exit::Completed)
}

/// `duo models remove`.
pub(crate) fn remove(house: &House, name: &str) -> Done {
    let file = file_of(Some(name))?;
    let cache = cache_folder();
    if where_is(&file, &cache).is_some() && !house.yes && io::stdin().is_terminal() {
        write!(io::stdout(), "Delete {} ({})? [y/N] ", file.title, megabytes(file.bytes))?;
        if !says_yes(false)? {
            return Ok(Exit::Aborted);
        }
    }
    let was_here = where_is(&file, &cache).is_some();
    let freed = duologue_local::remove(&file, &cache)?;
    if was_here || freed > 0 {
        writeln!(io::stdout(), "freed {}", megabytes(freed))?;
    } else {
        writeln!(io::stdout(), "local/{} was not here", file.name)?;
    }
    Ok(Exit::Completed)
}

/// `duo models where`.
pub(crate) fn tell_where() -> Done {
    let cache = cache_folder();
    let mut out = io::stdout().lock();
    writeln!(out, "{}", cache.display())?;
    for (file, path) in Catalogue::default().list(&cache) {
        let state = path.map_or("not here".to_owned(), |path| path.display().to_string());
        writeln!(out, "local/{:<9} {state}", file.name)?;
    }
    Ok(Exit::Completed)
}

/// The local models, for `duo models`.
pub(crate) fn list(out: &mut impl Write, paint: Paint) -> io::Result<()> {
    for (file, path) in Catalogue::default().list(&cache_folder()) {
        let (style, state) = match path {
            Some(_) => (Style::Good, "here".to_owned()),
            None => (Style::Dim, format!("{} to fetch", megabytes(file.bytes))),
        };
        let name = paint.text(Style::Bold, format!("{:<18}", format!("local/{}", file.name)));
        let about = paint.text(Style::Dim, format!("{} · {}", file.title, file.license));
        writeln!(out, "{name} {}  {about}", paint.text(style, state))?;
    }
    writeln!(out, "local:FILE         a GGUF file of your own (llama, qwen2, qwen3)")
}

/// A model of the catalogue by its name, or the one that fits this machine.
fn file_of(name: Option<&str>) -> Result<ModelFile, Failure> {
    let catalogue = Catalogue::default();
    let found = match name {
        None => catalogue.fitting(&cache_folder()),
        Some(name) => catalogue.get(name),
    };
    found.cloned().ok_or_else(|| {
        let names: Vec<&str> = catalogue.0.iter().map(|file| file.name.as_str()).collect();
        let name = name.unwrap_or_default();
        Failure::usage(format!("there is no local model {name:?}; there are {}", names.join(", ")))
    })
}

/// Say what is about to be fetched, and ask where somebody can be asked.
fn agree(house: &House, file: &ModelFile) -> Result<(), Failure> {
    let size = megabytes(file.bytes);
    let place = cache_folder();
    let mut err = io::stderr();
    writeln!(
        err,
        "{} is not here yet: {size} ({}), kept in {}",
        file.title,
        file.license,
        place.display()
    )?;
    if house.yes || !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Ok(());
    }
    write!(err, "Fetch it? [Y/n] ")?;
    err.flush()?;
    if says_yes(true)? {
        return Ok(());
    }
    Err(Failure::usage("without it there is no local model; `duo models` shows other ways"))
}

fn says_yes(by_default: bool) -> io::Result<bool> {
    io::stdout().flush()?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    Ok(match answer.trim().to_lowercase().as_str() {
        "" => by_default,
        answer => answer.starts_with('y'),
    })
}

/// Fetch a file with progress on standard error. Ctrl-C stops it; it goes on next time.
async fn fetch(paint: Paint, file: &ModelFile, from: Option<PathBuf>) -> Result<PathBuf, Failure> {
    let cancel = CancellationToken::new();
    let options = PullOptions { from, cancel: cancel.clone(), ..PullOptions::default() };
    let meter = Meter::new(paint);
    let listen = |progress| meter.show(&progress);
    let pulling = duologue_local::pull(file, &options, &listen);
    tokio::pin!(pulling);
    let pulled = loop {
        tokio::select! {
            pulled = &mut pulling => break pulled,
            _ = tokio::signal::ctrl_c() => cancel.cancel(),
        }
    };
    meter.end();
    pulled.map_err(|error| match error {
        PullError::Cancelled => Failure::usage(error),
        other => Failure::new(other),
    })
}

/// Shows how a download goes: one line that changes on a terminal, a line now and then elsewhere.
struct Meter {
    paint: Paint,
    on_terminal: bool,
    /// The last tenth that was told where nothing can be overwritten.
    told: Mutex<Option<u64>>,
}

impl Meter {
    fn new(paint: Paint) -> Self {
        Self { paint, on_terminal: io::stderr().is_terminal(), told: Mutex::new(None) }
    }

    fn show(&self, progress: &Progress) {
        let text = match progress {
            Progress::Waiting => "another process is fetching it; waiting".to_owned(),
            Progress::Trying { source } => format!("asking {source}"),
            Progress::Fetching { done, total, per_second } => {
                if !self.on_terminal && !self.is_due(done * 10 / total.max(&1)) {
                    return;
                }
                fetching(*done, *total, *per_second)
            }
            Progress::Verifying => "checking its hash".to_owned(),
            Progress::Failed { source, reason } => {
                self.line(&self.paint.text(Style::Warning, format!("{source}: {reason}")));
                return;
            }
        };
        if self.on_terminal {
            let _ = write!(io::stderr(), "\r\x1b[K  {text}");
            let _ = io::stderr().flush();
        } else {
            self.line(&text);
        }
    }

    fn is_due(&self, tenth: u64) -> bool {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        told.replace(tenth) != Some(tenth)
    }

    /// A line that stays. Standard error may be closed; then nobody wants to know.
    fn line(&self, text: &str) {
        let clear = if self.on_terminal { "\r\x1b[K" } else { "" };
        let _ = writeln!(io::stderr(), "{clear}  {text}");
    }

    fn end(&self) {
        if self.on_terminal {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

fn fetching(done: u64, total: u64, per_second: f64) -> String {
    let percent = done * 100 / total.max(1);
    let mut text = format!("{percent:>3}% of {}", megabytes(total));
    if per_second > 1.0 {
        let left = (total.saturating_sub(done)) as f64 / per_second;
        text += &format!(", {:.1} MB/s, {left:.0} s left", per_second / 1e6);
    }
    text
}

fn megabytes(bytes: u64) -> String {
    if bytes >= 1_000_000_000 {
        format!("{:.1} GB", bytes as f64 / 1e9)
    } else {
        format!("{} MB", bytes / 1_000_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_local_models_are_known_from_others() {
        for name in ["local", "local/small", "local:/models/x.gguf"] {
            assert!(is_local(name), "{name}");
        }
        for name in ["localhost/x", "ollama/local", "demo"] {
            assert!(!is_local(name), "{name}");
        }
    }

    #[test]
    fn progress_says_how_much_how_fast_and_how_long() {
        assert_eq!(
            fetching(500_000_000, 1_000_000_000, 50_000_000.0),
            " 50% of 1.0 GB, 50.0 MB/s, 10 s left"
        );
        assert_eq!(fetching(0, 491_400_064, 0.0), "  0% of 491 MB");
    }

    #[test]
    fn an_unknown_local_model_is_told_with_those_there_are() {
        let error = file_of(Some("huge")).unwrap_err().to_string();
        assert_eq!(error, "there is no local model \"huge\"; there are default, small");
    }
}
