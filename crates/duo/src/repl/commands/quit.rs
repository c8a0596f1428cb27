//! `:quit`

use super::{Command, Next};

pub(super) const COMMAND: Command = Command {
    name: "quit",
    arguments: "",
    about: "leave; the session stays",
    run: |_, _| Box::pin(async { Ok(Next::Leave) }),
};
