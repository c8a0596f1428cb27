//! The databases: as loaded, and as the expected actions leave them.

use duologue_bench::{Environment, Mode, Task, ToolCall, Value, python};

use crate::support::{Check, Goldens, same, started, text};

/// Every task's hashes: at the start, after the expected actions, and with the sides in step.
pub fn gold_hashes(goldens: &Goldens) -> Check {
    let Some(golden) = goldens.json("gold_hashes.json") else {
        return Check::absent("gold_hashes.json");
    };
    let mut check = Check::new("gold_hashes.json");
    for (name, rows) in golden.entries() {
        let Some((domain, tasks)) = goldens.domain(name) else {
            check.wait(name);
            continue;
        };
        let pristine = Environment::new(domain, Mode::Dialogue).unwrap();
        check.case(|| format!("{name} at first"), hashes(&pristine, &rows["_initial"], ""));
        for (id, row) in rows["tasks"].entries() {
            let result = match tasks.task(id) {
                Some(task) => task_hashes(&started(domain, Mode::Dialogue, task), task, row),
                None => Err("no such task".to_owned()),
            };
            check.case(|| format!("{name} {id}"), result);
        }
    }
    check
}

fn task_hashes(start: &Environment, task: &Task, row: &Value) -> Result<(), String> {
    if row.entry("init_db_hash").is_some() {
        hashes(start, row, "init_")?;
    }
    let mut gold = start.clone();
    let mut errors = Vec::new();
    for (at, action) in task.actions().iter().enumerate() {
        if let Err(failure) = gold.take(action) {
            errors.push(Value::list([at.into(), failure.to_string().into()]));
        }
    }
    hashes(&gold, row, "")?;
    let golden = row.entry("gold_action_errors").cloned().unwrap_or_else(|| Value::list([]));
    same("gold_action_errors", &Value::from(errors), &golden)?;

    let mut live = start.clone();
    same("n_gold_actions", Value::from(task.actions().len()), row["n_gold_actions"].clone())?;
    let criteria = task.evaluation_criteria.clone().unwrap_or_default();
    let assertions = criteria.env_assertions.unwrap_or_default();
    let held = |environment: &mut Environment| {
        Value::list(assertions.iter().map(|a| environment.holds(a).map_or(Value::None, Into::into)))
    };
    if let Some(before) = row.entry("env_assertions_before") {
        same("env_assertions_before", &held(&mut live.clone()), before)?;
    }
    for action in task.actions() {
        live.respond(&ToolCall {
            id: String::new(),
            name: action.name.clone(),
            arguments: action.arguments.clone(),
            requestor: action.requestor,
        });
    }
    if row.entry("live_db_hash").is_some() {
        hashes(&live, row, "live_")?;
    }
    if let Some(after) = row.entry("env_assertions_after_live") {
        same("env_assertions_after_live", &held(&mut live), after)?;
    }
    let basis = criteria.reward_basis.iter().map(|basis| basis.name().into());
    same("reward_basis", &Value::list(basis), &row["reward_basis"])
}

fn hashes(environment: &Environment, row: &Value, prefix: &str) -> Result<(), String> {
    let key = |name: &str| format!("{prefix}{name}");
    same(&key("db_hash"), environment.db_hash(), text(&row[key("db_hash").as_str()]))?;
    let golden = row[key("user_db_hash").as_str()].as_str().map(str::to_owned);
    same(&key("user_db_hash"), environment.user_db_hash(), golden)
}

