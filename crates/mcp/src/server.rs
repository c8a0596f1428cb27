//! Agents and tools of ours, offered to any MCP client.
//!
//! An agent is one tool that takes a message. Its conversation is a session like any other: the
//! result names it, and a later call goes on with it. What the agent needs from a person is asked
//! through the client where it can do that; otherwise the result says what is asked, and the next
//! call brings the answer.

mod agent;

use std::{fmt, net::SocketAddr, sync::Arc};

use duologue_core::{
    Agent, CallId, Content, Execution, Grant, Part, Policy, Questions, ResultReader, SessionId,
    Situation, Store, Tool, ToolContext, Verdict,
};
use futures::future::BoxFuture;
use rmcp::{
    ErrorData, RoleServer, ServerHandler, ServiceExt as _,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation,
        ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig, ToolAnnotations,
    },
    service::RequestContext,
    transport::{
        StreamableHttpServerConfig, StreamableHttpService,
        streamable_http_server::session::local::LocalSessionManager,
    },
};
use serde_json::Value;
use tokio::{net::TcpListener, task::JoinHandle};
use tokio_util::sync::CancellationToken;

/// What is offered to MCP clients.
///
/// ```no_run
/// use std::sync::Arc;
/// use duologue_core::MemoryStore;
/// use duologue_mcp::Offer;
///
/// # async fn example(agent: duologue_core::Agent) -> std::io::Result<()> {
/// let offer = Offer::new(Arc::new(MemoryStore::new())).agent(agent);
/// let serving = offer.serve_http("127.0.0.1:0".parse().unwrap()).await?;
/// println!("http://{}/mcp", serving.address());
/// # serving.stop().await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Offer(Arc<Offered>);

struct Offered {
    store: Arc<dyn Store>,
    agents: Vec<Agent>,
    tools: Vec<Arc<dyn Tool>>,
    policy: Policy,
}

impl Offer {
    /// Nothing yet; the sessions of agents are kept in the store.
    pub fn new(store: Arc<dyn Store>) -> Self {
        let (agents, tools) = (Vec::new(), Vec::new());
        Self(Arc::new(Offered { store, agents, tools, policy: Policy::default() }))
    }

    /// Offer an agent, under its name.
    #[must_use]
    pub fn agent(self, agent: Agent) -> Self {
        self.with(|offered| offered.agents.push(agent))
    }

    /// Offer a tool. Offering it is the approval of its calls; only deny rules of the
    /// [policy](Self::policy) still count. Tools that a person or somebody outside carries out
    /// are left out.
    #[must_use]
    pub fn tool(self, tool: Arc<dyn Tool>) -> Self {
        self.with(|offered| {
            if tool.spec().execution == Execution::Local {
                offered.tools.push(tool);
            }
        })
    }

    /// What no client may do with the tools.
    #[must_use]
    pub fn policy(self, policy: Policy) -> Self {
        self.with(|offered| offered.policy = policy)
    }

    fn with(self, change: impl FnOnce(&mut Offered)) -> Self {
        let mut offered = Arc::try_unwrap(self.0).unwrap_or_else(|shared| Offered {
            store: Arc::clone(&shared.store),
            agents: shared.agents.clone(),
            tools: shared.tools.clone(),
            policy: shared.policy.clone(),
        });
        change(&mut offered);
        Self(Arc::new(offered))
    }

    /// Serve one client over standard input and output, until it hangs up or `stop` is cancelled.
    pub async fn serve_stdio(self, stop: CancellationToken) -> std::io::Result<()> {
        let wire = rmcp::transport::stdio();
        let service = tokio::select! {
            service = self.serve(wire) => service.map_err(std::io::Error::other)?,
            () = stop.cancelled() => return Ok(()),
        };
        let token = service.cancellation_token();
        let waiting = service.waiting();
        tokio::pin!(waiting);
        tokio::select! {
            ended = &mut waiting => {
                ended.map_err(std::io::Error::other)?;
            }
            () = stop.cancelled() => {
                token.cancel();
                waiting.await.map_err(std::io::Error::other)?;
            }
        }
        Ok(())
    }

    /// Serve clients over streamable HTTP, at `/mcp`. Only requests that name a loopback host are
    /// answered, so no web page can reach it by a bent name.
    pub async fn serve_http(self, address: SocketAddr) -> std::io::Result<Serving> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let stop = CancellationToken::new();
        let mut config = StreamableHttpServerConfig::default();
        config.cancellation_token = stop.child_token();
        let service = StreamableHttpService::new(
            move || Ok(self.clone()),
            Arc::new(LocalSessionManager::default()),
            config,
        );
        let router = axum::Router::new().route_service("/mcp", service);
        let stopped = stop.clone();
        let task = tokio::spawn(async move {
            let serving = axum::serve(listener, router);
            serving.with_graceful_shutdown(async move { stopped.cancelled().await }).await
        });
        Ok(Serving { address, stop, task })
    }
}

