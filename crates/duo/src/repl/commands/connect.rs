//! `:connect URL|N|HOST:PORT`

use super::{Command, Next};
use crate::failure::Failure;

pub(super) const COMMAND: Command = Command {
    name: "connect",
    arguments: "URL|N|HOST:PORT",
    about: "connect to an agent elsewhere, by its address or its number in :servers",
    run: |repl, to| {
        Box::pin(async move {
            if to.is_empty() {
                return Err(Failure::usage("say to whom: an address, or a number of :servers"));
            }
            repl.connect(to).await?;
            Ok(Next::Stay)
        })
    },
};
