//! `:open ID`

use super::{Command, Next};
use crate::failure::Failure;

pub(super) const COMMAND: Command = Command {
    name: "open",
    arguments: "ID",
    about: "go on with another session",
    run: |repl, prefix| {
        Box::pin(async move {
            if prefix.is_empty() {
                return Err(Failure::usage("say which one; :sessions lists them"));
            }
            let id = repl.house.find(prefix).await?;
            let plan = repl.house.plan_of(&id).await?;
            repl.switch(plan, Some(id)).await?;
            repl.banner()?;
            if repl.session.is_unfinished() {
                repl.turn(None).await?;
            }
            Ok(Next::Stay)
        })
    },
};
