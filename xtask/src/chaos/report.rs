//! What a fault run tells at its end.

use std::{fmt, fs, time::Duration};

use serde_json::Value;

use super::{
    MOST_FINDINGS, Run, Tally, book,
    faults::is_about_a_full_disk,
    judge::{Case, Verdict},
    load::{Found, Side},
    memory::Medians,
    model::Given,
    sender::end_of,
    served::Served,
};

/// The shortest run in which a full disk must be felt: a journal has some room of its own.
const FELT: Duration = Duration::from_secs(30);

/// How many journals of each server are gone through again.
const REPLAYED: usize = 20;

/// The whole of it.
pub(super) struct Report {
    tally: Tally,
    given: Given,
    frail: Verdict,
    steady: Verdict,
    memory: Option<Medians>,
    benchmarks: usize,
    visits: usize,
    settled: Duration,
    replayed: usize,
    /// How often the servers said that their journal cannot be written.
    log_lines: usize,
    disk_is_small: bool,
    wrong: Vec<String>,
}

impl Report {
    /// Judge what was found.
    pub(super) fn of(run: &Run, found: Found) -> Self {
        let given = run.model.given();
        let judge = |letter: char, side: &Side| {
            let deeds = fs::read_to_string(book(&run.place, letter)).unwrap_or_default();
            Case { sent: &side.sent, tasks: &side.tasks, deeds: &deeds, faults: &given.by_job }
                .verdict()
        };
        let (frail, steady) = (judge('a', &found.frail), judge('b', &found.steady));
        let replayed =
            replay(run, &run.frail, &found.frail) + replay(run, &run.steady, &found.steady);
        let memory = found.memory.medians();
        let logs = [run.frail.log(), run.steady.log()].concat();
        let mut report = Self {
            tally: std::mem::take(&mut run.tally()),
            given,
            frail,
            steady,
            memory,
            benchmarks: found.benchmarks,
            visits: found.visits,
            settled: found.settled,
            replayed,
            log_lines: logs.lines().filter(|line| is_about_a_full_disk(line)).count(),
            disk_is_small: run.disk.is_small(),
            wrong: Vec::new(),
        };
        report.find_wrong(run, &logs);
        report
    }

    /// Everything that is wrong, the judges' findings too.
    fn find_wrong(&mut self, run: &Run, logs: &str) {
        let mut wrong = std::mem::take(&mut self.tally.wrong);
        for verdict in [&mut self.frail, &mut self.steady] {
            wrong.append(&mut verdict.wrong);
        }
        match self.memory {
            Some(medians) if !medians.are_flat() => wrong.push(format!(
                "the server grew from {} to {} MB",
                medians.second / 1024,
                medians.last / 1024
            )),
            _ => {}
        }
        let resumed: u64 = self.tally.starts.iter().map(|started| started.resumed).sum();
        if resumed > 0 && !run.frail.log().contains("in the middle") {
            wrong.push("no server said that it took up tasks of the one before".into());
        }
        if logs.contains("panicked") {
            wrong.push("a server panicked; its log says where".into());
        }
        let full = Duration::from_secs(self.tally.full_seconds);
        if full >= FELT && self.log_lines == 0 {
            wrong.push("no server said that its disk is full".into());
        }
        for served in [&run.frail, &run.steady] {
            if !served.stop() {
                wrong.push(format!("server {} does not stop in order", served.letter));
            }
        }
        self.wrong = wrong;
    }

    pub(super) fn is_well(&self) -> bool {
        self.wrong.is_empty()
    }

    pub(super) fn wrong(&self) -> &[String] {
        &self.wrong
    }
}

/// Go through the journals of some tasks again, those first that were interrupted; how many replay.
fn replay(run: &Run, served: &Served, side: &Side) -> usize {
    let is_interrupted = |task: &&Value| end_of(task).1.starts_with("Perhaps");
    let (mut tasks, rest): (Vec<&Value>, Vec<&Value>) = side.tasks.iter().partition(is_interrupted);
    tasks.truncate(REPLAYED / 2);
    tasks.extend(rest.iter().take(REPLAYED - tasks.len()));
    let ids = tasks.iter().filter_map(|task| task.get("id")?.as_str());
    ids.filter(|id| match served.replay(&run.place, id) {
        Ok(()) => true,
        Err(error) => {
            run.wrong(format!("the journal of task {id} does not replay: {error:#}"));
            false
        }
    })
    .count()
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tally = &self.tally;
        writeln!(f, "\nkills:")?;
        for (kind, count) in &tally.kills {
            writeln!(f, "  {count:>6}  {kind}")?;
        }
        writeln!(f, "faults of the model, in {} answers:", self.given.answers)?;
        for (fault, count) in &self.given.faults {
            writeln!(f, "  {count:>6}  {fault:?}")?;
        }
        writeln!(
            f,
            "{} jobs sent, {} accepted, {} refused with a reason; the slowest took {} s",
            tally.sent,
            tally.accepted,
            tally.refused,
            tally.slowest_send.as_secs()
        )?;
        for (name, verdict) in
            [("the server that is killed", &self.frail), ("the steady one", &self.steady)]
        {
            writeln!(
                f,
                "{name}: {} accepted; of all its tasks {} done, {} perhaps (interrupted), {} only \
                 talked about, {} failed with a reason, {} given up unwritten; {} deeds in the book",
                verdict.accepted,
                verdict.done,
                verdict.perhaps,
                verdict.blather,
                verdict.failed,
                verdict.given_up,
                verdict.deeds
            )?;
        }
        let resumed: u64 = tally.starts.iter().map(|started| started.resumed).sum();
        let slowest = tally.starts.iter().map(|started| started.took).max().unwrap_or_default();
        writeln!(
            f,
            "{} restarts took up {resumed} tasks in the middle; the slowest took {} ms",
            tally.starts.len(),
            slowest.as_millis()
        )?;
        if self.disk_is_small {
            let refused: u64 = tally.full.values().sum();
            writeln!(
                f,
                "the disk was full for {} s: {refused} sends were refused, {} lines in the \
                 servers' logs, {} starts that failed",
                tally.full_seconds,
                self.log_lines,
                tally.failed_starts.values().sum::<u64>()
            )?;
            for (why, count) in tally.full.iter().chain(&tally.failed_starts).take(8) {
                writeln!(f, "  {count:>6}  {}", why.lines().last().unwrap_or_default())?;
            }
        } else {
            writeln!(f, "SKIPPED: the full disk; none could be mounted")?;
        }
        writeln!(
            f,
            "{} benchmarks finished, {} pages read; all settled in {} s; {} journals replay",
            self.benchmarks,
            self.visits,
            self.settled.as_secs(),
            self.replayed
        )?;
        match self.memory {
            Some(medians) => writeln!(
                f,
                "memory of the steady server: {} MB in the second quarter, {} MB in the last",
                medians.second / 1024,
                medians.last / 1024
            )?,
            None => writeln!(f, "too short to say something of memory")?,
        }
        if self.is_well() {
            return write!(f, "nothing is wrong");
        }
        writeln!(f, "WRONG:")?;
        for what in self.wrong.iter().take(MOST_FINDINGS) {
            writeln!(f, "  {what}")?;
        }
        write!(f, "{} in all", self.wrong.len())
    }
}
