//! An echo agent served by a2a-server-lf, until standard input ends.

use std::sync::Arc;

use a2a::{
    A2AError, Artifact, StreamResponse, TaskArtifactUpdateEvent, TaskState, TaskStatus,
    TaskStatusUpdateEvent,
};
use a2a_server::{
    AgentExecutor, DefaultRequestHandler, ExecutorContext, task_store::InMemoryTaskStore,
};
use axum::serve::ListenerExt;
use futures::stream::{self, BoxStream, StreamExt};
use tokio::io::AsyncReadExt;

struct Echo;

impl AgentExecutor for Echo {
    fn execute(
        &self,
        ctx: ExecutorContext,
    ) -> BoxStream<'static, Result<StreamResponse, A2AError>> {
        let (task_id, context_id) = ctx.task_info();
        let parts = ctx.message.map(|message| message.parts).unwrap_or_default();
        let status = |state| {
            StreamResponse::StatusUpdate(TaskStatusUpdateEvent {
                task_id: task_id.clone(),
                context_id: context_id.clone(),
                status: TaskStatus { state, message: None, timestamp: None },
                metadata: None,
            })
        };
        let artifact = StreamResponse::ArtifactUpdate(TaskArtifactUpdateEvent {
            task_id: task_id.clone(),
            context_id: context_id.clone(),
            artifact: Artifact {
                artifact_id: "answer".to_owned(),
                name: None,
                description: None,
                parts,
                metadata: None,
                extensions: None,
            },
            append: None,
            last_chunk: Some(true),
            metadata: None,
        });
        let events = [status(TaskState::Working), artifact, status(TaskState::Completed)];
        stream::iter(events.map(Ok)).boxed()
    }

    fn cancel(&self, _: ExecutorContext) -> BoxStream<'static, Result<StreamResponse, A2AError>> {
        stream::empty().boxed()
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let handler = Arc::new(DefaultRequestHandler::new(Echo, InMemoryTaskStore::new()));
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await?;
    println!("{}", listener.local_addr()?.port());
    let listener = listener.tap_io(|socket| {
        // Slower, and that would show.
        let _ = socket.set_nodelay(true);
    });
    let router = a2a_server::jsonrpc::jsonrpc_router(handler);
    let mut rest = Vec::new();
    let mut input = tokio::io::stdin();
    tokio::select! {
        served = axum::serve(listener, router) => served?,
        ended = input.read_to_end(&mut rest) => { ended?; }
    }
    Ok(())
}
