//! What is measured, and how often.

use std::{path::PathBuf, str::FromStr};

use bench_arm::{Orders, Pace};
use clap::{Args, value_parser};

/// How the benchmark is run.
#[derive(Args, Clone, Debug)]
pub(crate) struct Plan {
    /// Conversations of the CPU measurement
    #[arg(long, default_value_t = 1_000, value_parser = value_parser!(u32).range(1..=100_000))]
    pub(crate) agents: u32,
    /// Conversations under way at the same time in the CPU measurement
    #[arg(long, default_value_t = 64, value_parser = value_parser!(u32).range(1..=10_000))]
    pub(crate) at_once: u32,
    /// How often every arm is measured, in turns; the table shows medians
    #[arg(long, default_value_t = 5, value_parser = value_parser!(u32).range(1..=100))]
    pub(crate) repeats: u32,
    /// Numbers of agents that are in flight at one moment for the memory measurement
    #[arg(long, value_delimiter = ',', default_values_t = [1_000, 10_000], value_parser = value_parser!(u32).range(1..=100_000))]
    pub(crate) crowds: Vec<u32>,
    /// How often the memory of every crowd is measured; 0 leaves it out
    #[arg(long, default_value_t = 1, value_parser = value_parser!(u32).range(0..=100))]
    pub(crate) crowd_repeats: u32,
    /// Worker threads of each arm's runtime
    #[arg(long, default_value_t = 1, value_parser = value_parser!(u32).range(1..=256))]
    pub(crate) threads: u32,
    /// A further arm as `NAME=PROGRAM`; the program takes the same orders as our own arms
    #[arg(long = "extra", value_name = "NAME=PROGRAM")]
    pub(crate) extras: Vec<Extra>,
}

/// An arm that is a program of its own.
#[derive(Clone, Debug)]
pub(crate) struct Extra {
    /// Its name in the table.
    pub(crate) name: String,
    /// The program.
    pub(crate) program: PathBuf,
}

impl FromStr for Extra {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, program) = text
            .split_once('=')
            .filter(|(name, program)| !name.is_empty() && !program.is_empty())
            .ok_or("expected NAME=PROGRAM, such as rig=target/release/bench-rig")?;
        Ok(Self { name: name.to_owned(), program: program.into() })
    }
}

/// One kind of measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// One conversation after the other: how long a user waits for the first event.
    Alone,
    /// Many conversations on a busy thread: what a step costs.
    Busy,
    /// So many conversations in flight at one moment: what an agent weighs.
    Crowd(u32),
}

impl Plan {
    /// Every measurement with its turn, in the order in which they are taken. Arms take turns
    /// inside each, so that a machine that slows down slows all arms down.
    pub(crate) fn rounds(&self) -> Vec<Phase> {
        let steady = (0..self.repeats).flat_map(|_| [Phase::Alone, Phase::Busy]);
        let crowds = (0..self.crowd_repeats).flat_map(|_| self.crowds.iter().copied());
        steady.chain(crowds.map(Phase::Crowd)).collect()
    }

    /// What a phase asks of an arm.
    pub(crate) fn orders(&self, phase: Phase, url: String) -> Orders {
        let (agents, warm_up, at_once, pace) = match phase {
            Phase::Alone => (self.agents.div_ceil(5), 20, 1, Pace::Free),
            Phase::Busy => (self.agents, 2 * self.at_once, self.at_once, Pace::Free),
            Phase::Crowd(agents) => (agents, 10, agents, Pace::Held),
        };
        Orders {
            url,
            agents: agents as usize,
            warm_up: warm_up as usize,
            at_once: at_once as usize,
            pace,
            threads: self.threads as usize,
        }
    }
}
