//! Any Duologue agent in the agent's seat.
//!
//! Its session is driven turn by turn. Tools of the environment are external: a call waits, becomes
//! a message of the simulation, and its answer is given back. The agent's own tools stay inside it,
//! and a question to a person becomes a message to the simulated user.

use std::{sync::Arc, time::Duration};

use duologue_core::{
    Agent, Answer, CallId, Entry, Event, Execution, Inquiry, InquiryKind, MemoryStore, Outcome,
    Part, Reply, RunId, SCHEMA_VERSION, Session, SessionError, SessionId, SessionOptions,
    SessionState, Store, Tool, ToolContext, ToolError, ToolOutput, ToolSpec, Usage,
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
    store: Arc<dyn Store>,
    /// Who is there to be asked; nobody otherwise.
    attended: Option<Attended>,
    session: Option<Session>,
    /// The session to be taken up from its store, before the next turn.
    put_down: Option<SessionId>,
    /// What stands in the session behind the last record: a turn that a kill cut off.
    cut_off: Vec<Arc<Entry>>,
    /// The question that the next words of the user answer.
    asked: Option<CallId>,
    /// What the task had used when it last spoke.
    used: Usage,
    /// How many entries of the session's journal were given to be kept.
    kept: u64,
}

/// Somebody who can be asked, from another process: the agent's session is kept in a store of
/// theirs, and what it needs a yes for waits there.
#[derive(Clone)]
pub struct Attended {
    /// Where sessions are kept.
    pub store: Arc<dyn Store>,
    /// How they begin.
    pub options: SessionOptions,
    /// Is told what a session waits for.
    pub waits: Waits,
}

/// A function that is told what a session waits for.
pub type Waits = Arc<dyn Fn(&SessionId, &Inquiry) + Send + Sync>;

/// What is new about a session: the entries of its journal, or where it is kept, and where its seat
/// stands.
#[derive(Serialize, Deserialize)]
struct News {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    entries: Vec<Arc<Entry>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    kept: Option<Kept>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    asked: Option<CallId>,
    used: Usage,
}

/// A session that has a store of its own.
#[derive(Serialize, Deserialize)]
struct Kept {
    session: SessionId,
    /// How many entries it had.
    entries: u64,
}

/// How often to look whether somebody has answered.
const GLANCE: Duration = Duration::from_millis(200);

