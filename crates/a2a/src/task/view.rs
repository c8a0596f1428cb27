//! A task as its journal tells it. There is no other record of a task.
//!
//! The view folds entries one by one. What an entry changes for somebody who watches comes out as
//! updates, and because it comes from the journal alone, everybody gets the same in the same order.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
};

use a2a::{
    Artifact, StreamResponse, Task, TaskArtifactUpdateEvent, TaskState, TaskStatus,
    TaskStatusUpdateEvent,
};
use duologue_core::{CallId, Entry, Event, HookChange, Inquiry, Message, Outcome, RunId, Usage};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    convert::{is_public, message_to_wire, parts_to_wire, spoken, time_to_wire},
    delegation::{told_usage, was_passed_on},
    record::{
        ARTIFACT, BIRTH, Birth, DELEGATED_TO, DELIVERED, DIRECT, INQUIRIES, OUTCOME, PIECE, Piece,
        Place, SAID, Said, TARGET, Update, Updates,
    },
    state::{is_settled, state_of},
};
use crate::{
    bidirectional::DELEGATED,
    client::ASK_CREDENTIALS,
    push::{Delivered, Target},
};

/// A task, folded from its journal.
#[derive(Clone, Debug)]
pub(crate) struct TaskView {
    id: String,
    birth: Option<Arc<Birth>>,
    created_at: i64,
    next_seq: u64,
    state: TaskState,
    status_message: Option<a2a::Message>,
    status_at: i64,
    status_seq: u64,
    history: Vec<a2a::Message>,
    artifacts: Vec<Artifact>,
    /// What the agent said last, which is its answer if the turn ends now.
    candidate: Option<Arc<Message>>,
    answers_given: u32,
    /// The answer, where it is to be given without a task.
    direct: Option<a2a::Message>,
    /// Questions whose answers are in the history as the client sent them.
    answered: HashSet<CallId>,
    /// Questions about credentials.
    credentials: HashSet<CallId>,
    targets: BTreeMap<String, Target>,
    delivered: BTreeMap<String, Delivered>,
    /// Tasks of other agents that it was passed on to.
    delegated: Vec<Value>,
    was_asked: bool,
    /// Whether another agent counts what is used for it, and what that is.
    is_counted: bool,
    usage: Usage,
    /// The last thing that the client said, by its id.
    heard: Option<String>,
    purpose: Purpose,
}

/// What a view is folded for. What nobody will ask for is not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To tell the task as it is, and every change.
    Both,
    /// To tell the task as it is when all is said.
    Snapshot,
    /// To tell changes to somebody who has the past already.
    Changes,
    /// To know its state.
    State,
}

impl Purpose {
    fn has_snapshots(self) -> bool {
        matches!(self, Self::Both | Self::Snapshot)
    }

    fn has_changes(self) -> bool {
        matches!(self, Self::Both | Self::Changes)
    }
}

impl TaskView {
    pub(crate) fn new(id: &str) -> Self {
        Self {
            id: id.to_owned(),
            birth: None,
            created_at: 0,
            next_seq: 0,
            state: TaskState::Submitted,
            status_message: None,
            status_at: 0,
            status_seq: 0,
            history: Vec::new(),
            artifacts: Vec::new(),
            candidate: None,
            answers_given: 0,
            direct: None,
            answered: HashSet::new(),
            credentials: HashSet::new(),
            targets: BTreeMap::new(),
            delivered: BTreeMap::new(),
            delegated: Vec::new(),
            was_asked: false,
            is_counted: false,
            usage: Usage::default(),
            heard: None,
            purpose: Purpose::Both,
        }
    }

    /// The view of a task that was begun a moment ago, with so many entries.
    pub(crate) fn born(id: &str, birth: Birth, at: i64, entries: u64) -> Self {
        Self {
            birth: Some(Arc::new(birth)),
            created_at: at,
            status_at: at,
            next_seq: entries,
            ..Self::new(id)
        }
    }

