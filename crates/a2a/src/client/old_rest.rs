//! Talking to servers of 0.3, over HTTP+JSON.

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
use reqwest::{
    Method, Response, StatusCode, Url,
    header::{ACCEPT, CONTENT_TYPE},
};
use serde_json::{Value, json};

use super::{
    card,
    old::{not_in_0_3, unreadable},
    sse,
};
use crate::v03::http;

/// The way to a server of 0.3 over HTTP+JSON.
pub(super) struct OldRestTransport {
    http: reqwest::Client,
    url: String,
}

type Updates = BoxStream<'static, Result<StreamResponse, A2AError>>;

impl OldRestTransport {
    pub(super) fn new(http: reqwest::Client, url: &str) -> Self {
        Self { http, url: format!("{}/v1", url.trim_end_matches('/')) }
    }

    /// An address below the server's own. Ids are one segment, whatever is in them.
    fn at(&self, segments: &[&str], verb: &str) -> Result<Url, A2AError> {
        let wrong = || A2AError::internal(format!("{} is no address", self.url));
        let mut url = Url::parse(&self.url).map_err(|_| wrong())?;
        let (last, first) = match segments.split_last() {
            Some((last, first)) => (format!("{last}{verb}"), first),
            None => (verb.to_owned(), segments),
        };
        url.path_segments_mut().map_err(|()| wrong())?.extend(first).push(&last);
        Ok(url)
    }

    async fn ask(
        &self,
        params: &ServiceParams,
        method: Method,
        url: Url,
        body: Option<&Value>,
        accept: &str,
    ) -> Result<Response, A2AError> {
        let mut request = self.http.request(method, url).header(ACCEPT, accept);
        for (name, values) in params {
            for value in values {
                request = request.header(name, value);
            }
        }
        if let Some(body) = body {
            request = request.json(body);
        }
        let response = request.send().await;
        let response =
            response.map_err(|error| A2AError::internal(with_causes(&error.without_url())))?;
        if response.status().is_success() { Ok(response) } else { Err(refused(response).await) }
    }

    async fn call(
        &self,
        params: &ServiceParams,
        method: Method,
        url: Url,
        body: Option<&Value>,
    ) -> Result<Value, A2AError> {
        let response = self.ask(params, method, url, body, "application/json").await?;
        response.json().await.map_err(|error| unreadable(&error))
    }

    async fn stream(
        &self,
        params: &ServiceParams,
        method: Method,
        url: Url,
        body: Option<&Value>,
    ) -> Result<Updates, A2AError> {
        let response = self.ask(params, method, url, body, "text/event-stream").await?;
        let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        if !kind.unwrap_or_default().starts_with("text/event-stream") {
            let update: Value = response.json().await.map_err(|error| unreadable(&error))?;
            return Ok(futures::stream::iter([http::parse_update(&update)]).boxed());
        }
        let updates = sse::events(response.bytes_stream()).map(|data| {
            let update: Value = serde_json::from_str(&data?).map_err(|error| unreadable(&error))?;
            http::parse_update(&update)
        });
        Ok(updates.boxed())
    }
}

/// An error in the words of the protocol. Only its status says which one it is.
async fn refused(response: Response) -> A2AError {
    let status = response.status();
    let code = match status {
        StatusCode::NOT_FOUND => error_code::TASK_NOT_FOUND,
        StatusCode::CONFLICT => error_code::TASK_NOT_CANCELABLE,
        StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY => error_code::INVALID_PARAMS,
        StatusCode::UNSUPPORTED_MEDIA_TYPE => error_code::CONTENT_TYPE_NOT_SUPPORTED,
        StatusCode::NOT_IMPLEMENTED | StatusCode::METHOD_NOT_ALLOWED => {
            error_code::UNSUPPORTED_OPERATION
        }
        _ => error_code::INTERNAL_ERROR,
    };
    let body: Option<Value> = response.json().await.ok();
    let said = body.as_ref().and_then(|body| {
        let inner = body.get("error").unwrap_or(body);
        inner.get("message").or_else(|| inner.get("detail"))?.as_str()
    });
    match said {
        Some(text) => A2AError::new(code, text),
        None => A2AError::new(code, format!("the remote agent answered {status}")),
    }
}