/// How often in a turn a question that nobody can answer is refused.
const MOST_REFUSALS: u32 = 16;

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
    /// An agent whose toolbox has the [`external_tools`] of the environment. Nobody is there to be
    /// asked: what it needs a yes for is refused.
    pub fn new(agent: Agent) -> Self {
        Self::kept_in(agent, Arc::new(MemoryStore::new()), None)
    }

    /// The same under somebody's eyes.
    pub fn attended(agent: Agent, attended: Attended) -> Self {
        Self::kept_in(agent, Arc::clone(&attended.store), Some(attended))
    }

    fn kept_in(agent: Agent, store: Arc<dyn Store>, attended: Option<Attended>) -> Self {
        Self {
            agent,
            store,
            attended,
            session: None,
            put_down: None,
            cut_off: Vec::new(),
            asked: None,
            used: Usage::default(),
            kept: 0,
        }
    }

    /// Whether the user's next words answer a question.
    pub(crate) fn has_asked(&self) -> bool {
        self.asked.is_some()
    }

    fn options(&self) -> SessionOptions {
        self.attended.as_ref().map(|attended| attended.options.clone()).unwrap_or_default()
    }

    async fn session(&mut self) -> Result<Session, AgentError> {
        if let Some(id) = self.put_down.take() {
            let store = Arc::clone(&self.store);
            self.cut_off = store.read(&id, self.kept, MOST_NEWS).await.map_err(other)?;
            let opened = Session::open(&self.agent, store, &id, self.options()).await;
            self.session = Some(opened.map_err(other)?);
        }
        let session = self.session.clone();
        session.ok_or_else(|| AgentError::Other("the agent has not begun".to_owned()))
    }

    async fn take_turn(&mut self, message: Incoming) -> Result<Utterance, AgentError> {
        let session = self.session().await?;
        // Before a kill it may have been told already, and is not told again.
        let cut_off = std::mem::take(&mut self.cut_off);
        let is_request = |entry: &Arc<Entry>| {
            entry.run == RunId::ROOT && matches!(entry.event, Event::UserRequest { .. })
        };
        let reply = match message {
            Incoming::Begin => session.resume().await,
            Incoming::Said(said) => {
                let text = said.content.unwrap_or_default();
                match self.asked.take() {
                    Some(id) => {
                        tell(&session, &id, Answer::text(text), !cut_off.is_empty())?;
                        session.resume().await
                    }
                    None => {
                        self.used = Usage::default();
                        match cut_off.iter().any(is_request) {
                            true => session.resume().await,
                            false => session.reply(duologue_core::Message::user(text)).await,
                        }
                    }
                }
            }
            Incoming::Tool(answer) => {
                give(&session, answer, !cut_off.is_empty())?;
                session.resume().await
            }
            Incoming::Tools(answers) => {
                for answer in answers.tool_messages {
                    give(&session, answer, !cut_off.is_empty())?;
                }
                session.resume().await
            }
        };
        let reply = reply.map_err(other)?;
        self.say(&session, reply).await
    }

    /// What a turn's end is in the conversation.
    async fn say(&mut self, session: &Session, mut reply: Reply) -> Result<Utterance, AgentError> {
        let mut refused = 0;
        loop {
            let asked = grants_asked(session);
            if asked.is_empty() {
                break;
            }
            match &self.attended {
                Some(attended) => attended.answered(session, &asked).await?,
                None if refused == MOST_REFUSALS => break,
                // Nobody can approve or grant anything here: such questions get a no.
                None => {
                    refused += 1;
                    refuse(session, &asked)?;
                }
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
        let store = Arc::clone(&self.store);
        let session = Session::start(&self.agent, store, self.options()).map_err(other)?;
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
            // A record must not know more than the store does.
            self.store.flush(&session).await.ok()?;
            let entries = self.store.read(&session, self.kept, MOST_NEWS).await.ok()?;
            self.kept += u64::try_from(entries.len()).ok()?;
            let (asked, used) = (self.asked.clone(), self.used);
            let news = match self.attended {
                None => News { entries, kept: None, asked, used },
                Some(_) => {
                    let kept = Some(Kept { session, entries: self.kept });
                    News { entries: Vec::new(), kept, asked, used }
                }
            };
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
            if let Some(Kept { session, entries }) = news.kept {
                (self.put_down, self.kept) = (Some(session), entries);
            }
        }
        match (&self.put_down, &self.attended) {
            (Some(_), Some(_)) => return Ok(()),
            (None, None) => {}
            _ => {
                return Err(AgentError::Other(
                    "it was kept where this run does not keep its sessions".to_owned(),
                ));
            }
        }
        self.kept = u64::try_from(entries.len()).map_err(other)?;
        let state = SessionState { schema: SCHEMA_VERSION, entries };
        let store = Arc::clone(&self.store);
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

fn give(session: &Session, answer: ToolMessage, again: bool) -> Result<(), AgentError> {
    let content = vec![Part::text(answer.content.unwrap_or_default())];
    let result = Answer::Result { content, is_error: answer.error };
    tell(session, &CallId::from(answer.id.as_str()), result, again)
}

/// Answer what waits. What is told `again` may have been answered before.
fn tell(session: &Session, id: &CallId, answer: Answer, again: bool) -> Result<(), AgentError> {
    match session.answer(id, answer, None) {
        Err(SessionError::NotPending { .. }) if again => Ok(()),
        told => told.map_err(other),
    }
}

/// What waits for a person's yes.
fn grants_asked(session: &Session) -> Vec<Inquiry> {
    let is_asked = |inquiry: &Inquiry| {
        matches!(
            inquiry.kind,
            InquiryKind::Approval { .. }
                | InquiryKind::Budget { .. }
                | InquiryKind::Credentials { .. }
        )
    };
    session.pending().into_iter().filter(is_asked).collect()
}

fn refuse(session: &Session, asked: &[Inquiry]) -> Result<(), AgentError> {
    for inquiry in asked {
        let no = Answer::Deny { reason: "nobody is here to allow it".to_owned() };
        session.answer(&inquiry.id, no, None).map_err(other)?;
    }
    Ok(())
}

impl Attended {
    /// Tell what is asked, and wait until somebody has answered all of it.
    async fn answered(&self, session: &Session, asked: &[Inquiry]) -> Result<(), AgentError> {
        for inquiry in asked {
            (self.waits)(session.id(), inquiry);
        }
        loop {
            // Only answers count: what is said to the agent is the user's to say.
            let _ = session.collect_mail().await.map_err(other)?;
            let pending = session.pending();
            if !asked.iter().any(|one| pending.iter().any(|open| open.id == one.id)) {
                return Ok(());
            }
            tokio::time::sleep(GLANCE).await;
        }
    }
}

fn other(error: impl std::fmt::Display) -> AgentError {
    AgentError::Other(error.to_string())
}