impl fmt::Debug for Offer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let agents: Vec<&str> = self.0.agents.iter().map(Agent::name).collect();
        let tools: Vec<&str> = self.0.tools.iter().map(|tool| tool.spec().name.as_str()).collect();
        f.debug_struct("Offer").field("agents", &agents).field("tools", &tools).finish()
    }
}

/// A server that runs. It ends when it is stopped or dropped.
#[derive(Debug)]
pub struct Serving {
    address: SocketAddr,
    stop: CancellationToken,
    task: JoinHandle<std::io::Result<()>>,
}

impl Serving {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stop, and wait until the last request is answered.
    pub async fn stop(mut self) {
        self.stop.cancel();
        let _ = (&mut self.task).await;
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl ServerHandler for Offer {
    fn get_info(&self) -> ServerConfig {
        let able = ServerCapabilities::builder().enable_tools().build();
        let mut info = ServerConfig::new(able);
        info.server_info = Implementation::new("duologue", env!("CARGO_PKG_VERSION"));
        info.instructions = Some(
            "Tools that take a message are agents. Give a result's session back to go on with the \
             same conversation."
                .to_owned(),
        );
        info
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let agents = self.0.agents.iter().map(agent::as_tool);
        let tools = self.0.tools.iter().map(|tool| {
            let spec = tool.spec();
            let schema = spec.parameters.as_object().cloned().unwrap_or_default();
            let mut listed =
                rmcp::model::Tool::new(spec.name.clone(), spec.description.clone(), schema);
            listed.annotations = Some(annotations(spec.effect));
            listed
        });
        Ok(ListToolsResult::with_all_items(agents.chain(tools).collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = Value::Object(request.arguments.unwrap_or_default());
        let name = &*request.name;
        if let Some(agent) = self.0.agents.iter().find(|agent| agent::tool_name(agent) == name) {
            let result = agent::call(agent, &self.0.store, arguments, &context).await;
            return Ok(result.into());
        }
        let Some(tool) = self.0.tools.iter().find(|tool| tool.spec().name == name) else {
            return Err(ErrorData::invalid_params(format!("there is no tool \"{name}\""), None));
        };
        Ok(self.call(&**tool, arguments, context.ct).await.into())
    }
}

impl Offer {
    async fn call(
        &self,
        tool: &dyn Tool,
        arguments: Value,
        cancel: CancellationToken,
    ) -> CallToolResult {
        if let Err(error) = tool.check(&arguments) {
            return failed(format!("The arguments do not fit: {error}"));
        }
        let situation = Situation { grant: Grant::Standing, ..Situation::default() };
        let verdict = self.0.policy.verdict(tool.spec(), &arguments, &situation);
        if let Verdict::Deny { reason } = verdict {
            return failed(format!("This call is not permitted: {reason}."));
        }
        let call_id = CallId::random();
        let context = ToolContext {
            session: SessionId::random(),
            idempotency_key: call_id.to_string(),
            call_id,
            cancel: cancel.clone(),
            results: Arc::new(NoResults),
            questions: Questions::default(),
        };
        let work = tokio::time::timeout(tool.spec().timeout, tool.call(arguments, context));
        let output = tokio::select! {
            output = work => output,
            () = cancel.cancelled() => return failed("Cancelled."),
        };
        match output {
            Ok(Ok(Content(parts))) => CallToolResult::success(parts.iter().map(block).collect()),
            Ok(Err(error)) => failed(error.to_string()),
            Err(_) => failed(format!("It took longer than {:?}.", tool.spec().timeout)),
        }
    }
}

/// There is no conversation that an earlier result could belong to.
#[derive(Debug)]
struct NoResults;

impl ResultReader for NoResults {
    fn result_text(&self, _: CallId) -> BoxFuture<'static, Option<String>> {
        Box::pin(async { None })
    }
}

fn failed(text: impl Into<String>) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(text.into())])
}

fn annotations(effect: duologue_core::Effect) -> ToolAnnotations {
    use duologue_core::Effect;
    let mut says = ToolAnnotations::default();
    says.read_only_hint = Some(effect == Effect::Pure);
    says.idempotent_hint = Some(effect != Effect::SideEffect);
    says
}

/// A part of ours as a client reads it.
fn block(part: &Part) -> ContentBlock {
    match part {
        Part::Text { text } => ContentBlock::text(text.clone()),
        Part::File { media_type, source: duologue_core::FileSource::Base64(data), .. }
            if media_type.starts_with("image/") =>
        {
            ContentBlock::image(data.clone(), media_type.clone())
        }
        Part::Data { value } => ContentBlock::text(value.to_string()),
        other => ContentBlock::text(serde_json::to_string(other).unwrap_or_default()),
    }
}
