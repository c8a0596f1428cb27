//! A remote agent as one of ours: a behaviour that lets the other side think.
//!
//! Sending and waiting are functions of the agent, so what came of them is in the journal. After a
//! crash a task that was sent is found again by its id; a message that may or may not have been sent
//! is sent again with the same key, by which a Duologue server knows it.

use std::{collections::HashMap, sync::Arc};

use a2a::{Message as WireMessage, SendMessageResponse, Task, TaskState};
use duologue_core::{
    Agent, Behavior, CallId, Delivery, Effect, Entry, Event, Execution, FailureCause, Latest,
    Message, Outcome, Part, Role, RunState, Step, ToolCall, ToolStatus, Toolbox, tool,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Remote, follow::answer_of};
use crate::task::{
    KEY,
    convert::{message_from_wire, message_to_wire, parts_from_wire},
    delegation::pass_on,
    record::OUTCOME,
    state::{is_settled, outcome_of, state_of},
};

/// The functions by which the behaviour reaches the other agent.
const SEND: &str = "a2a_send";
const FOLLOW: &str = "a2a_follow";
/// The tool by which its questions reach a person.
const ASK: &str = "ask_human";

/// What is asked of a person.
#[derive(Deserialize, JsonSchema)]
struct Question {
    /// The question.
    #[allow(dead_code, reason = "the question is read from the call by the driver")]
    question: String,
}

pub(super) fn agent_of(remote: &Remote, name: Arc<str>) -> Agent {
    let ask = tool(ASK, "Asks a person.", Effect::Pure, |_: Question, _| async { Ok("") })
        .execution(Execution::Human);
    let (sender, follower) = (remote.clone(), remote.clone());
    Agent::builder(name, RemoteAgent)
        .description(remote.card().description.as_str())
        .tools(Toolbox::new().with(ask))
        .function(SEND, move |input| {
            let remote = sender.clone();
            async move {
                let message: WireMessage =
                    serde_json::from_value(input).map_err(|error| error.to_string())?;
                let sent = remote.send(message).await.map_err(|error| error.message)?;
                serde_json::to_value(Came::from(sent)).map_err(|error| error.to_string())
            }
        })
        .function(FOLLOW, move |input| {
            let remote = follower.clone();
            async move {
                let id = input.as_str().unwrap_or_default().to_owned();
                // Whoever stops waiting, because they were cancelled, stops the task too.
                let guard = CancelOnDrop { remote: remote.clone(), task: Some(id.clone()) };
                let task = remote.follow(&id).await.map_err(|error| error.message)?;
                guard.done();
                serde_json::to_value(Came::Task(task)).map_err(|error| error.to_string())
            }
        })
        .build()
}

/// Cancels a remote task unless it was seen to its end.
struct CancelOnDrop {
    remote: Remote,
    task: Option<String>,
}

impl CancelOnDrop {
    fn done(mut self) {
        self.task = None;
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        let Some(task) = self.task.take() else { return };
        let remote = self.remote.clone();
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                if let Err(error) = remote.cancel(&task).await {
                    tracing::debug!(task, %error, "a remote task was not cancelled");
                }
            });
        }
    }
}

/// What came back from the other agent, as the journal has it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Came {
    Task(Task),
    Message(WireMessage),
}

impl From<SendMessageResponse> for Came {
    fn from(response: SendMessageResponse) -> Self {
        match response {
            SendMessageResponse::Task(task) => Self::Task(task),
            SendMessageResponse::Message(message) => Self::Message(message),
        }
    }
}

/// The behaviour.
struct RemoteAgent;

/// How the conversation with the other agent stands.
#[derive(Debug, Default)]
struct Standing {
    phase: Phase,
    /// The conversation, as the other agent names it.
    context: Option<String>,
    /// The task that is not over.
    task: Option<String>,
    /// What was said while the other agent was at work.
    held: Vec<Arc<Message>>,
}

#[derive(Debug, Default)]
enum Phase {
    #[default]
    Idle,
    /// Something is to be sent.
    ToSend(Box<WireMessage>),
    /// A task is at work.
    AtWork(String),
    /// The other agent asks something.
    Asks { text: String, call: CallId },
    /// It gave an answer that is to be said.
    Gave(Vec<Part>),
    /// The turn is to end.
    Ended(Outcome),
}

impl Behavior for RemoteAgent {
    type State = Standing;

