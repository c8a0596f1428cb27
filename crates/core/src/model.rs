//! What a language model is to everyone else: something that answers a request with a stream.

use std::{
    borrow::Cow,
    fmt,
    ops::{Add, AddAssign},
    sync::Arc,
    time::Duration,
};

use futures::stream::BoxStream;
use serde::{Deserialize, Serialize};

use crate::{CallId, Message, MessageId, OutputSchema, Part, Role, ToolCall, ToolSpec};

/// A language model.
///
/// Models compose by wrapping: a recorder is a model over a model. Dropping the stream cancels the
/// request.
pub trait Model: Send + Sync {
    /// `provider/model`, as a person writes it.
    fn name(&self) -> &str;

    /// Answer a request. Errors come through the stream, the first included.
    fn ask(&self, request: Request) -> DeltaStream;

    /// What the tokens of a request cost, where that is known.
    fn price(&self) -> Option<Price> {
        None
    }
}

/// A model's answer while it arrives.
pub type DeltaStream = BoxStream<'static, Result<Delta, ModelError>>;

/// What a model is asked.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The instructions that frame the conversation.
    pub system: Option<Arc<str>>,
    /// The conversation so far. It is shared with the agent's memory: a model that keeps the
    /// request after it has answered makes the agent copy the list.
    pub messages: Arc<Vec<Arc<Message>>>,
    /// Messages for this request alone, after the conversation.
    pub extra: Vec<Arc<Message>>,
    /// The tools that the model may call.
    pub tools: Arc<[Arc<ToolSpec>]>,
    /// Everything else.
    pub options: Options,
}

impl Request {
    /// The conversation and what this request adds to it, in order.
    pub fn all_messages(&self) -> impl Iterator<Item = &Arc<Message>> {
        self.messages.iter().chain(&self.extra)
    }
}

/// How a model is to answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Options {
    /// Whether and which tool must be called.
    pub tool_choice: ToolChoice,
    /// How freely to choose among tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Same seed, same answer, as far as the provider can.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// The most tokens to answer with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
    /// Texts that end the answer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stop: Vec<String>,
    /// The answer must be JSON of this shape.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<OutputSchema>,
    /// How hard to think, where the model can be told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_effort: Option<ReasoningEffort>,
}

/// How hard a model thinks before it speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReasoningEffort {
    /// As little as possible.
    Minimal,
    /// A little.
    Low,
    /// The usual.
    Medium,
    /// A lot.
    High,
}

/// Whether a model may, must or must not call tools.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolChoice {
    /// As the model sees fit.
    #[default]
    Auto,
    /// At least one, whichever.
    Required,
    /// None.
    None,
    /// This one.
    One(String),
}

/// A piece of an answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Delta {
    /// More text.
    Text(String),
    /// More of a thought.
    Reasoning(String),
    /// The provider's signature over the thought so far.
    ReasoningSignature(String),
    /// A tool call begins.
    CallStart {
        /// Which of the answer's calls, from 0.
        index: usize,
        /// Its id, where the provider names calls.
        id: Option<CallId>,
        /// The tool's name.
        name: String,
    },
    /// More of a call's arguments, as JSON text.
    CallArguments {
        /// Which of the answer's calls.
        index: usize,
        /// The next fragment.
        fragment: String,
    },
    /// The provider's signature over a call.
    CallSignature {
        /// Which of the answer's calls.
        index: usize,
        /// The signature.
        signature: String,
    },
    /// What the request used. May come more than once; the last one counts.
    Usage(Usage),
    /// The answer is complete. A stream that ends without it was cut off.
    Stop(StopReason),
}

/// Why a model stopped.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// It had said everything.
    #[default]
    Completed,
    /// It wants tools to run.
    ToolCalls,
    /// It reached the token limit.
    MaxTokens,
    /// It met a stop text.
    StopText,
    /// The provider withheld the rest.
    ContentFilter,
    /// Anything else, in the provider's word.
    Other(String),
}

/// What a request used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Tokens read, cached ones included.
    #[serde(skip_serializing_if = "is_zero")]
    pub input_tokens: u64,
    /// Tokens written, reasoning included.
    #[serde(skip_serializing_if = "is_zero")]
    pub output_tokens: u64,
    /// Of the tokens read, those that came from a cache.
    #[serde(skip_serializing_if = "is_zero")]
    pub cached_tokens: u64,
    /// Of the tokens written, those that were thought.
    #[serde(skip_serializing_if = "is_zero")]
    pub reasoning_tokens: u64,
    /// What it cost, in millionths of a US dollar.
    #[serde(skip_serializing_if = "is_zero")]
    pub cost_microusd: u64,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Usage {
    /// Whether nothing was used.
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// All tokens, read and written.
    pub fn tokens(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }
}

impl Add for Usage {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
            cached_tokens: self.cached_tokens.saturating_add(other.cached_tokens),
            reasoning_tokens: self.reasoning_tokens.saturating_add(other.reasoning_tokens),
            cost_microusd: self.cost_microusd.saturating_add(other.cost_microusd),
        }
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

/// What a model costs, in US dollars per million tokens.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Price {
    /// For tokens read.
    pub input: f64,
    /// For tokens written.
    pub output: f64,
    /// For tokens read from the provider's cache.
    pub cached: f64,
}

impl Price {
    /// The cost of a usage in millionths of a dollar, rounded up.
    pub fn cost_microusd(&self, usage: &Usage) -> u64 {
        let fresh = usage.input_tokens.saturating_sub(usage.cached_tokens);
        let cost = fresh as f64 * self.input
            + usage.cached_tokens as f64 * self.cached
            + usage.output_tokens as f64 * self.output;
        // Dollars per million tokens are millionths of a dollar per token.
        cost.ceil().max(0.0) as u64
    }
}

