//! `:remote MESSAGE`

use super::{Command, Next};
use crate::failure::Failure;

pub(super) const COMMAND: Command = Command {
    name: "remote",
    arguments: "MESSAGE",
    about: "send a message to the connected agent; :tool NAME JSON calls one of its tools",
    run: |repl, text| {
        Box::pin(async move {
            if text.is_empty() {
                return Err(Failure::usage("say what: :remote MESSAGE"));
            }
            repl.say_there(text).await?;
            Ok(Next::Stay)
        })
    },
};
