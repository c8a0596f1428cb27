//! The table of chat commands: one file each, registered here.

mod agent;
mod artifacts;
mod card;
mod connect;
mod disconnect;
mod fork;
mod help;
mod history;
mod listen;
mod memory;
mod model;
mod new;
mod open;
mod pending;
mod permissions;
mod quit;
mod remote;
mod servers;
mod session;
mod sessions;
mod stop;
mod task;
mod tasks;
mod tool;
mod tools;

use std::{future::Future, pin::Pin};

use super::{Next, Repl};
use crate::{config::suggest, failure::Failure};

/// A command of the chat.
pub(crate) struct Command {
    /// Its name, without the colon.
    pub(crate) name: &'static str,
    /// What may follow, for the help.
    pub(crate) arguments: &'static str,
    /// What it does, in a line.
    pub(crate) about: &'static str,
    /// What it does.
    pub(crate) run: for<'a> fn(&'a mut Repl, &'a str) -> Running<'a>,
}

/// A command at work.
pub(crate) type Running<'a> = Pin<Box<dyn Future<Output = Result<Next, Failure>> + 'a>>;

/// Every command, in the order in which the help lists them.
pub(crate) const ALL: &[Command] = &[
    help::COMMAND,
    new::COMMAND,
    session::COMMAND,
    sessions::COMMAND,
    open::COMMAND,
    fork::COMMAND,
    history::COMMAND,
    pending::COMMAND,
    memory::COMMAND,
    tools::COMMAND,
    tool::COMMAND,
    permissions::COMMAND,
    agent::COMMAND,
    model::COMMAND,
    servers::COMMAND,
    connect::COMMAND,
    disconnect::COMMAND,
    remote::COMMAND,
    card::COMMAND,
    listen::COMMAND,
    stop::COMMAND,
    tasks::COMMAND,
    task::COMMAND,
    artifacts::COMMAND,
    quit::COMMAND,
];

/// The command of a name, or of a beginning that only one name has.
pub(crate) fn find(name: &str) -> Result<&'static Command, String> {
    if let Some(command) = ALL.iter().find(|command| command.name == name) {
        return Ok(command);
    }
    let mut begins = ALL.iter().filter(|command| command.name.starts_with(name));
    if let (false, Some(command), None) = (name.is_empty(), begins.next(), begins.next()) {
        return Ok(command);
    }
    let hint = suggest(name, ALL.iter().map(|command| command.name));
    let hint = hint.map(|meant| format!(" (did you mean :{meant}?)")).unwrap_or_default();
    Err(format!("there is no command :{name}{hint}; :help lists them"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_found_by_a_beginning_that_is_its_own() {
        assert_eq!(find("he").map(|c| c.name), Ok("help"));
        assert_eq!(find("session").map(|c| c.name), Ok("session"));
        let unclear = find("s").map(|c| c.name).unwrap_err();
        assert!(unclear.contains(":help lists them"), "{unclear}");
        let typo = find("quti").map(|c| c.name).unwrap_err();
        assert!(typo.contains("did you mean :quit?"), "{typo}");
    }
}
