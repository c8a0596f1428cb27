//! `:model [NAME]`

use super::{Command, Next};

pub(super) const COMMAND: Command = Command {
    name: "model",
    arguments: "[PROVIDER/MODEL]",
    about: "show the model, or go on with another",
    run: |repl, name| {
        Box::pin(async move {
            if name.is_empty() {
                repl.say(&repl.plan.model.clone())?;
                return Ok(Next::Stay);
            }
            let plan = repl.plan.with_model(name);
            let id = repl.session.id().clone();
            repl.switch(plan, Some(id)).await?;
            repl.banner()?;
            Ok(Next::Stay)
        })
    },
};
