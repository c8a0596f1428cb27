//! `:agent [NAME]`

use super::{Command, Next};
use crate::house::Plan;

pub(super) const COMMAND: Command = Command {
    name: "agent",
    arguments: "[NAME]",
    about: "show the agents, or go on with another",
    run: |repl, name| {
        Box::pin(async move {
            if name.is_empty() {
                let names: Vec<String> = repl.house.config().agents.keys().cloned().collect();
                for name in names {
                    let mark = if name == repl.plan.agent { "*" } else { " " };
                    repl.say(&format!("{mark} {name}"))?;
                }
                return Ok(Next::Stay);
            }
            let plan = Plan { agent: name.to_owned(), remote: None, ..repl.plan.clone() };
            let id = repl.session.id().clone();
            repl.switch(plan, Some(id)).await?;
            repl.banner()?;
            Ok(Next::Stay)
        })
    },
};
