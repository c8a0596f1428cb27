//! What an agent costs over a bare client.
//!
//! - `loop`: the same streamed conversation with a mock OpenAI server, held by several arms:
//!   [`plan`] says what is measured, [`contest`] runs it, [`table`] shows it.
//! - `growth`: whether a step costs more at the end of a long conversation ([`growth`]).
//! - `serve` and `arm` are the processes that `loop` starts: the mock server ([`mock`], with [`script`]
//!   and [`request`]) and one arm each ([`arms`]: [`raw`] and [`agent`]).

mod agent;
mod arms;
mod contest;
mod growth;
mod mock;
mod plan;
mod processes;
mod raw;
mod request;
mod script;
mod sse;
mod table;

use anyhow::Result;
use bench_arm::Orders;
use clap::{Parser, Subcommand};

use crate::{arms::OwnArm, plan::Plan};

#[derive(Parser)]
#[command(about = "What an agent costs over a bare client")]
struct Program {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measure all arms and print the table
    Loop(Plan),
    /// Measure whether a turn's cost grows with the conversation, and print the table
    Growth(growth::Plan),
    /// One arm's process (started by `loop`)
    #[command(hide = true)]
    Arm {
        arm: OwnArm,
        #[command(flatten)]
        orders: Orders,
    },
    /// The mock server's process (started by `loop`)
    #[command(hide = true)]
    Serve {
        /// Conversations that meet in the middle of the last answer.
        #[arg(long)]
        held: usize,
    },
}

fn main() -> Result<()> {
    match Program::parse().command {
        Command::Loop(plan) => contest::hold(&plan),
        Command::Growth(plan) => growth::run(&plan),
        Command::Arm { arm, orders } => arm.run(&orders),
        Command::Serve { held } => mock::serve(held),
    }
}
