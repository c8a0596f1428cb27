//! A server's tool as one of ours.

use std::{
    collections::VecDeque,
    sync::{Arc, Weak},
    time::Duration,
};

use duologue_core::{
    Content, Effect, Part, Reach, Tool, ToolContext, ToolError, ToolOutput, ToolSpec, tool,
};
use duologue_tools::Schema;
use futures::future::BoxFuture;
use rmcp::model::ElicitResult;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    call::{Call, Came},
    content,
    handler::Ask,
    server::{McpError, Server},
};

/// A call that shows progress may take as long as this; one that is silent, as long as its server
/// is set to.
const MOST_TIME: Duration = Duration::from_secs(60 * 60);

/// How much of a tool's description goes into every prompt.
const MOST_DESCRIPTION: usize = 4_000;

/// A tool of a server.
pub(super) struct McpTool {
    spec: Arc<ToolSpec>,
    schema: Option<Schema>,
    server: Arc<Server>,
    /// Its name at the server.
    name: String,
}

impl McpTool {
    pub(super) fn new(server: &Arc<Server>, name: String, it: &rmcp::model::Tool) -> Self {
        let parameters = Value::Object((*it.input_schema).clone());
        let schema = Schema::compile(&parameters).ok();
        let mut description = it.description.as_deref().unwrap_or_default().trim().to_owned();
        if let Some((at, _)) = description.char_indices().nth(MOST_DESCRIPTION) {
            description.truncate(at);
            description.push('…');
        }
        let mut spec = ToolSpec::new(name, description, parameters);
        spec.effect = effect(it);
        // Whatever a server says of itself: where its calls end is not known.
        spec.reach = Reach::Network;
        spec.timeout = MOST_TIME;
        let name = it.name.to_string();
        Self { spec: Arc::new(spec), schema, server: Arc::clone(server), name }
    }

    async fn run(&self, arguments: Value, context: ToolContext) -> Result<Vec<Part>, String> {
        let answers = context.questions.answers();
        let key = context.idempotency_key.as_str();
        let mut known: VecDeque<&Option<Vec<Part>>> = VecDeque::new();
        let mut call = match self.server.held().take(key) {
            // It waits for the answer to its last question.
            Some((call, ask)) => {
                let answer = answers.last().and_then(Option::as_deref);
                match ask.form.read(answer) {
                    Ok(result) => {
                        drop(ask.reply.send(result));
                        call
                    }
                    Err(wrong) => return Err(self.hold(&context, call, ask, Some(&wrong))),
                }
            }
            None if !answers.is_empty() && self.spec.effect == Effect::SideEffect => {
                return Err("The call waited for an answer when the program or the server ended, \
                            so it ended too. Whether it did something by then is not known: find \
                            out before you call it again."
                    .to_owned());
            }
            None => {
                // What was answered before the call ended need not be asked again.
                known.extend(answers);
                let Value::Object(arguments) = arguments else {
                    return Err("the arguments must be a JSON object".to_owned());
                };
                let sent = self.server.call(&self.name, arguments).await;
                sent.map_err(|error| error.to_string())?
            }
        };
        let patience = self.server.config().timeout;
        loop {
            match call.next(patience, &context.cancel).await {
                Came::Over(Ok(result)) => return content::result(result),
                Came::Over(Err(error)) => return Err(self.server.explain(&error).to_string()),
                Came::Cancelled => return Err("It was cancelled, and the server told so.".into()),
                Came::Silent => {
                    return Err(format!(
                        "The MCP server \"{}\" was silent for {patience:?}; the call was cancelled.",
                        self.server.name()
                    ));
                }
                Came::Asks(ask) => match answered_before(&mut known, &ask) {
                    Some(result) => drop(ask.reply.send(result)),
                    None => return Err(self.hold(&context, call, ask, None)),
                },
            }
        }
    }

