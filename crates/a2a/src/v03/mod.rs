//! Version 0.3 of the protocol, and the `tasks/send` of its ancestors, in the words of today's.
//!
//! Parts carry both the `kind` of 0.3 and the `type` of the ancestors, and tasks both a `contextId`
//! and a `sessionId`, so that one shape serves both.

pub(crate) mod http;
mod read;
mod reply;

use a2a::{
    AgentCard, Artifact, Part, PartContent, Role, SecurityScheme, StreamResponse, Task,
    TaskPushNotificationConfig, TaskState, TaskStatus,
};
use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use serde_json::{Map, Value, json};

pub(crate) use read::{
    cancel_params, get_params, push_id_params, push_set_params, send_params, tasks_send_params,
};
pub(crate) use reply::{parse_task, parse_update};

/// The version as headers and cards spell it.
pub(crate) const VERSION: &str = "0.3";

/// How a state is called.
pub(crate) fn state_name(state: &TaskState) -> &'static str {
    match state {
        TaskState::Unspecified => "unknown",
        TaskState::Submitted => "submitted",
        TaskState::Working => "working",
        TaskState::Completed => "completed",
        TaskState::Failed => "failed",
        TaskState::Canceled => "canceled",
        TaskState::InputRequired => "input-required",
        TaskState::Rejected => "rejected",
        TaskState::AuthRequired => "auth-required",
    }
}

/// A task.
pub(crate) fn task(task: &Task) -> Value {
    let mut out = json!({
        "kind": "task",
        "id": task.id,
        "contextId": task.context_id,
        "sessionId": task.context_id,
        "status": status(&task.status),
    });
    if let Some(artifacts) = &task.artifacts {
        put(
            &mut out,
            "artifacts",
            artifacts.iter().enumerate().map(|(i, a)| artifact(a, i)).collect(),
        );
    }
    if let Some(history) = &task.history {
        put(&mut out, "history", history.iter().map(message).collect());
    }
    if let Some(metadata) = &task.metadata {
        put(&mut out, "metadata", json!(metadata));
    }
    out
}

/// A task for those who know no rejection: it is a failure to them.
pub(crate) fn task_without_rejection(task: &Task) -> Value {
    let mut task = task.clone();
    if task.status.state == TaskState::Rejected {
        task.status.state = TaskState::Failed;
    }
    self::task(&task)
}

fn status(status: &TaskStatus) -> Value {
    let mut out = json!({ "state": state_name(&status.state) });
    if let Some(words) = &status.message {
        put(&mut out, "message", message(words));
    }
    if let Some(at) = &status.timestamp {
        put(&mut out, "timestamp", json!(at));
    }
    out
}

/// A message.
pub(crate) fn message(message: &a2a::Message) -> Value {
    let role = if message.role == Role::Agent { "agent" } else { "user" };
    let mut out = json!({
        "kind": "message",
        "messageId": message.message_id,
        "role": role,
        "parts": message.parts.iter().map(part).collect::<Vec<_>>(),
    });
    let fields = [
        ("contextId", json!(message.context_id)),
        ("taskId", json!(message.task_id)),
        ("metadata", json!(message.metadata)),
        ("extensions", json!(message.extensions)),
        ("referenceTaskIds", json!(message.reference_task_ids)),
    ];
    for (name, value) in fields {
        if !value.is_null() {
            put(&mut out, name, value);
        }
    }
    out
}

fn part(part: &Part) -> Value {
    let mut out = match &part.content {
        PartContent::Text(text) => json!({ "kind": "text", "type": "text", "text": text }),
        // Data had to be an object then.
        PartContent::Data(value @ Value::Object(_)) => {
            json!({ "kind": "data", "type": "data", "data": value })
        }
        PartContent::Data(value) => {
            json!({ "kind": "data", "type": "data", "data": { "value": value } })
        }
        PartContent::Raw(bytes) => {
            json!({ "kind": "file", "type": "file", "file": { "bytes": BASE64.encode(bytes) } })
        }
        PartContent::Url(url) => json!({ "kind": "file", "type": "file", "file": { "uri": url } }),
    };
    if let Some(file) = out.get_mut("file") {
        if let Some(media) = &part.media_type {
            put(file, "mimeType", json!(media));
        }
        if let Some(name) = &part.filename {
            put(file, "name", json!(name));
        }
    }
    if let Some(metadata) = &part.metadata {
        put(&mut out, "metadata", json!(metadata));
    }
    out
}

