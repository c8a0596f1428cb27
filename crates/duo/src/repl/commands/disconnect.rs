//! `:disconnect`

use super::{Command, Next};
use crate::failure::Failure;

pub(super) const COMMAND: Command = Command {
    name: "disconnect",
    arguments: "",
    about: "let go of the connected agent; its tasks go on",
    run: |repl, _| {
        Box::pin(async move {
            let Some(connection) = repl.network.connection.take() else {
                return Err(Failure::usage("not connected"));
            };
            let text = format!("disconnected from {} at {}", connection.name(), connection.place);
            repl.say(&crate::terminal::visible(&text))?;
            Ok(Next::Stay)
        })
    },
};
