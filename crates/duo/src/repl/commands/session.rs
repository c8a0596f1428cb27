//! `:session`

use super::{Command, Next};

pub(super) const COMMAND: Command = Command {
    name: "session",
    arguments: "",
    about: "show which session this is",
    run: |repl, _| {
        Box::pin(async move {
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
        })
    },
};
