//! `:stop`

use super::{Command, Next};
use crate::failure::Failure;

pub(super) const COMMAND: Command = Command {
    name: "stop",
    arguments: "",
    about: "stop serving this agent; its tasks go on when it is served again",
    run: |repl, _| {
        Box::pin(async move {
            let Some(serving) = repl.network.serving.take() else {
                return Err(Failure::usage("not serving; :listen PORT begins to"));
            };
            let url = serving.url().to_owned();
            serving.stop().await;
            repl.say(&format!("stopped serving at {url}"))?;
            Ok(Next::Stay)
        })
    },
};
