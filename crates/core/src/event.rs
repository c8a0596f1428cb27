//! The journal's one kind of thing: typed entries, each saying one thing that happened.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use serde_json::Value;

use crate::{
    Answer, Authors, CallId, Effect, Expectation, Inquiry, Message, Metadata, Outcome, RunId,
    SessionId, StopReason, ToolResult, ToolStatus, Usage,
};

/// The version of the schema that this code writes.
pub const SCHEMA_VERSION: u32 = 1;

/// One line of a journal. There are many, and most are small: what is large and rare is boxed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Its place, from 0, without gaps.
    pub seq: u64,
    /// When it was written, in milliseconds since 1970.
    pub at: i64,
    /// The run that it belongs to.
    #[serde(default, skip_serializing_if = "is_root")]
    pub run: RunId,
    /// What happened.
    #[serde(flatten)]
    pub event: Event,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_known(authors: &Authors) -> bool {
    *authors == Authors::Known
}

fn is_root(run: &RunId) -> bool {
    *run == RunId::ROOT
}

/// What happened. In JSON the kind stands beside the fields, as `"kind": "agent_message"`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self", tag = "kind", rename_all = "snake_case")]
pub enum Event {
    /// The first entry of every journal.
    SessionStarted {
        /// The version of the schema that the journal was begun with.
        schema: u32,
        /// The agent's name.
        agent: String,
        /// Where the journal was copied from, if it is a fork.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        forked_from: Option<ForkPoint>,
        /// What the application wants to find again, such as the model or the folder.
        #[serde(default, skip_serializing_if = "Metadata::is_empty")]
        metadata: Metadata,
    },
    /// A process took up a session in the middle of a turn.
    SessionResumed {
        /// Calls that were running when the last process ended.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        in_flight: Vec<CallId>,
    },
    /// Input: somebody asks the agent for something.
    UserRequest {
        /// What they said.
        message: Arc<Message>,
        /// How it meets a turn that is already under way.
        #[serde(default, skip_serializing_if = "Delivery::is_start")]
        delivery: Delivery,
        /// The shape that the answer must have, where one is asked for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expects: Option<Arc<Expectation>>,
    },
    /// Input: an answer to an [`Event::ExternalAction`].
    ExternalActionResult {
        /// The inquiry, or the tool call, that is answered.
        id: CallId,
        /// The answer.
        #[serde(flatten)]
        answer: Answer,
        /// Who answered.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
    },
    /// The agent overheard something that it need not answer.
    Observed {
        /// What.
        message: Arc<Message>,
    },
    /// Output: a turn begins.
    AgentResponseStart {
        /// Which, from 1 in each run.
        turn: u32,
    },
    /// Output: the agent said something whole; its tool calls are in the message.
    AgentMessage {
        /// What it said.
        message: Arc<Message>,
        /// The model that said it, as `provider/model`.
        #[serde(default, skip_serializing_if = "str::is_empty")]
        model: Arc<str>,
        /// What it used.
        #[serde(default)]
        usage: Usage,
        /// Why it stopped. Missing when it was cut off in the middle.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stop: Option<StopReason>,
        /// How long it took, in milliseconds.
        #[serde(default)]
        elapsed_ms: u64,
        /// What the answer is for, when it is not part of the conversation, such as `validation`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        aside: Option<Box<str>>,
    },
    /// Output: the agent needs something from outside.
    ExternalAction {
        /// What.
        #[serde(flatten, with = "asked")]
        inquiry: Box<Inquiry>,
    },
    /// A tool is about to run. Written before it does.
    ToolStarted {
        /// The call.
        call_id: CallId,
        /// The tool.
        name: String,
        /// What running it does; decides what happens after a crash.
        effect: Effect,
        /// The arguments, where they differ from the model's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        arguments: Option<Box<Value>>,
        /// Who wrote what it will give back. From strangers' words on, the session is tainted.
        #[serde(default, skip_serializing_if = "is_known")]
        authors: Authors,
    },
    /// A call has its result. Whole, however large.
    ToolEnded {
        /// The result.
        #[serde(flatten)]
        result: Arc<ToolResult>,
        /// How long it ran, in milliseconds.
        #[serde(default)]
        elapsed_ms: u64,
    },
    /// Output: the turn is over.
    AgentResponseEnd {
        /// Which.
        turn: u32,
        /// How it ended.
        #[serde(flatten)]
        outcome: Outcome,
    },
    /// A model call failed and is tried again.
    ModelRetried {
        /// Which try failed, from 1.
        attempt: u32,
        /// Why.
        error: String,
        /// How long the driver waits.
        wait_ms: u64,
    },
    /// A hook changed what passed through it, or failed.
    HookAnswered {
        /// The hook's name.
        hook: String,
        /// What it did.
        #[serde(flatten)]
        change: HookChange,
    },
    /// A user-supplied function answered.
    FunctionAnswered {
        /// The function's name.
        function: String,
        /// What it gave.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output: Option<Box<Value>>,
        /// Or why it failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
        /// What was used elsewhere for it.
        #[serde(default, skip_serializing_if = "Usage::is_nothing")]
        usage: Usage,
    },
    /// Old messages left the prompt. The journal keeps them.
    MemoryTrimmed {
        /// How many messages of the prompt went, counted from its oldest.
        dropped: usize,
        /// The summary that stands for them, where one was made.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        summary: Option<Arc<Message>>,
    },
    /// A run of another agent begins under this one.
    ChildStarted {
        /// The child's run.
        child: RunId,
        /// What the parent calls it, such as `reactive`.
        key: String,
        /// The child agent's name.
        agent: String,
    },
    /// A child finished a turn.
    ChildReplied {
        /// The child's run.
        child: RunId,
        /// What the parent calls it.
        key: String,
        /// How its turn ended.
        #[serde(flatten)]
        outcome: Outcome,
        /// What it said last.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<Arc<Message>>,
        /// The tools that it really called for this, the last ones; missing where it has none or
        /// works elsewhere.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        called: Option<Vec<CalledTool>>,
    },
    /// Something that a behaviour wrote down for itself and for whoever reads along.
    Note {
        /// What it is about, such as `plan`.
        topic: String,
        /// What it says.
        data: Value,
    },
    /// A kind of some later version: kept and shown as it is.
    #[serde(skip)]
    Unknown(Value),
}

