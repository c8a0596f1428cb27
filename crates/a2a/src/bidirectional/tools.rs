//! The tools of a bidirectional agent, by the names that the seed of this project gave them.

use std::sync::{Arc, Mutex, PoisonError};

use a2a::AgentCard;
use duologue_core::{
    Accumulator, Content, Effect, Execution, Message, Model, Options, Reach, Request, Tool,
    ToolContext, ToolError, ToolOutput, ToolSpec, tool,
};
use futures::{StreamExt, future::BoxFuture};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::Directory;

pub(super) const ECHO: &str = "echo";
pub(super) const LLM: &str = "llm";
pub(super) const SUMMARIZE: &str = "summarize";
pub(super) const LIST_AGENTS: &str = "list_agents";
pub(super) const REMEMBER_AGENT: &str = "remember_agent";
pub(super) const EXECUTE_COMMAND: &str = "execute_command";
pub(super) const HUMAN_INPUT: &str = "human_input";
pub(super) const LIST_SERVERS: &str = "list_servers";
pub(super) const SHOW_AGENT_CARD: &str = "show_agent_card";

/// Every name that `[tools].enabled` knows.
pub const TOOL_NAMES: [&str; 9] = [
    ECHO,
    LLM,
    SUMMARIZE,
    LIST_AGENTS,
    REMEMBER_AGENT,
    EXECUTE_COMMAND,
    HUMAN_INPUT,
    LIST_SERVERS,
    SHOW_AGENT_CARD,
];

/// The tools that other agents reach unless somebody says otherwise: nothing that runs commands here
/// or writes into the directory.
pub const EXPOSED_BY_DEFAULT: [&str; 7] =
    [ECHO, LLM, SUMMARIZE, LIST_AGENTS, HUMAN_INPUT, LIST_SERVERS, SHOW_AGENT_CARD];

/// A tool that cannot be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ToolSetupError {
    /// There is none of this name.
    #[error("unknown tool {0:?}; there are: {all}", all = TOOL_NAMES.join(", "))]
    Unknown(String),
    /// It needs something that runs commands.
    #[error(
        "execute_command is enabled, but nothing was given that runs commands; take it out of the \
         enabled tools or give BidirectionalAgent::commands a tool"
    )]
    NoCommands,
    /// It is exposed without being there.
    #[error("{0:?} is exposed to other agents but not enabled; add it to the enabled tools")]
    NotEnabled(String),
}

/// The agent's own card, once it is known.
#[derive(Clone, Debug, Default)]
pub(super) struct OwnCard(Arc<Mutex<Option<AgentCard>>>);

impl OwnCard {
    pub(super) fn set(&self, card: AgentCard) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(card);
    }

    pub(super) fn get(&self) -> Option<AgentCard> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// What the tools work with.
pub(super) struct Means {
    pub(super) directory: Directory,
    pub(super) model: Arc<dyn Model>,
    pub(super) commands: Option<Arc<dyn Tool>>,
    pub(super) card: OwnCard,
}

/// A tool by its name.
pub(super) fn named(name: &str, means: &Means) -> Result<Arc<dyn Tool>, ToolSetupError> {
    let directory = means.directory.clone();
    Ok(match name {
        ECHO => Arc::new(echo()),
        LLM => Arc::new(llm(Arc::clone(&means.model))),
        SUMMARIZE => Arc::new(summarize(Arc::clone(&means.model))),
        LIST_AGENTS => Arc::new(list_agents(directory)),
        REMEMBER_AGENT => Arc::new(remember_agent(directory)),
        EXECUTE_COMMAND => {
            let commands = means.commands.clone().ok_or(ToolSetupError::NoCommands)?;
            Arc::new(Renamed::new(commands, EXECUTE_COMMAND))
        }
        HUMAN_INPUT => Arc::new(human_input()),
        LIST_SERVERS => Arc::new(list_servers(directory)),
        SHOW_AGENT_CARD => Arc::new(show_agent_card(directory, means.card.clone())),
        other => return Err(ToolSetupError::Unknown(other.to_owned())),
    })
}

#[derive(Deserialize, JsonSchema)]
struct Text {
    /// The text.
    text: String,
}

fn echo() -> impl Tool {
    tool(ECHO, "Gives the same text back.", Effect::Pure, |arguments: Text, _| async move {
        Ok(arguments.text)
    })
    .reach(Reach::Workspace)
}

#[derive(Deserialize, JsonSchema)]
struct Prompt {
    /// What to answer.
    #[serde(alias = "text")]
    prompt: String,
}

fn llm(model: Arc<dyn Model>) -> impl Tool {
    let about = "Answers with the language model: questions, explanations, writing, conversation. \
                 The choice when nothing else fits.";
    tool(LLM, about, Effect::Pure, move |arguments: Prompt, context| {
        ask(Arc::clone(&model), arguments.prompt, context)
    })
    .reach(Reach::Workspace)
}

fn summarize(model: Arc<dyn Model>) -> impl Tool {
    let about = "Summarizes a text.";
    tool(SUMMARIZE, about, Effect::Pure, move |arguments: Text, context| {
        ask(Arc::clone(&model), summary_of(&arguments.text), context)
    })
    .reach(Reach::Workspace)
}

/// What a model is told to do with a text.
pub(super) fn summary_of(text: &str) -> String {
    format!("Summarize this text in a few sentences:\n\n{text}")
}

