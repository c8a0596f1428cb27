//! The words every part of Duologue speaks, and the driver that makes them happen.
//!
//! Everything here is a conversation between two parties, written down while it happens as one
//! append-only journal of typed [`Entry`]s. The journal is at once the live stream, the checkpoint,
//! the trace, the fixture and the history from which the next prompt is made.
//!
//! - A [`Message`] has typed [`Part`]s; a [`Model`] answers a [`Request`] with a stream of
//!   [`Delta`]s; a [`Tool`] is what an agent can do besides talking.
//! - A [`Behavior`] is pure: it folds entries and decides the next [`Step`]. The driver does the
//!   I/O of a step and appends what came of it.
//! - An [`Agent`] is a behaviour with its model, tools, [`Policy`], [`Memory`], [`Budget`] and
//!   [`Hooks`]. A [`Session`] is a live conversation with one, kept in a [`Store`].
//! - Whoever needs an answer with a shape sends an [`Expectation`] with the request.
//! - Every turn ends in exactly one [`Outcome`]. What waits for a person is an [`Inquiry`]; what
//!   they say is an [`Answer`].
//!
//! This crate knows no provider, no HTTP, no terminal and no database.
//!
//! An agent needs a behaviour and nothing else. This one asks nobody; `duologue-behaviors` has those
//! that ask models and call tools.
//!
//! ```
//! use std::sync::Arc;
//!
//! use duologue_core::{
//!     Agent, Behavior, Latest, MemoryStore, Message, Outcome, Part, Role, RunState, Session,
//!     SessionOptions, Step, read_all, replay,
//! };
//!
//! struct Echo;
//!
//! impl Behavior for Echo {
//!     type State = ();
//!
//!     fn name(&self) -> &'static str {
//!         "echo"
//!     }
//!
//!     fn decide(&self, run: &RunState, (): &()) -> Step {
//!         match (run.latest(), run.request()) {
//!             (Latest::Input, Some(request)) => {
//!                 Step::Say(Message::new(Role::Assistant, vec![Part::text(request.text())]))
//!             }
//!             _ => Step::End(Outcome::Completed),
//!         }
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let agent = Agent::builder("parrot", Echo).build();
//! let store = Arc::new(MemoryStore::new());
//! let session = Session::start(&agent, store.clone(), SessionOptions::default())?;
//! assert_eq!(session.reply("Hello").await?.text(), "Hello");
//!
//! // The journal is all there is: it gives the same decisions again, without a model.
//! let entries = read_all(&*store, session.id()).await?;
//! replay(&agent, &entries)?;
//! # Ok(())
//! # }
//! ```

mod agent;
mod behavior;
mod budget;
mod causes;
mod detach;
mod driver;
mod event;
mod expectation;
mod hook;
mod ids;
mod memory;
mod message;
mod metadata;
mod model;
mod outcome;
mod output;
mod permission;
mod replay;
mod session;
mod state;
mod store;
mod tool;

pub use agent::{Agent, AgentBuilder, ChildrenMemory, Function, FunctionContext, Retry};
pub use behavior::{Ask, Behavior, ChildTurn, Profile, Step, ToolSelection};
pub use budget::{Budget, Grants, Spent};
pub use causes::with_causes;
pub use detach::{Broken, Detached, detach};
pub use event::{CalledTool, Delivery, Entry, Event, ForkPoint, HookChange, SCHEMA_VERSION};
pub use expectation::{Expectation, Unfit};
pub use hook::{HookContext, HookError, Hooks, PreTool};
pub use ids::{CallId, MessageId, RunId, SessionId};
pub use memory::{CUT_NOTE, Memory, OnFull, Window, WindowLimit};
pub use message::{FileSource, Message, Part, Role, ToolCall, ToolResult, ToolStatus};
pub use metadata::Metadata;
pub use model::{
    Accumulator, Completion, Delta, DeltaStream, ErrorClass, Model, ModelError, Options, Price,
    ReasoningEffort, Request, StopReason, ToolChoice, Usage,
};
pub use outcome::{Answer, FailureCause, Inquiry, InquiryKind, Limit, Outcome};
pub use output::OutputSchema;
pub use permission::{Grant, Mode, Policy, Rule, RuleError, Situation, Verdict};
pub use replay::{Divergence, replay};
pub use session::{
    Attendance, Events, Input, Live, Reply, Session, SessionError, SessionOptions, SessionState,
    WhenBusy, fork, read_all,
};
pub use state::{Batch, CallState, Latest, MOST_CALLED, Phase, RunState};
pub use store::{Claim, ListQuery, Mail, MemoryStore, SessionSummary, Store, StoreError};
pub use tool::{
    Authors, Content, Effect, Execution, FunctionTool, Questions, Reach, ResultReader, Risk, Tool,
    ToolContext, ToolError, ToolOutput, ToolSpec, Toolbox, parameters_of, tool,
};