    /// The view of a whole journal.
    pub(crate) fn of(id: &str, entries: &[Arc<Entry>]) -> Self {
        let mut view = Self { purpose: Purpose::Snapshot, ..Self::new(id) };
        for entry in entries {
            view.fold(entry);
        }
        view.purpose = Purpose::Both;
        view
    }

    /// Go on with it for this alone. Without snapshots the past is forgotten.
    pub(crate) fn fold_for(&mut self, purpose: Purpose) {
        self.purpose = purpose;
        if !purpose.has_snapshots() {
            self.history = Vec::new();
        }
    }

    /// What the first entry says, if the session is a task at all and was asked for something.
    pub(crate) fn birth(&self) -> Option<&Arc<Birth>> {
        self.born_as().filter(|_| self.was_asked)
    }

    /// What the first entry says, if it was begun as a task.
    pub(super) fn born_as(&self) -> Option<&Arc<Birth>> {
        self.birth.as_ref()
    }

    pub(crate) fn context(&self) -> &str {
        self.birth.as_ref().map_or("", |birth| &birth.context)
    }

    pub(crate) fn state(&self) -> &TaskState {
        &self.state
    }

    /// The answer, where it is to be given without a task around it.
    pub(crate) fn direct(&self) -> Option<&a2a::Message> {
        self.direct.as_ref()
    }

    pub(crate) fn status_at(&self) -> i64 {
        self.status_at
    }

    /// The entry by which it came into its state.
    pub(crate) fn status_seq(&self) -> u64 {
        self.status_seq
    }

    pub(crate) fn created_at(&self) -> i64 {
        self.created_at
    }

    /// The id of what the client said last.
    pub(crate) fn heard(&self) -> Option<&str> {
        self.heard.as_deref()
    }

    /// Whether the client said this before. Only a view that keeps its past knows.
    pub(super) fn has_heard(&self, message: &str) -> bool {
        let is_it =
            |said: &a2a::Message| said.role == a2a::Role::User && said.message_id == message;
        self.history.iter().any(is_it)
    }

    /// Whether the client's answer to a question is on record only as what it said.
    pub(super) fn is_half_answered(&self, question: &CallId) -> bool {
        self.answered.contains(question)
    }

    pub(crate) fn next_seq(&self) -> u64 {
        self.next_seq
    }

    pub(crate) fn targets(&self) -> &BTreeMap<String, Target> {
        &self.targets
    }

    pub(crate) fn delivered(&self, target: &str) -> Option<&Delivered> {
        self.delivered.get(target)
    }

    /// The task as the protocol shows it. `None` shows all of its history.
    pub(crate) fn task(&self, history: Option<usize>, with_artifacts: bool) -> Task {
        let shown = history.unwrap_or(usize::MAX).min(self.history.len());
        let recent = self.history.get(self.history.len() - shown..).unwrap_or_default();
        Task {
            id: self.id.clone(),
            context_id: self.context().to_owned(),
            status: self.status(),
            artifacts: (with_artifacts && !self.artifacts.is_empty())
                .then(|| self.artifacts.clone()),
            history: (!recent.is_empty()).then(|| recent.to_vec()),
            metadata: self.metadata(),
        }
    }

    /// The task as the protocol shows it, when nothing else is wanted of the view.
    pub(crate) fn into_task(mut self, history: Option<usize>) -> Task {
        let status = TaskStatus {
            state: self.state.clone(),
            message: self.status_message.take(),
            timestamp: time_to_wire(self.status_at),
        };
        let hidden = self.history.len().saturating_sub(history.unwrap_or(usize::MAX));
        self.history.drain(..hidden);
        let metadata = self.metadata();
        Task {
            context_id: self.context().to_owned(),
            id: self.id,
            status,
            artifacts: (!self.artifacts.is_empty()).then_some(self.artifacts),
            history: (!self.history.is_empty()).then_some(self.history),
            metadata,
        }
    }

