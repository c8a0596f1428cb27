//! Recorded simulations, judged again: with the task in their file, and with today's.

use std::sync::Arc;

use duologue_bench::{
    Domain, Mode, Replay, Simulation, Task, Value,
    evaluate::{EvaluationType, Evaluator, expected},
};

use crate::{
    calls::Recorded,
    support::{Check, Goldens, db_hash, same, text},
};

pub fn rewards(goldens: &Goldens) -> Check {
    let Some(rows) = goldens.lines("rewards.jsonl") else { return Check::absent("rewards.jsonl") };
    let mut check = Check::new("rewards.jsonl");
    let mut recorded = Recorded::default();
    for row in &rows {
        let name = text(&row["domain"]);
        let Some((domain, tasks)) = goldens.domain(&name) else {
            check.wait(&name);
            continue;
        };
        let id = text(&row["sim_id"]);
        let results = recorded.results(goldens, &text(&row["source"]));
        let simulation = results
            .and_then(|results| Some((results, results.simulations.iter().find(|s| s.id == id)?)));
        let result = match simulation {
            None => Err("no such simulation".to_owned()),
            Some((results, simulation)) => {
                let embedded = results.task(&simulation.task_id).cloned();
                let head = tasks.task(&text(&row["task_id"])).cloned();
                judged(domain, row, simulation, embedded, head)
            }
        };
        check.case(|| format!("{name} {} {id}", text(&row["task_id"])), result);
    }
    check
}

fn judged(
    domain: &Arc<Domain>,
    row: &Value,
    simulation: &Simulation,
    embedded: Option<Arc<Task>>,
    head: Option<Arc<Task>>,
) -> Result<(), String> {
    let mode = if row["solo"].truthy() { Mode::Solo } else { Mode::Dialogue };
    let evaluator = Evaluator { domain, mode, kind: EvaluationType::All, replay: Replay::Lenient };
    let Some(first) = embedded.clone().or_else(|| head.clone()) else {
        return Err("no such task".to_owned());
    };
    let end = evaluator.replayed(simulation.messages(), &first).map_err(|e| e.to_string())?;
    same("final_db_hash", db_hash(&end), text(&row["final_db_hash"]))?;
    let golden = row["final_user_db_hash"].as_str().map(str::to_owned);
    same("final_user_db_hash", end.user_db_hash(), golden)?;
    for (name, task) in [("embedded", embedded), ("head", head)] {
        if let Some(golden) = row.entry(name) {
            let task = task.ok_or_else(|| format!("{name}: no such task"))?;
            components(&evaluator, simulation, &task, golden)
                .map_err(|reason| format!("{name}: {reason}"))?;
        }
    }
    Ok(())
}

fn components(
    evaluator: &Evaluator<'_>,
    simulation: &Simulation,
    task: &Task,
    golden: &Value,
) -> Result<(), String> {
    let judgement = evaluator.without_judge(simulation, task).map_err(|e| e.to_string())?;
    let needs_judge = judgement.needs_judge;
    let info = evaluator.complete(judgement, task, None);
    let near = |value: f64| Value::Float(value);
    same("reward_no_llm", &near(info.reward), &golden["reward_no_llm"])?;
    if golden.entry("note").is_some() {
        return Ok(());
    }
    same("needs_llm", &Value::Bool(needs_judge), &golden["needs_llm"])?;
    let db_match = info.db_check.as_ref().map(|check| check.db_match);
    same("db_match", &Value::from(db_match), &golden["db_match"])?;
    let bools = |checks: Option<Vec<bool>>| -> Value {
        checks.map(|checks| Value::list(checks.into_iter().map(Value::Bool))).into()
    };
    let env = info.env_assertions.as_ref();
    let env = bools(env.map(|checks| checks.iter().map(|check| check.met).collect()));
    same("env_assertions", &env, &golden["env_assertions"])?;
    let actions = info.action_checks.as_ref();
    let actions = bools(actions.map(|checks| checks.iter().map(|c| c.action_match).collect()));
    same("action_checks", &actions, &golden["action_checks"])?;
    let told = info.communicate_checks.as_ref();
    let told = bools(told.map(|checks| checks.iter().map(|check| check.met).collect()));
    same("communicate_checks", &told, &golden["communicate_checks"])?;
    let basis = info.reward_basis.iter().flatten().map(|kind| kind.name().into());
    same("reward_basis", &Value::list(basis), &golden["reward_basis"])?;
    let breakdown: duologue_bench::Dict = info
        .reward_breakdown
        .iter()
        .flatten()
        .filter(|(kind, _)| kind.name() != "NL_ASSERTION")
        .map(|(kind, reward)| (kind.name(), Value::Float(*reward)))
        .collect();
    same("breakdown", &Value::from(breakdown), &golden["breakdown"])?;
    if let Some(hash) = golden.entry("gold_db_hash") {
        let gold = expected(evaluator.domain, task, Replay::Lenient).map_err(|e| e.to_string())?;
        same("gold_db_hash", db_hash(&gold), text(hash))?;
        let predicted = evaluator.replayed(simulation.messages(), task);
        let predicted = predicted.map_err(|e| e.to_string())?;
        same("pred_db_hash", db_hash(&predicted), text(&golden["pred_db_hash"]))?;
    }
    Ok(())
}
