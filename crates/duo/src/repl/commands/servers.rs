//! `:servers`

use super::{Command, Next};
use crate::terminal::{Style, visible};

pub(super) const COMMAND: Command = Command {
    name: "servers",
    arguments: "",
    about: "list the agents that are known elsewhere",
    run: |repl, _| {
        Box::pin(async move {
            let places = repl.places()?;
            if places.is_empty() {
                repl.remark("no agents are known yet; :connect URL gets to know one")?;
            }
            let paint = repl.screen.paint();
            let here = repl.network.connection.as_ref().map(|connection| connection.place.clone());
            for (at, place) in places.iter().enumerate() {
                let short = crate::repl::network::short(&place.url);
                let mark = if here.as_ref() == Some(&short) { "*" } else { " " };
                let name = paint.text(Style::Bold, visible(&place.name));
                let line = format!("{mark}{:>3}. {name}  {} ({})", at + 1, place.url, place.health);
                repl.say(&line)?;
            }
            Ok(Next::Stay)
        })
    },
};