/// An inquiry inside an entry. An entry says by itself which run it belongs to, and a name must not
/// come twice in one line; journals from before this had both as `run`.
mod asked {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::{CallId, Inquiry, InquiryKind, RunId};

    #[derive(Serialize)]
    struct Written<'a> {
        id: &'a CallId,
        #[serde(skip_serializing_if = "super::is_root")]
        asker: RunId,
        #[serde(flatten)]
        kind: &'a InquiryKind,
    }

    #[derive(Deserialize)]
    struct Read {
        id: CallId,
        #[serde(default, alias = "run")]
        asker: RunId,
        #[serde(flatten)]
        kind: InquiryKind,
    }

    pub(super) fn serialize<S: Serializer>(inquiry: &Inquiry, to: S) -> Result<S::Ok, S::Error> {
        let Inquiry { id, run, kind } = inquiry;
        Written { id, asker: *run, kind }.serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Box<Inquiry>, D::Error> {
        let Read { id, asker, kind } = Read::deserialize(from)?;
        Ok(Box::new(Inquiry { id, run: asker, kind }))
    }
}

/// A call that a child made, in brief. The child's own entries have it whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CalledTool {
    /// The tool's name.
    pub name: String,
    /// The beginning of its arguments, as JSON.
    pub arguments: String,
    /// How the call ended. What it gave stays with the child.
    pub status: ToolStatus,
}

impl CalledTool {
    /// Characters that are kept of the arguments.
    const ARGUMENTS: usize = 160;

    /// A call and its result in brief.
    pub(crate) fn new(arguments: &Value, result: &ToolResult) -> Self {
        Self {
            name: result.name.clone(),
            arguments: clip(&arguments.to_string(), Self::ARGUMENTS),
            status: result.status,
        }
    }
}

/// A text that is no longer than so many characters, with a mark where it goes on.
fn clip(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", text.split_at(at).0),
        None => text.to_owned(),
    }
}

/// Where a fork left its original.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForkPoint {
    /// The original.
    pub session: SessionId,
    /// The last entry that both have.
    pub at: u64,
}

/// How a request meets a turn that is already under way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Delivery {
    /// It starts a turn of its own.
    #[default]
    Start,
    /// It joins the turn under way, before the next step.
    Steer,
}

impl Delivery {
    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
    fn is_start(&self) -> bool {
        *self == Self::Start
    }
}

/// What a hook did to what passed through it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "point", rename_all = "snake_case")]
pub enum HookChange {
    /// Before the reply: the request was replaced.
    PreReply {
        /// By this.
        message: Arc<Message>,
    },
    /// After the reply: the answer was replaced.
    PostReply {
        /// By this.
        message: Arc<Message>,
    },
    /// Before a step: a message was put into the prompt.
    PreStep {
        /// This one.
        message: Arc<Message>,
    },
    /// After a step: a message was put into the prompt.
    PostStep {
        /// This one.
        message: Arc<Message>,
    },
    /// Before a tool: the arguments were replaced.
    PreTool {
        /// Of this call.
        call_id: CallId,
        /// By these.
        arguments: Box<Value>,
    },
    /// Before a tool: the call was refused.
    Refused {
        /// This call.
        call_id: CallId,
        /// Why.
        reason: String,
    },
    /// After a tool: the result was replaced. The replacement follows as `tool_ended`.
    PostTool {
        /// Of this call.
        call_id: CallId,
    },
    /// Before the end: the agent was sent back to work.
    SentBack {
        /// With these words.
        message: Arc<Message>,
    },
    /// The hook failed.
    Failed {
        /// Where.
        at: String,
        /// Why.
        error: String,
    },
}

