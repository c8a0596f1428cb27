//! `:tools`

use super::{Command, Next};
use crate::{cli::Tools, commands};

pub(super) const COMMAND: Command = Command {
    name: "tools",
    arguments: "",
    about: "list the tools and what they may do",
    run: |repl, _| {
        Box::pin(async move {
            commands::tools::tools(&repl.house, Tools { json: false }).await?;
            Ok(Next::Stay)
        })
    },
};
