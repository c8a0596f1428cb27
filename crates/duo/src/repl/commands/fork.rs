//! `:fork [N]`

use super::{Command, Next};
use crate::failure::Failure;

pub(super) const COMMAND: Command = Command {
    name: "fork",
    arguments: "[N]",
    about: "copy the session up to entry N and go on with the copy",
    run: |repl, at| {
        Box::pin(async move {
            let at = match at {
                "" => None,
                number => Some(number.parse().map_err(|_| {
                    Failure::usage(format!("{number} is not the number of an entry; see :history"))
                })?),
            };
            let store = repl.house.store().await?;
            let copy = duologue_core::fork(&*store, repl.session.id(), at).await?;
            repl.switch(repl.plan.clone(), Some(copy)).await?;
            repl.banner()?;
            Ok(Next::Stay)
        })
    },
};
