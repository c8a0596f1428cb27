//! The words every part of Duologue speaks.

mod event;
mod ids;
mod message;
mod model;
mod outcome;
mod store;
mod tool;

pub use event::{Delivery, Entry, Event, ForkPoint, HookChange, SCHEMA_VERSION};
pub use ids::{CallId, MessageId, RunId, SessionId};
pub use message::{FileSource, Message, Part, Role, ToolCall, ToolResult, ToolStatus};
pub use model::{
    Accumulator, Completion, Delta, DeltaStream, ErrorClass, Model, ModelError, Options,
    OutputSchema, Price, ReasoningEffort, Request, StopReason, ToolChoice, Usage,
};
pub use outcome::{Answer, FailureCause, Inquiry, InquiryKind, Limit, Outcome};
pub use store::{Claim, ListQuery, Mail, MemoryStore, SessionSummary, Store, StoreError};
pub use tool::{
    Content, Effect, Execution, FunctionTool, ResultReader, Tool, ToolContext, ToolError,
    ToolOutput, ToolSpec, Toolbox, parameters_of, tool,
};
