//! `duo bench run`: tasks, agents and simulated users, judged.

use std::{
    io::Write,
    path::{Path, PathBuf},
    sync::Arc,
};

use duologue_bench::{
    Registry, Results, Task, clock,
    run::{Keep, Plan, run as run_plan, save},
};

use super::{args::Run, board::Board, fork, load, seats, show};
use crate::{
    exit::Exit,
    failure::{Done, Failure},
    house::{House, OwnTools},
};

pub(super) async fn run(
    house: &House,
    registry: Registry,
    args: Run,
    agent: Option<String>,
) -> Done {
    let loaded = load(&registry, &args.source.domain, args.source.data)?;
    let tasks = match &args.from {
        Some(from) => {
            let of = fork::Of { simulation: args.simulation.as_deref(), at: args.at };
            fork::tasks(house, &loaded, from, &of, &args.choice).await?
        }
        None => seats::choose(&loaded, &args.choice)?,
    };
    let own_tools = if args.own_tools { OwnTools::GoAlong } else { OwnTools::StayHere };
    let cast = &args.cast;
    let mut plan = seats::assemble(house, &registry, loaded, tasks, cast, agent, own_tools).await?;
    plan.trials = args.num_trials.max(1);
    plan.concurrency = args.max_concurrency;
    plan.seed = args.seed;
    plan.retries = args.max_retries;
    let file = args.save_to.unwrap_or_else(|| usual_file(&plan));
    let plan = Arc::new(plan);
    let mut keep = take_up(&plan, &file)?;
    let total = plan.jobs().len();
    if !keep.is_empty() || keep.unfinished() > 0 {
        let (kept, begun) = (keep.len(), keep.unfinished());
        let begun = if begun > 0 { format!(", {begun} go on") } else { String::new() };
        writeln!(std::io::stderr(), "{kept} of {total} simulations are there already{begun}")?;
    }
    let mut board = Board::new(house, &plan, &keep);
    let work = run_plan(Arc::clone(&plan), &mut keep, |progress| board.show(&progress));
    let results = tokio::select! {
        results = work => results.map_err(Failure::new)?,
        _ = tokio::signal::ctrl_c() => {
            board.clear();
            let file = file.display();
            writeln!(std::io::stderr(), "stopped; the same command with --save-to {file} goes on")?;
            return Ok(Exit::Aborted);
        }
    };
    board.clear();
    keep.finish(&results).map_err(Failure::new)?;
    show::summary(house, &results)?;
    writeln!(std::io::stdout(), "\nresults: {}", file.display())?;
    Ok(Exit::Completed)
}

/// What an earlier run left in the file; it must have been the same run.
fn take_up(plan: &Plan, file: &Path) -> Result<Keep, Failure> {
    let mut fresh = plan.results();
    if file.exists() {
        let Results { info: found, tasks: found_tasks, .. } = Results::load(file)?;
        let told = |info: &duologue_bench::simulation::Info| {
            format!(
                "{} with {} ({}) and {} ({}), seed {}",
                info.environment_info.domain_name,
                info.agent_info.implementation,
                info.agent_info.llm.as_deref().unwrap_or("no model"),
                info.user_info.implementation,
                info.user_info.llm.as_deref().unwrap_or("no model"),
                info.seed.unwrap_or_default()
            )
        };
        let differs = |task: &&Arc<Task>| {
            found_tasks.iter().any(|known| known.id == task.id && known != *task)
        };
        if let Some(task) = plan.tasks.iter().find(differs) {
            return Err(Failure::usage(format!(
                "{} is of another run: its task {} is not the same",
                file.display(),
                task.id
            )));
        }
        if told(&found) != told(&fresh.info) {
            return Err(Failure::usage(format!(
                "{} is of another run: {}; this one is {}",
                file.display(),
                told(&found),
                told(&fresh.info)
            )));
        }
        return Keep::in_file(file).map_err(Failure::new);
    }
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder)?;
    }
    fresh.simulations.clear();
    save(&fresh, file).map_err(Failure::new)?;
    Keep::in_file(file).map_err(Failure::new)
}

fn usual_file(plan: &Plan) -> PathBuf {
    let time: String =
        clock::now().chars().take(19).map(|c| if c == ':' { '-' } else { c }).collect();
    PathBuf::from(format!("bench_{}_{}_{time}.json", plan.domain.name, plan.agent.0))
}
