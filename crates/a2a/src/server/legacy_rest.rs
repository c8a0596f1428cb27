//! 0.3 over HTTP+JSON: its paths begin with `/v1`.

use a2a::{
    A2AError, CancelTaskRequest, DeleteTaskPushNotificationConfigRequest,
    GetTaskPushNotificationConfigRequest, GetTaskRequest, ListTaskPushNotificationConfigsRequest,
};
use axum::{http::Method, response::Response};
use serde_json::{Value, json};

use super::{
    rest::{Request, Wrong, error_body, status_of},
    sse,
};
use crate::{
    service::{Call, Service, UpdateStream},
    task::Begin,
    v03,
};

/// Answer a request whose path, without `/v1`, has these segments.
pub(super) async fn dispatch(
    service: &Service,
    call: &Call,
    request: &Request<'_>,
    segments: &[&str],
) -> Result<Response, Wrong> {
    match segments {
        ["message:send"] => {
            request.only(&Method::POST, "POST")?;
            let sent = v03::http::send_request(&request.value()?)?;
            Ok(ok(&v03::http::sent(&service.send(call, sent, Begin::default()).await?)))
        }
        ["message:stream"] => {
            request.only(&Method::POST, "POST")?;
            let sent = v03::http::send_request(&request.value()?)?;
            Ok(stream(service.stream(call, sent).await?))
        }
        ["card"] => {
            request.only(&Method::GET, "GET")?;
            Ok(ok(&v03::card(service.extended_card()?)))
        }
        ["tasks", id] => one_task(service, call, request, id).await,
        ["tasks", id, "pushNotificationConfigs"] => {
            if request.method == Method::POST {
                let config = v03::http::push_set(id, &request.value()?)?;
                let config = service.create_push(call, config, true).await?;
                return Ok(ok(&v03::http::push_config(&config)));
            }
            request.only(&Method::GET, "GET, POST")?;
            let all = ListTaskPushNotificationConfigsRequest {
                task_id: (*id).to_owned(),
                page_size: None,
                page_token: None,
                tenant: None,
            };
            let all = service.list_pushes(call, all).await?.configs;
            let all: Vec<Value> = all.iter().map(v03::http::push_config).collect();
            Ok(ok(&json!({ "configs": all })))
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
            Ok(ok(&v03::http::push_config(&service.get_push(call, one).await?)))
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
    match segment.rsplit_once(':') {
        Some((id, "cancel")) => {
            request.only(&Method::POST, "POST")?;
            let cancel = CancelTaskRequest { id: id.to_owned(), metadata: None, tenant: None };
            Ok(ok(&v03::http::task(&service.cancel(call, cancel).await?)))
        }
        Some((id, "subscribe")) => {
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
            Ok(ok(&v03::http::task(&service.get(call, get).await?)))
        }
    }
}

fn ok(body: &Value) -> Response {
    super::rest::ok_as(body, "application/json")
}

fn stream(updates: UpdateStream) -> Response {
    sse::events(updates, |update, out| match update {
        Ok(update) => sse::write(&v03::http::update(&update.response), out),
        Err(error) => sse::write(&error_body(error, status_of(error)), out),
    })
}

/// What a request of today is told here.
pub(super) fn wrong_version() -> A2AError {
    let message = "Paths below /v1 speak 0.3; 1.0 is spoken on the same paths without /v1";
    A2AError::new(a2a::error_code::VERSION_NOT_SUPPORTED, message)
}