    /// Keep the call and ask the person.
    fn hold(&self, context: &ToolContext, call: Call, ask: Ask, wrong: Option<&str>) -> String {
        let mut question = ask.form.question(self.server.name());
        if let Some(wrong) = wrong {
            question = format!("That does not fit: {wrong}\n{question}");
        }
        let choices = ask.form.choices();
        self.server.held().keep(context.idempotency_key.clone(), call, ask);
        let ToolError(text) = context.questions.ask(question, choices);
        text
    }
}

/// The answer that was given before, if it fits.
fn answered_before(known: &mut VecDeque<&Option<Vec<Part>>>, ask: &Ask) -> Option<ElicitResult> {
    while let Some(answer) = known.pop_front() {
        if let Ok(result) = ask.form.read(answer.as_deref()) {
            return Some(result);
        }
    }
    None
}

/// What the server says that running a tool does. It is believed as far as deciding what happens
/// after a crash and what may run side by side goes; permissions have rules of their own.
fn effect(it: &rmcp::model::Tool) -> Effect {
    let Some(says) = &it.annotations else { return Effect::SideEffect };
    if says.read_only_hint == Some(true) {
        Effect::Pure
    } else if says.idempotent_hint == Some(true) {
        Effect::Idempotent
    } else {
        Effect::SideEffect
    }
}

impl Tool for McpTool {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn check(&self, arguments: &Value) -> Result<(), String> {
        self.schema.as_ref().map_or(Ok(()), |schema| schema.check(arguments))
    }

    fn call(&self, arguments: Value, context: ToolContext) -> BoxFuture<'_, ToolOutput> {
        Box::pin(async move { self.run(arguments, context).await.map(Content).map_err(ToolError) })
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListArguments {
    /// The server; all of them if left out.
    #[serde(default)]
    server: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ReadArguments {
    /// The server that has it.
    server: String,
    /// The resource's address, as mcp_resources lists it.
    uri: String,
}

/// Tools to find and read resources, where a server has any.
pub(super) fn for_resources(servers: &[Arc<Server>]) -> Vec<Arc<dyn Tool>> {
    if !servers.iter().any(|server| server.has_resources()) {
        return Vec::new();
    }
    // The tools must not keep the connections alive.
    let all: Arc<[Weak<Server>]> = servers.iter().map(Arc::downgrade).collect();
    let find = |all: &[Weak<Server>], name: Option<&str>| -> Result<Vec<Arc<Server>>, ToolError> {
        let servers = all.iter().filter_map(Weak::upgrade);
        let found: Vec<_> =
            servers.filter(|it| name.is_none_or(|name| it.name() == name)).collect();
        match (found.is_empty(), name) {
            (true, Some(name)) => Err(ToolError(format!("there is no MCP server \"{name}\""))),
            _ => Ok(found),
        }
    };
    let listed = Arc::clone(&all);
    let list = tool(
        "mcp_resources",
        "Lists what MCP servers let read: server, address and description of each resource.",
        Effect::Pure,
        move |it: ListArguments, _| {
            let all = Arc::clone(&listed);
            async move {
                let mut found = Vec::new();
                for server in find(&all, it.server.as_deref())? {
                    let resources = server.resources().await;
                    found.push(match resources {
                        Ok(resources) => json!({"server": server.name(), "resources": resources}),
                        Err(error) => json!({"server": server.name(), "error": error.to_string()}),
                    });
                }
                Ok::<_, ToolError>(Value::Array(found))
            }
        },
    );
    let read = tool(
        "mcp_read_resource",
        "Reads a resource of an MCP server.",
        Effect::Pure,
        move |it: ReadArguments, _| {
            let all = Arc::clone(&all);
            async move {
                let found = find(&all, Some(&it.server))?;
                let server = found.first().ok_or_else(|| ToolError::new("the server is gone"))?;
                let read = server.read(&it.uri).await;
                read.map_err(|error: McpError| ToolError(error.to_string()))
            }
        },
    );
    vec![Arc::new(list.reach(Reach::Network)), Arc::new(read.reach(Reach::Network))]
}