    fn name(&self) -> &'static str {
        "remote"
    }

    fn fold(&self, state: &mut Standing, entry: &Entry) {
        match &entry.event {
            Event::UserRequest { message, delivery: Delivery::Start, .. } => {
                state.held.clear();
                state.phase = Phase::ToSend(Box::new(state.wire(message)));
            }
            // What joins while the other agent works is said when it is done.
            Event::UserRequest { message, .. } => state.held.push(Arc::clone(message)),
            Event::FunctionAnswered { output: Some(output), .. } => state.came(output, entry.seq),
            Event::FunctionAnswered { error, .. } => {
                let error = error.clone().unwrap_or_default();
                let error = format!("the remote agent cannot be reached: {error}");
                state.phase =
                    Phase::Ended(Outcome::Failed { error, cause: FailureCause::Internal });
            }
            Event::AgentMessage { message, .. } if message.tool_calls().next().is_none() => {
                state.phase = Phase::Ended(Outcome::Completed);
            }
            // The question was passed over: what was asked for instead follows.
            Event::ToolEnded { result, .. }
                if matches!(result.status, ToolStatus::Skipped | ToolStatus::Cancelled) =>
            {
                state.phase = Phase::Idle;
            }
            Event::ToolEnded { result, .. } => {
                let mut answer = Message::new(Role::User, result.content.clone());
                answer.id = format!("answer-{}", result.call_id).as_str().into();
                state.phase = Phase::ToSend(Box::new(state.wire(&answer)));
            }
            Event::AgentResponseEnd { outcome, .. }
                if !matches!(outcome, Outcome::InputRequired { .. }) =>
            {
                // What was cancelled or broke is not gone on with.
                state.task = None;
                state.phase = Phase::Idle;
            }
            _ => {}
        }
    }

    fn decide(&self, run: &RunState, state: &Standing) -> Step {
        if run.latest() == Latest::Calls {
            return Step::Call;
        }
        match &state.phase {
            Phase::Idle => Step::End(Outcome::Completed),
            Phase::ToSend(message) => {
                Step::Invoke { function: SEND.to_owned(), input: json!(message) }
            }
            Phase::AtWork(task) => Step::Invoke { function: FOLLOW.to_owned(), input: json!(task) },
            Phase::Asks { text, call } => {
                let call = ToolCall::new(call.as_str(), ASK, json!({ "question": text }));
                Step::Say(Message::new(Role::Assistant, vec![Part::from(call)]))
            }
            Phase::Gave(parts) => Step::Say(Message::new(Role::Assistant, parts.clone())),
            Phase::Ended(outcome) => Step::End(outcome.clone()),
        }
    }
}

impl Standing {
    /// A message of ours as the other agent gets it.
    fn wire(&self, message: &Message) -> WireMessage {
        let mut wire = message_to_wire(message, "", "");
        wire.role = a2a::Role::User;
        wire.task_id.clone_from(&self.task);
        wire.context_id.clone_from(&self.context);
        pass_on(message, &mut wire);
        if self.task.is_none() {
            let key = Value::String(wire.message_id.clone());
            wire.metadata.get_or_insert_with(HashMap::new).insert(KEY.to_owned(), key);
        }
        wire
    }

    fn came(&mut self, output: &Value, seq: u64) {
        self.phase = match serde_json::from_value::<Came>(output.clone()) {
            Err(error) => Phase::Ended(Outcome::Failed {
                error: format!("the remote agent's answer cannot be read: {error}"),
                cause: FailureCause::Internal,
            }),
            Ok(Came::Message(message)) => {
                self.context = message.context_id.clone().or(self.context.take());
                Phase::Gave(message_from_wire(&message).parts)
            }
            Ok(Came::Task(task)) => self.came_task(&task, seq),
        };
        let is_over = matches!(self.phase, Phase::Gave(_) | Phase::Ended(_));
        if is_over && !self.held.is_empty() {
            // There is more to say: it begins the next task of the same conversation.
            let next = self.held.remove(0);
            self.phase = Phase::ToSend(Box::new(self.wire(&next)));
        }
    }

    fn came_task(&mut self, task: &Task, seq: u64) -> Phase {
        if !task.context_id.is_empty() {
            self.context = Some(task.context_id.clone());
        }
        let state = &task.status.state;
        self.task = (!state.is_terminal()).then(|| task.id.clone());
        if !is_settled(state) {
            return Phase::AtWork(task.id.clone());
        }
        let words = task.status.message.as_ref().map(text_of).unwrap_or_default();
        if matches!(state, TaskState::InputRequired | TaskState::AuthRequired) {
            let text = match words.as_str() {
                "" => "The remote agent needs more input.".to_owned(),
                words => words.to_owned(),
            };
            // Decided from the journal alone, so the same after a crash.
            return Phase::Asks { text, call: CallId::from(format!("remote-{seq}")) };
        }
        match own_outcome(task).or_else(|| outcome_of(state, &words)) {
            None | Some(Outcome::Completed) => Phase::Gave(parts_from_wire(&answer_of(task))),
            Some(outcome) => Phase::Ended(outcome),
        }
    }
}

/// The outcome that a remote Duologue agent itself names.
fn own_outcome(task: &Task) -> Option<Outcome> {
    let metadata = task.status.message.as_ref()?.metadata.as_ref()?;
    let outcome: Outcome = serde_json::from_value(metadata.get(OUTCOME)?.clone()).ok()?;
    // It must not say something else than the state that everybody sees.
    (state_of(&outcome) == task.status.state).then_some(outcome)
}

fn text_of(message: &WireMessage) -> String {
    let texts: Vec<&str> = message.parts.iter().filter_map(a2a::Part::as_text).collect();
    texts.join("\n")
}
