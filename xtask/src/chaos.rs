//! `cargo xtask chaos`: everything at once goes wrong, and nothing that was promised may break.
//!
//! - `place` is the folder, `disk` the small disk that is filled up, `crew` all processes.
//! - `model` is a model that stalls, errors and talks nonsense; `http` what it and the pages speak.
//! - `served`, `sender`, `surfer` and `bench` are the load; `faults` kills it and fills the disk.
//! - `judge` and `memory` say whether it went well, `report` tells it.

mod bench;
mod crew;
mod disk;
mod faults;
mod http;
mod judge;
mod load;
mod memory;
mod model;
mod place;
mod report;
mod sender;
mod served;
mod surfer;

use std::{
    collections::BTreeMap,
    fs,
    path::PathBuf,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};

use self::{
    crew::{Crew, Kind},
    disk::Disk,
    model::Model,
    place::Place,
    sender::{SenderEnd, Sent},
    served::{Served, Started},
};
use crate::{house, process};

/// Let everything go wrong at once and see that nothing is lost
///
/// Two servers (`duo serve`) work under load from `duo send` with a model that stalls, errors and
/// talks nonsense; browsers and benchmarks run beside them. Every process but one server is killed
/// with `kill -9` at random moments, the model is gone for a while, and the disk of the journals is
/// full for a minute. At the end the faults stop, and what was accepted must come to its end:
/// nothing is lost, no deed is done twice, the server that was never killed has not grown, and
/// everything that went wrong was said. Otherwise the exit code is 1 and the folder stays.
///
/// A full disk needs the right to mount one (root); without, that part is left out, and said so.
///
/// `cargo xtask chaos --minutes 2 --seed 7`
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// How long things go wrong
    #[arg(long, default_value_t = 30.0)]
    minutes: f64,
    /// Where chance begins; moments still differ from run to run
    #[arg(long)]
    seed: Option<u64>,
    /// The folder to work in, which is kept; otherwise a temporary one, kept when something is wrong
    #[arg(long)]
    folder: Option<PathBuf>,
    /// The program to try; otherwise it is built, optimised
    #[arg(long)]
    duo: Option<PathBuf>,
}

/// How long things may take to settle once nothing goes wrong any more.
const GRACE: Duration = Duration::from_secs(120);
/// How many findings are printed.
const MOST_FINDINGS: usize = 40;

/// A fault run: what all its threads share.
struct Run {
    place: Place,
    disk: Disk,
    crew: Crew,
    model: Model,
    /// This server is killed.
    frail: Served,
    /// This one never is: it shows what time does to memory.
    steady: Served,
    began: Instant,
    length: Duration,
    over: AtomicBool,
    disk_full: AtomicBool,
    tally: Mutex<Tally>,
}

/// What happened so far.
#[derive(Default)]
struct Tally {
    kills: BTreeMap<Kind, u64>,
    sent: u64,
    accepted: u64,
    refused: u64,
    /// What clients heard while the disk was full.
    full: BTreeMap<String, u64>,
    slowest_send: Duration,
    starts: Vec<Started>,
    /// What the server said when it could not start.
    failed_starts: BTreeMap<String, u64>,
    full_seconds: u64,
    wrong: Vec<String>,
}

impl Run {
    fn is_over(&self) -> bool {
        self.over.load(Ordering::SeqCst) || is_interrupted() || self.began.elapsed() > self.length
    }

    /// Wait so long, but not past the end.
    fn pause(&self, time: Duration) {
        let began = Instant::now();
        while began.elapsed() < time && !self.is_over() {
            thread::sleep(Duration::from_millis(50).min(time));
        }
    }

