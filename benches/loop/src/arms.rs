//! The arms that this program has itself.

use anyhow::Result;
use bench_arm::{Orders, run};
use clap::ValueEnum;

use crate::raw::Raw;

/// One of this program's own arms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OwnArm {
    /// A bare client that only parses.
    Raw,
}

impl OwnArm {
    /// Every arm, the reference first.
    pub(crate) const ALL: [Self; 1] = [Self::Raw];

    /// Its word on the command line and in the table.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Raw => "raw",
        }
    }

    /// Be this arm: carry the orders out and print the report.
    pub(crate) fn run(self, orders: &Orders) -> Result<()> {
        // The client cannot be built without a provider of cryptography, even for plain HTTP. An
        // error only says that there is one already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        match self {
            Self::Raw => run(Raw::new, orders),
        }
    }
}
