//! A2A from the command line: serving an agent, talking to others, looking at tasks.

mod agents;
pub(crate) mod bidirectional;
pub(crate) mod card;
mod exchange;
mod seed_file;
mod send;
mod serve;
pub(crate) mod tasks;

use clap::Subcommand;

use crate::{
    failure::{Done, Failure},
    house::{Given, House},
};

/// The commands of A2A.
#[derive(Debug, Subcommand)]
pub(crate) enum A2a {
    /// Serve an agent to others over A2A.
    Serve(serve::Serve),
    /// Send a message to an agent elsewhere and see its task through.
    Send(send::Send),
    /// Show the card of an agent elsewhere.
    Card(card::Card),
    /// List, add, remove and ping the agents that are known elsewhere.
    #[command(subcommand)]
    Agents(agents::Agents),
    /// Look at, watch and cancel tasks, of this machine's journal or of a server.
    #[command(subcommand)]
    Tasks(tasks::Tasks),
    /// Talk with an agent that serves others and calls them.
    Bidirectional(bidirectional::Bidirectional),
}

impl A2a {
    /// What the house is opened with.
    pub(crate) fn given(&self) -> Result<Given, Failure> {
        match self {
            Self::Bidirectional(args) => args.given(),
            _ => Ok(Given::default()),
        }
    }
}

pub(crate) async fn run(house: House, command: A2a) -> Done {
    match command {
        A2a::Serve(args) => serve::serve(&house, args).await,
        A2a::Send(args) => send::send(&house, args).await,
        A2a::Card(args) => card::card(&house, args).await,
        A2a::Agents(args) => agents::agents(&house, args).await,
        A2a::Tasks(args) => tasks::tasks(&house, args).await,
        A2a::Bidirectional(args) => bidirectional::bidirectional(house, args).await,
    }
}
