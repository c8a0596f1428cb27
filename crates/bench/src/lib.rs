//! τ²-bench in Rust: agents and simulated users that both have tools, in environments whose state
//! says at the end whether the task was solved.
//!
//! The same tasks, tools and rewards as the reference (sierra-research/tau2-bench); its data and
//! results files are read and written as they are.
//!
//! - A [`Domain`] has tools for the agent and the user, databases, rules and [`Task`]s; [`domains`]
//!   says how one is added. Tools are tables ([`toolkit`]), and so are the shapes of data
//!   ([`schema`]).
//! - An [`Environment`] is one conversation's own state of a domain. It shares the domain's
//!   databases and copies what it writes ([`Value`]).
//! - A [`Simulation`] is what came of a conversation; [`evaluate`] judges it, [`Results`] is a file
//!   of them, [`metrics`] are their scores.
//! - A [`Participant`] is an agent ([`agents`]) or a simulated user ([`users`]); an
//!   [`Orchestrator`] passes messages between them and the environment.
//! - A [`Registry`] knows agents, users and domains by name; [`run`] runs a plan of many
//!   simulations. Any Duologue agent takes part by way of a [`SessionSeat`], one that cannot be given
//!   tools by a [`WordsSeat`]; [`gym`] is for training loops.
//! - [`python`] does what the reference's results show of Python: JSON, `repr`, arithmetic.
//!
//! What a score means: of four trials three were right, so two trials in a row, drawn by chance, are
//! both right half of the time.
//!
//! ```
//! use duologue_bench::metrics::pass_hat_k;
//!
//! assert_eq!(pass_hat_k(4, 3, 1), Some(0.75));
//! assert_eq!(pass_hat_k(4, 3, 2), Some(0.5));
//! ```

pub mod agents;
pub mod baselines;
pub mod clock;
mod data;
mod domain;
pub mod domains;
mod environment;
pub mod evaluate;
mod failure;
mod from_session;
pub mod gym;
pub mod llm;
mod message;
pub mod metrics;
pub mod orchestrator;
pub mod participant;
pub mod python;
pub mod registry;
pub mod run;
pub mod schema;
mod session_seat;
pub mod simulation;
mod task;
mod text;
pub mod toolkit;
pub mod users;
mod value;
mod words_seat;
pub mod world;

pub use data::{DataDir, DataError, TaskSet, no_assets, read_json, read_text};
pub use domain::Domain;
pub use environment::{Environment, Mode, Replay, calls_with_answers};
pub use failure::{Failure, raise};
pub use from_session::{history_of, simulation_of};
pub use message::{
    Extra, Message, MultiToolMessage, Requestor, SystemMessage, ToolCall, ToolMessage, Utterance,
};
pub use orchestrator::{Limits, Orchestrator, Protocol, SimulationError};
pub use participant::{AgentError, Incoming, Participant, Seat, Seated};
pub use registry::Registry;
pub use session_seat::{Attended, SessionSeat, Waits, external_tools};
pub use simulation::{Results, Simulation, Termination};
pub use task::{
    Action, Assertion, Description, EvaluationCriteria, FunctionCall, InitialState,
    InitializationData, Instructions, Issue, RewardType, StructuredInstructions, Task,
    UserScenario,
};
pub use toolkit::{Args, Reply, Tool, Toolkit};
pub use value::{Dict, Key, Value};
pub use words_seat::WordsSeat;
pub use world::{UserDatabase, World};
