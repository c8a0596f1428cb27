//! Talking to servers of 0.3, over JSON-RPC.

use a2a::{
    A2AError, AgentCard, CancelTaskRequest, DeleteTaskPushNotificationConfigRequest,
    GetExtendedAgentCardRequest, GetTaskPushNotificationConfigRequest, GetTaskRequest,
    ListTaskPushNotificationConfigsRequest, ListTaskPushNotificationConfigsResponse,
    ListTasksRequest, ListTasksResponse, SendMessageRequest, SendMessageResponse, StreamResponse,
    SubscribeToTaskRequest, Task, TaskPushNotificationConfig, error_code,
};
use a2a_client::{ServiceParams, Transport};
use duologue_core::with_causes;
use futures::{StreamExt, stream::BoxStream};
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{card, sse};
use crate::v03;

/// The way to a server of 0.3.
pub(super) struct OldTransport {
    http: reqwest::Client,
    url: String,
}

#[derive(Deserialize)]
struct Reply {
    #[serde(default)]
    result: Option<Value>,
    #[serde(default)]
    error: Option<OldError>,
}

#[derive(Deserialize)]
struct OldError {
    code: i32,
    message: String,
}

type Updates = BoxStream<'static, Result<StreamResponse, A2AError>>;

impl OldTransport {
    pub(super) fn new(http: reqwest::Client, url: String) -> Self {
        Self { http, url }
    }

    async fn post(
        &self,
        params: &ServiceParams,
        method: &str,
        body: Value,
        accept: &str,
    ) -> Result<reqwest::Response, A2AError> {
        let id = a2a::new_message_id();
        let body = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": body });
        let mut request = self.http.post(&self.url).header(ACCEPT, accept);
        for (name, values) in params {
            for value in values {
                request = request.header(name, value);
            }
        }
        let response = request.json(&body).send().await;
        let response =
            response.map_err(|error| A2AError::internal(with_causes(&error.without_url())))?;
        match response.status() {
            status if status.is_success() => Ok(response),
            status => Err(A2AError::internal(format!("the remote agent answered {status}"))),
        }
    }

    async fn call(
        &self,
        params: &ServiceParams,
        method: &str,
        body: Value,
    ) -> Result<Value, A2AError> {
        let response = self.post(params, method, body, "application/json").await?;
        let reply: Reply = response.json().await.map_err(|error| unreadable(&error))?;
        result_of(reply)
    }

    async fn stream(
        &self,
        params: &ServiceParams,
        method: &str,
        body: Value,
    ) -> Result<Updates, A2AError> {
        let response = self.post(params, method, body, "text/event-stream").await?;
        let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        if !kind.unwrap_or_default().starts_with("text/event-stream") {
            let reply: Reply = response.json().await.map_err(|error| unreadable(&error))?;
            let update = v03::parse_update(result_of(reply)?)?;
            return Ok(futures::stream::iter([Ok(update)]).boxed());
        }
        let updates = sse::events(response.bytes_stream()).map(|data| {
            let reply: Reply = serde_json::from_str(&data?).map_err(|error| unreadable(&error))?;
            v03::parse_update(result_of(reply)?)
        });
        Ok(updates.boxed())
    }
}

pub(super) fn unreadable(error: &dyn std::fmt::Display) -> A2AError {
    A2AError::new(
        error_code::INVALID_AGENT_RESPONSE,
        format!("its answer is not readable: {error}"),
    )
}

fn result_of(reply: Reply) -> Result<Value, A2AError> {
    match (reply.result, reply.error) {
        (_, Some(error)) => Err(A2AError::new(error.code, error.message)),
        (Some(result), None) => Ok(result),
        (None, None) => Ok(Value::Null),
    }
}

pub(super) fn not_in_0_3(what: &str) -> A2AError {
    A2AError::unsupported_operation(format!("{what} is not part of version 0.3"))
}

/// The parameters of `message/send`.
fn old_send(request: &SendMessageRequest) -> Value {
    let mut params = json!({ "message": v03::message(&request.message) });
    let mut configuration = json!({});
    if let (Some(fields), Some(config)) =
        (configuration.as_object_mut(), request.configuration.as_ref())
    {
        let is_hasty = config.return_immediately.unwrap_or_default();
        fields.insert("blocking".to_owned(), json!(!is_hasty));
        if let Some(modes) = &config.accepted_output_modes {
            fields.insert("acceptedOutputModes".to_owned(), json!(modes));
        }
        if let Some(length) = config.history_length {
            fields.insert("historyLength".to_owned(), json!(length));
        }
        if let Some(push) = &config.task_push_notification_config {
            let push = v03::push_config(push);
            let inner = push.get("pushNotificationConfig").cloned().unwrap_or(Value::Null);
            fields.insert("pushNotificationConfig".to_owned(), inner);
        }
    }
    if let Some(fields) = params.as_object_mut() {
        fields.insert("configuration".to_owned(), configuration);
        if let Some(metadata) = &request.metadata {
            fields.insert("metadata".to_owned(), json!(metadata));
        }
    }
    params
}

