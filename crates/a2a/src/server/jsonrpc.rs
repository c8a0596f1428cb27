//! The JSON-RPC binding.

use std::borrow::Cow;

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
    wire::{read_request, value_of},
};

/// What a usual answer takes.
const ROOM: usize = 1024;

/// A request, its parameters not yet read.
#[derive(Deserialize)]
struct Request<'a> {
    #[serde(default, borrow)]
    jsonrpc: Option<&'a RawValue>,
    #[serde(default)]
    id: Option<Value>,
    #[serde(default, borrow)]
    method: Option<&'a RawValue>,
    #[serde(default, borrow)]
    params: Option<&'a RawValue>,
}

/// A text, if the value is one.
fn text_in(value: Option<&RawValue>) -> Option<Cow<'_, str>> {
    let json = value?.get();
    // What needs no unescaping is read where it stands.
    let plain = serde_json::from_str(json).map(Cow::Borrowed);
    plain.or_else(|_| serde_json::from_str(json).map(Cow::Owned)).ok()
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
    let method = method.as_ref();
    let version = match call::version(headers, uri) {
        Ok(version) => version,
        Err(error) => return failed(&id, &error),
    };
    let call = call::call(headers, caller);
    let answered = match version {
        Version::V1_0 => dispatch(service, &call, &id, method, params).await,
        Version::V0_3 => match value_of(params) {
            Ok(params) => Box::pin(legacy::dispatch(service, &call, &id, method, params)).await,
            Err(error) => Err(error),
        },
    };
    answered.unwrap_or_else(|error| failed(&id, &error))
}

/// A request's id, method and parameters.
type Read<'a> = (JsonRpcId, Cow<'a, str>, Option<&'a RawValue>);

fn read<'a>(headers: &HeaderMap, body: &'a Bytes) -> Result<Read<'a>, (JsonRpcId, A2AError)> {
    let nobody = |error| (JsonRpcId::Null, error);
    if !is_json(headers) {
        let error = A2AError::new(
            error_code::CONTENT_TYPE_NOT_SUPPORTED,
            "The request must be application/json",
        );
        return Err(nobody(error));
    }
    let request: Request<'_> = match serde_json::from_slice(body) {
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
    if text_in(request.jsonrpc).as_deref() != Some("2.0") {
        return Err((id, A2AError::invalid_request("jsonrpc must be \"2.0\"")));
    }
    let Some(method) = text_in(request.method) else {
        return Err((id, A2AError::invalid_request("method must be a text")));
    };
    match request.params {
        None => Ok((id, method, None)),
        Some(params) if params.get().starts_with('{') => Ok((id, method, Some(params))),
        Some(_) => Err((id, fault::invalid("params", "they must be an object"))),
    }
}

/// Whether a request says that it is JSON. Pages of other sites cannot say so without asking.
pub(super) fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    ["application/json", "application/a2a+json"].iter().any(|json| kind.eq_ignore_ascii_case(json))
}

async fn dispatch(
    service: &Service,
    call: &Call,
    id: &JsonRpcId,
    method: &str,
    params: Option<&RawValue>,
) -> Result<Response, A2AError> {
    match method {
        m::SEND_MESSAGE => {
            let request = read_request(params)?;
            Ok(ok(id, service.send(call, request, Begin::default()).await?))
        }
        m::SEND_STREAMING_MESSAGE => {
            let updates = service.stream(call, read_request(params)?).await?;
            Ok(stream(id, updates))
        }
        // Boxed, so that a message does not take the room of the largest of them.
        other => Box::pin(dispatch_more(service, call, id, other, params)).await,
    }
}

async fn dispatch_more(
    service: &Service,
    call: &Call,
    id: &JsonRpcId,
    method: &str,
    params: Option<&RawValue>,
) -> Result<Response, A2AError> {
    Ok(match method {
        m::SUBSCRIBE_TO_TASK => {
            let request: a2a::SubscribeToTaskRequest = read_request(params)?;
            let updates = service.subscribe(call, &request.id).await?;
            stream(id, updates)
        }
        m::GET_TASK => ok(id, service.get(call, read_request(params)?).await?),
        m::LIST_TASKS => ok(id, service.list(call, read_request(params)?).await?),
        m::CANCEL_TASK => {
            let request: CancelTaskRequest = read_request(params)?;
            ok(id, service.cancel(call, request).await?)
        }
        m::CREATE_PUSH_CONFIG => {
            ok(id, service.create_push(call, read_request(params)?, false).await?)
        }
        m::GET_PUSH_CONFIG => ok(id, service.get_push(call, read_request(params)?).await?),
        m::LIST_PUSH_CONFIGS => ok(id, service.list_pushes(call, read_request(params)?).await?),
        m::DELETE_PUSH_CONFIG => {
            service.delete_push(call, read_request(params)?).await?;
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
    sse::events(updates, move |update, out| {
        sse::write(&Reply::of(&id, update.map(|update| &update.response)), out);
    })
}

pub(super) fn ok<T: Serialize>(id: &JsonRpcId, result: T) -> Response {
    json_response(&Reply::of(id, Ok(result)))
}

pub(super) fn failed(id: &JsonRpcId, error: &A2AError) -> Response {
    json_response(&Reply::<Value>::of(id, Err(error)))
}

fn json_response<T: Serialize>(body: &T) -> Response {
    let mut text = Vec::with_capacity(ROOM);
    // A value that we made ourselves can be written, and to memory.
    let _ = serde_json::to_writer(&mut text, body);
    ([(CONTENT_TYPE, "application/json")], text).into_response()
}
