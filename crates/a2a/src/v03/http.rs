//! The shapes of 0.3 over HTTP+JSON. They are those of its protocol buffers: a message has
//! `content`, roles and states are spelled out, and nothing says what kind it is of.
//!
//! Nothing is added to them: clients of that time refuse fields that they do not know.

use a2a::{
    A2AError, Artifact, Part, PartContent, Role, SendMessageRequest, SendMessageResponse,
    StreamResponse, Task, TaskPushNotificationConfig, TaskState, TaskStatus,
};
use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use serde_json::{Map, Value, json};

use crate::fault;

/// A state and how it is spelled here. One of them has another letter than today.
const STATES: [(TaskState, &str, &str); 8] = [
    (TaskState::Submitted, "TASK_STATE_SUBMITTED", "submitted"),
    (TaskState::Working, "TASK_STATE_WORKING", "working"),
    (TaskState::Completed, "TASK_STATE_COMPLETED", "completed"),
    (TaskState::Failed, "TASK_STATE_FAILED", "failed"),
    (TaskState::Canceled, "TASK_STATE_CANCELLED", "canceled"),
    (TaskState::InputRequired, "TASK_STATE_INPUT_REQUIRED", "input-required"),
    (TaskState::Rejected, "TASK_STATE_REJECTED", "rejected"),
    (TaskState::AuthRequired, "TASK_STATE_AUTH_REQUIRED", "auth-required"),
];

/// A task.
pub(crate) fn task(task: &Task) -> Value {
    object([
        ("id", json!(task.id)),
        ("contextId", json!(task.context_id)),
        ("status", status(&task.status)),
        ("artifacts", json!(task.artifacts.as_ref().map(|all| each(all, artifact)))),
        ("history", json!(task.history.as_ref().map(|all| each(all, message)))),
        ("metadata", json!(task.metadata)),
    ])
}

/// A message.
pub(crate) fn message(message: &a2a::Message) -> Value {
    let role = if message.role == Role::Agent { "ROLE_AGENT" } else { "ROLE_USER" };
    object([
        ("messageId", json!(message.message_id)),
        ("contextId", json!(message.context_id)),
        ("taskId", json!(message.task_id)),
        ("role", json!(role)),
        ("content", json!(each(&message.parts, part))),
        ("metadata", json!(message.metadata)),
        ("extensions", json!(message.extensions)),
    ])
}

/// What comes of sending.
pub(crate) fn sent(response: &SendMessageResponse) -> Value {
    match response {
        SendMessageResponse::Task(inner) => json!({ "task": task(inner) }),
        SendMessageResponse::Message(inner) => json!({ "message": message(inner) }),
    }
}

/// An update of a stream.
pub(crate) fn update(response: &StreamResponse) -> Value {
    match response {
        StreamResponse::Task(inner) => json!({ "task": task(inner) }),
        StreamResponse::Message(inner) => json!({ "message": message(inner) }),
        StreamResponse::StatusUpdate(update) => {
            // A stream of then ended with an update that said so.
            let is_final = crate::task::state::is_settled(&update.status.state);
            let inner = object([
                ("taskId", json!(update.task_id)),
                ("contextId", json!(update.context_id)),
                ("status", status(&update.status)),
                ("final", json!(is_final)),
                ("metadata", json!(update.metadata)),
            ]);
            json!({ "statusUpdate": inner })
        }
        StreamResponse::ArtifactUpdate(update) => {
            let inner = object([
                ("taskId", json!(update.task_id)),
                ("contextId", json!(update.context_id)),
                ("artifact", artifact(&update.artifact)),
                ("append", json!(update.append)),
                ("lastChunk", json!(update.last_chunk)),
                ("metadata", json!(update.metadata)),
            ]);
            json!({ "artifactUpdate": inner })
        }
    }
}

/// Where notifications go.
pub(crate) fn push_config(config: &TaskPushNotificationConfig) -> Value {
    let name = format!("tasks/{}/pushNotificationConfigs/{}", config.task_id, id_of(config));
    json!({ "name": name, "pushNotificationConfig": push_target(config) })
}

/// A request to notify somebody.
pub(crate) fn push_request(config: &TaskPushNotificationConfig) -> Value {
    object([
        ("parent", json!(format!("tasks/{}", config.task_id))),
        ("configId", json!(id_of(config))),
        ("config", push_config(config)),
    ])
}

fn id_of(config: &TaskPushNotificationConfig) -> &str {
    config.id.as_deref().unwrap_or_default()
}

fn push_target(config: &TaskPushNotificationConfig) -> Value {
    let old = super::push_config(config);
    old.get("pushNotificationConfig").cloned().unwrap_or(Value::Null)
}

/// A request as a server of then reads it.
pub(crate) fn send_body(request: &SendMessageRequest) -> Value {
    let mut configuration = Value::Null;
    if let Some(config) = &request.configuration {
        let push = config.task_push_notification_config.as_ref();
        configuration = object([
            ("acceptedOutputModes", json!(config.accepted_output_modes)),
            ("historyLength", json!(config.history_length)),
            ("pushNotification", json!(push.map(push_target))),
            ("blocking", json!(!config.return_immediately.unwrap_or_default())),
        ]);
    }
    object([
        ("message", message(&request.message)),
        ("configuration", configuration),
        ("metadata", json!(request.metadata)),
    ])
}

