//! Reading what 0.3 and its ancestors say.

use std::collections::HashMap;

use a2a::{
    A2AError, AuthenticationInfo, CancelTaskRequest, GetTaskRequest, Message, Part, PartContent,
    Role, SendMessageConfiguration, SendMessageRequest, TaskPushNotificationConfig,
};
use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use serde::Deserialize;
use serde_json::Value;

use crate::{fault, wire::request_from};

pub(super) type Metadata = Option<HashMap<String, Value>>;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct OldMessage {
    #[serde(default)]
    message_id: Option<String>,
    role: String,
    parts: Vec<OldPart>,
    #[serde(default)]
    context_id: Option<String>,
    #[serde(default)]
    task_id: Option<String>,
    #[serde(default)]
    metadata: Metadata,
    #[serde(default)]
    extensions: Option<Vec<String>>,
    #[serde(default)]
    reference_task_ids: Option<Vec<String>>,
}

#[derive(Deserialize)]
pub(super) struct OldPart {
    #[serde(default)]
    kind: Option<String>,
    /// What the ancestors called it.
    #[serde(default, rename = "type")]
    old_kind: Option<String>,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    data: Option<Value>,
    #[serde(default)]
    file: Option<OldFile>,
    #[serde(default)]
    metadata: Metadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OldFile {
    #[serde(default)]
    bytes: Option<String>,
    #[serde(default)]
    uri: Option<String>,
    #[serde(default)]
    mime_type: Option<String>,
    #[serde(default)]
    name: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OldPush {
    url: String,
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    token: Option<String>,
    #[serde(default)]
    authentication: Option<OldAuth>,
}

#[derive(Deserialize)]
struct OldAuth {
    #[serde(default)]
    schemes: Vec<String>,
    #[serde(default)]
    credentials: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OldSend {
    message: OldMessage,
    #[serde(default)]
    configuration: Option<OldConfiguration>,
    #[serde(default)]
    metadata: Metadata,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct OldConfiguration {
    accepted_output_modes: Option<Vec<String>>,
    history_length: Option<i32>,
    push_notification_config: Option<OldPush>,
    blocking: Option<bool>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OldTasksSend {
    id: String,
    #[serde(default)]
    session_id: Option<String>,
    message: OldMessage,
    #[serde(default)]
    accepted_output_modes: Option<Vec<String>>,
    #[serde(default)]
    push_notification: Option<OldPush>,
    #[serde(default)]
    history_length: Option<i32>,
    #[serde(default)]
    metadata: Metadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OldId {
    id: String,
    #[serde(default)]
    history_length: Option<i32>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OldPushId {
    id: String,
    #[serde(default)]
    push_notification_config_id: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OldPushSet {
    #[serde(alias = "id")]
    task_id: String,
    push_notification_config: OldPush,
}

/// `message/send` and `message/stream`.
pub(crate) fn send_params(params: Option<Value>) -> Result<SendMessageRequest, A2AError> {
    let old: OldSend = request_from(params)?;
    let configuration = old.configuration.map(|old| SendMessageConfiguration {
        accepted_output_modes: old.accepted_output_modes,
        task_push_notification_config: old.push_notification_config.map(|push| push.config("")),
        history_length: old.history_length,
        // Whoever said nothing waited.
        return_immediately: Some(old.blocking == Some(false)),
    });
    Ok(SendMessageRequest {
        message: old.message.message()?,
        configuration,
        metadata: old.metadata,
        tenant: None,
    })
}

/// `tasks/send`, whose client chooses the task's id.
pub(crate) fn tasks_send_params(
    params: Option<Value>,
) -> Result<(String, SendMessageRequest), A2AError> {
    let old: OldTasksSend = request_from(params)?;
    let mut message = old.message.message()?;
    message.context_id = message.context_id.or(old.session_id);
    let configuration = SendMessageConfiguration {
        accepted_output_modes: old.accepted_output_modes,
        task_push_notification_config: old.push_notification.map(|push| push.config(&old.id)),
        history_length: old.history_length,
        return_immediately: None,
    };
    let request = SendMessageRequest {
        message,
        configuration: Some(configuration),
        metadata: old.metadata,
        tenant: None,
    };
    Ok((old.id, request))
}

/// `tasks/get`.
pub(crate) fn get_params(params: Option<Value>) -> Result<GetTaskRequest, A2AError> {
    let old: OldId = request_from(params)?;
    Ok(GetTaskRequest { id: old.id, history_length: old.history_length, tenant: None })
}

/// `tasks/cancel` and `tasks/resubscribe`.
pub(crate) fn cancel_params(params: Option<Value>) -> Result<CancelTaskRequest, A2AError> {
    let old: OldId = request_from(params)?;
    Ok(CancelTaskRequest { id: old.id, metadata: None, tenant: None })
}

/// A task and, where it is named, one of its notification targets.
pub(crate) fn push_id_params(params: Option<Value>) -> Result<(String, Option<String>), A2AError> {
    let old: OldPushId = request_from(params)?;
    Ok((old.id, old.push_notification_config_id))
}

/// `tasks/pushNotificationConfig/set`.
pub(crate) fn push_set_params(
    params: Option<Value>,
) -> Result<TaskPushNotificationConfig, A2AError> {
    let old: OldPushSet = request_from(params)?;
    Ok(old.push_notification_config.config(&old.task_id))
}

impl OldPush {
    fn config(self, task: &str) -> TaskPushNotificationConfig {
        let authentication = self.authentication.and_then(|auth| {
            let scheme = auth.schemes.into_iter().next()?;
            Some(AuthenticationInfo { scheme, credentials: auth.credentials })
        });
        TaskPushNotificationConfig {
            url: self.url,
            id: self.id,
            task_id: task.to_owned(),
            token: self.token,
            authentication,
            tenant: None,
        }
    }
}

impl OldMessage {
    pub(super) fn message(self) -> Result<Message, A2AError> {
        let role = match self.role.as_str() {
            "user" => Role::User,
            "agent" => Role::Agent,
            other => {
                let wrong = format!("it is user or agent, not {other}");
                return Err(fault::invalid("message.role", wrong));
            }
        };
        let parts: Result<Vec<Part>, A2AError> =
            self.parts.into_iter().map(OldPart::part).collect();
        Ok(Message {
            // The ancestors' messages had no ids.
            message_id: self.message_id.unwrap_or_else(a2a::new_message_id),
            context_id: self.context_id,
            task_id: self.task_id,
            role,
            parts: parts?,
            metadata: self.metadata,
            extensions: self.extensions,
            reference_task_ids: self.reference_task_ids,
        })
    }
}

impl OldPart {
    pub(super) fn part(self) -> Result<Part, A2AError> {
        let wrong = |why: &str| fault::invalid("message.parts", why);
        let kind = self.kind.or(self.old_kind);
        let (content, file) = match (kind.as_deref(), self.text, self.data, self.file) {
            (Some("text") | None, Some(text), _, _) => (PartContent::Text(text), None),
            (Some("data") | None, _, Some(data), _) => (PartContent::Data(data), None),
            (Some("file") | None, _, _, Some(file)) => match (&file.bytes, &file.uri) {
                (Some(bytes), _) => {
                    let bytes = BASE64.decode(bytes).map_err(|_| wrong("bytes are not base 64"))?;
                    (PartContent::Raw(bytes), Some(file))
                }
                (None, Some(uri)) => (PartContent::Url(uri.clone()), Some(file)),
                (None, None) => return Err(wrong("a file has bytes or a uri")),
            },
            (Some(kind), ..) => return Err(wrong(&format!("a part of kind {kind} is not whole"))),
            (None, ..) => return Err(wrong("a part has a text, data or a file")),
        };
        let (media_type, filename) = file.map(|f| (f.mime_type, f.name)).unwrap_or_default();
        Ok(Part { content, filename, media_type, metadata: self.metadata })
    }
}
