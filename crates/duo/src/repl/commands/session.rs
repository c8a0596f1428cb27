//! `:session [new|show]`

use super::{Command, Next, new};
use crate::failure::Failure;

pub(super) const COMMAND: Command = Command {
    name: "session",
    arguments: "[new|show]",
    about: "show which session this is, or begin a new one",
    run: |repl, what| match what {
        "" | "show" => Box::pin(async move {
            let store = repl.house.store().await?;
            let summary = store.summary(repl.session.id()).await?;
            let (entries, status) = summary.map_or((0, "new".into()), |s| (s.entries, s.status));
            let text = format!(
                "session {} · {} · {} · {entries} entries · {status} · workspace {}",
                repl.session.id(),
                repl.plan.agent,
                repl.plan.model,
                repl.plan.workspace.display()
            );
            repl.say(&text)?;
            Ok(Next::Stay)
        }),
        "new" => (new::COMMAND.run)(repl, ""),
        other => {
            let text = format!(":session {other} is not known; there are :session new and show");
            Box::pin(async move { Err(Failure::usage(text)) })
        }
    },
};
