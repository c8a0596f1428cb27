//! An echo agent served by a2a-protocol-server, until standard input ends.

use std::sync::Arc;

use a2a_protocol_server::{
    EventEmitter, JsonRpcDispatcher, RequestHandlerBuilder, Server, agent_executor,
};
use a2a_protocol_types::{AgentCard, AgentInterface, AgentSkill, TaskState};
use tokio::io::AsyncReadExt;

struct Echo;

agent_executor!(Echo, |ctx, queue| async {
    let emit = EventEmitter::new(ctx, queue);
    emit.status(TaskState::Working).await?;
    emit.artifact("answer", ctx.message.parts.clone(), None, Some(true)).await?;
    emit.status(TaskState::Completed).await?;
    Ok(())
});

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Its own listener does not tell the port that it was given, so one is chosen before.
    let port = std::net::TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port();
    let url = format!("http://127.0.0.1:{port}");
    let card = AgentCard::new("echo", "1.0.0", AgentInterface::jsonrpc(url))
        .with_description("Says what it is told")
        .with_streaming(true)
        .with_skill(AgentSkill::new("echo", "Echo", "Echoes text").with_tags(["echo"]));
    let handler = Arc::new(RequestHandlerBuilder::new(Echo).with_agent_card(card).build()?);
    let server = Server::bind(format!("127.0.0.1:{port}")).await?;
    println!("{port}");
    let ended = async {
        let mut rest = Vec::new();
        // However it ends, it has ended.
        let _ = tokio::io::stdin().read_to_end(&mut rest).await;
    };
    server.serve_with_shutdown(JsonRpcDispatcher::new(handler), ended).await;
    Ok(())
}