    fn metadata(&self) -> Option<HashMap<String, Value>> {
        let delegated =
            (!self.delegated.is_empty()).then(|| (DELEGATED_TO.to_owned(), json!(self.delegated)));
        let is_told = self.is_counted && self.state.is_terminal() && !self.usage.is_nothing();
        let used = is_told.then(|| told_usage(self.usage));
        let metadata: HashMap<String, Value> = delegated.into_iter().chain(used).collect();
        (!metadata.is_empty()).then_some(metadata)
    }

    /// The task as an update, at the place that the journal has come to.
    pub(crate) fn snapshot(&self, history: Option<usize>) -> Update {
        let place = Place { seq: self.next_seq.saturating_sub(1), part: Place::WHOLE };
        Update { place: Some(place), response: StreamResponse::Task(self.task(history, true)) }
    }

    fn status(&self) -> TaskStatus {
        TaskStatus {
            state: self.state.clone(),
            message: self.status_message.clone(),
            timestamp: time_to_wire(self.status_at),
        }
    }

    /// A piece of an answer that is being written, for the eye; `None` says that it begins anew.
    pub(crate) fn piece(&self, text: Option<&str>) -> Update {
        let mut message = self.agent_says("piece".to_owned(), text.unwrap_or_default().to_owned());
        let mark = if text.is_some() { json!(true) } else { json!("restart") };
        message.metadata = Some(HashMap::from([(PIECE.to_owned(), mark)]));
        let status = TaskStatus {
            state: TaskState::Working,
            message: Some(message),
            timestamp: time_to_wire(self.status_at),
        };
        let response = StreamResponse::StatusUpdate(TaskStatusUpdateEvent {
            task_id: self.id.clone(),
            context_id: self.context().to_owned(),
            status,
            metadata: None,
        });
        Update { place: None, response }
    }

    /// Take in the next entry; what it changes for whoever watches.
    pub(crate) fn fold(&mut self, entry: &Entry) -> Vec<Update> {
        self.next_seq = entry.seq + 1;
        if let Event::AgentMessage { message, .. } = &entry.event {
            let calls = message.tool_calls().filter(|call| call.name == ASK_CREDENTIALS);
            self.credentials.extend(calls.map(|call| call.id.clone()));
        }
        if let Event::AgentMessage { usage, .. } | Event::FunctionAnswered { usage, .. } =
            &entry.event
        {
            self.usage += *usage;
        }
        if entry.run != RunId::ROOT {
            return Vec::new();
        }
        let mut updates =
            Updates { seq: entry.seq, is_told: self.purpose.has_changes(), list: Vec::new() };
        // A task that is over stays as it is. Only where notifications go may still be noted.
        if self.state.is_terminal() && !matches!(entry.event, Event::Note { .. }) {
            return Vec::new();
        }
        match &entry.event {
            Event::SessionStarted { metadata, .. } => {
                self.birth = metadata
                    .get(BIRTH)
                    .and_then(|value| Birth::deserialize(value).ok().map(Arc::new));
                self.created_at = entry.at;
                self.status_at = entry.at;
            }
            Event::UserRequest { message, .. } => {
                self.was_asked = true;
                self.is_counted |= was_passed_on(message);
                self.heard = Some(message.id.as_str().to_owned());
                self.remember_question();
                self.remember(message);
            }
            Event::AgentResponseStart { .. } => {
                self.remember_question();
                self.enter(TaskState::Working, None, entry.at, &mut updates);
            }
            Event::AgentMessage { message, aside: None, .. } => {
                self.say_candidate(entry.at, &mut updates);
                self.candidate = Some(Arc::clone(message));
                if message.tool_calls().next().is_some() {
                    self.say_candidate(entry.at, &mut updates);
                }
            }
            Event::HookAnswered { change: HookChange::PostReply { message }, .. } => {
                self.candidate = Some(Arc::clone(message));
            }
            Event::AgentResponseEnd { outcome, .. } => self.end(outcome, entry, &mut updates),
            Event::ExternalActionResult { id, answer, .. } if !self.answered.remove(id) => {
                self.remember_question();
                self.remember(&spoken(answer, entry.seq));
            }
            Event::Note { topic, data } => self.noted(topic, data, &mut updates),
            _ => {}
        }
        updates.list
    }

