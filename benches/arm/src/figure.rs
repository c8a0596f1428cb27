//! Figures with a bar: what one run of every benchmark is summed up in.

use std::{fs::OpenOptions, io::Write as _};

/// The variable that names the file in which a run of several benchmarks collects its figures.
pub const FIGURES: &str = "DUOLOGUE_BENCH_FIGURES";

/// What a figure must be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bar {
    /// At most this.
    AtMost(f64),
    /// At least this.
    AtLeast(f64),
}

/// Note a figure, if anybody collects them: a line of `what`, value, sense of the bar and bar, with
/// tabs between.
#[allow(clippy::print_stderr, reason = "a benchmark talks to a person at a terminal")]
pub fn figure(what: &str, value: f64, bar: Bar) {
    let Some(path) = std::env::var_os(FIGURES) else { return };
    let (sense, bar) = match bar {
        Bar::AtMost(most) => ("<=", most),
        Bar::AtLeast(least) => (">=", least),
    };
    let noted = OpenOptions::new()
        .create(true)
        .append(true)
        .open(&path)
        .and_then(|mut file| writeln!(file, "{what}\t{value:.2}\t{sense}\t{bar}"));
    if let Err(error) = noted {
        eprintln!("the figure \"{what}\" is not noted: {error}");
    }
}
