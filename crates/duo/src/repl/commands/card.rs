//! `:card [remote]`

use duologue_a2a::Server;

use super::{Command, Next};
use crate::{commands::a2a::card::card_lines, failure::Failure};

pub(super) const COMMAND: Command = Command {
    name: "card",
    arguments: "[remote]",
    about: "show this agent's card, or the connected agent's",
    run: |repl, whose| {
        Box::pin(async move {
            let card = match (whose, &repl.network.connection, &repl.network.serving) {
                ("remote", Some(connection), _) => connection.remote.card().clone(),
                ("remote", None, _) => {
                    return Err(Failure::usage("not connected; :connect URL connects to an agent"));
                }
                ("", _, Some(serving)) => serving.card().clone(),
                ("", _, None) => {
                    Server::card_of(repl.resident.agent(), "(not served; :listen PORT serves it)")
                }
                _ => {
                    return Err(Failure::usage(
                        ":card shows this agent's, :card remote the other's",
                    ));
                }
            };
            let text = card_lines(repl.screen.paint(), &card);
            repl.say(&text)?;
            Ok(Next::Stay)
        })
    },
};
