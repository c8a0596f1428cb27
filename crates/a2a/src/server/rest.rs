//! The HTTP+JSON binding.

use a2a::{
    A2AError, CancelTaskRequest, DeleteTaskPushNotificationConfigRequest,
    GetTaskPushNotificationConfigRequest, GetTaskRequest, ListTaskPushNotificationConfigsRequest,
    ListTasksRequest, TaskPushNotificationConfig, TaskState, error_code,
};
use axum::{
    body::Bytes,
    http::{HeaderMap, Method, StatusCode, Uri, header::CONTENT_TYPE},
    response::{IntoResponse, Response},
};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use super::{jsonrpc::is_json, legacy_rest, sse};
use crate::{
    fault,
    service::{Call, Service, UpdateStream},
    task::Begin,
    wire,
};

/// What paths of 0.3 begin with.
pub(super) const OLD: &str = "v1";
/// The media type of the protocol's own JSON.
const A2A_JSON: &str = "application/a2a+json";

/// Answer a request.
pub(super) async fn answer(
    service: &Service,
    call: &Call,
    method: &Method,
    headers: &HeaderMap,
    uri: &Uri,
    body: &Bytes,
) -> Response {
    let request = Request { method, headers, uri, body };
    let answered = match request.segments() {
        segments if segments.first().is_some_and(|first| first == OLD) => {
            let segments: Vec<&str> = segments.iter().skip(1).map(String::as_str).collect();
            legacy_rest::dispatch(service, call, &request, &segments).await
        }
        segments => dispatch(service, call, &request, &segments).await,
    };
    answered.unwrap_or_else(|error| match error {
        Wrong::Error(error) => failed(&error),
        Wrong::Method(allowed) => {
            let error = A2AError::new(error_code::METHOD_NOT_FOUND, format!("Use {allowed} here"));
            let mut response = failed_as(&error, StatusCode::METHOD_NOT_ALLOWED);
            if let Ok(allowed) = allowed.parse() {
                response.headers_mut().insert(axum::http::header::ALLOW, allowed);
            }
            response
        }
        Wrong::Path => {
            let error = A2AError::new(
                error_code::METHOD_NOT_FOUND,
                format!("There is nothing at {}", uri.path()),
            );
            failed_as(&error, StatusCode::NOT_FOUND)
        }
    })
}

/// Why a request has no other answer.
pub(super) enum Wrong {
    Error(A2AError),
    /// With another method it would be right.
    Method(&'static str),
    Path,
}

impl From<A2AError> for Wrong {
    fn from(error: A2AError) -> Self {
        Self::Error(error)
    }
}

pub(super) struct Request<'a> {
    pub(super) method: &'a Method,
    headers: &'a HeaderMap,
    uri: &'a Uri,
    body: &'a Bytes,
}

async fn dispatch(
    service: &Service,
    call: &Call,
    request: &Request<'_>,
    segments: &[String],
) -> Result<Response, Wrong> {
    let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
    match segments.as_slice() {
        ["message:send"] => {
            request.only(&Method::POST, "POST")?;
            Ok(ok(&service.send(call, request.json()?, Begin::default()).await?))
        }
        ["message:stream"] => {
            request.only(&Method::POST, "POST")?;
            Ok(stream(service.stream(call, request.json()?).await?))
        }
        ["extendedAgentCard"] => Ok(ok(service.extended_card()?)),
        ["tasks"] => {
            request.only(&Method::GET, "GET")?;
            Ok(ok(&service.list(call, request.list_query()?).await?))
        }
        ["tasks", id] => one_task(service, call, request, id).await,
        ["tasks", id, "pushNotificationConfigs"] => {
            let task_id = (*id).to_owned();
            if request.method == Method::POST {
                let mut config: TaskPushNotificationConfig = request.json()?;
                config.task_id = task_id;
                return Ok(ok(&service.create_push(call, config, false).await?));
            }
            request.only(&Method::GET, "GET, POST")?;
            let all = ListTaskPushNotificationConfigsRequest {
                task_id,
                page_size: request.number("pageSize")?,
                page_token: request.query("pageToken"),
                tenant: None,
            };
            Ok(ok(&service.list_pushes(call, all).await?))
        }
        ["tasks", id, "pushNotificationConfigs", config] => {
            let (task_id, id, tenant) = ((*id).to_owned(), (*config).to_owned(), None);
            if request.method == Method::DELETE {
                let gone = DeleteTaskPushNotificationConfigRequest { task_id, id, tenant };
                service.delete_push(call, gone).await?;
                return Ok(ok(&json!({})));
            }
            request.only(&Method::GET, "GET, DELETE")?;
            let one = GetTaskPushNotificationConfigRequest { task_id, id, tenant };
            Ok(ok(&service.get_push(call, one).await?))
        }
        _ => Err(Wrong::Path),
    }
}

async fn one_task(
    service: &Service,
    call: &Call,
    request: &Request<'_>,
    segment: &str,
) -> Result<Response, Wrong> {
    // The verb stands behind the last colon; ids of `tasks/send` may hold colons themselves.
    match segment.rsplit_once(':') {
        Some((id, "cancel")) => {
            request.only(&Method::POST, "POST")?;
            let cancel = CancelTaskRequest { id: id.to_owned(), metadata: None, tenant: None };
            Ok(ok(&service.cancel(call, cancel).await?))
        }
        Some((id, "subscribe")) => {
            // The text of the specification says POST and its definition says GET.
            if request.method != Method::GET {
                request.only(&Method::POST, "GET, POST")?;
            }
            Ok(stream(service.subscribe(call, id).await?))
        }
        _ => {
            request.only(&Method::GET, "GET")?;
            let get = GetTaskRequest {
                id: segment.to_owned(),
                history_length: request.number("historyLength")?,
                tenant: None,
            };
            Ok(ok(&service.get(call, get).await?))
        }
    }
}

