//! Tasks as a store keeps them, for those who look into it without a server.

use a2a::Task;
use duologue_core::{ListQuery, SessionId, Store, StoreError, read_all};

use super::view::TaskView;

/// How many sessions are read at a time.
const PAGE: usize = 200;

/// The task that a session is, as its journal has it now. `None` where the session is no task.
pub async fn kept_task(store: &dyn Store, id: &SessionId) -> Result<Option<Task>, StoreError> {
    let first = store.read(id, 0, 1).await?;
    if TaskView::of(id.as_str(), &first).context().is_empty() {
        return Ok(None);
    }
    let view = TaskView::of(id.as_str(), &read_all(store, id).await?);
    Ok(view.birth().map(|_| view.task(None, true)))
}

/// The tasks of a store, the last changed first: at most so many, of one agent or of all, and only
/// those that are wanted.
pub async fn kept_tasks(
    store: &dyn Store,
    agent: Option<&str>,
    most: usize,
    wanted: impl Fn(&Task) -> bool,
) -> Result<Vec<Task>, StoreError> {
    let mut found: Vec<Task> = Vec::new();
    let mut before = None;
    loop {
        let agent = agent.map(str::to_owned);
        let query = ListQuery { limit: PAGE, before, agent, status: None };
        let page = store.list(query).await?;
        for summary in &page {
            if found.len() >= most {
                return Ok(found);
            }
            // Those of the moment at which the last page ended come again.
            let is_known = found.iter().any(|task| task.id == summary.id.as_str());
            if !is_known
                && let Some(task) = kept_task(store, &summary.id).await?
                && wanted(&task)
            {
                found.push(task);
            }
        }
        let Some(last) = page.last().filter(|_| page.len() == PAGE) else { return Ok(found) };
        let oldest = last.updated_at;
        before = Some(if before == Some(oldest + 1) { oldest } else { oldest + 1 });
    }
}
