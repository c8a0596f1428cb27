//! One exchange with an agent elsewhere: a message goes there, and its task is seen to where it is
//! over or waits.

use std::io::{self, Write};

use duologue_a2a::{
    Remote,
    a2a::{
        Artifact, Message, Part, PartContent, Role, SendMessageConfiguration, SendMessageRequest,
        SendMessageResponse, StreamResponse, Task, TaskState, TaskStatus,
    },
    whole_numbers,
};
use duologue_core::Outcome;
use futures::StreamExt;
use serde::Serialize;
use serde_json::Value;

use crate::{
    exit::Exit,
    failure::Failure,
    terminal::{Paint, Style, visible},
};

/// Where a status of a Duologue server says which outcome it is exactly.
const OUTCOME: &str = "duologue/outcome";
/// Where a status' message says that it is a piece of an answer.
const PIECE: &str = "duologue/piece";
/// The extension by which a client asks for pieces.
const PIECES: &str = "urn:duologue:pieces";

/// How what comes back is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shown {
    /// The answer alone, when it is there.
    Whole,
    /// What happens, as it happens.
    Stream,
    /// Everything, as lines of JSON.
    Json,
}

/// What came of an exchange.
#[derive(Debug)]
pub(super) enum Came {
    /// An answer without a task.
    Message(Box<Message>),
    /// A task that is over or waits.
    Task(Box<Task>),
}

/// A message for an agent elsewhere.
pub(super) fn message(text: &str, task: Option<String>, context: Option<String>) -> Message {
    let mut message = Message::new(Role::User, vec![Part::text(text)]);
    message.task_id = task;
    message.context_id = context;
    message
}

/// Send a message and wait until its task is over or waits. `begun` is told the task's id as soon as
/// there is one.
pub(super) async fn exchange(
    remote: &Remote,
    message: Message,
    shown: Shown,
    paint: Paint,
    begun: &mut Option<String>,
) -> Result<Came, Failure> {
    let can_stream = remote.card().capabilities.streaming == Some(true);
    if shown == Shown::Whole || !can_stream {
        let came = remote.send(message).await.map_err(explain)?;
        return match came {
            SendMessageResponse::Message(message) => Ok(Came::Message(Box::new(message))),
            SendMessageResponse::Task(task) => {
                *begun = Some(task.id.clone());
                let task = remote.follow(&task.id).await.map_err(explain)?;
                if shown == Shown::Json {
                    json_line(&task)?;
                }
                Ok(Came::Task(Box::new(task)))
            }
        };
    }
    let request = SendMessageRequest {
        message,
        configuration: Some(SendMessageConfiguration {
            accepted_output_modes: None,
            task_push_notification_config: None,
            history_length: None,
            return_immediately: None,
        }),
        metadata: None,
        tenant: remote.interface().tenant.clone(),
    };
    let mut params = remote.params().clone();
    params.insert("A2A-Extensions".to_owned(), vec![PIECES.to_owned()]);
    let sent = remote.transport().send_streaming_message(&params, &request).await;
    let mut updates = sent.map_err(explain)?;
    let mut eye = Eye { paint, shown, line: String::new() };
    while let Some(update) = updates.next().await {
        // The task itself is asked how it stands when its stream breaks.
        let Ok(update) = update else { break };
        if let StreamResponse::Message(message) = update {
            if shown == Shown::Json {
                json_line(&message)?;
            }
            return Ok(Came::Message(Box::new(message)));
        }
        let task = match &update {
            StreamResponse::Task(task) => &task.id,
            StreamResponse::StatusUpdate(update) => &update.task_id,
            StreamResponse::ArtifactUpdate(update) => &update.task_id,
            StreamResponse::Message(_) => continue,
        };
        if begun.is_none() {
            *begun = Some(task.clone());
        }
        eye.see(&update)?;
    }
    eye.close()?;
    let Some(id) = begun else {
        return Err(Failure::new("the agent closed the stream without an answer"));
    };
    let task = remote.follow(id).await.map_err(explain)?;
    if shown == Shown::Json {
        json_line(&task)?;
    }
    Ok(Came::Task(Box::new(task)))
}

/// Shows updates as they come.
struct Eye {
    paint: Paint,
    shown: Shown,
    /// What stands in the line that is being written.
    line: String,
}

