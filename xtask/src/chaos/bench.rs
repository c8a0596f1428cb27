//! `duo bench run`, killed and gone on with: all results, and none twice.

use std::{collections::BTreeSet, fs, path::Path, process::Stdio, time::Duration};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::{
    Run,
    crew::{Kind, was_killed},
    is_interrupted,
};

/// How many conversations a run has.
const TRIALS: usize = 20;
/// How long a run may take between two kills.
const LONGEST: Duration = Duration::from_secs(180);

const AGENT: &str = "
turns:
  - text: (the greeting)
  - calls: [{ id: find, name: find_customer, arguments: { phone: 555-0101 } }]
    delay_ms: 100
  - text: A tune-up on Monday is 50. Shall I book it?
    delay_ms: 100
  - calls: [{ id: book, name: book_repair, arguments: { bike_id: b1, kind: tune_up, day: 2026-05-18 } }]
    delay_ms: 100
  - text: It is booked.
    delay_ms: 100
";

const USER: &str = r####"
turns:
  - text: I want a tune-up for my green bike on Monday, 555-0101.
    delay_ms: 100
  - text: Yes, please.
    delay_ms: 100
  - text: "Thanks. ###STOP###"
    delay_ms: 100
"####;

/// Run benchmarks until the fault run is over; how many were finished.
pub(super) fn work(run: &Run) -> usize {
    let mut finished = 0;
    while !run.is_over() {
        match one(run, finished) {
            Ok(()) => finished += 1,
            Err(error) => {
                run.wrong(format!("duo bench run: {error:#}"));
                run.pause(Duration::from_secs(5));
            }
        }
        run.pause(Duration::from_secs(2));
    }
    finished
}

/// One benchmark, begun again as often as it is killed.
fn one(run: &Run, number: usize) -> Result<()> {
    let folder = run.place.folder("bench")?;
    fs::write(folder.join("agent.yaml"), AGENT)?;
    fs::write(folder.join("user.yaml"), USER)?;
    let (results, trials) = (format!("results-{number}.json"), TRIALS.to_string());
    let args = [
        "bench",
        "run",
        "--agent",
        "llm_agent",
        "--agent-llm",
        "script:agent.yaml",
        "--user-llm",
        "script:user.yaml",
        "--task-ids",
        "book_tune_up",
        "--num-trials",
        &trials,
        "--max-concurrency",
        "2",
        "--save-to",
        &results,
    ];
    loop {
        let err = folder.join("bench.err");
        let mut command = run.place.duo(&folder, &args);
        command.stdout(Stdio::null()).stderr(fs::File::create(&err)?);
        let process = run.crew.start(Kind::Bench, &mut command).context("starting it")?;
        let Some(status) = process.wait(LONGEST) else {
            process.kill();
            anyhow::bail!("it hangs");
        };
        if is_interrupted() {
            return Ok(());
        }
        if was_killed(status) {
            continue;
        }
        let said = fs::read_to_string(&err)?;
        ensure!(status.success(), "it ended with {status}: {}", said.trim());
        break;
    }
    check(&folder.join(&results))?;
    let left = folder.join(format!("{results}.unfinished.jsonl"));
    ensure!(!left.exists(), "{} is left over", left.display());
    let _ = fs::remove_file(folder.join(&results));
    Ok(())
}

fn check(results: &Path) -> Result<()> {
    let results: Value = serde_json::from_str(&fs::read_to_string(results)?)?;
    let all = results.get("simulations").and_then(Value::as_array).context("no simulations")?;
    let of =
        |at: &'static str| all.iter().filter_map(move |one| one.pointer(at)).map(Value::to_string);
    let (ids, trials): (BTreeSet<_>, BTreeSet<_>) = (of("/id").collect(), of("/trial").collect());
    ensure!(
        (all.len(), ids.len(), trials.len()) == (TRIALS, TRIALS, TRIALS),
        "{} results of {} simulations and {} trials, not {TRIALS}",
        all.len(),
        ids.len(),
        trials.len()
    );
    let right = of("/reward_info/reward").filter(|reward| reward == "1.0").count();
    ensure!(right == TRIALS, "{right} of {TRIALS} have the whole reward");
    Ok(())
}