/// The kinds that this version knows, as JSON spells them.
const KINDS: [&str; 18] = [
    "session_started",
    "session_resumed",
    "user_request",
    "external_action_result",
    "observed",
    "agent_response_start",
    "agent_message",
    "external_action",
    "tool_started",
    "tool_ended",
    "agent_response_end",
    "model_retried",
    "hook_answered",
    "function_answered",
    "memory_trimmed",
    "child_started",
    "child_replied",
    "note",
];

impl Event {
    /// The kind, as JSON spells it.
    pub fn kind(&self) -> &str {
        match self {
            Self::SessionStarted { .. } => "session_started",
            Self::SessionResumed { .. } => "session_resumed",
            Self::UserRequest { .. } => "user_request",
            Self::ExternalActionResult { .. } => "external_action_result",
            Self::Observed { .. } => "observed",
            Self::AgentResponseStart { .. } => "agent_response_start",
            Self::AgentMessage { .. } => "agent_message",
            Self::ExternalAction { .. } => "external_action",
            Self::ToolStarted { .. } => "tool_started",
            Self::ToolEnded { .. } => "tool_ended",
            Self::AgentResponseEnd { .. } => "agent_response_end",
            Self::ModelRetried { .. } => "model_retried",
            Self::HookAnswered { .. } => "hook_answered",
            Self::FunctionAnswered { .. } => "function_answered",
            Self::MemoryTrimmed { .. } => "memory_trimmed",
            Self::ChildStarted { .. } => "child_started",
            Self::ChildReplied { .. } => "child_replied",
            Self::Note { .. } => "note",
            Self::Unknown(value) => value.get("kind").and_then(Value::as_str).unwrap_or("unknown"),
        }
    }
}

impl Serialize for Event {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Unknown(value) => value.serialize(serializer),
            known => Self::serialize(known, serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Event {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let kind = value.get("kind").and_then(Value::as_str).unwrap_or_default();
        // A known kind that does not parse is an error; only an unknown kind is kept unread.
        if KINDS.contains(&kind) {
            Self::deserialize(value).map_err(D::Error::custom)
        } else if kind.is_empty() {
            Err(D::Error::missing_field("kind"))
        } else {
            Ok(Self::Unknown(value))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_entry_is_small() {
        assert!(size_of::<Entry>() <= 136, "{} bytes", size_of::<Entry>());
    }

    #[test]
    fn a_kind_of_a_later_version_survives_a_round_trip() {
        let line = json!({"seq": 7, "at": 5, "run": 2, "kind": "telepathy", "with": ["x"]});
        let entry: Entry = serde_json::from_value(line.clone()).unwrap();
        assert_eq!(entry.event.kind(), "telepathy");
        assert_eq!(entry.run, RunId(2));
        assert_eq!(serde_json::to_value(&entry).unwrap(), line);
    }

    #[test]
    fn a_question_of_a_child_names_its_run_once() {
        let kind = crate::InquiryKind::Budget { limit: crate::Limit::Steps, used: "9".into() };
        let inquiry = Box::new(Inquiry { id: "b-1".into(), run: RunId(2), kind });
        let event = Event::ExternalAction { inquiry };
        let entry = Entry { seq: 4, at: 0, run: RunId(2), event: event.clone() };
        let line = serde_json::to_string(&entry).unwrap();
        assert_eq!(line.matches("\"run\"").count(), 1, "{line}");
        assert_eq!(serde_json::from_str::<Entry>(&line).unwrap(), entry);
        // As it was written before.
        let old = json!({"kind": "external_action", "id": "b-1", "run": 2, "asks": "budget",
            "limit": "steps", "used": "9"});
        assert_eq!(serde_json::from_value::<Event>(old).unwrap(), event);
    }

    #[test]
    fn a_known_kind_that_does_not_parse_is_an_error() {
        let line = json!({"seq": 1, "at": 0, "kind": "agent_response_start", "turn": "x"});
        assert!(serde_json::from_value::<Entry>(line).is_err());
    }

    #[test]
    fn every_known_kind_is_listed() {
        let entry = Event::Note { topic: "t".into(), data: Value::Null };
        assert!(KINDS.contains(&entry.kind()));
        let json = serde_json::to_value(&entry).unwrap();
        assert_eq!(json, json!({"kind": "note", "topic": "t", "data": null}));
    }
}
