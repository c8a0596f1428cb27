//! `:listen [PORT]`

use super::{Command, Next};
use crate::failure::Failure;

pub(super) const COMMAND: Command = Command {
    name: "listen",
    arguments: "[PORT]",
    about: "serve this agent to others; 0 is a free port",
    run: |repl, port| {
        Box::pin(async move {
            let port = match port {
                "" => u16::try_from(repl.house.config().server.port).unwrap_or_default(),
                text => text
                    .parse()
                    .map_err(|_| Failure::usage(format!("{text:?} is not the number of a port")))?,
            };
            repl.listen(port).await?;
            Ok(Next::Stay)
        })
    },
};
