//! An agent as a tool: a message in, an answer out, and a conversation that can go on.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use duologue_core::{
    Agent, Answer, Attendance, CallId, Event, Inquiry, InquiryKind, Live, Metadata, Outcome, Reply,
    Session, SessionId, SessionOptions, Store, parameters_of,
};
use rmcp::{
    RoleServer,
    model::{
        CallToolResult, ContentBlock, ElicitRequestParams, ElicitationAction, ElicitationSchema,
        ProgressNotificationParam,
    },
    service::RequestContext,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{annotations, failed};

/// The key in a session's first entry that lets clients go on with it. Other sessions of the same
/// store are none of their business.
const MARK: &str = "mcp";

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// What the agent is asked or told. Leave it out only when you answer its questions.
    #[serde(default)]
    message: Option<String>,
    /// The session of an earlier result, to go on with that conversation.
    #[serde(default)]
    session: Option<String>,
    /// Answers to what an earlier result said is waited for, by id. To an approval: yes or no.
    #[serde(default)]
    answers: BTreeMap<String, String>,
    /// A word of your own for this request: letters, digits, `-` and `_`. The same word again goes
    /// on with the session that it began and says nothing twice, also when the connection broke.
    #[serde(default)]
    key: Option<String>,
}

/// The longest key.
const LONGEST_KEY: usize = 64;

/// How often to look whether somebody else has answered meanwhile.
const GLANCE: Duration = Duration::from_millis(250);

/// The name of an agent's tool. Clients refuse much that agents may be called.
pub(super) fn tool_name(agent: &Agent) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    agent.name().chars().map(|c| if is_plain(c) { c } else { '_' }).take(64).collect()
}

pub(super) fn as_tool(agent: &Agent) -> rmcp::model::Tool {
    let schema = parameters_of::<Arguments>().as_object().cloned().unwrap_or_default();
    let about = format!(
        "Gives a message to the agent {}, which works on it with its own tools and answers.",
        agent.name()
    );
    let mut tool = rmcp::model::Tool::new(tool_name(agent), about, schema);
    tool.annotations = Some(annotations(duologue_core::Effect::SideEffect));
    tool
}

pub(super) async fn call(
    agent: &Agent,
    store: &Arc<dyn Store>,
    arguments: Value,
    context: &RequestContext<RoleServer>,
) -> CallToolResult {
    let arguments: Arguments = match serde_json::from_value(arguments) {
        Ok(arguments) => arguments,
        Err(error) => return failed(format!("The arguments do not fit: {error}")),
    };
    match converse(agent, store, arguments, context).await {
        Ok((session, reply)) => result(&session, &reply),
        Err(error) => failed(error),
    }
}

async fn converse(
    agent: &Agent,
    store: &Arc<dyn Store>,
    arguments: Arguments,
    context: &RequestContext<RoleServer>,
) -> Result<(Session, Reply), String> {
    let Arguments { message, session, answers, key } = arguments;
    let store = Arc::clone(store);
    let is_known = session.is_some();
    let session = match (session, key) {
        (Some(_), Some(_)) => return Err("give a session or a key, not both".to_owned()),
        (Some(id), None) => open(agent, store, &SessionId::from(id)).await?,
        (None, Some(key)) => open_or_begin(agent, store, &key).await?,
        (None, None) => begin(agent, store, None)?,
    };
    // What a key began has heard its message. Of what others posted only answers count: what is
    // said to the agent is its client's to say.
    let message = message.filter(|_| is_known || !has_begun(&session));
    session.collect_mail().await.map_err(|error| error.to_string())?;
    for (id, said) in &answers {
        let id = id.as_str().into();
        let Some(inquiry) = session.pending().into_iter().find(|inquiry| inquiry.id == id) else {
            return Err(format!("nothing waits for an answer to \"{id}\""));
        };
        answer(&session, &inquiry, said)?;
    }
    let mut reply = match message {
        Some(message) => watched(&session, session.reply(message), context).await?,
        None if !has_begun(&session) => return Err("there is no message".to_owned()),
        None => watched(&session, session.resume(), context).await?,
    };
    // What waits is asked through the client as long as it can and will.
    while let Outcome::InputRequired { inquiries } = &reply.outcome {
        let Some(first) = inquiries.first() else { break };
        let said = tokio::select! {
            said = ask(first, context) => said,
            () = answered_elsewhere(&session, &first.id) => {
                reply = watched(&session, session.resume(), context).await?;
                continue;
            }
        };
        let Some(said) = said else { break };
        answer(&session, first, &said)?;
        reply = watched(&session, session.resume(), context).await?;
    }
    Ok((session, reply))
}

