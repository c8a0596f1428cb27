//! `duo bench run --from`: tasks that go on from recorded conversations.

use std::{path::Path, sync::Arc};

use duologue_bench::{Results, Simulation, Task, history_of};

use super::{Loaded, args::Choice, seats};
use crate::{failure::Failure, house::House};

/// Which part of what is recorded.
pub(super) struct Of<'a> {
    /// Only the simulation whose id begins so.
    pub(super) simulation: Option<&'a str>,
    /// How much is kept.
    pub(super) at: Option<u64>,
}

/// The tasks of a file of results or of a session.
pub(super) async fn tasks(
    house: &House,
    loaded: &Loaded,
    from: &str,
    of: &Of<'_>,
    choice: &Choice,
) -> Result<Vec<Arc<Task>>, Failure> {
    let file = Path::new(from);
    if file.exists() {
        return of_simulations(loaded, file, of, choice);
    }
    if from.contains(['/', '.']) {
        return Err(Failure::usage(format!("there is no file {from}")));
    }
    of_session(house, loaded, from, of, choice).await
}

fn of_simulations(
    loaded: &Loaded,
    file: &Path,
    of: &Of<'_>,
    choice: &Choice,
) -> Result<Vec<Arc<Task>>, Failure> {
    let results = Results::load(file)?;
    let wanted = |s: &&Simulation| {
        of.simulation.is_none_or(|id| s.id.starts_with(id))
            && (choice.task_ids.is_empty() || choice.task_ids.contains(&s.task_id))
    };
    let mut tasks: Vec<Arc<Task>> = Vec::new();
    for simulation in results.simulations.iter().filter(wanted) {
        let id = &simulation.task_id;
        let task = results.task(id).or_else(|| loaded.tasks.task(id));
        let Some(task) = task else { continue };
        if tasks.iter().any(|known| known.id == *id) {
            continue;
        }
        let messages = simulation.messages();
        let kept = of.at.and_then(|at| usize::try_from(at).ok());
        let kept = kept.unwrap_or_else(|| messages.len().saturating_sub(1)).min(messages.len());
        let kept = messages.get(..kept).unwrap_or_default();
        tasks.push(Arc::new(task.continued_from(kept)));
    }
    if tasks.is_empty() {
        let file = file.display();
        return Err(Failure::usage(format!("{file} has no such simulation of this domain")));
    }
    Ok(tasks)
}

/// A session says nothing about a task: what its user wants and how it is judged is the domain's.
async fn of_session(
    house: &House,
    loaded: &Loaded,
    from: &str,
    of: &Of<'_>,
    choice: &Choice,
) -> Result<Vec<Arc<Task>>, Failure> {
    let [_] = choice.task_ids.as_slice() else {
        return Err(Failure::usage(
            "say with --task-ids which one task the user of this session goes on with",
        ));
    };
    let task = seats::choose(loaded, choice)?;
    let id = house.find(from).await?;
    let mut entries = duologue_core::read_all(&*house.store().await?, &id).await?;
    entries.retain(|entry| of.at.is_none_or(|at| entry.seq <= at));
    let history = history_of(&entries);
    if history.is_empty() {
        return Err(Failure::usage(format!("nothing was said in session {id} by then")));
    }
    Ok(task.iter().map(|task| Arc::new(task.continued_from(&history))).collect())
}
