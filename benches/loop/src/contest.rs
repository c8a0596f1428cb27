//! Runs every measurement of a plan, arms in turns.

use std::time::Instant;

use anyhow::{Result, ensure};
use bench_arm::{Report, conversation::STEPS, raise_open_files};

use crate::{
    plan::{Phase, Plan},
    processes::{Contender, Server},
    table,
};

/// Files that an arm and the server need besides one socket per agent.
const SPARE_FILES: u64 = 100;

/// What was measured of one arm.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Score {
    /// Its name.
    pub(crate) name: String,
    /// Every measurement, in the order in which they were taken.
    pub(crate) reports: Vec<(Phase, Report)>,
    /// Bytes of a request's body, on average.
    pub(crate) request_bytes: f64,
}

/// Measure all arms and print the table.
#[allow(clippy::print_stdout, reason = "the table is the product")]
pub(crate) fn hold(plan: &Plan) -> Result<()> {
    let started = Instant::now();
    let contenders = Contender::all(plan)?;
    let open_files = raise_open_files()?;
    let mut notes = Vec::new();
    let mut rounds = plan.rounds();
    rounds.retain(|phase| match phase {
        Phase::Crowd(agents) if u64::from(*agents) + SPARE_FILES > open_files => {
            let note = format!(
                "{agents} at once: not measured, because a process may open {open_files} files \
                 here and needs {}; raise the hard limit (ulimit -Hn)",
                u64::from(*agents) + SPARE_FILES
            );
            if !notes.contains(&note) {
                notes.push(note);
            }
            false
        }
        _ => true,
    });

    let mut scores: Vec<Score> = contenders.iter().map(Score::new).collect();
    for (number, phase) in rounds.iter().enumerate() {
        let round = format!("{}/{} {}", number + 1, rounds.len(), name(*phase));
        for (contender, score) in contenders.iter().zip(&mut scores) {
            let report = measure(plan, *phase, contender, score)?;
            say(*phase, &round, &contender.name, &report);
            score.reports.push((*phase, report));
        }
    }
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    notes.push(format!(
        "{} conversations of {STEPS} steps, {} at once, {} worker thread(s) per arm, {cores} cores, \
         {} repeats, {:.0} s",
        plan.agents,
        plan.at_once,
        plan.threads,
        plan.repeats,
        started.elapsed().as_secs_f64()
    ));
    println!("{}", table::render(&scores, &plan.crowds, &notes));
    table::note_figures(&scores, &plan.crowds);
    Ok(())
}

impl Score {
    fn new(contender: &Contender) -> Self {
        Self { name: contender.name.clone(), reports: Vec::new(), request_bytes: 0.0 }
    }
}

fn measure(plan: &Plan, phase: Phase, contender: &Contender, score: &mut Score) -> Result<Report> {
    let held = match phase {
        Phase::Crowd(agents) => agents as usize,
        Phase::Alone | Phase::Busy => 0,
    };
    let server = Server::start(held)?;
    let orders = plan.orders(phase, server.url());
    let report = contender.measure(&orders)?;
    let served = server.stop()?;

    // Fewer answers than steps would mean that the arm skipped work and only looks fast.
    let due = ((orders.agents + orders.warm_up) * STEPS) as u64;
    ensure!(
        served.answers == due && served.refused == 0,
        "arm {}: the server gave {} answers and refused {} requests; {due} answers were due",
        contender.name,
        served.answers,
        served.refused
    );
    score.request_bytes = served.request_bytes as f64 / served.answers as f64;
    Ok(report)
}

fn name(phase: Phase) -> String {
    match phase {
        Phase::Alone => "alone".into(),
        Phase::Busy => "busy".into(),
        Phase::Crowd(agents) => format!("{agents} at once"),
    }
}

/// Say what came out, as far as the phase is about it.
#[allow(clippy::print_stderr, reason = "progress, for the eye")]
fn say(phase: Phase, round: &str, arm: &str, report: &Report) {
    let result = match phase {
        Phase::Alone => format!("{:>7.0} µs to the first event", report.first_event_us),
        Phase::Busy => format!("{:>7.0} µs CPU per step", report.cpu_us_per_step),
        Phase::Crowd(_) => format!("{:>7.1} KB per agent", report.kb_per_agent),
    };
    eprintln!("{round:>20}  {arm:<8} {result}  ({:.1} s)", report.seconds);
}