    fn end(&mut self, outcome: &Outcome, entry: &Entry, updates: &mut Updates) {
        let candidate = self.candidate.take();
        // Words are for whoever reads them.
        let words = match self.purpose {
            Purpose::State => None,
            _ => self.last_words(outcome, candidate, entry, updates),
        };
        let mut state = state_of(outcome);
        // What another agent wants credentials for is a question here, of that kind.
        if let Outcome::InputRequired { inquiries } = outcome
            && inquiries.iter().any(|inquiry| self.credentials.contains(&inquiry.id))
        {
            state = TaskState::AuthRequired;
        }
        self.enter(state, words, entry.at, updates);
    }

    /// What stands beside the state that a turn ended in. An answer becomes an artifact instead.
    fn last_words(
        &mut self,
        outcome: &Outcome,
        candidate: Option<Arc<Message>>,
        entry: &Entry,
        updates: &mut Updates,
    ) -> Option<a2a::Message> {
        match outcome {
            Outcome::Completed => {
                if let Some(message) = candidate
                    && message.parts.iter().any(is_public)
                {
                    self.give_answer(&message, updates);
                }
                None
            }
            Outcome::InputRequired { inquiries } => {
                Some(self.question(inquiries, candidate.as_deref(), entry.seq))
            }
            other => {
                if let Some(message) = candidate {
                    self.remember(&message);
                }
                let reason = match other {
                    Outcome::Rejected { reason }
                    | Outcome::Aborted { reason }
                    | Outcome::Impossible { reason } => reason.clone(),
                    Outcome::Failed { error, .. } => error.clone(),
                    other => other.to_string(),
                };
                let mut message = self.agent_says(format!("status-{}", entry.seq), reason);
                // A reader that speaks our language learns which of its own outcomes it is.
                let ours = serde_json::to_value(other).unwrap_or(Value::Null);
                message.metadata = Some(HashMap::from([(OUTCOME.to_owned(), ours)]));
                Some(message)
            }
        }
    }

    fn give_answer(&mut self, message: &Message, updates: &mut Updates) {
        if message.metadata.contains_key(DIRECT) {
            let mut direct = message_to_wire(message, &self.id, self.context());
            direct.task_id = None;
            self.direct = Some(direct);
        }
        self.answers_given += 1;
        let artifact = Artifact {
            artifact_id: format!("answer-{}", self.answers_given),
            name: Some("answer".to_owned()),
            description: None,
            parts: parts_to_wire(&message.parts),
            metadata: None,
            extensions: None,
        };
        self.add_artifact(Piece { artifact, append: false, last_chunk: true }, updates);
    }

    /// What an agent that waits says.
    fn question(
        &self,
        inquiries: &[Inquiry],
        candidate: Option<&Message>,
        seq: u64,
    ) -> a2a::Message {
        let mut texts: Vec<String> = candidate.map(Message::text).into_iter().collect();
        texts.retain(|text| !text.is_empty());
        texts.extend(inquiries.iter().map(|inquiry| inquiry.kind.to_string()));
        if texts.is_empty() {
            texts.push("More input is needed.".to_owned());
        }
        let mut message = self.agent_says(format!("status-{seq}"), texts.join("\n"));
        if !inquiries.is_empty() {
            let exact = serde_json::to_value(inquiries).unwrap_or(Value::Null);
            message.metadata = Some(HashMap::from([(INQUIRIES.to_owned(), exact)]));
        }
        message
    }

    fn agent_says(&self, id: String, text: String) -> a2a::Message {
        a2a::Message {
            message_id: id,
            context_id: Some(self.context().to_owned()),
            task_id: Some(self.id.clone()),
            role: a2a::Role::Agent,
            parts: vec![a2a::Part::text(text)],
            metadata: None,
            extensions: None,
            reference_task_ids: None,
        }
    }

