//! `:history`

use super::{Command, Next};
use crate::{cli::Show, commands};

pub(super) const COMMAND: Command = Command {
    name: "history",
    arguments: "",
    about: "show the conversation with its entries' numbers",
    run: |repl, _| {
        Box::pin(async move {
            let id = repl.session.id().to_string();
            commands::sessions::show(&repl.house, Show { id, json: false, full: false }).await?;
            Ok(Next::Stay)
        })
    },
};
