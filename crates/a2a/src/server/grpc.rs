//! The gRPC binding.

use std::pin::Pin;

use a2a::A2AError;
use a2a_grpc::errors::a2a_error_to_status;
use a2a_pb::{
    pbconv as convert,
    proto::{
        self,
        a2a_service_server::{A2aService, A2aServiceServer},
    },
};
use axum::http::{HeaderMap, Uri};
use futures::{Stream, StreamExt};
use tonic::{Request, Response, Status};

use super::call::{self, Version};
use crate::{
    Caller, fault,
    service::{Call, Service, UpdateStream},
    task::Begin,
};

/// The binding as a service that a router takes.
pub(super) fn service(service: Service, body_limit: usize) -> A2aServiceServer<Binding> {
    A2aServiceServer::new(Binding(service)).max_decoding_message_size(body_limit)
}

pub(super) struct Binding(Service);

type Answer<T> = Result<Response<T>, Status>;
type Updates = Pin<Box<dyn Stream<Item = Result<proto::StreamResponse, Status>> + Send>>;

/// Who calls and what else the metadata says.
fn call_of<T>(request: &Request<T>) -> Result<Call, Status> {
    let headers: HeaderMap = request.metadata().clone().into_headers();
    let is_silent = headers.get("a2a-version").is_none_or(|value| value.is_empty());
    // The service's name says that it is of 1.0, so silence does too.
    if !is_silent {
        let version = call::version(&headers, &Uri::default()).map_err(|e| status_of(&e))?;
        if version != Version::V1_0 {
            return Err(status_of(&fault::wrong_version("0.3 over gRPC")));
        }
    }
    let caller = request.extensions().get::<Caller>().cloned();
    let caller = caller.ok_or_else(|| Status::unauthenticated("credentials are required"))?;
    Ok(call::call(&headers, caller))
}

fn status_of(error: &A2AError) -> Status {
    a2a_error_to_status(error)
}

fn answer<T, P>(result: Result<T, A2AError>, convert: impl FnOnce(&T) -> P) -> Answer<P> {
    match result {
        Ok(value) => Ok(Response::new(convert(&value))),
        Err(error) => Err(status_of(&error)),
    }
}

fn updates(result: Result<UpdateStream, A2AError>) -> Answer<Updates> {
    let stream = result.map_err(|error| status_of(&error))?;
    let stream = stream.map(|update| match update {
        Ok(update) => Ok(convert::to_proto_stream_response(&update.response)),
        Err(error) => Err(status_of(&error)),
    });
    Ok(Response::new(Box::pin(stream)))
}

/// A message as it was sent; the crate's own conversion makes up what is missing.
fn send_request(request: &proto::SendMessageRequest) -> Result<a2a::SendMessageRequest, Status> {
    let Some(message) = &request.message else {
        return Err(status_of(&fault::invalid("message", "it is required")));
    };
    if message.parts.iter().any(|part| part.content.is_none()) {
        let wrong = "each part has a text, raw, url or data";
        return Err(status_of(&fault::invalid("message.parts", wrong)));
    }
    Ok(convert::from_proto_send_message_request(request))
}

#[tonic::async_trait]
impl A2aService for Binding {
    async fn send_message(
        &self,
        request: Request<proto::SendMessageRequest>,
    ) -> Answer<proto::SendMessageResponse> {
        let call = call_of(&request)?;
        let sent = send_request(request.get_ref())?;
        let sent = self.0.send(&call, sent, Begin::default()).await;
        answer(sent, convert::to_proto_send_message_response)
    }

    type SendStreamingMessageStream = Updates;

    async fn send_streaming_message(
        &self,
        request: Request<proto::SendMessageRequest>,
    ) -> Answer<Updates> {
        let call = call_of(&request)?;
        let sent = send_request(request.get_ref())?;
        updates(self.0.stream(&call, sent).await)
    }

    async fn get_task(&self, request: Request<proto::GetTaskRequest>) -> Answer<proto::Task> {
        let call = call_of(&request)?;
        let get = convert::from_proto_get_task_request(request.get_ref());
        answer(self.0.get(&call, get).await, convert::to_proto_task)
    }

    async fn list_tasks(
        &self,
        request: Request<proto::ListTasksRequest>,
    ) -> Answer<proto::ListTasksResponse> {
        let call = call_of(&request)?;
        let mut list = convert::from_proto_list_tasks_request(request.get_ref());
        // The crate takes what is not positive for silence; it is an error.
        list.page_size = request.get_ref().page_size;
        answer(self.0.list(&call, list).await, convert::to_proto_list_tasks_response)
    }

    async fn cancel_task(&self, request: Request<proto::CancelTaskRequest>) -> Answer<proto::Task> {
        let call = call_of(&request)?;
        let cancel = convert::from_proto_cancel_task_request(request.get_ref());
        answer(self.0.cancel(&call, cancel).await, convert::to_proto_task)
    }

    type SubscribeToTaskStream = Updates;

    async fn subscribe_to_task(
        &self,
        request: Request<proto::SubscribeToTaskRequest>,
    ) -> Answer<Updates> {
        let call = call_of(&request)?;
        updates(self.0.subscribe(&call, &request.get_ref().id).await)
    }

    async fn create_task_push_notification_config(
        &self,
        request: Request<proto::TaskPushNotificationConfig>,
    ) -> Answer<proto::TaskPushNotificationConfig> {
        let call = call_of(&request)?;
        let config = convert::from_proto_task_push_notification_config(request.get_ref());
        let created = self.0.create_push(&call, config, false).await;
        answer(created, convert::to_proto_task_push_notification_config)
    }

    async fn get_task_push_notification_config(
        &self,
        request: Request<proto::GetTaskPushNotificationConfigRequest>,
    ) -> Answer<proto::TaskPushNotificationConfig> {
        let call = call_of(&request)?;
        let get = convert::from_proto_get_task_push_notification_config_request(request.get_ref());
        let found = self.0.get_push(&call, get).await;
        answer(found, convert::to_proto_task_push_notification_config)
    }

    async fn list_task_push_notification_configs(
        &self,
        request: Request<proto::ListTaskPushNotificationConfigsRequest>,
    ) -> Answer<proto::ListTaskPushNotificationConfigsResponse> {
        let call = call_of(&request)?;
        let all =
            convert::from_proto_list_task_push_notification_configs_request(request.get_ref());
        let found = self.0.list_pushes(&call, all).await;
        answer(found, convert::to_proto_list_task_push_notification_configs_response)
    }

    async fn get_extended_agent_card(
        &self,
        request: Request<proto::GetExtendedAgentCardRequest>,
    ) -> Answer<proto::AgentCard> {
        call_of(&request)?;
        answer(self.0.extended_card(), |card| convert::to_proto_agent_card(card))
    }

    async fn delete_task_push_notification_config(
        &self,
        request: Request<proto::DeleteTaskPushNotificationConfigRequest>,
    ) -> Answer<()> {
        let call = call_of(&request)?;
        let gone =
            convert::from_proto_delete_task_push_notification_config_request(request.get_ref());
        answer(self.0.delete_push(&call, gone).await, |()| ())
    }
}