impl Request<'_> {
    fn segments(&self) -> Vec<String> {
        self.uri.path().trim_start_matches('/').split('/').map(decode).collect()
    }

    pub(super) fn only(&self, method: &Method, allowed: &'static str) -> Result<(), Wrong> {
        if self.method == method { Ok(()) } else { Err(Wrong::Method(allowed)) }
    }

    fn json<T: DeserializeOwned>(&self) -> Result<T, A2AError> {
        wire::read_request(Some(self.body()?))
    }

    pub(super) fn value(&self) -> Result<Value, A2AError> {
        self.body()
    }

    fn body<'b, T: Deserialize<'b>>(&'b self) -> Result<T, A2AError> {
        if !is_json(self.headers) {
            let message = format!("The request must be {A2A_JSON} or application/json");
            return Err(A2AError::new(error_code::CONTENT_TYPE_NOT_SUPPORTED, message));
        }
        serde_json::from_slice(self.body)
            .map_err(|error| A2AError::parse_error(format!("Invalid JSON: {error}")))
    }

    fn query(&self, name: &str) -> Option<String> {
        let query = self.uri.query()?;
        let mut pairs = url::form_urlencoded::parse(query.as_bytes());
        pairs.find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
    }

    pub(super) fn number(&self, name: &str) -> Result<Option<i32>, A2AError> {
        let Some(text) = self.query(name) else { return Ok(None) };
        match text.parse() {
            Ok(number) => Ok(Some(number)),
            Err(_) => Err(fault::invalid(name, format!("it must be a whole number, got {text:?}"))),
        }
    }

    fn list_query(&self) -> Result<ListTasksRequest, A2AError> {
        let state = |text: String| {
            serde_json::from_value::<TaskState>(Value::String(text))
                .map_err(|error| fault::invalid("status", error.to_string()))
        };
        let time = |text: String| {
            text.parse::<DateTime<Utc>>().map_err(|_| {
                fault::invalid("statusTimestampAfter", "it must look like 2026-01-31T12:00:00Z")
            })
        };
        let truth = |text: String| match text.as_str() {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err(fault::invalid("includeArtifacts", "it must be true or false")),
        };
        Ok(ListTasksRequest {
            context_id: self.query("contextId"),
            status: self.query("status").map(state).transpose()?,
            page_size: self.number("pageSize")?,
            page_token: self.query("pageToken"),
            history_length: self.number("historyLength")?,
            status_timestamp_after: self.query("statusTimestampAfter").map(time).transpose()?,
            include_artifacts: self.query("includeArtifacts").map(truth).transpose()?,
            tenant: None,
        })
    }
}

/// A segment of a path without its escapes.
fn decode(segment: &str) -> String {
    // Only escapes are meant: a plus is a plus here.
    let kept = segment.replace('+', "%2B");
    let mut pairs = url::form_urlencoded::parse(kept.as_bytes());
    let first = pairs.next().map(|(key, value)| {
        if value.is_empty() { key.into_owned() } else { format!("{key}={value}") }
    });
    first.unwrap_or_default()
}

fn ok<T: Serialize>(body: &T) -> Response {
    ok_as(body, A2A_JSON)
}

pub(super) fn ok_as<T: Serialize>(body: &T, kind: &'static str) -> Response {
    let text = serde_json::to_vec(body).unwrap_or_default();
    ([(CONTENT_TYPE, kind)], text).into_response()
}

fn stream(updates: UpdateStream) -> Response {
    sse::events(updates, |update, out| match update {
        Ok(update) => sse::write(&update.response, out),
        Err(error) => sse::write(&error_body(error, status_of(error)), out),
    })
}

pub(super) fn failed(error: &A2AError) -> Response {
    failed_as(error, status_of(error))
}

pub(super) fn failed_as(error: &A2AError, status: StatusCode) -> Response {
    let body = error_body(error, status).to_string();
    (status, [(CONTENT_TYPE, A2A_JSON)], body).into_response()
}

pub(super) fn status_of(error: &A2AError) -> StatusCode {
    StatusCode::from_u16(error.http_status_code()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

pub(super) fn error_body(error: &A2AError, status: StatusCode) -> Value {
    // JSON-RPC's error carries the same details, the error's own kind among them.
    let details = error.to_jsonrpc_error().data.unwrap_or_else(|| json!([]));
    let name = match error.code {
        error_code::TASK_NOT_FOUND => "NOT_FOUND",
        error_code::INVALID_PARAMS
        | error_code::INVALID_REQUEST
        | error_code::PARSE_ERROR
        | error_code::CONTENT_TYPE_NOT_SUPPORTED => "INVALID_ARGUMENT",
        error_code::METHOD_NOT_FOUND => "UNIMPLEMENTED",
        error_code::INTERNAL_ERROR | error_code::INVALID_AGENT_RESPONSE => "INTERNAL",
        _ => "FAILED_PRECONDITION",
    };
    json!({ "error": {
        "code": status.as_u16(), "status": name, "message": error.message, "details": details,
    }})
}
