//! The domains, one file each, and how to find them.
//!
//! # Adding a domain
//! Write `domains/NAME.rs` and add a line to [`DOMAINS`]. The file has, from top to bottom:
//!
//! 1. `load(&DataDir, variant) -> Result<Domain, DataError>`: reads the database through its
//!    [`Model`](crate::schema::Model) (which converts, completes and orders it as pydantic does) and
//!    the policy, and names the toolkits. `tasks(&DataDir)` reads the tasks.
//! 2. The tools as one `static TOOLS: &[Tool]` for each side: [`read`](crate::toolkit::read),
//!    [`write`](crate::toolkit::write), [`generic`](crate::toolkit::generic) for tools,
//!    [`internal`](crate::toolkit::internal) for functions that only initial states and assertions
//!    call. Schemas, argument errors and replays follow from the table.
//! 3. The shapes as `static NAME: Model`. Fields are in the order of the reference's class, base
//!    class first: results are written in that order.
//! 4. The functions: `fn(&mut World, &Args) -> Result<Reply, Failure>`. `args["name"]` is the
//!    argument as it came: nothing has checked its type, because the reference checks nothing
//!    before a record is made of it ([`Model::make`](crate::schema::Model::make)). `world.db` is
//!    the agent's database, `world.user_db()` the user's; `at_mut(&["orders", id])` copies the way
//!    to what it returns and nothing else. Keep the reference's order of checks and writes: a call
//!    that fails half way keeps what it wrote. [`raise`](crate::raise) is `raise ValueError`.
//!    `python::{add, subtract, compare, …}` are arithmetic on values of unknown type.
//!    A record is returned as `Reply::Model`, a list of records as `Reply::List`, everything else
//!    as `Reply::Plain`.
//! 5. What both sides must agree on after each call is `Domain::sync`.

use crate::{DataDir, DataError, Domain, TaskSet};

mod airline;
mod banking;
mod bike_shop;
mod common;
mod mock;
mod retail;
mod telecom;

/// A domain by name and how it is loaded.
#[derive(Clone, Copy, Debug)]
pub struct DomainEntry {
    /// Its name.
    pub name: &'static str,
    /// Loads it. Some domains come in variants.
    pub load: fn(&DataDir, Option<&str>) -> Result<Domain, DataError>,
    /// Loads its tasks.
    pub tasks: fn(&DataDir) -> Result<TaskSet, DataError>,
}

/// All domains.
pub static DOMAINS: &[DomainEntry] = &[
    DomainEntry { name: "bike_shop", load: bike_shop::load, tasks: bike_shop::tasks },
    DomainEntry { name: "mock", load: mock::load, tasks: mock::tasks },
    DomainEntry { name: "airline", load: airline::load, tasks: airline::tasks },
    DomainEntry { name: "retail", load: retail::load, tasks: retail::tasks },
    DomainEntry { name: "telecom", load: telecom::load, tasks: telecom::tasks },
    DomainEntry { name: "telecom-workflow", load: telecom::load_workflow, tasks: telecom::tasks },
    DomainEntry { name: "banking_knowledge", load: banking::load, tasks: banking::tasks },
];

impl DomainEntry {
    /// Whether it is part of the program and takes no data directory.
    pub fn is_embedded(&self) -> bool {
        self.name == "bike_shop"
    }
}

/// A domain by name.
pub fn find(name: &str) -> Result<&'static DomainEntry, DataError> {
    DOMAINS.iter().find(|entry| entry.name == name).ok_or_else(|| DataError::UnknownDomain {
        name: name.to_owned(),
        known: DOMAINS.iter().map(|entry| entry.name).collect::<Vec<_>>().join(", "),
    })
}
