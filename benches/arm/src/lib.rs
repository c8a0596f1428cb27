//! What every arm of the loop benchmark shares.
//!
//! An arm is one way to hold the same conversation: a bare client, our agent, somebody else's
//! framework. Each runs in a process of its own, so that what the operating system says about the
//! process is said about the arm alone.
//!
//! - [`conversation`] is what is said, word for word; the mock server and every arm use it.
//! - [`Orders`] is what the harness asks of an arm, as command line arguments.
//! - [`Arm`] is what an arm implements, [`run`] measures it and prints a [`Report`].
//! - [`figure`] notes what `cargo xtask bench all` sums up.
//! - [`Usage`] is what the operating system knows about this process.

pub mod conversation;
mod figure;
mod orders;
mod run;
mod usage;

pub use figure::{Bar, FIGURES, figure};
pub use orders::{Orders, Pace};
pub use run::{Arm, FirstEvent, Report, median, run};
pub use usage::{Usage, raise_open_files};
