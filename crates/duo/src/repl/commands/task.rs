//! `:task ID`

use duologue_a2a::a2a::Task;

use super::{Command, Next};
use crate::{
    commands::a2a::tasks::{own_task, task_lines},
    failure::Failure,
    repl::Repl,
};

pub(super) const COMMAND: Command = Command {
    name: "task",
    arguments: "ID",
    about: "show a task: what was said, how it stands, what it gave",
    run: |repl, id| {
        Box::pin(async move {
            let task = find(repl, id).await?;
            let text = task_lines(repl.screen.paint(), &task);
            repl.say(&text)?;
            Ok(Next::Stay)
        })
    },
};

/// A task of this agent by the beginning of its id, or one of the connected agent by its id.
pub(super) async fn find(repl: &Repl, id: &str) -> Result<Task, Failure> {
    if id.is_empty() {
        return Err(Failure::usage("say which one; :tasks lists them"));
    }
    match (own_task(&repl.house, id).await, &repl.network.connection) {
        (Ok((_, task)), _) => Ok(task),
        (Err(failure), None) => Err(failure),
        (Err(_), Some(connection)) => {
            connection.remote.task(id).await.map_err(|error| Failure::new(error.message))
        }
    }
}
