//! `:help`

use super::{ALL, Command, Next};
use crate::terminal::Style;

pub(super) const COMMAND: Command = Command {
    name: "help",
    arguments: "",
    about: "list the commands",
    run: |repl, _| {
        Box::pin(async move {
            let paint = repl.screen.paint();
            for command in ALL {
                let left = format!("  :{:<24}", format!("{} {}", command.name, command.arguments));
                repl.say(&format!("{}{}", paint.text(Style::Bold, left), command.about))?;
            }
            repl.remark(
                "Alt-Enter or a \\ at the end begins another line, and so does an open \"\"\". \
                Ctrl-C stops the turn, Ctrl-D leaves.",
            )?;
            Ok(Next::Stay)
        })
    },
};
