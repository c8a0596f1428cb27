//! Tasks: sessions of an agent as the protocol sees them.
//!
//! ```text
//! message ──▶ Tasks ──▶ Session (turn) ──▶ journal ──fold──▶ TaskView ──▶ task, updates
//! ```
//!
//! - `record` is what a task's journal holds; `view` is what it says about the task, and what each
//!   entry changes for whoever watches. `recover` finds tasks again.
//! - `open` holds the sessions that somebody works on or listens to.
//! - `follow` is somebody who watches.
//! - `kept` are tasks as a store has them; `index` is what lists need; `recall` is what a new task knows of its conversation.
//! - `unwritten` is what happens when the journal cannot be written.
//! - `delegation` is whose hands a request has gone through.
//! - `check`, `answer`, `convert` and `state` are between the protocol's words and ours.

mod answer;
mod check;
pub(crate) mod convert;
pub(crate) mod delegation;
mod follow;
mod index;
mod kept;
mod open;
mod recall;
pub(crate) mod record;
mod recover;
pub(crate) mod state;
mod tasks;
#[cfg(test)]
mod tests;
mod unwritten;
mod view;

pub(crate) use check::history_length;
pub(crate) use follow::{Until, Watch};
pub(crate) use index::{Cursor, Filter};
pub use kept::{kept_task, kept_tasks};
pub(crate) use open::Open;
pub(crate) use record::{Place, Update};
pub use record::{give_artifact, reply_directly};
pub(crate) use tasks::{Begin, KEY, TaskSettings, Tasks};
pub(crate) use view::TaskView;
