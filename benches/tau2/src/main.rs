//! What judging a recorded simulation costs: CPU time for each, databases loaded once; and what a
//! thousand environments of one domain take in memory.

#![allow(clippy::print_stdout, reason = "a program that talks to a person at a terminal")]

use std::{collections::BTreeMap, fs, path::PathBuf, sync::Arc, time::Duration};

use anyhow::{Context, Result};
use bench_arm::Usage;
use clap::Parser;
use duologue_bench::{
    DataDir, Domain, Mode, Replay, Results, TaskSet, domains,
    evaluate::{EvaluationType, Evaluator, expected},
};

/// Judges every recorded simulation of a folder and says what it cost
#[derive(Parser)]
struct Options {
    /// The data, in the reference's layout
    #[arg(long, env = "TAU2_DATA_DIR")]
    data: PathBuf,
    /// The folder with files of results
    #[arg(long, env = "TAU2_RESULTS_DIR")]
    results: PathBuf,
    /// How many environments are held at once
    #[arg(long, default_value_t = 1000)]
    crowd: usize,
}

/// What one domain cost.
#[derive(Default)]
struct Cost {
    simulations: u32,
    loading: Duration,
    reading: Duration,
    judging: Duration,
    /// Simulations whose trajectory could not be replayed.
    failed: u32,
}

fn main() -> Result<()> {
    let options = Options::parse();
    let data = DataDir::new(&options.data);
    let mut loaded: BTreeMap<String, (Arc<Domain>, TaskSet)> = BTreeMap::new();
    let mut costs: BTreeMap<String, Cost> = BTreeMap::new();
    let mut files: Vec<PathBuf> = fs::read_dir(&options.results)
        .with_context(|| format!("reading {}", options.results.display()))?
        .filter_map(|file| file.ok().map(|file| file.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .collect();
    files.sort();
    for file in &files {
        let before = cpu()?;
        let results = Results::load(file)?;
        let reading = cpu()? - before;
        let Some(name) = results.domain().map(str::to_owned) else { continue };
        let cost = costs.entry(name.clone()).or_default();
        cost.reading += reading;
        if !loaded.contains_key(&name) {
            let before = cpu()?;
            let entry = domains::find(&name)?;
            let domain = Arc::new((entry.load)(&data, None)?);
            loaded.insert(name.clone(), (domain, (entry.tasks)(&data)?));
            cost.loading += cpu()? - before;
        }
        let Some((domain, tasks)) = loaded.get(&name) else { continue };
        judge(&results, domain, tasks, cost)?;
    }
    println!(
        "{:<20} {:>11} {:>12} {:>14} {:>14}",
        "domain", "simulations", "load (ms)", "read (ms each)", "judge (ms each)"
    );
    for (name, cost) in &costs {
        let each =
            |time: Duration| time.as_secs_f64() * 1000.0 / f64::from(cost.simulations.max(1));
        println!(
            "{name:<20} {:>11} {:>12.0} {:>14.3} {:>14.3}{}",
            cost.simulations,
            cost.loading.as_secs_f64() * 1000.0,
            each(cost.reading),
            each(cost.judging),
            if cost.failed > 0 {
                format!("  ({} not replayable)", cost.failed)
            } else {
                String::new()
            }
        );
    }
    println!();
    println!("{:<20} {:>14} {:>18}", "domain", "environments", "memory (MB, added)");
    for (name, (domain, tasks)) in &loaded {
        let before = resident()?;
        let mut held = Vec::with_capacity(options.crowd);
        for task in tasks.tasks.iter().cycle().take(options.crowd) {
            held.push(expected(domain, task, Replay::Strict)?);
        }
        let added = resident()?.saturating_sub(before);
        println!("{name:<20} {:>14} {:>18.1}", held.len(), mega(added));
    }
    println!("peak memory: {:.0} MB", mega(Usage::now()?.peak_bytes));
    Ok(())
}

fn judge(results: &Results, domain: &Arc<Domain>, tasks: &TaskSet, cost: &mut Cost) -> Result<()> {
    let solo = results.info.agent_info.implementation.contains("solo");
    let mode = if solo { Mode::Solo } else { Mode::Dialogue };
    let evaluator = Evaluator { domain, mode, kind: EvaluationType::All, replay: Replay::Lenient };
    let before = cpu()?;
    for simulation in &results.simulations {
        let task = results.task(&simulation.task_id).or_else(|| tasks.task(&simulation.task_id));
        let Some(task) = task else { continue };
        match evaluator.without_judge(simulation, task) {
            Ok(judgement) => drop(evaluator.complete(judgement, task, None)),
            Err(_) => cost.failed += 1,
        }
        cost.simulations += 1;
    }
    cost.judging += cpu()? - before;
    Ok(())
}

fn cpu() -> Result<Duration> {
    Ok(Usage::now()?.cpu)
}

/// What the process holds in memory now, in bytes.
fn resident() -> Result<u64> {
    let statm = fs::read_to_string("/proc/self/statm").context("reading /proc/self/statm")?;
    let pages: u64 = statm.split_whitespace().nth(1).unwrap_or("0").parse()?;
    Ok(pages * 4096)
}

#[allow(clippy::cast_precision_loss)]
fn mega(bytes: u64) -> f64 {
    bytes as f64 / 1_048_576.0
}
