//! The methods of 0.3 over JSON-RPC, and `tasks/send` of its ancestors.
//!
//! `tasks/send` is kept for agents of that time: its client chooses the task's id, a second call with
//! the same id goes on with the task, and a rejection is reported as `failed`, since they know no
//! other word for it.

use a2a::{
    A2AError, DeleteTaskPushNotificationConfigRequest, GetTaskPushNotificationConfigRequest,
    GetTaskRequest, JsonRpcId, ListTaskPushNotificationConfigsRequest, SendMessageResponse,
    methods,
};
use axum::response::Response;
use serde_json::Value;

use super::{
    jsonrpc::{Reply, ok},
    sse,
};
use crate::{
    fault,
    service::{Call, Service, UpdateStream},
    task::Begin,
    v03,
};

/// Whether a method belongs to 0.3 or its ancestors.
pub(super) fn is_method(method: &str) -> bool {
    ["message/", "tasks/", "agent/"].iter().any(|family| method.starts_with(family))
}

pub(super) async fn dispatch(
    service: &Service,
    call: &Call,
    id: &JsonRpcId,
    method: &str,
    params: Option<Value>,
) -> Result<Response, A2AError> {
    Ok(match method {
        "message/send" => {
            let request = v03::send_params(params)?;
            match service.send(call, request, Begin::default()).await? {
                SendMessageResponse::Task(task) => ok(id, v03::task(&task)),
                SendMessageResponse::Message(message) => ok(id, v03::message(&message)),
            }
        }
        "message/stream" => stream(id, service.stream(call, v03::send_params(params)?).await?),
        "tasks/send" => ok(id, tasks_send(service, call, params).await?),
        "tasks/get" => {
            let request = v03::get_params(params)?;
            let task_id = request.id.clone();
            let task = service.get(call, request).await?;
            if service.is_by_tasks_send(call, &task_id).await {
                ok(id, v03::task_without_rejection(&task))
            } else {
                ok(id, v03::task(&task))
            }
        }
        "tasks/cancel" => {
            let task = service.cancel(call, v03::cancel_params(params)?).await?;
            ok(id, v03::task(&task))
        }
        "tasks/resubscribe" => {
            let request = v03::cancel_params(params)?;
            stream(id, service.subscribe(call, &request.id).await?)
        }
        "tasks/pushNotificationConfig/set" => {
            let config = v03::push_set_params(params)?;
            ok(id, v03::push_config(&service.create_push(call, config, true).await?))
        }
        "tasks/pushNotificationConfig/get" => {
            let (task_id, config) = v03::push_id_params(params)?;
            ok(id, v03::push_config(&find_push(service, call, task_id, config).await?))
        }
        "tasks/pushNotificationConfig/list" => {
            let (task_id, _) = v03::push_id_params(params)?;
            let all = list_pushes(service, call, task_id).await?;
            ok(id, all.iter().map(v03::push_config).collect::<Vec<_>>())
        }
        "tasks/pushNotificationConfig/delete" => {
            let (task_id, config) = v03::push_id_params(params)?;
            let config = config
                .ok_or_else(|| fault::invalid("pushNotificationConfigId", "it is required"))?;
            let request =
                DeleteTaskPushNotificationConfigRequest { task_id, id: config, tenant: None };
            service.delete_push(call, request).await?;
            ok(id, Value::Null)
        }
        "agent/getAuthenticatedExtendedCard" => ok(id, v03::card(service.extended_card()?)),
        other if methods::is_valid(other) => {
            let message =
                format!("{other} is a method of 1.0; send the header A2A-Version: 1.0 with it");
            return Err(A2AError::new(a2a::error_code::METHOD_NOT_FOUND, message));
        }
        other => return Err(A2AError::method_not_found(other)),
    })
}

async fn tasks_send(
    service: &Service,
    call: &Call,
    params: Option<Value>,
) -> Result<Value, A2AError> {
    let (task_id, mut request) = v03::tasks_send_params(params)?;
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':');
    if task_id.is_empty() || task_id.len() > 128 || !task_id.chars().all(is_word) {
        let wrong = "it must be up to 128 letters, digits and -_.: signs";
        return Err(fault::invalid("id", wrong));
    }
    let begin = if service.has(call, &task_id).await {
        request.message.task_id = Some(task_id);
        // The task knows its own context; a session id of the client's is no contradiction.
        request.message.context_id = None;
        Begin::default()
    } else {
        Begin { id: Some(task_id), by_tasks_send: true }
    };
    let id = begin.id.clone().or_else(|| request.message.task_id.clone()).unwrap_or_default();
    let task = match service.send(call, request, begin).await? {
        SendMessageResponse::Task(task) => task,
        // They know nothing but tasks.
        SendMessageResponse::Message(_) => {
            let get = GetTaskRequest { id, history_length: None, tenant: None };
            service.get(call, get).await?
        }
    };
    Ok(v03::task_without_rejection(&task))
}

async fn find_push(
    service: &Service,
    call: &Call,
    task_id: String,
    config: Option<String>,
) -> Result<a2a::TaskPushNotificationConfig, A2AError> {
    if let Some(id) = config {
        let request = GetTaskPushNotificationConfigRequest { task_id, id, tenant: None };
        return service.get_push(call, request).await;
    }
    // Whoever names none means the only one.
    let all = list_pushes(service, call, task_id.clone()).await?;
    all.into_iter().next().ok_or_else(|| fault::not_found(&task_id))
}

async fn list_pushes(
    service: &Service,
    call: &Call,
    task_id: String,
) -> Result<Vec<a2a::TaskPushNotificationConfig>, A2AError> {
    let request = ListTaskPushNotificationConfigsRequest {
        task_id,
        page_size: None,
        page_token: None,
        tenant: None,
    };
    Ok(service.list_pushes(call, request).await?.configs)
}

fn stream(id: &JsonRpcId, updates: UpdateStream) -> Response {
    let id = id.clone();
    sse::events(updates, move |update, out| {
        let result = update.map(|update| v03::update(&update.response));
        sse::write(&Reply::of(&id, result), out);
    })
}
