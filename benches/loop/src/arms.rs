//! The arms that this program has itself.

use anyhow::Result;
use bench_arm::{Orders, run};
use clap::ValueEnum;

use crate::{agent::OurAgent, raw::Raw};

/// One of this program's own arms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OwnArm {
    /// A bare client that only parses.
    Raw,
    /// Our agent with its journal in memory.
    Memory,
    /// Our agent with its journal in SQLite, as users have it by default.
    Sqlite,
    /// Our planned agent with its journal in memory: what planning costs over plain ReAct.
    Planned,
}

impl OwnArm {
    /// Every arm, the reference first.
    pub(crate) const ALL: [Self; 4] = [Self::Raw, Self::Memory, Self::Sqlite, Self::Planned];

    /// Its word on the command line and in the table.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Memory => "memory",
            Self::Sqlite => "sqlite",
            Self::Planned => "planned",
        }
    }

    /// Be this arm: carry the orders out and print the report.
    pub(crate) fn run(self, orders: &Orders) -> Result<()> {
        // The client cannot be built without a provider of cryptography, even for plain HTTP. An
        // error only says that there is one already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        match self {
            Self::Raw => run(async |orders: &Orders| Raw::new(orders), orders),
            Self::Memory => run(async |orders: &Orders| OurAgent::in_memory(orders), orders),
            Self::Sqlite => run(OurAgent::in_sqlite, orders),
            Self::Planned => run(async |orders: &Orders| OurAgent::planned(orders), orders),
        }
    }
}
