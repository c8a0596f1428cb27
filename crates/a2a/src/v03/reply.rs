//! Reading what a server of 0.3 answers.

use a2a::{
    A2AError, Artifact, Part, StreamResponse, Task, TaskArtifactUpdateEvent, TaskState, TaskStatus,
    TaskStatusUpdateEvent,
};
use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::Value;

use super::read::{Metadata, OldMessage, OldPart};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OldTask {
    id: String,
    #[serde(default)]
    context_id: Option<String>,
    /// What the ancestors called it.
    #[serde(default)]
    session_id: Option<String>,
    status: OldStatus,
    #[serde(default)]
    artifacts: Option<Vec<OldArtifact>>,
    #[serde(default)]
    history: Option<Vec<OldMessage>>,
    #[serde(default)]
    metadata: Metadata,
}

#[derive(Deserialize)]
struct OldStatus {
    state: String,
    #[serde(default)]
    message: Option<OldMessage>,
    #[serde(default)]
    timestamp: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OldArtifact {
    #[serde(default)]
    artifact_id: Option<String>,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    description: Option<String>,
    parts: Vec<OldPart>,
    #[serde(default)]
    metadata: Metadata,
    #[serde(default)]
    extensions: Option<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OldUpdate {
    task_id: String,
    context_id: String,
    #[serde(default)]
    status: Option<OldStatus>,
    #[serde(default)]
    artifact: Option<OldArtifact>,
    #[serde(default)]
    append: Option<bool>,
    #[serde(default)]
    last_chunk: Option<bool>,
    #[serde(default)]
    metadata: Metadata,
}

impl OldStatus {
    fn status(self) -> Result<TaskStatus, A2AError> {
        let state = match self.state.as_str() {
            "submitted" => TaskState::Submitted,
            "working" => TaskState::Working,
            "completed" => TaskState::Completed,
            "failed" => TaskState::Failed,
            "canceled" => TaskState::Canceled,
            "input-required" => TaskState::InputRequired,
            "rejected" => TaskState::Rejected,
            "auth-required" => TaskState::AuthRequired,
            _ => TaskState::Unspecified,
        };
        let timestamp = self.timestamp.and_then(|text| text.parse::<DateTime<Utc>>().ok());
        let message = self.message.map(OldMessage::message).transpose()?;
        Ok(TaskStatus { state, message, timestamp })
    }
}

impl OldArtifact {
    fn artifact(self) -> Result<Artifact, A2AError> {
        let parts: Result<Vec<Part>, A2AError> =
            self.parts.into_iter().map(OldPart::part).collect();
        Ok(Artifact {
            artifact_id: self.artifact_id.unwrap_or_else(a2a::new_artifact_id),
            name: self.name,
            description: self.description,
            parts: parts?,
            metadata: self.metadata,
            extensions: self.extensions,
        })
    }
}

/// A task as a server of 0.3 writes it.
pub(crate) fn parse_task(value: Value) -> Result<Task, A2AError> {
    let old: OldTask = serde_json::from_value(value).map_err(|error| {
        A2AError::new(a2a::error_code::INVALID_AGENT_RESPONSE, error.to_string())
    })?;
    let artifacts = old.artifacts.map(|list| list.into_iter().map(OldArtifact::artifact).collect());
    let history = old.history.map(|list| list.into_iter().map(OldMessage::message).collect());
    Ok(Task {
        id: old.id,
        context_id: old.context_id.or(old.session_id).unwrap_or_default(),
        status: old.status.status()?,
        artifacts: artifacts.transpose()?,
        history: history.transpose()?,
        metadata: old.metadata,
    })
}

/// An update, a task or a message, as a server of 0.3 writes them.
pub(crate) fn parse_update(value: Value) -> Result<StreamResponse, A2AError> {
    let wrong = |error: String| A2AError::new(a2a::error_code::INVALID_AGENT_RESPONSE, error);
    let kind = value.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
    match kind.as_str() {
        "message" => {
            let old: OldMessage =
                serde_json::from_value(value).map_err(|error| wrong(error.to_string()))?;
            Ok(StreamResponse::Message(old.message()?))
        }
        "status-update" | "artifact-update" => {
            let old: OldUpdate =
                serde_json::from_value(value).map_err(|error| wrong(error.to_string()))?;
            let OldUpdate { task_id, context_id, append, last_chunk, metadata, .. } = old;
            match (old.status, old.artifact) {
                (Some(status), _) => Ok(StreamResponse::StatusUpdate(TaskStatusUpdateEvent {
                    task_id,
                    context_id,
                    status: status.status()?,
                    metadata,
                })),
                (None, Some(artifact)) => {
                    Ok(StreamResponse::ArtifactUpdate(TaskArtifactUpdateEvent {
                        task_id,
                        context_id,
                        artifact: artifact.artifact()?,
                        append,
                        last_chunk,
                        metadata,
                    }))
                }
                (None, None) => Err(wrong(format!("a {kind} without what it is about"))),
            }
        }
        _ => parse_task(value).map(StreamResponse::Task),
    }
}
