//! `duo bench data`: whether the data of the domains is there, and of which version.

use std::{io::Write, path::PathBuf, sync::Arc};

use duologue_bench::{Environment, Mode, Registry, TaskSet, python};

use super::{
    args::{Data, DataCommand},
    load, pull,
};
use crate::{
    exit::Exit,
    failure::{Done, Failure},
    house::House,
    terminal::Style,
};

/// τ²-bench v1.0.1 by its hashes: of each domain's database, and the beginning of that of its tasks.
const KNOWN: [(&str, &str, &str); 6] = [
    ("mock", "107f83a70b7bf4f616e283b0b0b8451346fe7681173398d4498a1ec15c5fdfc6", "cc77a3a06852"),
    ("airline", "124e39a664b56402bcd09cb8a6a9cece6acb8462337c969799d5658e3250f263", "6e2f7de242e4"),
    ("retail", "b25c9cb211f5efcaee5dd646054a73c4a9f43f4f5acc32c10713cd9f9ac20e9c", "c49db367fbeb"),
    ("telecom", TELECOM, "d99619944a15"),
    ("telecom-workflow", TELECOM, "d99619944a15"),
    (
        "banking_knowledge",
        "af324a7d72aced5889daf6cc044e573ad94ffa3bfe7cf65114fd3cfed5daaa48",
        "d671b91e61c4",
    ),
];
const TELECOM: &str = "304cf5ef059852e117ea801ab9a5efc24c9713ec887679dc2e30acceb4b6742d";

pub(super) async fn data(house: &House, registry: &Registry, args: Data) -> Done {
    match args.command {
        Some(DataCommand::Pull(how)) => pull::pull(house, registry, how).await,
        None => {
            let missing = list(house, registry, args.data.clone())?;
            if args.data.is_none() && std::env::var_os("TAU2_DATA_DIR").is_none() {
                pulled(house)?;
            }
            if !missing.is_empty() {
                writeln!(
                    std::io::stdout(),
                    "\nGet the data with `duo bench data pull`, or name the `data` folder of a checkout \
                     of sierra-research/tau2-bench with --data or TAU2_DATA_DIR."
                )?;
            }
            Ok(Exit::Completed)
        }
    }
}

/// Tells of every domain how it is; which are not there.
pub(super) fn list(
    house: &House,
    registry: &Registry,
    data: Option<PathBuf>,
) -> Result<Vec<String>, Failure> {
    let mut out = std::io::stdout().lock();
    let mut missing = Vec::new();
    for name in registry.domains() {
        let loaded = match load(registry, name, data.clone()) {
            Ok(loaded) => loaded,
            Err(failure) => {
                missing.push(name.to_owned());
                let reason = house.paint.text(Style::Bad, failure);
                writeln!(out, "{name:<20} {reason}")?;
                continue;
            }
        };
        let db = Environment::new(&Arc::clone(&loaded.domain), Mode::Dialogue)
            .map(|environment| environment.db_hash())
            .unwrap_or_default();
        let tasks = hash_of(&loaded.tasks);
        let version = match KNOWN.iter().find(|(known, ..)| *known == name) {
            Some((_, known, known_tasks)) => match (*known == db, *known_tasks == short(&tasks)) {
                (true, true) => house.paint.text(Style::Good, "v1.0.1"),
                (true, false) => {
                    let note = format!("v1.0.1 with other tasks ({})", short(&tasks));
                    house.paint.text(Style::Warning, note)
                }
                (false, _) => {
                    let note = format!("another version ({})", short(&db));
                    house.paint.text(Style::Warning, note)
                }
            },
            None => house.paint.text(Style::Dim, "embedded"),
        };
        writeln!(out, "{name:<20} {version}, {} tasks", loaded.tasks.tasks.len())?;
    }
    Ok(missing)
}

/// What was pulled, and whether it is still as it was.
fn pulled(house: &House) -> Result<(), Failure> {
    let Some(folder) = pull::current() else { return Ok(()) };
    let changed = pull::changed(&folder)?;
    let mut out = std::io::stdout();
    writeln!(out, "\npulled: {}", folder.display())?;
    if !changed.is_empty() {
        let note = format!("changed since: {}", changed.join(", "));
        writeln!(out, "{}", house.paint.text(Style::Bad, note))?;
    }
    Ok(())
}

/// SHA-256 of tasks, as their ids and contents have it.
fn hash_of(tasks: &TaskSet) -> String {
    let json = serde_json::to_vec(&tasks.tasks).unwrap_or_default();
    python::sha256(&json)
}

fn short(hash: &str) -> &str {
    hash.get(..12).unwrap_or_default()
}
