//! `:sessions`

use super::{Command, Next};
use crate::{cli::List, commands};

pub(super) const COMMAND: Command = Command {
    name: "sessions",
    arguments: "",
    about: "list the last sessions",
    run: |repl, _| {
        Box::pin(async move {
            let args = List { limit: 10, status: None, json: false };
            commands::sessions::list(&repl.house, args).await?;
            Ok(Next::Stay)
        })
    },
};
