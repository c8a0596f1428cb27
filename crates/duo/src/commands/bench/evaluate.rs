//! `duo bench evaluate`: judging recorded simulations again.

use std::{collections::BTreeMap, io::Write};

use duologue_bench::{
    Mode, Registry, Replay, Results,
    evaluate::{EvaluationType, Evaluator},
    run::{note, save},
};

use super::{args::Evaluate, load, seats::Models, show};
use crate::{
    exit::Exit,
    failure::{Done, Failure},
    house::House,
};

pub(super) async fn evaluate(house: &House, registry: &Registry, args: Evaluate) -> Done {
    let mut models = Models::of(house);
    let judge = match &args.judge_llm {
        Some(name) => Some(models.judge(Some(name)).await?),
        None => None,
    };
    let mut domains = BTreeMap::new();
    for file in &args.files {
        let mut results = Results::load(file)?;
        let Some(name) = results.domain().map(str::to_owned) else {
            return Err(Failure::usage(format!("{} does not say its domain", file.display())));
        };
        if !domains.contains_key(&name) {
            domains.insert(name.clone(), load(registry, &name, args.data.clone())?);
        }
        let Some(loaded) = domains.get(&name) else { continue };
        let solo = results.info.agent_info.implementation.contains("solo");
        let evaluator = Evaluator {
            domain: &loaded.domain,
            mode: if solo { Mode::Solo } else { Mode::Dialogue },
            kind: EvaluationType::All,
            replay: Replay::Lenient,
        };
        let tasks = results.tasks.clone();
        let mut changed = 0;
        for simulation in &mut results.simulations {
            let todays = || loaded.tasks.task(&simulation.task_id).cloned();
            let recorded = tasks.iter().find(|task| task.id == simulation.task_id).cloned();
            let task = match args.todays_tasks {
                true => todays(),
                false => recorded.or_else(todays),
            };
            let Some(task) = task else { continue };
            let before = simulation.reward_info.as_ref().map(|info| info.reward);
            let judged = match &judge {
                Some(judge) => evaluator.evaluate(simulation, &task, Some(&**judge)).await,
                // Without a judge its assertions are left out of the product.
                None => evaluator
                    .without_judge(simulation, &task)
                    .map(|judgement| evaluator.complete(judgement, &task, None)),
            };
            note(&evaluator, &task, simulation, judged);
            let after = simulation.reward_info.as_ref().map(|info| info.reward);
            if before != after {
                changed += 1;
                let line = show::simulation_line(house, simulation);
                let before = before.map_or_else(|| "–".to_owned(), |reward| format!("{reward:.2}"));
                writeln!(std::io::stdout(), "{line} (recorded: {before})")?;
            }
        }
        show::summary(house, &results)?;
        let total = results.simulations.len();
        writeln!(
            std::io::stdout(),
            "  {changed} of {total} rewards differ from the recorded ones"
        )?;
        if args.save {
            save(&results, file).map_err(Failure::new)?;
        }
    }
    Ok(Exit::Completed)
}
