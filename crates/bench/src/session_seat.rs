//! Any Duologue agent in the agent's seat.
//!
//! Its session is driven turn by turn. Tools of the environment are external: a call waits, becomes
//! a message of the simulation, and its answer is given back. The agent's own tools stay inside it,
//! and a question to a person becomes a message to the simulated user.

use std::sync::Arc;

use duologue_core::{
    Agent, Answer, CallId, Entry, Execution, Inquiry, InquiryKind, MemoryStore, Outcome, Part,
    Reply, SCHEMA_VERSION, Session, SessionOptions, SessionState, Store, Tool, ToolContext,
    ToolError, ToolOutput, ToolSpec, Usage,
};
use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::{
    AgentError, Incoming, Message, Requestor, Seat, ToolCall, ToolMessage, Utterance, Value,
    llm::{ToolList, from_json},
};

/// A Duologue agent in the agent's seat.
pub struct SessionSeat {
    agent: Agent,
    store: Arc<MemoryStore>,
    session: Option<Session>,
    /// The question that the next words of the user answer.
    asked: Option<CallId>,
    /// What the task had used when it last spoke.
    used: Usage,
    /// How many entries of the session's journal were given to be kept.
    kept: u64,
}

/// What is new about a session: the entries of its journal, and where its seat stands.
#[derive(Serialize, Deserialize)]
struct News {
    entries: Vec<Arc<Entry>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    asked: Option<CallId>,
    used: Usage,
}

/// The most entries that are kept at once; a step has far fewer.
const MOST_NEWS: usize = 100_000;

/// The tools of an environment for an agent's toolbox: calls are carried out by the bench.
pub fn external_tools(tools: &ToolList) -> Vec<Arc<dyn Tool>> {
    let external = |spec: &Arc<ToolSpec>| -> Arc<dyn Tool> {
        let mut spec = ToolSpec::clone(spec);
        spec.execution = Execution::External;
        Arc::new(ExternalTool(Arc::new(spec)))
    };
    tools.specs().iter().map(external).collect()
}

/// A tool that somebody else carries out.
struct ExternalTool(Arc<ToolSpec>);

impl Tool for ExternalTool {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.0
    }

    fn check(&self, arguments: &Json) -> Result<(), String> {
        // What does not fit is for the environment to say, as it says it to every agent.
        match arguments.is_object() {
            true => Ok(()),
            false => Err("the arguments must be a JSON object".to_owned()),
        }
    }

    fn call(&self, _: Json, _: ToolContext) -> BoxFuture<'_, ToolOutput> {
        Box::pin(async { Err(ToolError::new("this tool is carried out by the environment")) })
    }
}

impl SessionSeat {
    /// An agent whose toolbox has the [`external_tools`] of the environment.
    pub fn new(agent: Agent) -> Self {
        let store = Arc::new(MemoryStore::new());
        Self { agent, store, session: None, asked: None, used: Usage::default(), kept: 0 }
    }

    /// Whether the user's next words answer a question.
    pub(crate) fn has_asked(&self) -> bool {
        self.asked.is_some()
    }

    fn session(&self) -> Result<&Session, AgentError> {
        self.session.as_ref().ok_or_else(|| AgentError::Other("the agent has not begun".to_owned()))
    }

    async fn take_turn(&mut self, message: Incoming) -> Result<Utterance, AgentError> {
        let session = self.session()?.clone();
        let reply = match message {
            Incoming::Begin => session.resume().await,
            Incoming::Said(said) => {
                let text = said.content.unwrap_or_default();
                match self.asked.take() {
                    Some(id) => {
                        session.answer(&id, Answer::text(text), None).map_err(other)?;
                        session.resume().await
                    }
                    None => {
                        self.used = Usage::default();
                        session.reply(duologue_core::Message::user(text)).await
                    }
                }
            }
            Incoming::Tool(answer) => {
                give(&session, answer)?;
                session.resume().await
            }
            Incoming::Tools(answers) => {
                for answer in answers.tool_messages {
                    give(&session, answer)?;
                }
                session.resume().await
            }
        };
        let reply = reply.map_err(other)?;
        self.say(&session, reply).await
    }

    /// What a turn's end is in the conversation.
    async fn say(&mut self, session: &Session, mut reply: Reply) -> Result<Utterance, AgentError> {
        // Nobody can approve or grant anything here: such questions get a no.
        for _ in 0..16 {
            let refused = refusals(session)?;
            if refused == 0 {
                break;
            }
            reply = session.resume().await.map_err(other)?;
        }
        #[allow(clippy::cast_precision_loss)]
        let cost = reply.usage.cost_microusd.saturating_sub(self.used.cost_microusd) as f64 / 1e6;
        let tokens = |now: u64, before: u64| {
            i64::try_from(now.saturating_sub(before)).map_or(Value::None, Value::Int)
        };
        let usage = Value::dict([
            ("completion_tokens", tokens(reply.usage.output_tokens, self.used.output_tokens)),
            ("prompt_tokens", tokens(reply.usage.input_tokens, self.used.input_tokens)),
        ]);
        self.used = reply.usage;
        let mut said = self.words(session, &reply)?;
        said.cost = Some(cost);
        said.usage = Some(usage);
        Ok(said)
    }

