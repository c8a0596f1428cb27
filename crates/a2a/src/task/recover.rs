//! Finding the tasks of an earlier process again.

use duologue_core::{ListQuery, SessionId, StoreError, read_all};

use super::{index::Listed, state::is_settled, tasks::Tasks, view::TaskView};

/// How many sessions are read at a time when tasks are looked for.
const SCAN_PAGE: usize = 500;

impl Tasks {
    /// Find the tasks of an earlier process, and go on with those that it left in the middle. How
    /// many those are.
    pub(crate) async fn recover(&self) -> Result<usize, StoreError> {
        let mut resumed = 0;
        let mut before = None;
        loop {
            let query = ListQuery {
                limit: SCAN_PAGE,
                before,
                agent: Some(self.0.agent.name().to_owned()),
                status: None,
            };
            let page = self.0.store.list(query).await?;
            let Some(last) = page.last() else { return Ok(resumed) };
            let oldest = last.updated_at;
            let is_last = page.len() < SCAN_PAGE;
            for summary in &page {
                resumed += usize::from(self.take_up(&summary.id).await?);
            }
            if is_last {
                return Ok(resumed);
            }
            // Those of the same moment come again rather than being left out, unless a whole page
            // is of one moment.
            before = Some(if before == Some(oldest + 1) { oldest } else { oldest + 1 });
        }
    }

    /// Whether it was in the middle and goes on.
    async fn take_up(&self, id: &SessionId) -> Result<bool, StoreError> {
        if self.index().get(id.as_str()).is_some() {
            return Ok(false);
        }
        let first = self.0.store.read(id, 0, 1).await?;
        if TaskView::of(id.as_str(), &first).context().is_empty() {
            return Ok(false);
        }
        let entries = read_all(&*self.0.store, id).await?;
        let view = TaskView::of(id.as_str(), &entries);
        let Some(listed) = Listed::of(&view) else { return Ok(false) };
        let is_settled = is_settled(&listed.state);
        self.index().put(id, listed);
        let mut is_resumed = false;
        if !is_settled {
            match self.0.sessions.open(id).await {
                Ok(open) => {
                    let session = open.session.clone();
                    self.run(&open, Box::new(view.clone()), async move { session.resume().await });
                    is_resumed = true;
                }
                // Another process works on it.
                Err(error) => tracing::warn!(task = %id, %error, "a task cannot be gone on with"),
            }
        }
        if !view.targets().is_empty() {
            self.attend_pushes(id, &view).await;
        }
        Ok(is_resumed)
    }
}