/// What the expected actions change, place by place.
pub fn gold_diffs(goldens: &Goldens) -> Check {
    let Some(rows) = goldens.lines("gold_diffs.jsonl") else {
        return Check::absent("gold_diffs.jsonl");
    };
    let mut check = Check::new("gold_diffs.jsonl");
    for row in &rows {
        let (name, id) = (text(&row["domain"]), text(&row["task_id"]));
        let Some((domain, tasks)) = goldens.domain(&name) else {
            check.wait(&name);
            continue;
        };
        let Some(task) = tasks.task(&id) else {
            check.case(|| format!("{name} {id}"), Err("no such task".to_owned()));
            continue;
        };
        let mut gold = started(domain, Mode::Dialogue, task);
        for action in task.actions() {
            let _ = gold.take(action);
        }
        let pristine = Environment::new(domain, Mode::Dialogue).unwrap();
        let compared = |what: &str, before: &Value, after: &Value| match row.entry(what) {
            Some(golden) => same_changes(what, before, after, golden),
            None => Ok(()),
        };
        // What both sides share is told once.
        let result = compared("db", &pristine.world.db, &gold.world.db).and_then(|()| {
            let shared = gold.world.shares_db();
            let after = if shared { pristine.world.user_db() } else { gold.world.user_db() };
            compared("user_db", pristine.world.user_db(), after)
        });
        check.case(|| format!("{name} {id}"), result);
    }
    check
}

/// The databases as loaded, byte for byte.
pub fn initial_databases(goldens: &Goldens) -> Check {
    let directory = goldens.golden.join("initial_db");
    let Ok(files) = std::fs::read_dir(directory) else { return Check::absent("initial_db") };
    let mut check = Check::new("initial_db");
    let mut files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    files.sort();
    for file in files {
        let stem = file.file_name().unwrap().to_string_lossy().into_owned();
        let (name, side) = stem.split_once('.').unwrap();
        let Some((domain, _)) = goldens.domain(name) else {
            check.wait(name);
            continue;
        };
        let environment = Environment::new(domain, Mode::Dialogue).unwrap();
        let database = if side.starts_with("user_db") {
            environment.world.user_db()
        } else {
            &environment.world.db
        };
        let (ours, golden) =
            (python::canonical_text(database), std::fs::read_to_string(&file).unwrap());
        let at = ours.bytes().zip(golden.bytes()).position(|(a, b)| a != b);
        let result = match at {
            None if ours.len() == golden.len() => Ok(()),
            at => {
                let at = at.unwrap_or(ours.len().min(golden.len()));
                let around = |text: &str| {
                    text.chars().skip(at.saturating_sub(80)).take(160).collect::<String>()
                };
                Err(format!("differs at {at}: {} | {}", around(&ours), around(&golden)))
            }
        };
        check.case(|| stem.clone(), result);
    }
    check
}

fn same_changes(what: &str, before: &Value, after: &Value, golden: &Value) -> Result<(), String> {
    let mut ours = Vec::new();
    changes("", before, after, &mut ours);
    let mut ours: Vec<String> = ours.iter().map(python::repr).collect();
    let mut golden: Vec<String> = golden.items().iter().map(python::repr).collect();
    ours.sort();
    golden.sort();
    same(what, ours, golden)
}

fn changes(place: &str, before: &Value, after: &Value, out: &mut Vec<Value>) {
    let absent = || Value::str("<absent>");
    match (before, after) {
        _ if before.same(after) => {}
        (Value::Dict(a), Value::Dict(b)) => {
            for (key, old) in a.iter() {
                let place = format!("{place}/{key}");
                match b.get(key) {
                    Some(new) => changes(&place, old, new, out),
                    None => out.push(Value::list([place.into(), old.clone(), absent()])),
                }
            }
            for (key, new) in b.iter().filter(|(key, _)| !a.contains(key)) {
                let place = format!("{place}/{key}");
                out.push(Value::list([place.into(), absent(), new.clone()]));
            }
        }
        (Value::List(a), Value::List(b)) => {
            for at in 0..a.len().max(b.len()) {
                let place = format!("{place}/{at}");
                match (a.get(at), b.get(at)) {
                    (Some(old), Some(new)) => changes(&place, old, new, out),
                    (old, new) => out.push(Value::list([
                        place.into(),
                        old.cloned().unwrap_or_else(absent),
                        new.cloned().unwrap_or_else(absent),
                    ])),
                }
            }
        }
        _ => out.push(Value::list([place.into(), before.clone(), after.clone()])),
    }
}