fn status(status: &TaskStatus) -> Value {
    let known = STATES.iter().find(|(state, ..)| *state == status.state);
    let name = known.map_or("TASK_STATE_UNSPECIFIED", |(_, name, _)| *name);
    object([
        ("state", json!(name)),
        ("message", json!(status.message.as_ref().map(message))),
        ("timestamp", json!(status.timestamp)),
    ])
}

fn artifact(artifact: &Artifact) -> Value {
    object([
        ("artifactId", json!(artifact.artifact_id)),
        ("name", json!(artifact.name)),
        ("description", json!(artifact.description)),
        ("parts", json!(each(&artifact.parts, part))),
        ("metadata", json!(artifact.metadata)),
        ("extensions", json!(artifact.extensions)),
    ])
}

fn part(part: &Part) -> Value {
    let file = |name: &str, value: Value| {
        let about = [("mimeType", json!(part.media_type)), ("name", json!(part.filename))];
        ("file", object([(name, value)].into_iter().chain(about)))
    };
    let content = match &part.content {
        PartContent::Text(text) => ("text", json!(text)),
        PartContent::Data(value @ Value::Object(_)) => ("data", json!({ "data": value })),
        // Data had to be an object then.
        PartContent::Data(value) => ("data", json!({ "data": { "value": value } })),
        PartContent::Raw(bytes) => file("fileWithBytes", json!(BASE64.encode(bytes))),
        PartContent::Url(url) => file("fileWithUri", json!(url)),
    };
    object([content, ("metadata", json!(part.metadata))])
}

fn each<T>(all: &[T], put: impl Fn(&T) -> Value) -> Vec<Value> {
    all.iter().map(put).collect()
}

/// An object of those fields that are there.
fn object<'a>(fields: impl IntoIterator<Item = (&'a str, Value)>) -> Value {
    let fields = fields.into_iter().filter(|(_, value)| !value.is_null());
    Value::Object(fields.map(|(name, value)| (name.to_owned(), value)).collect())
}

/// Read a request to send.
pub(crate) fn send_request(body: &Value) -> Result<SendMessageRequest, A2AError> {
    let said = field(body, ["message", "request"]);
    let Some(said) = said else { return Err(fault::invalid("message", "it is required")) };
    let mut params = object([
        ("message", old_message(said)),
        ("metadata", body.get("metadata").cloned().unwrap_or(Value::Null)),
    ]);
    if let Some(Value::Object(config)) = body.get("configuration") {
        let mut config = config.clone();
        // What is not said is not so: whoever says nothing of waiting does not wait.
        config.entry("blocking").or_insert(Value::Bool(false));
        if let Some(push) = config.remove("pushNotification") {
            config.insert("pushNotificationConfig".to_owned(), push);
        }
        super::put(&mut params, "configuration", Value::Object(config));
    }
    super::send_params(Some(params))
}

/// Read a request to notify somebody.
pub(crate) fn push_set(task: &str, body: &Value) -> Result<TaskPushNotificationConfig, A2AError> {
    let config = body.get("config").unwrap_or(body);
    let target = config.get("pushNotificationConfig").cloned().unwrap_or(Value::Null);
    super::push_set_params(Some(json!({ "taskId": task, "pushNotificationConfig": target })))
}

/// Read a task.
pub(crate) fn parse_task(value: &Value) -> Result<Task, A2AError> {
    super::parse_task(old_task(value))
}

/// Read what came of sending, or an update of a stream.
pub(crate) fn parse_update(value: &Value) -> Result<StreamResponse, A2AError> {
    let as_kind = |kind: &str, mut inner: Value| {
        super::put(&mut inner, "kind", json!(kind));
        super::parse_update(inner)
    };
    if let Some(inner) = value.get("task") {
        return Ok(StreamResponse::Task(parse_task(inner)?));
    }
    if let Some(inner) = field(value, ["message", "msg"]) {
        return as_kind("message", old_message(inner));
    }
    if let Some(inner) = value.get("statusUpdate") {
        let mut old = inner.clone();
        super::put(&mut old, "status", old_status(inner.get("status")));
        return as_kind("status-update", old);
    }
    if let Some(inner) = value.get("artifactUpdate") {
        let mut old = inner.clone();
        super::put(&mut old, "artifact", inner.get("artifact").map_or(Value::Null, old_artifact));
        return as_kind("artifact-update", old);
    }
    Err(A2AError::new(
        a2a::error_code::INVALID_AGENT_RESPONSE,
        "an update that is neither a task, a message, a status nor an artifact",
    ))
}

fn field<'a>(value: &'a Value, names: [&str; 2]) -> Option<&'a Value> {
    names.iter().find_map(|name| value.get(name)).filter(|found| !found.is_null())
}