fn begin(agent: &Agent, store: Arc<dyn Store>, id: Option<SessionId>) -> Result<Session, String> {
    let metadata = Metadata::from([(MARK, json!(agent.name()))]);
    let attendance = Attendance::Attended;
    let options = SessionOptions { id, metadata, attendance, ..SessionOptions::default() };
    Session::start(agent, store, options).map_err(|error| error.to_string())
}

/// The session that a client's key began, or a new one under it. The key is a part of the id, so
/// that nothing else has to be kept to find it again.
async fn open_or_begin(agent: &Agent, store: Arc<dyn Store>, key: &str) -> Result<Session, String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if key.is_empty() || key.len() > LONGEST_KEY || !key.chars().all(is_plain) {
        return Err(format!(
            "the key must be 1 to {LONGEST_KEY} letters, digits, - and _, not \"{key}\""
        ));
    }
    let id = SessionId::from(format!("mcp-{}-{key}", tool_name(agent)));
    match store.read(&id, 0, 1).await {
        Ok(first) if !first.is_empty() => open(agent, store, &id).await,
        _ => begin(agent, store, Some(id)),
    }
}

/// Whether a session has heard anything yet.
fn has_begun(session: &Session) -> bool {
    session.is_unfinished() || session.last_outcome().is_some()
}

/// Wait until somebody answers from another process.
async fn answered_elsewhere(session: &Session, id: &CallId) {
    loop {
        tokio::time::sleep(GLANCE).await;
        // A store that cannot be read says so when the turn goes on.
        let _ = session.collect_mail().await;
        if !session.pending().iter().any(|inquiry| inquiry.id == *id) {
            return;
        }
    }
}

/// Go on with a session that a client began.
async fn open(agent: &Agent, store: Arc<dyn Store>, id: &SessionId) -> Result<Session, String> {
    let unknown = || format!("there is no session \"{id}\" of {}", agent.name());
    let first = store.read(id, 0, 1).await.map_err(|_| unknown())?;
    let is_ours = first.first().is_some_and(|entry| match &entry.event {
        Event::SessionStarted { metadata, .. } => metadata.get(MARK) == Some(&json!(agent.name())),
        _ => false,
    });
    if !is_ours {
        return Err(unknown());
    }
    let options = SessionOptions { attendance: Attendance::Attended, ..SessionOptions::default() };
    Session::open(agent, store, id, options).await.map_err(|error| error.to_string())
}

/// Wait for a turn, tell the client of the calls that it makes, and stop it when the client does
/// not want it any more.
async fn watched(
    session: &Session,
    turn: impl Future<Output = Result<Reply, duologue_core::SessionError>>,
    context: &RequestContext<RoleServer>,
) -> Result<Reply, String> {
    let mut events = session.events();
    let token = context.meta.get_progress_token();
    let mut calls = 0.0;
    tokio::pin!(turn);
    let mut cancelled = false;
    loop {
        tokio::select! {
            reply = &mut turn => return reply.map_err(|error| error.to_string()),
            () = context.ct.cancelled(), if !cancelled => {
                cancelled = true;
                session.cancel("the client cancelled the call");
            }
            event = events.next(), if token.is_some() => {
                let Ok(Live::Entry(entry)) = event else { continue };
                let (Event::ToolStarted { name, .. }, Some(token)) = (&entry.event, &token) else {
                    continue;
                };
                calls += 1.0;
                let mut progress = ProgressNotificationParam::new(token.clone(), calls);
                progress.message = Some(name.clone());
                // For the eye only.
                let _ = context.peer.notify_progress(progress).await;
            }
        }
    }
}