/// Ask a model beside any conversation.
async fn ask(
    model: Arc<dyn Model>,
    text: String,
    context: ToolContext,
) -> Result<String, ToolError> {
    let request = Request {
        system: None,
        messages: Arc::new(vec![Arc::new(Message::user(text))]),
        extra: Vec::new(),
        tools: Arc::default(),
        options: Options::default(),
    };
    let mut answer = Accumulator::default();
    let mut deltas = model.ask(request);
    loop {
        let delta = tokio::select! {
            () = context.cancel.cancelled() => return Err(ToolError::new("it was cancelled")),
            delta = deltas.next() => delta,
        };
        match delta {
            Some(Ok(delta)) => answer.push(delta),
            Some(Err(error)) => return Err(ToolError::new(error.to_string())),
            None => return Ok(answer.finish().message.text()),
        }
    }
}

#[derive(Deserialize, JsonSchema)]
struct ListAgents {
    /// `simple` for ids and names, which is the default; `detailed` for all that is known.
    #[serde(default)]
    format: Format,
}

#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Format {
    #[default]
    Simple,
    Detailed,
}

fn list_agents(directory: Directory) -> impl Tool {
    let about = "Lists the other agents that are known here.";
    tool(LIST_AGENTS, about, Effect::Pure, move |arguments: ListAgents, _| {
        let agents = directory.list();
        async move {
            let agents: Vec<Value> = agents
                .iter()
                .map(|agent| match arguments.format {
                    Format::Simple => agent.simple(),
                    Format::Detailed => agent.detailed(),
                })
                .collect();
            Ok(match agents.len() {
                0 => json!({ "count": 0, "message": "No agents found in the directory" }),
                count => json!({ "count": count, "agents": agents }),
            })
        }
    })
    .reach(Reach::Workspace)
}

#[derive(Deserialize, JsonSchema)]
struct Address {
    /// The address of the agent, such as `http://localhost:4201`.
    #[serde(alias = "agent_base_url", alias = "agent_url")]
    url: String,
}

fn remember_agent(directory: Directory) -> impl Tool {
    let about = "Gets to know the agent at an address and keeps it in the directory.";
    tool(REMEMBER_AGENT, about, Effect::Idempotent, move |arguments: Address, _| {
        let directory = directory.clone();
        async move {
            let agent = directory.discover(&arguments.url).await;
            let agent = agent.map_err(|error| ToolError::new(error.to_string()))?;
            Ok(json!({ "remembered": agent.detailed() }))
        }
    })
    .reach(Reach::Network)
}

// Whoever carries the question to the person reads the arguments by these names.
#[derive(Deserialize, JsonSchema)]
#[allow(dead_code, reason = "the driver reads the arguments as JSON")]
struct Question {
    /// The question, with what the person needs to know to answer it.
    question: String,
    /// Answers to choose from. Leave it out for a free answer.
    #[serde(default)]
    choices: Vec<String>,
}

/// A question to the person, under the seed's name.
pub(super) fn human_input() -> impl Tool {
    let about = "Asks the person a question and waits for the answer.";
    tool(HUMAN_INPUT, about, Effect::Pure, |_: Question, _| async move {
        Err::<Content, _>(ToolError::new("there is nobody here who could be asked"))
    })
    .execution(Execution::Human)
    .reach(Reach::Workspace)
}

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

fn list_servers(directory: Directory) -> impl Tool {
    let about = "Lists the addresses of the other agents that are known here, numbered.";
    tool(LIST_SERVERS, about, Effect::Pure, move |_: Nothing, _| {
        let agents = directory.list();
        async move {
            let servers: Vec<Value> = (1..)
                .zip(&agents)
                .map(|(number, agent): (usize, _)| {
                    json!({
                        "number": number,
                        "id": agent.id,
                        "name": agent.name,
                        "url": agent.url,
                        "health": agent.health.word(),
                    })
                })
                .collect();
            Ok(match servers.len() {
                0 => json!({ "count": 0, "message": "No servers are known" }),
                count => json!({ "count": count, "servers": servers }),
            })
        }
    })
    .reach(Reach::Workspace)
}

#[derive(Deserialize, JsonSchema)]
struct WhoseCard {
    /// The id of a known agent. Leave it out for this agent's own card.
    #[serde(default)]
    agent: Option<String>,
}

fn show_agent_card(directory: Directory, own: OwnCard) -> impl Tool {
    let about = "Shows the card of this agent, or of a known one.";
    tool(SHOW_AGENT_CARD, about, Effect::Pure, move |arguments: WhoseCard, _| {
        let card = match arguments.agent.as_deref().filter(|id| !id.is_empty()) {
            None => own.get().ok_or_else(|| ToolError::new("this agent has no card yet")),
            Some(id) => match directory.get(id) {
                Ok(agent) => agent.card.ok_or_else(|| {
                    ToolError::new(format!("the card of {id} was never fetched; ping it"))
                }),
                Err(error) => Err(ToolError::new(error.to_string())),
            },
        };
        async move {
            serde_json::to_value(card?).map_err(|error| ToolError::new(error.to_string()))
        }
    })
    .reach(Reach::Workspace)
}

/// Another tool under another name: what it does and may do is the other's.
struct Renamed {
    inner: Arc<dyn Tool>,
    spec: Arc<ToolSpec>,
}

impl Renamed {
    fn new(inner: Arc<dyn Tool>, name: &str) -> Self {
        let mut spec = ToolSpec::clone(inner.spec());
        name.clone_into(&mut spec.name);
        Self { inner, spec: Arc::new(spec) }
    }
}

impl Tool for Renamed {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn check(&self, arguments: &Value) -> Result<(), String> {
        self.inner.check(arguments)
    }

    fn call(&self, arguments: Value, context: ToolContext) -> BoxFuture<'_, ToolOutput> {
        self.inner.call(arguments, context)
    }
}
