//! `duo bench judge`: a session of any agent, judged as a simulation is.

use std::{io::Write, path::Path, sync::Arc};

use duologue_bench::{
    Mode, Registry, Replay, RewardType, Task,
    evaluate::{EvaluationType, Evaluator},
    run::note,
    simulation_of,
};

use super::{Loaded, args::Judge, load, seats::Models, show};
use crate::{
    exit::Exit,
    failure::{Done, Failure},
    house::House,
};

pub(super) async fn judge(house: &House, registry: &Registry, args: Judge) -> Done {
    let loaded = load(registry, &args.source.domain, args.source.data)?;
    let task = task(&loaded, &args.task)?;
    let judge = match &args.judge_llm {
        Some(name) => Some(Models::of(house).judge(Some(name)).await?),
        None => None,
    };
    let evaluator = Evaluator {
        domain: &loaded.domain,
        mode: Mode::Dialogue,
        kind: EvaluationType::All,
        replay: Replay::Lenient,
    };
    for prefix in &args.sessions {
        let id = house.find(prefix).await?;
        let entries = duologue_core::read_all(&*house.store().await?, &id).await?;
        let Some(mut simulation) = simulation_of(&id, &entries, &task) else {
            return Err(Failure::usage(format!(
                "session {id} is not over; `duo sessions show {id}` tells what it waits for"
            )));
        };
        let judged = match &judge {
            Some(judge) => evaluator.evaluate(&simulation, &task, Some(&**judge)).await,
            // Without a judge its assertions are left out of the product.
            None => evaluator
                .without_judge(&simulation, &task)
                .map(|judgement| evaluator.complete(judgement, &task, None)),
        };
        note(&evaluator, &task, &mut simulation, judged);
        // Databases that do not count are not spoken of: the session may never have seen them.
        if let Some(info) = &mut simulation.reward_info {
            let counts = info.reward_basis.iter().flatten().any(|kind| *kind == RewardType::Db);
            info.db_check = info.db_check.take().filter(|_| counts);
        }
        let mut out = std::io::stdout().lock();
        if args.json {
            writeln!(out, "{}", serde_json::to_string(&simulation)?)?;
            continue;
        }
        writeln!(out, "{id}  {}", show::simulation_line(house, &simulation))?;
        if let Some(info) = &simulation.reward_info {
            show::reward_lines(house, info, &mut out)?;
        }
    }
    Ok(Exit::Completed)
}

/// The task of a file, or of the domain.
fn task(loaded: &Loaded, named: &str) -> Result<Arc<Task>, Failure> {
    let file = Path::new(named);
    if file.exists() {
        let text = std::fs::read_to_string(file)
            .map_err(|error| Failure::usage(format!("{named}: {error}")))?;
        let task = serde_json::from_str(&text)
            .map_err(|error| Failure::usage(format!("{named} is no task: {error}")))?;
        return Ok(Arc::new(task));
    }
    let found = loaded.tasks.task(named).cloned();
    found.ok_or_else(|| {
        Failure::usage(format!("there is neither a file nor a task of the domain named {named:?}"))
    })
}