fn push_of(value: &Value, task: &str) -> Result<TaskPushNotificationConfig, A2AError> {
    http::push_set(task, value).map_err(|error| unreadable(&error.message))
}

#[tonic::async_trait]
impl Transport for OldRestTransport {
    async fn send_message(
        &self,
        params: &ServiceParams,
        req: &SendMessageRequest,
    ) -> Result<SendMessageResponse, A2AError> {
        let (url, body) = (self.at(&["message:send"], "")?, http::send_body(req));
        let sent = self.call(params, Method::POST, url, Some(&body)).await?;
        match http::parse_update(&sent)? {
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
        let (url, body) = (self.at(&["message:stream"], "")?, http::send_body(req));
        self.stream(params, Method::POST, url, Some(&body)).await
    }

    async fn get_task(
        &self,
        params: &ServiceParams,
        req: &GetTaskRequest,
    ) -> Result<Task, A2AError> {
        let mut url = self.at(&["tasks", &req.id], "")?;
        if let Some(length) = req.history_length {
            url.query_pairs_mut().append_pair("historyLength", &length.to_string());
        }
        http::parse_task(&self.call(params, Method::GET, url, None).await?)
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
        let url = self.at(&["tasks", &req.id], ":cancel")?;
        let body = json!({ "name": format!("tasks/{}", req.id) });
        http::parse_task(&self.call(params, Method::POST, url, Some(&body)).await?)
    }

    async fn subscribe_to_task(
        &self,
        params: &ServiceParams,
        req: &SubscribeToTaskRequest,
    ) -> Result<Updates, A2AError> {
        let url = self.at(&["tasks", &req.id], ":subscribe")?;
        self.stream(params, Method::GET, url, None).await
    }

    async fn create_push_config(
        &self,
        params: &ServiceParams,
        req: &TaskPushNotificationConfig,
    ) -> Result<TaskPushNotificationConfig, A2AError> {
        let url = self.at(&["tasks", &req.task_id, "pushNotificationConfigs"], "")?;
        let body = http::push_request(req);
        let set = self.call(params, Method::POST, url, Some(&body)).await?;
        push_of(&set, &req.task_id)
    }

    async fn get_push_config(
        &self,
        params: &ServiceParams,
        req: &GetTaskPushNotificationConfigRequest,
    ) -> Result<TaskPushNotificationConfig, A2AError> {
        let url = self.at(&["tasks", &req.task_id, "pushNotificationConfigs", &req.id], "")?;
        push_of(&self.call(params, Method::GET, url, None).await?, &req.task_id)
    }

    async fn list_push_configs(
        &self,
        params: &ServiceParams,
        req: &ListTaskPushNotificationConfigsRequest,
    ) -> Result<ListTaskPushNotificationConfigsResponse, A2AError> {
        let url = self.at(&["tasks", &req.task_id, "pushNotificationConfigs"], "")?;
        let all = self.call(params, Method::GET, url, None).await?;
        let all = all.get("configs").and_then(Value::as_array).into_iter().flatten();
        let configs: Result<Vec<_>, _> = all.map(|one| push_of(one, &req.task_id)).collect();
        Ok(ListTaskPushNotificationConfigsResponse { configs: configs?, next_page_token: None })
    }

    async fn delete_push_config(
        &self,
        params: &ServiceParams,
        req: &DeleteTaskPushNotificationConfigRequest,
    ) -> Result<(), A2AError> {
        let url = self.at(&["tasks", &req.task_id, "pushNotificationConfigs", &req.id], "")?;
        self.ask(params, Method::DELETE, url, None, "application/json").await?;
        Ok(())
    }

    async fn get_extended_agent_card(
        &self,
        params: &ServiceParams,
        _req: &GetExtendedAgentCardRequest,
    ) -> Result<AgentCard, A2AError> {
        let card = self.call(params, Method::GET, self.at(&["card"], "")?, None).await?;
        card::read(card).map_err(|why| unreadable(&why))
    }

    async fn destroy(&self) -> Result<(), A2AError> {
        Ok(())
    }
}