    fn tally(&self) -> MutexGuard<'_, Tally> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wrong(&self, what: String) {
        eprintln!("WRONG: {what}");
        self.tally().wrong.push(what);
    }

    fn killed(&self, kind: Kind) {
        *self.tally().kills.entry(kind).or_default() += 1;
    }

    fn kills_of(&self, kind: Kind) -> u64 {
        self.tally().kills.get(&kind).copied().unwrap_or_default()
    }

    fn sent(&self, sent: &Sent) {
        let mut tally = self.tally();
        tally.sent += 1;
        tally.accepted += u64::from(sent.task.is_some());
        tally.refused += u64::from(matches!(sent.end, SenderEnd::Refused(_)));
    }

    fn took(&self, time: Duration) {
        let mut tally = self.tally();
        tally.slowest_send = tally.slowest_send.max(time);
    }

    fn disk_is_full(&self) -> bool {
        self.disk_full.load(Ordering::SeqCst)
    }

    fn note_full(&self, why: &str) {
        *self.tally().full.entry(why.to_owned()).or_default() += 1;
    }
}

pub(crate) fn run(args: &Args) -> Result<()> {
    if !(args.minutes > 0.0 && args.minutes <= 24.0 * 60.0) {
        bail!("--minutes must be more than 0 and at most 1440");
    }
    let duo = match &args.duo {
        Some(program) => {
            program.canonicalize().with_context(|| format!("{}", program.display()))?
        }
        None => {
            crate::bench::build()?;
            house::target().join("release/duo")
        }
    };
    process::take_signals();
    let seed = args.seed.unwrap_or_else(|| fastrand::u64(..));
    let place = Place::new(args.folder.as_deref(), duo)?;
    println!("{} minutes of faults in {}, seed {seed}", args.minutes, place.root().display());
    let run = set_up(place, seed, Duration::from_secs_f64(args.minutes * 60.0))?;
    let found = load::carry(&run, seed);
    let root = run.place.root().to_owned();
    let journals = root.join("journals");
    if let Some(signal) = process::signal_taken() {
        run.crew.end_all();
        run.disk.take_away(Some(&journals));
        eprintln!("interrupted; everything was ended, and what there is is in {}", root.display());
        std::process::exit(128 + signal);
    }
    let report = report::Report::of(&run, found);
    run.crew.end_all();
    println!("{report}");
    let is_kept = args.folder.is_some() || !report.is_well();
    run.disk.take_away(is_kept.then_some(journals.as_path()));
    if !is_kept {
        run.place.clear();
    }
    if !report.is_well() {
        bail!("{} things are wrong; what there is is in {}", report.wrong().len(), root.display());
    }
    Ok(())
}

/// Everything that is there before the first fault.
fn set_up(place: Place, seed: u64, length: Duration) -> Result<Run> {
    let disk = Disk::new(place.folder("disk")?)?;
    if !disk.is_small() {
        println!("SKIPPED: the full disk, because none can be mounted here (it takes root)");
    }
    let crew = Crew::default();
    let books = ['a', 'b'].map(|letter| (letter, book(&place, letter)));
    for (_, book) in &books {
        fs::write(book, "").context("beginning the book of deeds")?;
    }
    let (model, address) = Model::start(seed, books.into())?;
    let serve = |letter: char| {
        let journal = disk.path().join(format!("journal-{letter}.db"));
        Served::new(&place, &crew, letter, address, &journal)
            .with_context(|| format!("duo serve ({letter})"))
    };
    let servers = serve('a').and_then(|frail| Ok((frail, serve('b')?)));
    let (frail, steady) = match servers {
        Ok(servers) => servers,
        Err(error) => {
            crew.end_all();
            disk.take_away(None);
            return Err(error);
        }
    };
    Ok(Run {
        place,
        disk,
        crew,
        model,
        frail,
        steady,
        began: Instant::now(),
        length,
        over: AtomicBool::new(false),
        disk_full: AtomicBool::new(false),
        tally: Mutex::default(),
    })
}

/// Whether somebody wants all of it to end now.
fn is_interrupted() -> bool {
    process::signal_taken().is_some()
}

/// The book of deeds of a server, on a disk that is never full.
fn book(place: &Place, letter: char) -> PathBuf {
    place.root().join(format!("deeds-{letter}.txt"))
}
