//! A remote agent as one of ours: a behaviour that lets the other side think.
//!
//! Sending and waiting are functions of the agent, so what came of them is in the journal. After a
//! crash a task that was sent is found again by its id; a message that may or may not have been sent
//! is sent again with the same key, by which a Duologue server knows it.

use std::{collections::HashMap, sync::Arc, time::Duration};

use a2a::{A2AError, Message as WireMessage, SendMessageResponse, Task, TaskState};
use duologue_core::{
    Agent, Behavior, CallId, Delivery, Effect, Entry, Event, Execution, FailureCause,
    FunctionContext, Inquiry, InquiryKind, Latest, Message, Outcome, Part, Reach, Role, RunState,
    Step, Tool, ToolCall, ToolStatus, Toolbox, tool,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::{
    Remote,
    follow::{FIRST_PATIENCE, PATIENCE, answer_of, patiently},
};
use crate::{
    Directory, DirectoryError,
    task::{
        KEY,
        convert::{message_from_wire, message_to_wire, parts_from_wire},
        delegation::{give_budget, pass_on, usage_of},
        record::{INQUIRIES, OUTCOME},
        state::{is_settled, outcome_of, state_of},
    },
    wire::whole_numbers,
};

/// The functions by which the behaviour reaches the other agent.
const SEND: &str = "a2a_send";
const FOLLOW: &str = "a2a_follow";
const CALL_OFF: &str = "a2a_call_off";
/// The tool by which its questions reach a person.
const ASK: &str = "ask_human";
/// The tool by which a person is told that it wants credentials. A task that waits for it is
/// `AUTH_REQUIRED`, so that it stays so through any number of agents.
pub(crate) const ASK_CREDENTIALS: &str = "ask_credentials";

/// What is asked of a person.
#[derive(Deserialize, JsonSchema)]
struct Question {
    /// The question.
    #[allow(dead_code, reason = "the question is read from the call by the driver")]
    question: String,
}

/// Who is called: somebody who is known, or whoever the directory knows by a name when it comes to
/// it.
#[derive(Clone)]
pub(crate) enum Called {
    /// This one.
    Known(Remote),
    /// The one of this id.
    Listed(Directory, String),
}

impl Called {
    /// A connection, which may take a while if the other agent is starting again.
    async fn remote(&self, patience: Duration) -> Result<Remote, String> {
        let (directory, id) = match self {
            Self::Known(remote) => return Ok(remote.clone()),
            Self::Listed(directory, id) => (directory, id),
        };
        let is_final = |error: &DirectoryError| !matches!(error, DirectoryError::Unreachable(_));
        let connected = patiently(patience, is_final, || directory.connect(id)).await;
        connected.map_err(|error| error.to_string())
    }

    /// How long it is tried with something that it knows nothing of yet.
    fn first_patience(&self) -> Duration {
        match self {
            Self::Known(_) => FIRST_PATIENCE,
            Self::Listed(directory, _) => directory.patience(),
        }
    }
}

/// What becomes of the other agent's questions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Questions {
    /// The user is asked.
    Asked,
    /// They are given back to whoever runs the agent: the turn ends with the question as what was
    /// said, and what is said next is the answer.
    GivenBack,
}

/// A question about credentials to the person.
pub(crate) fn ask_credentials() -> impl Tool {
    let about = "Tells a person which credentials another agent wants.";
    tool(ASK_CREDENTIALS, about, Effect::Pure, |_: Question, _| async { Ok("") })
        .execution(Execution::Human)
        .reach(Reach::Workspace)
}

/// A remote agent as one of ours.
pub(crate) fn agent_of(called: Called, name: Arc<str>, questions: Questions) -> Agent {
    let ask = tool(ASK, "Asks a person.", Effect::Pure, |_: Question, _| async { Ok("") })
        .execution(Execution::Human);
    let description = match &called {
        Called::Known(remote) => remote.card().description.clone(),
        Called::Listed(..) => String::new(),
    };
    let (sender, follower, caller) = (called.clone(), called.clone(), called);
    Agent::builder(name, RemoteAgent { questions })
        .description(description)
        .tools(Toolbox::new().with(ask).with(ask_credentials()))
        .function_in(SEND, move |input, context| {
            let called = sender.clone();
            async move { send(called, input, context).await }
        })
        .function_in(FOLLOW, move |input, context| {
            let called = follower.clone();
            async move {
                let id = input.as_str().unwrap_or_default();
                let remote = called.remote(PATIENCE).await?;
                let task = remote.follow(id).await.map_err(|error| error.message)?;
                count(&task, &context);
                serde_json::to_value(Came::Task(task)).map_err(|error| error.to_string())
            }
        })
        .function(CALL_OFF, move |input| {
            let called = caller.clone();
            async move {
                let id = input.as_str().unwrap_or_default();
                call_off(&called.remote(Duration::ZERO).await?, id).await;
                Ok(Value::Null)
            }
        })
        .build()
}

