//! `:pending`

use super::{Command, Next};

pub(super) const COMMAND: Command = Command {
    name: "pending",
    arguments: "",
    about: "answer what the session still waits for",
    run: |repl, _| {
        Box::pin(async move {
            let _ = repl.session.collect_mail().await?;
            if repl.session.pending().is_empty() {
                repl.remark("nothing waits")?;
            } else {
                repl.turn(None).await?;
            }
            Ok(Next::Stay)
        })
    },
};
