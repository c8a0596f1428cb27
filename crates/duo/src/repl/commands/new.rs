//! `:new`

use super::{Command, Next};

pub(super) const COMMAND: Command = Command {
    name: "new",
    arguments: "",
    about: "begin a new session",
    run: |repl, _| {
        Box::pin(async move {
            repl.switch(repl.plan.clone(), None).await?;
            repl.banner()?;
            Ok(Next::Stay)
        })
    },
};