async fn send(called: Called, input: Value, context: FunctionContext) -> Result<Value, String> {
    let mut message: WireMessage =
        serde_json::from_value(input).map_err(|error| error.to_string())?;
    give_budget(context.left, &mut message);
    // Others may have given their message the same id; the session's is our own.
    if let Some(Value::String(key)) = message.metadata.as_mut().and_then(|all| all.get_mut(KEY)) {
        *key = format!("{}/{key}", context.session);
    }
    let answered = message.task_id.clone();
    let begins = answered.is_none();
    // Who is killed now must send the same message again, and not another one.
    context.on_record().await.map_err(|error| error.to_string())?;
    let patience = if begins { called.first_patience() } else { PATIENCE };
    let remote = called.remote(patience).await?;
    // What was sent may have begun a task, so it is seen through, and called off if nobody wants it.
    let sending = tokio::spawn({
        let remote = remote.clone();
        async move { remote.send_surely(&message, patience).await }
    });
    let cancel = context.cancel.clone();
    let mut sending = Sending { remote, begins, cancel, sent: Some(sending) };
    let sent = match sending.sent.as_mut() {
        Some(sent) => sent.await.map_err(|error| error.to_string())?,
        None => return Err("nothing was sent".to_owned()),
    };
    sending.sent = None;
    let came = match (sent, answered) {
        (Ok(sent), _) => Came::from(sent),
        (Err(error), None) => return Err(error.message),
        // Somebody else may have answered it meanwhile: how it ended is what came of it then.
        (Err(error), Some(task)) => match sending.remote.task(&task).await {
            Ok(task) if task.status.state.is_terminal() => Came::Task(task),
            _ => return Err(error.message),
        },
    };
    if let Came::Task(task) = &came {
        count(task, &context);
    }
    serde_json::to_value(came).map_err(|error| error.to_string())
}

/// What another agent used for a task counts here too, once the task is over.
fn count(task: &Task, context: &FunctionContext) {
    if task.status.state.is_terminal() {
        context.spend(usage_of(task));
    }
}

/// A message on its way. A task that it began is called off if the turn was cancelled meanwhile.
struct Sending {
    remote: Remote,
    begins: bool,
    cancel: CancellationToken,
    sent: Option<JoinHandle<Result<SendMessageResponse, A2AError>>>,
}

impl Drop for Sending {
    fn drop(&mut self) {
        let Some(sent) = self.sent.take().filter(|_| self.begins && self.cancel.is_cancelled())
        else {
            return;
        };
        let remote = self.remote.clone();
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                if let Ok(Ok(SendMessageResponse::Task(task))) = sent.await {
                    call_off(&remote, &task.id).await;
                }
            });
        }
    }
}

/// Cancel a remote task. One that is over by now is over.
pub(crate) async fn call_off(remote: &Remote, task: &str) {
    if let Err(error) = remote.cancel(task).await {
        tracing::debug!(task, %error, "a remote task was not cancelled");
    }
}

/// What came back from the other agent, as the journal has it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Came {
    Task(Task),
    Message(WireMessage),
}

impl std::convert::From<SendMessageResponse> for Came {
    fn from(response: SendMessageResponse) -> Self {
        match response {
            SendMessageResponse::Task(task) => Self::Task(task),
            SendMessageResponse::Message(message) => Self::Message(message),
        }
    }
}

/// Where a message says that it answers what was given back.
pub(crate) const ANSWERS: &str = "a2a_answers";
/// Where an answer says which task of which agent gave it.
pub(crate) const FROM: &str = "a2a_from";

/// What a person may say to something that is to be allowed.
const DECISION: [&str; 2] = ["approve", "deny"];

/// Where an answer of a remote agent comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Origin {
    /// The task, if it was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) task: Option<String>,
    /// Whether it is a question, and of what kind.
    #[serde(default)]
    pub(crate) asks: Asks,
}

/// Whether an answer is a question.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Asks {
    /// It is an answer.
    #[default]
    Nothing,
    /// Something is to be said.
    Input,
    /// Something is to be allowed or not, which is for a person alone.
    Decision,
    /// Credentials are missing.
    Credentials,
}

