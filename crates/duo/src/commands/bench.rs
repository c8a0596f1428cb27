//! `duo bench`: measure agents on τ²-bench.

mod agent;
mod args;
mod board;
mod data;
mod evaluate;
mod export;
mod fork;
mod judge;
mod play;
mod pull;
mod run;
mod seats;
mod show;

use duologue_bench::{
    DataDir, DataError, Domain, Registry, TaskSet, domains::DomainEntry, users::Guidelines,
};
use std::{path::PathBuf, sync::Arc};

pub(crate) use agent::Benched;
pub(crate) use args::{Bench, BenchCli};

use crate::{
    failure::{Done, Failure},
    house::House,
};

/// Does what was asked; `agent` is the one that the command line names.
pub(crate) async fn bench(
    house: &House,
    registry: Registry,
    args: Bench,
    agent: Option<String>,
) -> Done {
    match args {
        Bench::Run(args) => run::run(house, registry, *args, agent).await,
        Bench::Evaluate(args) => evaluate::evaluate(house, &registry, args).await,
        Bench::Judge(args) => judge::judge(house, &registry, args).await,
        Bench::View(args) => show::view(house, args),
        Bench::Metrics(args) => show::metrics(house, &args.files),
        Bench::Compare(args) => show::compare(house, &args),
        Bench::Play(args) => play::play(house, registry, *args, agent).await,
        Bench::Domain(args) => show::domain(house, &registry, args),
        Bench::Export(args) => export::export(&args),
        Bench::Data(args) => data::data(house, &registry, args).await,
    }
}

/// A domain as commands need it.
struct Loaded {
    domain: Arc<Domain>,
    tasks: TaskSet,
    guidelines: Guidelines,
}

/// Loads a domain by name; `NAME:VARIANT` asks for a variant.
fn load(registry: &Registry, name: &str, data: Option<PathBuf>) -> Result<Loaded, Failure> {
    let (base, variant) = match name.split_once(':') {
        Some((base, variant)) => (base, Some(variant)),
        None => (name, None),
    };
    let entry = registry.domain(base).map_err(Failure::usage)?;
    let found = directory(entry, data).map_err(Failure::usage)?;
    let domain = (entry.load)(&found, variant).map_err(Failure::usage)?;
    let tasks = (entry.tasks)(&found).map_err(Failure::usage)?;
    let guidelines = match entry.is_embedded() {
        true => Guidelines::own(),
        false => Guidelines::load(&found).unwrap_or_else(|_| Guidelines::own()),
    };
    Ok(Loaded { domain: Arc::new(domain), tasks, guidelines })
}

fn directory(entry: &DomainEntry, data: Option<PathBuf>) -> Result<DataDir, DataError> {
    match data {
        Some(path) => Ok(DataDir::new(path)),
        None if entry.is_embedded() => Ok(DataDir::new(PathBuf::new())),
        // What was pulled counts where nothing else is named.
        None => DataDir::from_env().or_else(|error| pull::current().map(DataDir::new).ok_or(error)),
    }
}

impl From<duologue_bench::DataError> for Failure {
    fn from(error: duologue_bench::DataError) -> Self {
        Self::usage(error)
    }
}