#[tonic::async_trait]
impl Transport for OldTransport {
    async fn send_message(
        &self,
        params: &ServiceParams,
        req: &SendMessageRequest,
    ) -> Result<SendMessageResponse, A2AError> {
        let result = self.call(params, "message/send", old_send(req)).await?;
        match v03::parse_update(result)? {
            StreamResponse::Task(task) => Ok(SendMessageResponse::Task(task)),
            StreamResponse::Message(message) => Ok(SendMessageResponse::Message(message)),
            _ => Err(unreadable(&"neither a task nor a message")),
        }
    }

    async fn send_streaming_message(
        &self,
        params: &ServiceParams,
        req: &SendMessageRequest,
    ) -> Result<Updates, A2AError> {
        self.stream(params, "message/stream", old_send(req)).await
    }

    async fn get_task(
        &self,
        params: &ServiceParams,
        req: &GetTaskRequest,
    ) -> Result<Task, A2AError> {
        let body = match req.history_length {
            Some(length) => json!({ "id": req.id, "historyLength": length }),
            None => json!({ "id": req.id }),
        };
        v03::parse_task(self.call(params, "tasks/get", body).await?)
    }

    async fn list_tasks(
        &self,
        _params: &ServiceParams,
        _req: &ListTasksRequest,
    ) -> Result<ListTasksResponse, A2AError> {
        Err(not_in_0_3("listing tasks"))
    }

    async fn cancel_task(
        &self,
        params: &ServiceParams,
        req: &CancelTaskRequest,
    ) -> Result<Task, A2AError> {
        v03::parse_task(self.call(params, "tasks/cancel", json!({ "id": req.id })).await?)
    }

    async fn subscribe_to_task(
        &self,
        params: &ServiceParams,
        req: &SubscribeToTaskRequest,
    ) -> Result<Updates, A2AError> {
        self.stream(params, "tasks/resubscribe", json!({ "id": req.id })).await
    }

    async fn create_push_config(
        &self,
        params: &ServiceParams,
        req: &TaskPushNotificationConfig,
    ) -> Result<TaskPushNotificationConfig, A2AError> {
        let method = "tasks/pushNotificationConfig/set";
        let result = self.call(params, method, v03::push_config(req)).await?;
        v03::push_set_params(Some(result))
    }

    async fn get_push_config(
        &self,
        params: &ServiceParams,
        req: &GetTaskPushNotificationConfigRequest,
    ) -> Result<TaskPushNotificationConfig, A2AError> {
        let body = json!({ "id": req.task_id, "pushNotificationConfigId": req.id });
        let result = self.call(params, "tasks/pushNotificationConfig/get", body).await?;
        v03::push_set_params(Some(result))
    }

    async fn list_push_configs(
        &self,
        params: &ServiceParams,
        req: &ListTaskPushNotificationConfigsRequest,
    ) -> Result<ListTaskPushNotificationConfigsResponse, A2AError> {
        let body = json!({ "id": req.task_id });
        let result = self.call(params, "tasks/pushNotificationConfig/list", body).await?;
        let items = result.as_array().cloned().unwrap_or_default();
        let configs: Result<Vec<_>, _> =
            items.into_iter().map(|item| v03::push_set_params(Some(item))).collect();
        Ok(ListTaskPushNotificationConfigsResponse { configs: configs?, next_page_token: None })
    }

    async fn delete_push_config(
        &self,
        params: &ServiceParams,
        req: &DeleteTaskPushNotificationConfigRequest,
    ) -> Result<(), A2AError> {
        let body = json!({ "id": req.task_id, "pushNotificationConfigId": req.id });
        self.call(params, "tasks/pushNotificationConfig/delete", body).await?;
        Ok(())
    }

    async fn get_extended_agent_card(
        &self,
        params: &ServiceParams,
        _req: &GetExtendedAgentCardRequest,
    ) -> Result<AgentCard, A2AError> {
        let card = self.call(params, "agent/getAuthenticatedExtendedCard", json!({})).await?;
        card::read(card).map_err(|why| unreadable(&why))
    }

    async fn destroy(&self) -> Result<(), A2AError> {
        Ok(())
    }
}
