//! What an agent costs over a bare client.
//!
//! - `loop`: the same streamed conversation with a mock OpenAI server, held by several arms:
//!   [`plan`] says what is measured, [`contest`] runs it, [`table`] shows it.
//! - `serve` and `arm` are the processes that it starts: the mock server ([`mock`], with [`script`]
//!   and [`request`]) and one arm each ([`arms`], [`raw`]).

mod arms;
mod contest;
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
        Command::Arm { arm, orders } => arm.run(&orders),
        Command::Serve { held } => mock::serve(held),
    }
}