    fn words(&mut self, session: &Session, reply: &Reply) -> Result<Utterance, AgentError> {
        let pending = session.pending();
        let calls: Vec<ToolCall> = pending.iter().filter_map(call_of).collect();
        if !calls.is_empty() {
            return Ok(Utterance::calls(calls));
        }
        for inquiry in &pending {
            if let InquiryKind::Question { text, choices } = &inquiry.kind {
                self.asked = Some(inquiry.id.clone());
                let choices = match choices.is_empty() {
                    true => String::new(),
                    false => format!(" ({})", choices.join(", ")),
                };
                return Ok(Utterance::text(format!("{text}{choices}")));
            }
        }
        let text = spoken(reply);
        match &reply.outcome {
            Outcome::Failed { error, .. } => Err(AgentError::Other(error.clone())),
            _ if !text.trim().is_empty() => Ok(Utterance::text(text)),
            Outcome::Rejected { reason } | Outcome::Impossible { reason } => {
                Ok(Utterance::text(reason.clone()))
            }
            Outcome::Stuck { summary } => Ok(Utterance::text(summary.clone())),
            other => Err(AgentError::Other(format!("the agent said nothing: {other}"))),
        }
    }
}

impl Seat for SessionSeat {
    fn begin(&mut self, history: &[Message]) -> Result<(), AgentError> {
        let store = Arc::clone(&self.store) as Arc<dyn Store>;
        let session =
            Session::start(&self.agent, store, SessionOptions::default()).map_err(other)?;
        for message in history {
            session.observe(observed(message)).map_err(other)?;
        }
        self.session = Some(session);
        Ok(())
    }

    fn next(&mut self, message: Incoming) -> BoxFuture<'_, Result<Utterance, AgentError>> {
        Box::pin(self.take_turn(message))
    }

    fn is_stop(&self, _: &Utterance) -> bool {
        false
    }

    fn stop(&mut self, _: Option<&Incoming>) {
        if let Some(session) = self.session.take() {
            session.cancel("the conversation is over");
        }
    }

    fn set_seed(&mut self, _: i64) {}

    fn keep(&mut self) -> BoxFuture<'_, Option<Json>> {
        Box::pin(async move {
            let session = self.session.as_ref()?.id().clone();
            let entries = self.store.read(&session, self.kept, MOST_NEWS).await.ok()?;
            self.kept += u64::try_from(entries.len()).ok()?;
            let news = News { entries, asked: self.asked.clone(), used: self.used };
            serde_json::to_value(news).ok()
        })
    }

    fn resume(&mut self, history: &[Message], kept: Vec<Json>) -> Result<(), AgentError> {
        if kept.is_empty() {
            return self.begin(history);
        }
        let mut entries = Vec::new();
        for news in kept {
            let news: News = serde_json::from_value(news).map_err(other)?;
            entries.extend(news.entries);
            (self.asked, self.used) = (news.asked, news.used);
        }
        self.kept = u64::try_from(entries.len()).map_err(other)?;
        let state = SessionState { schema: SCHEMA_VERSION, entries };
        let store = Arc::clone(&self.store) as Arc<dyn Store>;
        let options = SessionOptions::default();
        let session = Session::load_state(&self.agent, store, &state, options).map_err(other)?;
        self.session = Some(session);
        Ok(())
    }
}

/// What an agent said: its words, or the data that it gave in their place.
fn spoken(reply: &Reply) -> String {
    let text = reply.text();
    if !text.trim().is_empty() {
        return text;
    }
    let parts = reply.message.iter().flat_map(|message| &message.parts);
    let data = parts.filter_map(|part| match part {
        Part::Data { value } => Some(value.to_string()),
        _ => None,
    });
    data.collect::<Vec<_>>().join("\n")
}

/// What was said before the agent came, as it is told.
fn observed(message: &Message) -> duologue_core::Message {
    let mut text = message.content().unwrap_or_default().to_owned();
    for call in message.tool_calls() {
        text.push_str(&format!("[called {} {}]", call.name, crate::python::repr(&call.arguments)));
    }
    match message {
        Message::Assistant(_) => duologue_core::Message::assistant(text),
        Message::Tool(_) => duologue_core::Message::user(format!("[a tool answered] {text}")),
        Message::User(_) | Message::System(_) => duologue_core::Message::user(text),
    }
}

fn call_of(inquiry: &Inquiry) -> Option<ToolCall> {
    let InquiryKind::Execution { call } = &inquiry.kind else { return None };
    Some(ToolCall {
        id: inquiry.id.as_str().to_owned(),
        name: call.name.clone(),
        arguments: from_json(&call.arguments),
        requestor: Requestor::Assistant,
    })
}

fn give(session: &Session, answer: ToolMessage) -> Result<(), AgentError> {
    let content = vec![Part::text(answer.content.unwrap_or_default())];
    let result = Answer::Result { content, is_error: answer.error };
    session.answer(&CallId::from(answer.id.as_str()), result, None).map_err(other)
}

fn refusals(session: &Session) -> Result<usize, AgentError> {
    let mut refused = 0;
    for inquiry in session.pending() {
        let is_asked = matches!(
            inquiry.kind,
            InquiryKind::Approval { .. }
                | InquiryKind::Budget { .. }
                | InquiryKind::Credentials { .. }
        );
        if is_asked {
            let no = Answer::Deny { reason: "nobody is here to allow it".to_owned() };
            session.answer(&inquiry.id, no, None).map_err(other)?;
            refused += 1;
        }
    }
    Ok(refused)
}

fn other(error: impl std::fmt::Display) -> AgentError {
    AgentError::Other(error.to_string())
}