impl Eye {
    fn see(&mut self, update: &StreamResponse) -> Result<(), Failure> {
        if self.shown == Shown::Json {
            return json_line(update);
        }
        match update {
            StreamResponse::StatusUpdate(update) => {
                let message = update.status.message.as_ref();
                let metadata = message.and_then(|message| message.metadata.as_ref());
                let piece = metadata.and_then(|all| all.get(PIECE));
                match (piece, message) {
                    (Some(Value::Bool(true)), Some(message)) => self.piece(&text_of(message)),
                    (Some(_), _) => self.close(),
                    (None, Some(message)) if update.status.state == TaskState::Working => {
                        if !self.line.is_empty() {
                            return self.close();
                        }
                        let text = self.paint.text(Style::Dim, visible(&text_of(message)));
                        Ok(writeln!(io::stderr(), "{text}")?)
                    }
                    _ => Ok(()),
                }
            }
            StreamResponse::ArtifactUpdate(update) => {
                if self.line.is_empty() {
                    let text = artifact_text(&update.artifact);
                    let mut out = io::stdout().lock();
                    write!(out, "{}", visible(&text))?;
                    if update.last_chunk != Some(false) {
                        writeln!(out)?;
                    }
                    out.flush()?;
                } else {
                    self.close()?;
                }
                Ok(())
            }
            StreamResponse::Task(_) | StreamResponse::Message(_) => Ok(()),
        }
    }

    fn piece(&mut self, text: &str) -> Result<(), Failure> {
        let text = visible(text);
        self.line.push_str(&text);
        let mut out = io::stdout().lock();
        write!(out, "{text}")?;
        Ok(out.flush()?)
    }

    fn close(&mut self) -> Result<(), Failure> {
        if !self.line.is_empty() {
            writeln!(io::stdout())?;
            self.line.clear();
        }
        Ok(())
    }
}

/// How a task ended, in our words: as a Duologue server says, or as its state stands for.
pub(super) fn exit_of(status: &TaskStatus) -> Exit {
    let metadata = status.message.as_ref().and_then(|message| message.metadata.as_ref());
    let exact = metadata.and_then(|all| all.get(OUTCOME)).cloned();
    let exact: Option<Outcome> = exact.and_then(|value| serde_json::from_value(value).ok());
    match (&status.state, exact) {
        (TaskState::Failed, Some(outcome)) => Exit::from(&outcome),
        (TaskState::Completed, _) => Exit::Completed,
        (TaskState::InputRequired | TaskState::AuthRequired, _) => Exit::InputRequired,
        (TaskState::Rejected, _) => Exit::Rejected,
        (TaskState::Canceled, _) => Exit::Aborted,
        _ => Exit::Failed,
    }
}

/// The words that came with a status.
pub(super) fn words_of(status: &TaskStatus) -> String {
    status.message.as_ref().map(text_of).unwrap_or_default()
}

/// What a task gave.
pub(super) fn answer_of(task: &Task) -> String {
    let artifacts = task.artifacts.iter().flatten();
    let texts: Vec<String> = artifacts.map(artifact_text).collect();
    if !texts.is_empty() {
        return texts.join("\n");
    }
    let said = words_of(&task.status);
    if !said.is_empty() {
        return said;
    }
    // Some agents say their answer in the conversation and nowhere else.
    let mut history = task.history.iter().flatten().rev();
    history.find(|message| message.role == Role::Agent).map(text_of).unwrap_or_default()
}

/// A message's text; what is no text is named.
pub(super) fn text_of(message: &Message) -> String {
    parts_text(&message.parts)
}

/// An artifact's text.
pub(super) fn artifact_text(artifact: &Artifact) -> String {
    parts_text(&artifact.parts)
}

fn parts_text(parts: &[Part]) -> String {
    let texts = parts.iter().map(|part| match &part.content {
        PartContent::Text(text) => text.clone(),
        PartContent::Url(url) => url.clone(),
        PartContent::Data(value) => whole_numbers(value.clone()).to_string(),
        PartContent::Raw(bytes) => {
            let name = part.filename.as_deref().unwrap_or("a file");
            format!("[{name}, {} bytes]", bytes.len())
        }
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// An error of the protocol for a person.
#[allow(clippy::needless_pass_by_value, reason = "it is what map_err gives")]
pub(super) fn explain(error: duologue_a2a::a2a::A2AError) -> Failure {
    Failure::new(format!("the agent says: {}", visible(&error.message)))
}

pub(super) fn json_line(value: &impl Serialize) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    serde_json::to_writer(&mut out, value)?;
    writeln!(out)?;
    Ok(out.flush()?)
}