/// Ask the person behind the client. `None` where that cannot be done, or they would not say.
async fn ask(inquiry: &Inquiry, context: &RequestContext<RoleServer>) -> Option<String> {
    context.client_capabilities()?.elicitation.as_ref()?;
    let (text, schema) = match &inquiry.kind {
        InquiryKind::Question { text, choices } if choices.is_empty() => {
            (text.clone(), json!({"answer": {"type": "string"}}))
        }
        InquiryKind::Question { text, choices } => {
            (text.clone(), json!({"answer": {"type": "string", "enum": choices}}))
        }
        _ => (describe(inquiry), json!({"answer": {"type": "string", "enum": ["yes", "no"]}})),
    };
    let schema = json!({"type": "object", "properties": schema, "required": ["answer"]});
    let requested_schema: ElicitationSchema = serde_json::from_value(schema).ok()?;
    let request =
        ElicitRequestParams::FormElicitationParams { meta: None, message: text, requested_schema };
    let asked = tokio::select! {
        asked = context.peer.create_elicitation(request) => asked.ok()?,
        () = context.ct.cancelled() => return None,
    };
    match asked.action {
        ElicitationAction::Accept => Some(asked.content?.get("answer")?.as_str()?.to_owned()),
        ElicitationAction::Decline => Some("no".to_owned()),
        _ => None,
    }
}

/// Answer what waits, in words.
fn answer(session: &Session, inquiry: &Inquiry, said: &str) -> Result<(), String> {
    let yes = matches!(said.trim().to_lowercase().as_str(), "y" | "yes" | "approve" | "ok");
    let answer = match &inquiry.kind {
        InquiryKind::Question { .. } | InquiryKind::Execution { .. } => Answer::text(said),
        _ if yes => Answer::Approve,
        _ => Answer::Deny { reason: said.to_owned() },
    };
    let by = Some("an MCP client".to_owned());
    session.answer(&inquiry.id, answer, by).map_err(|error| error.to_string())
}

fn describe(inquiry: &Inquiry) -> String {
    match &inquiry.kind {
        InquiryKind::Approval { call, reason } => {
            format!("May {} run with {}? ({reason})", call.name, call.arguments)
        }
        InquiryKind::Question { text, .. } => text.clone(),
        InquiryKind::Execution { call } => {
            format!("What does {} give with {}?", call.name, call.arguments)
        }
        InquiryKind::Credentials { target } => format!("Credentials are missing for {target}."),
        InquiryKind::Budget { used, .. } => format!("A budget is used up: {used}. Go on?"),
    }
}

/// How a turn ended, as a client reads it: the answer as text, and the session to go on with.
fn result(session: &Session, reply: &Reply) -> CallToolResult {
    let mut text = reply.text();
    let mut waiting = None;
    let is_error = match &reply.outcome {
        Outcome::Completed => false,
        Outcome::InputRequired { inquiries } => {
            let all = inquiries.iter();
            let all = all.map(|inquiry| json!({"id": inquiry.id, "question": describe(inquiry)}));
            waiting = Some(all.collect::<Vec<Value>>());
            let asked: Vec<String> = inquiries
                .iter()
                .map(|inquiry| format!("- {}: {}", inquiry.id, describe(inquiry)))
                .collect();
            text = format!(
                "{text}\nThe agent waits for answers. Call it again with the session {} and \
                 answers to:\n{}",
                session.id(),
                asked.join("\n")
            );
            false
        }
        other => {
            text = format!("{text}\nIt ended otherwise than completed: {other}");
            true
        }
    };
    let mut result = match is_error {
        true => CallToolResult::error(vec![ContentBlock::text(text.trim())]),
        false => CallToolResult::success(vec![ContentBlock::text(text.trim())]),
    };
    result.structured_content = Some(json!({
        "session": session.id(),
        "outcome": reply.outcome.name(),
        "answer": text.trim(),
        "waiting": waiting.unwrap_or_default(),
    }));
    result
}
