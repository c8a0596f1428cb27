//! `:artifacts ID`

use super::{Command, Next, task};
use crate::commands::a2a::tasks::artifact_lines;

pub(super) const COMMAND: Command = Command {
    name: "artifacts",
    arguments: "ID",
    about: "show what a task gave",
    run: |repl, id| {
        Box::pin(async move {
            let task = task::find(repl, id).await?;
            let lines = artifact_lines(repl.screen.paint(), &task);
            if lines.is_empty() {
                repl.remark("it has given nothing")?;
            } else {
                repl.say(&lines.join("\n"))?;
            }
            Ok(Next::Stay)
        })
    },
};
