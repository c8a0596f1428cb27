//! Behaviours: the ways in which Duologue's agents work.
//!
//! A behaviour is pure; it decides and the driver in `duologue-core` does. All of them are plain
//! implementations of [`Behavior`](duologue_core::Behavior), as a user's own would be.
//!
//! - [`Generic`]: receive, think, call tools, go on until there is an answer.
//! - [`ReAct`]: the same with a thought before each action and a bound on the iterations.
//! - [`DualAct`]: one agent decides, others work.
//! - [`Planned`]: classify, plan, act, check, plan again, and notice being stuck.
//!
//! ```
//! use duologue_behaviors::ReAct;
//! use duologue_core::Agent;
//!
//! let agent = Agent::builder("clerk", ReAct::default()).system("You keep the books.").build();
//! assert!(agent.system().is_some_and(|prompt| prompt.starts_with("You keep the books.")));
//! ```

mod dual_act;
mod generic;
mod planned;
mod react;

pub use dual_act::{
    Accepted, Attributed, Conclusion, ConclusionNote, DecidedBy, Decision, DecisionNote,
    Deliberation, DualAct, DualActConfig, DualActError, LoopEnd, LoopStart, Response,
};
pub use generic::Generic;
pub use planned::{
    Choice, ChosenBy, Classification, Classifier, Complexity, EXECUTION_MODE, INDICATORS, Lesson,
    LessonError, LessonFile, LessonStore, MetaLook, MetaStrategy, MisfitNote, Occasion, Plan,
    PlanStep, Planned, PlannedConfig, PlannedNote, PlannedState, ReplanNote, ReplanReason, Rung,
    Sign, Strategy, StuckLimits, StuckNote, Todo, TodoItem, TodoStatus, UnknownStrategy,
    Validation, ValidationNote, indicator, similarity,
};
pub use react::ReAct;