fn list(value: &Value, name: &str, read: impl Fn(&Value) -> Value) -> Value {
    match value.get(name) {
        Some(Value::Array(all)) => all.iter().map(read).collect(),
        other => other.cloned().unwrap_or(Value::Null),
    }
}

fn old_task(value: &Value) -> Value {
    let mut old = value.as_object().cloned().unwrap_or_default();
    old.insert("status".to_owned(), old_status(value.get("status")));
    for (name, read) in
        [("artifacts", old_artifact as fn(&Value) -> Value), ("history", old_message)]
    {
        old.insert(name.to_owned(), list(value, name, read));
    }
    Value::Object(old)
}

fn old_status(status: Option<&Value>) -> Value {
    let Some(status) = status else { return json!({ "state": "unknown" }) };
    let name = status.get("state").and_then(Value::as_str).unwrap_or_default();
    let known = STATES.iter().find(|(_, spelled, _)| *spelled == name);
    object([
        ("state", json!(known.map_or("unknown", |(.., old)| *old))),
        ("message", field(status, ["message", "update"]).map_or(Value::Null, old_message)),
        ("timestamp", status.get("timestamp").cloned().unwrap_or(Value::Null)),
    ])
}

fn old_artifact(value: &Value) -> Value {
    let mut old = value.as_object().cloned().unwrap_or_default();
    let parts = match list(value, "parts", old_part) {
        Value::Null => json!([]),
        parts => parts,
    };
    old.insert("parts".to_owned(), parts);
    Value::Object(old)
}

fn old_message(value: &Value) -> Value {
    let mut old: Map<String, Value> = match value.as_object() {
        Some(fields) => fields.clone(),
        None => return value.clone(),
    };
    // An empty id is none.
    for name in ["contextId", "taskId", "messageId"] {
        if old.get(name).and_then(Value::as_str) == Some("") {
            old.remove(name);
        }
    }
    let role = match old.get("role").and_then(Value::as_str) {
        Some("ROLE_USER") => "user",
        Some("ROLE_AGENT") => "agent",
        Some(other) => other,
        None => "unspecified",
    };
    let role = json!(role);
    old.insert("role".to_owned(), role);
    old.remove("content");
    let parts = match list(value, "content", old_part) {
        Value::Null => list(value, "parts", old_part),
        parts => parts,
    };
    // Nothing at all is an empty list in this shape.
    old.insert("parts".to_owned(), if parts.is_null() { json!([]) } else { parts });
    Value::Object(old)
}

fn old_part(value: &Value) -> Value {
    let metadata = ("metadata", value.get("metadata").cloned().unwrap_or(Value::Null));
    let (kind, content) = if let Some(text) = value.get("text") {
        ("text", ("text", text.clone()))
    } else if let Some(data) = value.get("data") {
        ("data", ("data", data.get("data").unwrap_or(data).clone()))
    } else if let Some(file) = value.get("file") {
        let at = |name: &str| file.get(name).cloned().unwrap_or(Value::Null);
        let old = object([
            ("bytes", at("fileWithBytes")),
            ("uri", at("fileWithUri")),
            ("mimeType", at("mimeType")),
            ("name", at("name")),
        ]);
        ("file", ("file", old))
    } else {
        return value.clone();
    };
    object([("kind", json!(kind)), content, metadata])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let mut said = a2a::Message::new(
            Role::Agent,
            vec![
                Part::text("look"),
                Part::data(json!({ "n": 1 })),
                Part {
                    content: PartContent::Raw(vec![0, 255]),
                    filename: Some("x.bin".into()),
                    media_type: Some("application/octet-stream".into()),
                    metadata: None,
                },
            ],
        );
        said.context_id = Some("c".into());
        said.task_id = Some("t".into());
        let status =
            TaskStatus { state: TaskState::Canceled, message: Some(said.clone()), timestamp: None };
        let whole = Task {
            id: "t".into(),
            context_id: "c".into(),
            status,
            artifacts: None,
            history: Some(vec![said.clone()]),
            metadata: None,
        };
        let written = task(&whole);
        assert_eq!(written["status"]["state"], "TASK_STATE_CANCELLED");
        assert_eq!(written["history"][0]["content"][0], json!({ "text": "look" }));
        assert_eq!(parse_task(&written).unwrap(), whole);
        let response = StreamResponse::Message(said);
        assert_eq!(parse_update(&update(&response)).unwrap(), response);
        assert!(parse_update(&json!({ "noise": 1 })).is_err());
    }

    #[test]
    fn silence_about_waiting_is_no_wish_to_wait_once_something_is_configured() {
        let body = |configuration: Value| {
            let said =
                json!({ "messageId": "m", "role": "ROLE_USER", "content": [{ "text": "x" }] });
            let request = json!({ "request": said, "configuration": configuration });
            send_request(&request).unwrap().configuration.map(|config| config.return_immediately)
        };
        assert_eq!(body(json!({})), Some(Some(true)));
        assert_eq!(body(json!({ "blocking": true })), Some(Some(false)));
        assert_eq!(body(Value::Null), None);
        assert!(send_request(&json!({})).is_err());
    }
}
