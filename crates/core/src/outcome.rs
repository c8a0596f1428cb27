//! How a turn ends, and what may be asked of a person on the way.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{CallId, Part, RunId, ToolCall};

/// How a turn ended. Every turn ends in exactly one outcome; there is no other type for it in the
/// whole product.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome {
    /// The agent did what it was asked.
    Completed,
    /// The agent waits for somebody. Answering continues the work in a new turn.
    InputRequired {
        /// What is waited for, in the order it was asked.
        inquiries: Vec<Inquiry>,
    },
    /// Somebody stopped it. Partial work is kept.
    Aborted {
        /// Who or what stopped it.
        reason: String,
    },
    /// Something broke that the agent could not work around.
    Failed {
        /// What broke, for a person.
        error: String,
        /// Of what kind it is.
        cause: FailureCause,
    },
    /// The agent declined the task.
    Rejected {
        /// Why.
        reason: String,
    },
    /// The agent found that the task cannot be done.
    Impossible {
        /// Why.
        reason: String,
    },
    /// The agent noticed that it makes no progress.
    Stuck {
        /// What was tried.
        summary: String,
    },
    /// A bound was reached.
    LimitReached {
        /// Which bound.
        limit: Limit,
    },
}

/// What kind of failure ended a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureCause {
    /// The provider refused the credentials.
    Authentication,
    /// The model or the way to it failed.
    Model,
    /// A hook or another user-supplied function failed.
    Hook,
    /// The journal could not be written.
    Store,
    /// Anything else.
    Internal,
}

/// A bound that a run can reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// Model calls.
    Steps,
    /// Rounds of a supervising loop.
    Loops,
    /// Tokens.
    Tokens,
    /// Money.
    Cost,
    /// Wall-clock time.
    Time,
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Steps => "steps",
            Self::Loops => "loops",
            Self::Tokens => "tokens",
            Self::Cost => "cost",
            Self::Time => "time",
        })
    }
}

/// Something that waits for an answer from outside the agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Inquiry {
    /// What an answer refers to. For a tool call it is the call's own id.
    pub id: CallId,
    /// The run that asks.
    #[serde(default)]
    pub run: RunId,
    /// What is asked.
    #[serde(flatten)]
    pub kind: InquiryKind,
}

/// What an agent may ask of somebody outside.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "asks", rename_all = "snake_case")]
pub enum InquiryKind {
    /// May this call run?
    Approval {
        /// The call as it would run.
        call: ToolCall,
        /// Why it needs a yes.
        reason: String,
    },
    /// A question to a person.
    Question {
        /// The question.
        text: String,
        /// Suggested answers; empty means free text.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        choices: Vec<String>,
    },
    /// A call that somebody outside carries out, such as a test environment.
    Execution {
        /// The call.
        call: ToolCall,
    },
    /// Credentials are missing.
    Credentials {
        /// For what.
        target: String,
    },
    /// A budget is used up. Approving grants the same amount again.
    Budget {
        /// Which part of it.
        limit: Limit,
        /// What was used, for a person.
        used: String,
    },
}

/// An answer to an [`Inquiry`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum Answer {
    /// Yes, this once.
    Approve,
    /// Yes, and do not ask again for this tool in this session.
    ApproveAlways,
    /// No.
    Deny {
        /// Told to the model.
        #[serde(default)]
        reason: String,
    },
    /// Yes, with other arguments.
    Edit {
        /// The arguments to use.
        arguments: Box<Value>,
    },
    /// The result itself, from outside: the answer to a question, or what a call gave elsewhere.
    Result {
        /// What the agent gets.
        content: Vec<Part>,
        /// Whether it stands for a failure.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
}

impl Answer {
    /// A text as the result.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Result { content: vec![Part::text(text)], is_error: false }
    }
}

impl Outcome {
    /// One word for the outcome, as the journal spells it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::InputRequired { .. } => "input_required",
            Self::Aborted { .. } => "aborted",
            Self::Failed { .. } => "failed",
            Self::Rejected { .. } => "rejected",
            Self::Impossible { .. } => "impossible",
            Self::Stuck { .. } => "stuck",
            Self::LimitReached { .. } => "limit_reached",
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Completed => f.write_str("completed"),
            Self::InputRequired { inquiries } => match inquiries.as_slice() {
                [one] => write!(f, "input required: {}", one.kind),
                many => write!(f, "input required: {} answers", many.len()),
            },
            Self::Aborted { reason } => write!(f, "aborted: {reason}"),
            Self::Failed { error, .. } => write!(f, "failed: {error}"),
            Self::Rejected { reason } => write!(f, "rejected: {reason}"),
            Self::Impossible { reason } => write!(f, "impossible: {reason}"),
            Self::Stuck { summary } => write!(f, "stuck: {summary}"),
            Self::LimitReached { limit } => write!(f, "limit reached: {limit}"),
        }
    }
}

impl fmt::Display for InquiryKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Approval { call, .. } => write!(f, "approve {} {}?", call.name, call.arguments),
            Self::Question { text, .. } => f.write_str(text),
            Self::Execution { call } => write!(f, "result of {} {}", call.name, call.arguments),
            Self::Credentials { target } => write!(f, "credentials for {target}"),
            Self::Budget { limit, used } => write!(f, "{limit} used up ({used}); grant more?"),
        }
    }
}