/// Why a model did not answer.
///
/// The text is for a person and never carries a key.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct ModelError {
    /// Of what kind it is.
    pub class: ErrorClass,
    /// What happened.
    pub message: Cow<'static, str>,
    /// How long the provider asked to wait.
    pub retry_after: Option<Duration>,
}

/// What kind of error a model gave, which decides what the driver does about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorClass {
    /// Too many requests: tried again.
    RateLimited,
    /// The provider is out of order or overloaded: tried again.
    Server,
    /// No answer in time: tried again.
    Timeout,
    /// The way to the provider failed: tried again.
    Network,
    /// The answer broke off or could not be read: tried again.
    Malformed,
    /// The credentials are missing or were refused: ends the turn.
    Authentication,
    /// The prompt is longer than the model can read: trimmed and tried again.
    ContextOverflow,
    /// The provider does not accept the request: ends the turn.
    BadRequest,
    /// A replay has no such answer: ends the turn.
    ReplayMiss,
}

impl ErrorClass {
    /// Whether the same request may succeed later.
    pub fn is_transient(self) -> bool {
        matches!(
            self,
            Self::RateLimited | Self::Server | Self::Timeout | Self::Network | Self::Malformed
        )
    }
}

impl fmt::Display for ErrorClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::RateLimited => "rate limited",
            Self::Server => "provider error",
            Self::Timeout => "timeout",
            Self::Network => "network error",
            Self::Malformed => "malformed answer",
            Self::Authentication => "authentication",
            Self::ContextOverflow => "prompt too long",
            Self::BadRequest => "bad request",
            Self::ReplayMiss => "replay mismatch",
        })
    }
}

impl ModelError {
    /// An error of a class.
    pub fn new(class: ErrorClass, message: impl Into<Cow<'static, str>>) -> Self {
        Self { class, message: message.into(), retry_after: None }
    }

    /// The same error with the provider's wish for a pause.
    #[must_use]
    pub fn retry_after(mut self, wait: Duration) -> Self {
        self.retry_after = Some(wait);
        self
    }
}

/// Puts deltas together into the message that they are.
#[derive(Debug, Default)]
pub struct Accumulator {
    parts: Vec<Part>,
    calls: Vec<PartialCall>,
    usage: Usage,
    stop: Option<StopReason>,
}

#[derive(Debug)]
struct PartialCall {
    index: usize,
    id: Option<CallId>,
    name: String,
    arguments: String,
    signature: Option<String>,
}

/// A finished answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Completion {
    /// What the model said.
    pub message: Message,
    /// What it used.
    pub usage: Usage,
    /// Why it stopped; `None` when it was cut off.
    pub stop: Option<StopReason>,
}

impl Accumulator {
    /// Take in the next delta.
    pub fn push(&mut self, delta: Delta) {
        match delta {
            Delta::Text(more) => match self.parts.last_mut() {
                Some(Part::Text { text }) => text.push_str(&more),
                _ if more.is_empty() => {}
                _ => self.parts.push(Part::Text { text: more }),
            },
            Delta::Reasoning(more) => match self.parts.last_mut() {
                Some(Part::Reasoning { text, signature: None }) => text.push_str(&more),
                _ if more.is_empty() => {}
                _ => self.parts.push(Part::Reasoning { text: more, signature: None }),
            },
            Delta::ReasoningSignature(proof) => {
                let thought = self.parts.iter_mut().rev().find_map(|part| match part {
                    Part::Reasoning { signature, .. } => Some(signature),
                    _ => None,
                });
                match thought {
                    Some(signature) => *signature = Some(proof),
                    None => self
                        .parts
                        .push(Part::Reasoning { text: String::new(), signature: Some(proof) }),
                }
            }
            Delta::CallStart { index, id, name } => self.calls.push(PartialCall {
                index,
                id,
                name,
                arguments: String::new(),
                signature: None,
            }),
            Delta::CallArguments { index, fragment } => {
                if let Some(call) = self.call(index) {
                    call.arguments.push_str(&fragment);
                }
            }
            Delta::CallSignature { index, signature } => {
                if let Some(call) = self.call(index) {
                    call.signature = Some(signature);
                }
            }
            Delta::Usage(usage) => self.usage = usage,
            Delta::Stop(stop) => self.stop = Some(stop),
        }
    }

    fn call(&mut self, index: usize) -> Option<&mut PartialCall> {
        self.calls.iter_mut().rev().find(|call| call.index == index)
    }

    /// Whether nothing has been said yet.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty() && self.calls.is_empty()
    }

    /// The answer as far as it came. Calls that were cut off in the middle are left out when
    /// `stop` is missing, because half a call must never run.
    pub fn finish(self) -> Completion {
        let mut parts = self.parts;
        if self.stop.is_some() {
            parts.extend(self.calls.into_iter().map(|call| {
                let id = call.id.unwrap_or_else(CallId::random);
                let mut whole = ToolCall::from_json_text(id, call.name, &call.arguments);
                whole.signature = call.signature;
                Part::from(whole)
            }));
        }
        // What was said is kept for as long as the conversation: without room to grow.
        parts.shrink_to_fit();
        for part in &mut parts {
            if let Part::Text { text } | Part::Reasoning { text, .. } = part {
                text.shrink_to_fit();
            }
        }
        let message = Message {
            id: MessageId::random(),
            role: Role::Assistant,
            name: None,
            parts,
            metadata: crate::Metadata::new(),
        };
        Completion { message, usage: self.usage, stop: self.stop }
    }
}