impl Asks {
    /// The arguments of the tool by which a person is asked.
    pub(crate) fn arguments(self, question: &str) -> Value {
        match self {
            Self::Decision => json!({ "question": question, "choices": DECISION }),
            _ => json!({ "question": question }),
        }
    }

    /// Of which kind the question of a task is that waits.
    fn of(task: &Task) -> Self {
        if task.status.state == TaskState::AuthRequired {
            return Self::Credentials;
        }
        let metadata = task.status.message.as_ref().and_then(|message| message.metadata.as_ref());
        let exact = metadata.and_then(|metadata| metadata.get(INQUIRIES)).cloned();
        let inquiries = exact.and_then(|exact| serde_json::from_value(whole_numbers(exact)).ok());
        let inquiries: Vec<Inquiry> = inquiries.unwrap_or_default();
        let is_decision = |inquiry: &Inquiry| match &inquiry.kind {
            InquiryKind::Approval { .. } | InquiryKind::Budget { .. } => true,
            // Another agent passes such a question on.
            InquiryKind::Question { choices, .. } => *choices == DECISION,
            InquiryKind::Execution { .. } | InquiryKind::Credentials { .. } => false,
        };
        if inquiries.iter().any(is_decision) { Self::Decision } else { Self::Input }
    }
}

impl Origin {
    /// What a message says about where it comes from.
    pub(crate) fn of(message: &Message) -> Option<Self> {
        serde_json::from_value(message.metadata.get(FROM)?.clone()).ok()
    }
}

/// The behaviour.
struct RemoteAgent {
    questions: Questions,
}

/// How the conversation with the other agent stands.
#[derive(Debug, Default)]
struct Standing {
    phase: Phase,
    /// The conversation, as the other agent names it.
    context: Option<String>,
    /// The task that is not over.
    task: Option<String>,
    /// The last task, over or not.
    last: Option<String>,
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
    Asks { text: String, call: CallId, asks: Asks },
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
                // What is no answer begins a task of its own.
                if !message.metadata.contains_key(ANSWERS) {
                    state.task = None;
                }
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
                // What was cancelled or broke is not gone on with; a question that was given back is.
                if *outcome != Outcome::Completed {
                    state.task = None;
                }
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
            Phase::Asks { text, asks, .. } if self.questions == Questions::GivenBack => {
                state.say(vec![Part::text(text.as_str())], *asks)
            }
            Phase::Asks { text, call, asks } => {
                let tool = if *asks == Asks::Credentials { ASK_CREDENTIALS } else { ASK };
                let call = ToolCall::new(call.as_str(), tool, asks.arguments(text));
                Step::Say(Message::new(Role::Assistant, vec![Part::from(call)]))
            }
            Phase::Gave(parts) => state.say(parts.clone(), Asks::Nothing),
            Phase::Ended(outcome) => Step::End(outcome.clone()),
        }
    }

    fn farewell(&self, _: &RunState, state: &Standing) -> Option<(String, Value)> {
        state.task.as_ref().map(|task| (CALL_OFF.to_owned(), json!(task)))
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
        let key = Value::String(wire.message_id.clone());
        wire.metadata.get_or_insert_with(HashMap::new).insert(KEY.to_owned(), key);
        wire
    }

    fn say(&self, parts: Vec<Part>, asks: Asks) -> Step {
        let mut message = Message::new(Role::Assistant, parts);
        let from = Origin { task: self.last.clone(), asks };
        message.metadata.insert(FROM.to_owned(), json!(from));
        Step::Say(message)
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
        self.last = Some(task.id.clone());
        self.task = (!state.is_terminal()).then(|| task.id.clone());
        if !is_settled(state) {
            return Phase::AtWork(task.id.clone());
        }
        let words = task.status.message.as_ref().map(text_of).unwrap_or_default();
        if !state.is_terminal() {
            let asks = Asks::of(task);
            let text = match words.as_str() {
                "" => "The remote agent needs more input.".to_owned(),
                words => words.to_owned(),
            };
            // Decided from the journal alone, so the same after a crash.
            let call = CallId::from(format!("remote-{seq}"));
            return Phase::Asks { text, call, asks };
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
    let outcome = whole_numbers(metadata.get(OUTCOME)?.clone());
    let outcome: Outcome = serde_json::from_value(outcome).ok()?;
    // It must not say something else than the state that everybody sees.
    (state_of(&outcome) == task.status.state).then_some(outcome)
}

fn text_of(message: &WireMessage) -> String {
    let texts: Vec<&str> = message.parts.iter().filter_map(a2a::Part::as_text).collect();
    texts.join("\n")
}
