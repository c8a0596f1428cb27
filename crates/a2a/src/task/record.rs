//! What a task's journal holds besides what every journal holds, and how its changes are told.

use std::{fmt, sync::Arc};

use a2a::{Artifact, StreamResponse};
use duologue_core::{CallId, Message, Step};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::state::is_settled;
use crate::Caller;

/// Where a session's first entry says that it is a task.
pub(crate) const BIRTH: &str = "a2a";
/// The topic of what a client said in answer to a question.
pub(crate) const SAID: &str = "a2a_message";
/// The topic of where notifications go.
pub(crate) const TARGET: &str = "a2a_push";
/// The topic of notifications that were delivered, or given up.
pub(crate) const DELIVERED: &str = "a2a_delivered";
/// The topic of a note by which a behaviour gives an artifact before its answer.
pub(super) const ARTIFACT: &str = "artifact";
/// Where an answer says that it is to be given as it is, without a task around it.
pub(super) const DIRECT: &str = "a2a_direct";
/// Where a status says which outcome of ours it is.
pub(crate) const OUTCOME: &str = "duologue/outcome";
/// Where a task says which tasks of other agents work on it.
pub(super) const DELEGATED_TO: &str = "duologue/delegated";
/// Where a status says that it is a piece of an answer.
pub(super) const PIECE: &str = "duologue/piece";
/// Where a status says what exactly is asked.
pub(crate) const INQUIRIES: &str = "duologue/inquiries";

/// What the first entry of a task's journal says about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Birth {
    pub(crate) context: Arc<str>,
    /// Who began it and may see it.
    #[serde(default = "Caller::anonymous", skip_serializing_if = "Caller::is_anonymous")]
    pub(crate) owner: Caller,
    /// The client's key, by which a repeated request is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) key: Option<Arc<str>>,
    /// Whether it came through the oldest layer, which knows no rejection.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) by_tasks_send: bool,
}

/// What a client said in answer to questions.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Said {
    pub(crate) message: Message,
    /// The questions that it answers.
    pub(crate) answers: Vec<CallId>,
}

/// A piece of an artifact, as a behaviour gives it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Piece {
    pub(super) artifact: Artifact,
    #[serde(default)]
    pub(super) append: bool,
    #[serde(default)]
    pub(super) last_chunk: bool,
}

/// A step that gives whoever watches the task an artifact, or a piece of one. The answer itself
/// becomes an artifact without this.
pub fn give_artifact(artifact: Artifact, append: bool, last_chunk: bool) -> Step {
    let piece = Piece { artifact, append, last_chunk };
    let data = serde_json::to_value(piece).unwrap_or(Value::Null);
    Step::Note { topic: ARTIFACT.to_owned(), data }
}

/// A step that answers a message with a message: a client that does not stream is not told of a task.
/// For answers that are whole at once and need no follow-up.
pub fn reply_directly(mut message: Message) -> Step {
    message.metadata.insert(DIRECT.to_owned(), Value::Bool(true));
    Step::Say(message)
}

/// The place of an update: its entry, and which of the entry's updates it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) seq: u64,
    pub(crate) part: u32,
}

impl Place {
    /// Behind all updates of an entry.
    pub(super) const WHOLE: u32 = u32::MAX;

    /// From an event id.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        match text.trim().split_once('.') {
            Some((seq, part)) => Some(Self { seq: seq.parse().ok()?, part: part.parse().ok()? }),
            None => Some(Self { seq: text.trim().parse().ok()?, part: Self::WHOLE }),
        }
    }
}

/// As an event id.
impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.part {
            Self::WHOLE => write!(f, "{}", self.seq),
            part => write!(f, "{}.{part}", self.seq),
        }
    }
}

/// Something that changed for whoever watches a task.
#[derive(Clone, Debug)]
pub(crate) struct Update {
    /// Where it is in the journal. What is only for the eye is nowhere.
    pub(crate) place: Option<Place>,
    pub(crate) response: StreamResponse,
}

impl Update {
    /// Whether nothing follows until somebody does something.
    pub(crate) fn settles(&self) -> bool {
        match &self.response {
            StreamResponse::StatusUpdate(update) => is_settled(&update.status.state),
            StreamResponse::Task(task) => is_settled(&task.status.state),
            StreamResponse::Message(_) => true,
            StreamResponse::ArtifactUpdate(_) => false,
        }
    }

    /// Whether nothing follows at all.
    pub(crate) fn ends(&self) -> bool {
        match &self.response {
            StreamResponse::StatusUpdate(update) => update.status.state.is_terminal(),
            StreamResponse::Task(task) => task.status.state.is_terminal(),
            StreamResponse::Message(_) => true,
            StreamResponse::ArtifactUpdate(_) => false,
        }
    }
}

/// What one entry changes.
pub(super) struct Updates {
    pub(super) seq: u64,
    /// Whether anybody wants to know.
    pub(super) is_told: bool,
    pub(super) list: Vec<Update>,
}

impl Updates {
    pub(super) fn push(&mut self, response: StreamResponse) {
        let part = u32::try_from(self.list.len()).unwrap_or(u32::MAX);
        self.list.push(Update { place: Some(Place { seq: self.seq, part }), response });
    }
}