    /// What the agent said on its way is news and history; it was not the answer.
    fn say_candidate(&mut self, at: i64, updates: &mut Updates) {
        let Some(message) = self.candidate.take() else { return };
        if !message.parts.iter().any(is_public) {
            return;
        }
        let said = updates.is_told.then(|| message_to_wire(&message, &self.id, self.context()));
        self.remember(&message);
        self.enter(TaskState::Working, said, at, updates);
        // It stands in the history already.
        self.status_message = None;
    }

    fn noted(&mut self, topic: &str, data: &Value, updates: &mut Updates) {
        match topic.strip_prefix('@') {
            Some(SAID) if !self.state.is_terminal() => {
                if let Ok(said) = serde_json::from_value::<Said>(data.clone()) {
                    self.answered.extend(said.answers);
                    self.heard = Some(said.message.id.as_str().to_owned());
                    self.remember_question();
                    // It is noted again if the process ended before the answer itself was.
                    if !self.has_heard(said.message.id.as_str()) {
                        self.remember(&said.message);
                    }
                }
            }
            Some(TARGET) => {
                if let Ok(mut target) = serde_json::from_value::<Target>(data.clone()) {
                    target.since = updates.seq;
                    if target.is_deleted {
                        self.targets.remove(&target.id);
                    } else {
                        self.targets.insert(target.id.clone(), target);
                    }
                }
            }
            Some(DELIVERED) => {
                if let Ok(delivered) = serde_json::from_value::<Delivered>(data.clone()) {
                    self.delivered.insert(delivered.target.clone(), delivered);
                }
            }
            Some(_) => {}
            None if topic == ARTIFACT && !self.state.is_terminal() => {
                if let Ok(piece) = serde_json::from_value::<Piece>(data.clone()) {
                    self.add_artifact(piece, updates);
                }
            }
            // The same task is named again with every word that comes from it.
            None if topic == DELEGATED && !self.delegated.contains(data) => {
                self.delegated.push(data.clone());
            }
            None => {}
        }
    }

    fn add_artifact(&mut self, piece: Piece, updates: &mut Updates) {
        if self.purpose == Purpose::State {
            return;
        }
        let Piece { artifact, append, last_chunk } = piece;
        let known = self.artifacts.iter_mut().find(|a| a.artifact_id == artifact.artifact_id);
        let appends = append && known.is_some();
        let told = updates.is_told.then(|| artifact.clone());
        match known {
            Some(known) if append => known.parts.extend(artifact.parts),
            Some(known) => *known = artifact,
            None => self.artifacts.push(artifact),
        }
        if let Some(artifact) = told {
            updates.push(StreamResponse::ArtifactUpdate(TaskArtifactUpdateEvent {
                task_id: self.id.clone(),
                context_id: self.context().to_owned(),
                artifact,
                append: Some(appends),
                last_chunk: Some(last_chunk),
                metadata: None,
            }));
        }
    }

    fn enter(
        &mut self,
        state: TaskState,
        message: Option<a2a::Message>,
        at: i64,
        updates: &mut Updates,
    ) {
        self.state = state;
        self.status_message = message;
        self.status_at = at;
        self.status_seq = updates.seq;
        if updates.is_told {
            updates.push(StreamResponse::StatusUpdate(TaskStatusUpdateEvent {
                task_id: self.id.clone(),
                context_id: self.context().to_owned(),
                status: self.status(),
                metadata: None,
            }));
        }
    }

    /// A question that is being answered becomes history.
    fn remember_question(&mut self) {
        if is_settled(&self.state)
            && let Some(message) = self.status_message.take()
        {
            self.keep(message);
        }
    }

    fn remember(&mut self, message: &Message) {
        if self.purpose.has_snapshots() && message.parts.iter().any(is_public) {
            self.history.push(message_to_wire(message, &self.id, self.context()));
        }
    }

    fn keep(&mut self, message: a2a::Message) {
        if self.purpose.has_snapshots() {
            self.history.push(message);
        }
    }
}
