//! `:tasks`

use duologue_a2a::{a2a::ListTasksRequest, kept_tasks};

use super::{Command, Next};
use crate::{commands::a2a::tasks::task_line, failure::Failure};

/// How many of each are listed.
const MOST: usize = 20;

pub(super) const COMMAND: Command = Command {
    name: "tasks",
    arguments: "",
    about: "list what others asked of this agent, and what was asked of the connected one",
    run: |repl, _| {
        Box::pin(async move {
            let paint = repl.screen.paint();
            let store = repl.house.store().await?;
            let own =
                kept_tasks(&*store, Some(repl.resident.agent().name()), MOST, |_| true).await?;
            if own.is_empty() {
                repl.remark("nobody has asked this agent for anything")?;
            }
            for task in &own {
                repl.say(&task_line(paint, task))?;
            }
            let Some(connection) = &repl.network.connection else { return Ok(Next::Stay) };
            let title = format!("at {}:", connection.place);
            let request = ListTasksRequest {
                context_id: None,
                status: None,
                page_size: i32::try_from(MOST).ok(),
                page_token: None,
                // The first message is what a task is called by.
                history_length: Some(50),
                status_timestamp_after: None,
                include_artifacts: None,
                tenant: connection.remote.interface().tenant.clone(),
            };
            let remote = connection.remote.clone();
            let there = remote.transport().list_tasks(remote.params(), &request).await;
            let there = there.map_err(|error| Failure::new(error.message))?;
            repl.say(&title)?;
            for task in &there.tasks {
                repl.say(&task_line(paint, task))?;
            }
            Ok(Next::Stay)
        })
    },
};