fn artifact(artifact: &Artifact, index: usize) -> Value {
    let mut out = json!({
        "artifactId": artifact.artifact_id,
        "index": index,
        "parts": artifact.parts.iter().map(part).collect::<Vec<_>>(),
    });
    let fields = [
        ("name", json!(artifact.name)),
        ("description", json!(artifact.description)),
        ("metadata", json!(artifact.metadata)),
        ("extensions", json!(artifact.extensions)),
    ];
    for (name, value) in fields {
        if !value.is_null() {
            put(&mut out, name, value);
        }
    }
    out
}

/// An update of a stream.
pub(crate) fn update(response: &StreamResponse) -> Value {
    match response {
        StreamResponse::Task(inner) => task(inner),
        StreamResponse::Message(inner) => message(inner),
        StreamResponse::StatusUpdate(update) => {
            // A stream of then ended with an update that said so.
            let is_final = crate::task::state::is_settled(&update.status.state);
            json!({
                "kind": "status-update",
                "taskId": update.task_id,
                "contextId": update.context_id,
                "status": status(&update.status),
                "final": is_final,
            })
        }
        StreamResponse::ArtifactUpdate(update) => json!({
            "kind": "artifact-update",
            "taskId": update.task_id,
            "contextId": update.context_id,
            "artifact": artifact(&update.artifact, 0),
            "append": update.append.unwrap_or_default(),
            "lastChunk": update.last_chunk.unwrap_or_default(),
        }),
    }
}

/// Where notifications go.
pub(crate) fn push_config(config: &TaskPushNotificationConfig) -> Value {
    let mut inner = json!({ "url": config.url });
    if let Some(id) = &config.id {
        put(&mut inner, "id", json!(id));
    }
    if let Some(token) = &config.token {
        put(&mut inner, "token", json!(token));
    }
    if let Some(auth) = &config.authentication {
        let value = json!({ "schemes": [auth.scheme], "credentials": auth.credentials });
        put(&mut inner, "authentication", value);
    }
    json!({ "taskId": config.task_id, "pushNotificationConfig": inner })
}

/// A card that both versions read: today's fields, and those of 0.3 beside them.
pub(crate) fn card(card: &AgentCard) -> Value {
    let mut out = serde_json::to_value(card).unwrap_or(Value::Null);
    let old = card.supported_interfaces.iter().find(|face| face.protocol_version == VERSION);
    let Some(old) = old else { return out };
    let faces = card.supported_interfaces.iter().filter(|face| face.protocol_version == VERSION);
    let faces = faces.map(|face| json!({ "url": face.url, "transport": face.protocol_binding }));
    put(&mut out, "additionalInterfaces", faces.collect());
    put(&mut out, "url", json!(old.url));
    put(&mut out, "preferredTransport", json!(old.protocol_binding));
    put(&mut out, "protocolVersion", json!("0.3.0"));
    let has_more = card.capabilities.extended_agent_card.unwrap_or_default();
    put(&mut out, "supportsAuthenticatedExtendedCard", json!(has_more));
    if let Some(schemes) = &card.security_schemes {
        let mut all = Map::new();
        for (name, scheme) in schemes {
            all.insert(name.clone(), security_scheme(scheme));
        }
        // Today's shape names a scheme's kind by its field and the old one by `type`, so both fit
        // side by side.
        put(&mut out, "securitySchemes", Value::Object(all));
    }
    if let Some(requirements) = &card.security_requirements {
        put(&mut out, "security", json!(requirements));
    }
    out
}

fn security_scheme(scheme: &SecurityScheme) -> Value {
    let mut out = serde_json::to_value(scheme).unwrap_or(Value::Null);
    match scheme {
        SecurityScheme::ApiKey(key) => {
            put(&mut out, "type", json!("apiKey"));
            put(&mut out, "in", json!(key.location));
            put(&mut out, "name", json!(key.name));
        }
        SecurityScheme::HttpAuth(auth) => {
            put(&mut out, "type", json!("http"));
            put(&mut out, "scheme", json!(auth.scheme));
            if let Some(format) = &auth.bearer_format {
                put(&mut out, "bearerFormat", json!(format));
            }
        }
        SecurityScheme::OAuth2(_) => put(&mut out, "type", json!("oauth2")),
        SecurityScheme::OpenIdConnect(connect) => {
            put(&mut out, "type", json!("openIdConnect"));
            put(&mut out, "openIdConnectUrl", json!(connect.open_id_connect_url));
        }
        SecurityScheme::MutualTls(_) => put(&mut out, "type", json!("mutualTLS")),
    }
    out
}

fn put(object: &mut Value, name: &str, value: Value) {
    if let Some(fields) = object.as_object_mut() {
        fields.insert(name.to_owned(), value);
    }
}
