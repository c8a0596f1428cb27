//! The JSON-RPC binding.

use a2a::{A2AError, CancelTaskRequest, JsonRpcError, JsonRpcId, error_code, methods as m};
use axum::{
    body::Bytes,
    http::{HeaderMap, Uri, header::CONTENT_TYPE},
    response::{IntoResponse, Response},
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::{
    call::{self, Version},
    legacy, sse,
};
use crate::{
    Caller, fault,
    service::{Call, Service},
    task::Begin,
    wire::request_from,
};

/// A request, its parameters not yet read.
#[derive(Deserialize)]
struct Request {
    #[serde(default)]
    jsonrpc: Option<Value>,
    #[serde(default)]
    id: Option<Value>,
    #[serde(default)]
    method: Option<Value>,
    #[serde(default)]
    params: Option<Value>,
}

/// A response, which is one of the two.
#[derive(Serialize)]
pub(super) struct Reply<'a, T: Serialize> {
    jsonrpc: &'static str,
    id: &'a JsonRpcId,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<T>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<JsonRpcError>,
}

impl<'a, T: Serialize> Reply<'a, T> {
    pub(super) fn of(id: &'a JsonRpcId, result: Result<T, &A2AError>) -> Self {
        let (result, error) = match result {
            Ok(result) => (Some(result), None),
            Err(error) => (None, Some(error.to_jsonrpc_error())),
        };
        Self { jsonrpc: "2.0", id, result, error }
    }
}

/// Answer a request.
pub(super) async fn answer(
    service: &Service,
    caller: Caller,
    headers: &HeaderMap,
    uri: &Uri,
    body: &Bytes,
) -> Response {
    let (id, method, params) = match read(headers, body) {
        Ok(request) => request,
        Err((id, error)) => return failed(&id, &error),
    };
    let version = match call::version(headers, uri) {
        Ok(version) => version,
        Err(error) => return failed(&id, &error),
    };
    let call = call::call(headers, caller);
    let answered = match version {
        Version::V1_0 => dispatch(service, &call, &id, &method, params).await,
        Version::V0_3 => legacy::dispatch(service, &call, &id, &method, params).await,
    };
    answered.unwrap_or_else(|error| failed(&id, &error))
}

fn read(
    headers: &HeaderMap,
    body: &Bytes,
) -> Result<(JsonRpcId, String, Option<Value>), (JsonRpcId, A2AError)> {
    let nobody = |error| (JsonRpcId::Null, error);
    if !is_json(headers) {
        let error = A2AError::new(
            error_code::CONTENT_TYPE_NOT_SUPPORTED,
            "The request must be application/json",
        );
        return Err(nobody(error));
    }
    let request: Request = match serde_json::from_slice(body) {
        Ok(request) => request,
        // Whether it is JSON at all decides which error it is.
        Err(error) => {
            let error = match serde_json::from_slice::<&RawValue>(body) {
                Ok(_) => A2AError::invalid_request("The request must be one JSON object"),
                Err(_) => A2AError::parse_error(format!("Invalid JSON: {error}")),
            };
            return Err(nobody(error));
        }
    };
    let id = match request.id {
        None | Some(Value::Null) => JsonRpcId::Null,
        Some(Value::String(text)) => JsonRpcId::String(text),
        Some(Value::Number(number)) => match number.as_i64() {
            Some(number) => JsonRpcId::Number(number),
            None => return Err(nobody(A2AError::invalid_request("id must be a whole number"))),
        },
        Some(_) => return Err(nobody(A2AError::invalid_request("id must be a text or a number"))),
    };
    if request.jsonrpc.as_ref().and_then(Value::as_str) != Some("2.0") {
        return Err((id, A2AError::invalid_request("jsonrpc must be \"2.0\"")));
    }
    let Some(method) = request.method.as_ref().and_then(Value::as_str) else {
        return Err((id, A2AError::invalid_request("method must be a text")));
    };
    match request.params {
        None | Some(Value::Null) => Ok((id, method.to_owned(), None)),
        Some(params @ Value::Object(_)) => Ok((id, method.to_owned(), Some(params))),
        Some(_) => Err((id, fault::invalid("params", "they must be an object"))),
    }
}

/// Whether a request says that it is JSON. Pages of other sites cannot say so without asking.
pub(super) fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    kind == "application/json" || kind == "application/a2a+json"
}

async fn dispatch(
    service: &Service,
    call: &Call,
    id: &JsonRpcId,
    method: &str,
    params: Option<Value>,
) -> Result<Response, A2AError> {
    Ok(match method {
        m::SEND_MESSAGE => {
            let request = request_from(params)?;
            ok(id, service.send(call, request, Begin::default()).await?)
        }
        m::SEND_STREAMING_MESSAGE => {
            let updates = service.stream(call, request_from(params)?).await?;
            stream(id, updates)
        }
        m::SUBSCRIBE_TO_TASK => {
            let request: a2a::SubscribeToTaskRequest = request_from(params)?;
            let updates = service.subscribe(call, &request.id).await?;
            stream(id, updates)
        }
        m::GET_TASK => ok(id, service.get(call, request_from(params)?).await?),
        m::LIST_TASKS => ok(id, service.list(call, request_from(params)?).await?),
        m::CANCEL_TASK => {
            let request: CancelTaskRequest = request_from(params)?;
            ok(id, service.cancel(call, request).await?)
        }
        m::CREATE_PUSH_CONFIG => {
            ok(id, service.create_push(call, request_from(params)?, false).await?)
        }
        m::GET_PUSH_CONFIG => ok(id, service.get_push(call, request_from(params)?).await?),
        m::LIST_PUSH_CONFIGS => ok(id, service.list_pushes(call, request_from(params)?).await?),
        m::DELETE_PUSH_CONFIG => {
            service.delete_push(call, request_from(params)?).await?;
            ok(id, Value::Null)
        }
        m::GET_EXTENDED_AGENT_CARD => ok(id, service.extended_card()?),
        other if legacy::is_method(other) => {
            let message = format!("{other} is a method of 0.3; this request says A2A-Version: 1.0");
            return Err(A2AError::new(error_code::METHOD_NOT_FOUND, message));
        }
        other => return Err(A2AError::method_not_found(other)),
    })
}

fn stream(id: &JsonRpcId, updates: crate::service::UpdateStream) -> Response {
    let id = id.clone();
    sse::events(updates, move |update| {
        let result = update.map(|update| update.response.clone());
        serde_json::to_value(Reply::of(&id, result)).unwrap_or(Value::Null)
    })
}

pub(super) fn ok<T: Serialize>(id: &JsonRpcId, result: T) -> Response {
    json_response(&Reply::of(id, Ok(result)))
}

pub(super) fn failed(id: &JsonRpcId, error: &A2AError) -> Response {
    json_response(&Reply::<Value>::of(id, Err(error)))
}

fn json_response<T: Serialize>(body: &T) -> Response {
    let text = serde_json::to_vec(body).unwrap_or_default();
    ([(CONTENT_TYPE, "application/json")], text).into_response()
}
