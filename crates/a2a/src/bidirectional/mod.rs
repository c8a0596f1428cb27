//! The bidirectional agent: a server and a client at once, with a router between them.
//!
//! - `router` decides who does what is asked; `tools` are what this agent can do by itself.
//! - `worker` does a plan's local steps.
//!
//! One description gives two agents: [`BidirectionalAgent::agent`] for the person at this machine,
//! with all its tools, and [`BidirectionalAgent::exposed`] for other agents, with those that are
//! exposed to them.

mod router;
mod tools;
mod worker;

use std::sync::Arc;

use a2a::AgentCard;
use duologue_core::{
    Agent, AgentBuilder, Budget, Effect, Memory, Mode, Model, Options, Policy, Store, Tool,
    Toolbox, tool,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

pub(crate) use self::router::DELEGATED;
pub use self::{
    router::Settings as RouterSettings,
    tools::{EXPOSED_BY_DEFAULT, TOOL_NAMES, ToolSetupError},
};
use self::{
    router::{CALL_OFF, CONFIRM, KNOWN, Peer, TaskRouter, Tools},
    tools::{EXECUTE_COMMAND, HUMAN_INPUT, LLM, Means, OwnCard, SUMMARIZE},
    worker::Worker,
};
use crate::{
    Access, Directory, Health, KnownAgent, ServeError, Server, Serving,
    card::{Reached, card_of, declare_id},
    client::{ASK_CREDENTIALS, Called, Questions, agent_of, ask_credentials, call_off},
};

/// The most agents that a decision is told of.
const MOST_PEERS: usize = 50;

/// An agent that serves others and calls others.
///
/// ```no_run
/// # use std::sync::Arc;
/// # async fn example(model: Arc<dyn duologue_core::Model>) -> Result<(), Box<dyn std::error::Error>> {
/// use duologue_a2a::{BidirectionalAgent, Directory};
/// use duologue_core::MemoryStore;
///
/// let directory = Directory::open("data/agent_directory.json")?;
/// let agent = BidirectionalAgent::new("agent-1", "Agent One", model, directory)
///     .enabled(["echo", "llm", "list_agents"])
///     .build()?;
/// let serving = agent.serve(Arc::new(MemoryStore::new()), |server| server).await?;
/// agent.directory().discover("localhost:4201").await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct BidirectionalAgent(Arc<Inner>);

struct Inner {
    id: String,
    directory: Directory,
    agent: Agent,
    exposed: Agent,
    card: OwnCard,
}

/// A [`BidirectionalAgent`] while it is described.
#[must_use]
pub struct BidirectionalBuilder {
    id: String,
    name: String,
    description: String,
    system: String,
    model: Arc<dyn Model>,
    options: Options,
    directory: Directory,
    enabled: Vec<String>,
    exposed: Option<Vec<String>>,
    more: Vec<Arc<dyn Tool>>,
    commands: Option<Arc<dyn Tool>>,
    settings: RouterSettings,
    policy: Policy,
    budget: Budget,
    memory: Option<Memory>,
    worker: Option<Agent>,
}

impl BidirectionalAgent {
    /// Begin to describe one: what it is called in directories, its name, its model, and whom it
    /// knows. It has the tools `echo`, `llm`, `summarize` and `list_agents` unless told otherwise.
    #[allow(clippy::new_ret_no_self, reason = "it is described before it is made")]
    pub fn new(
        id: impl Into<String>,
        name: impl Into<String>,
        model: Arc<dyn Model>,
        directory: Directory,
    ) -> BidirectionalBuilder {
        BidirectionalBuilder {
            id: id.into(),
            name: name.into(),
            description: String::new(),
            system: String::new(),
            model,
            options: Options::default(),
            directory,
            enabled: ["echo", "llm", "summarize", "list_agents"].map(str::to_owned).to_vec(),
            exposed: None,
            more: Vec::new(),
            commands: None,
            settings: RouterSettings::default(),
            policy: Policy::new(Mode::Ask),
            budget: Budget::default(),
            memory: None,
            worker: None,
        }
    }

    /// What it is called in directories.
    pub fn id(&self) -> &str {
        &self.0.id
    }

    /// The agent with all its tools, for the person at this machine.
    pub fn agent(&self) -> &Agent {
        &self.0.agent
    }

    /// The agent with the tools that are exposed to others.
    pub fn exposed(&self) -> &Agent {
        &self.0.exposed
    }

    /// Whom it knows.
    pub fn directory(&self) -> &Directory {
        &self.0.directory
    }

    /// Its card: as it is served, or without addresses until then.
    pub fn card(&self) -> Option<AgentCard> {
        self.0.card.get()
    }

    /// Serve it to others, its tasks kept in this store. The closure says where and to whom.
    pub async fn serve(
        &self,
        store: Arc<dyn Store>,
        setup: impl FnOnce(Server) -> Server,
    ) -> Result<Serving, ServeError> {
        let id = self.0.id.clone();
        let server = Server::new(self.0.exposed.clone(), store).card(move |card| amend(card, &id));
        let serving = setup(server).start().await?;
        self.0.directory.set_own(&self.0.id, Some(serving.url()));
        self.0.card.set(serving.card().clone());
        Ok(serving)
    }
}

impl std::fmt::Debug for BidirectionalAgent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BidirectionalAgent")
            .field("id", &self.0.id)
            .field("agent", &self.0.agent)
            .finish_non_exhaustive()
    }
}

/// A card of such an agent: with its id, and without tools that only the router uses.
fn amend(card: &mut AgentCard, id: &str) {
    card.skills.retain(|skill| skill.id != CONFIRM && skill.id != ASK_CREDENTIALS);
    declare_id(card, id);
}

impl BidirectionalBuilder {
    /// What it is for.
    pub fn description(mut self, text: impl Into<String>) -> Self {
        self.description = text.into();
        self
    }

    /// The system prompt.
    pub fn system(mut self, text: impl Into<String>) -> Self {
        self.system = text.into();
        self
    }

    /// How the model is to answer.
    pub fn options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// The tools that it has, by name.
    pub fn enabled<T: Into<String>>(mut self, names: impl IntoIterator<Item = T>) -> Self {
        self.enabled = names.into_iter().map(Into::into).collect();
        self
    }

    /// The tools that other agents reach, by name. Otherwise those of [`EXPOSED_BY_DEFAULT`] that it
    /// has. `execute_command` is reached only when it is named here.
    pub fn expose<T: Into<String>>(mut self, names: impl IntoIterator<Item = T>) -> Self {
        self.exposed = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// One more tool of its own. It is not exposed unless it is named.
    pub fn tool(mut self, tool: Arc<dyn Tool>) -> Self {
        self.more.push(tool);
        self
    }

    /// What `execute_command` does. The tool's own effect decides whether somebody is asked first.
    pub fn commands(mut self, tool: Arc<dyn Tool>) -> Self {
        self.commands = Some(tool);
        self
    }

    /// Which experimental decisions are made.
    pub fn settings(mut self, settings: RouterSettings) -> Self {
        self.settings = settings;
        self
    }

    /// What it may do without asking.
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// What a task may use, the share of other agents included.
    pub fn budget(mut self, budget: Budget) -> Self {
        self.budget = budget;
        self
    }

    /// What it remembers.
    pub fn memory(mut self, memory: Memory) -> Self {
        self.memory = Some(memory);
        self
    }

    /// Who works on the local steps of plans. Otherwise the same model, with the exposed tools.
    pub fn worker(mut self, agent: Agent) -> Self {
        self.worker = Some(agent);
        self
    }

    /// The agent.
    pub fn build(self) -> Result<BidirectionalAgent, ToolSetupError> {
        let card = OwnCard::default();
        let means = Means {
            directory: self.directory.clone(),
            model: Arc::clone(&self.model),
            commands: self.commands.clone(),
            card: card.clone(),
        };
        let mut all: Vec<Arc<dyn Tool>> = Vec::new();
        for name in &self.enabled {
            all.push(tools::named(name, &means)?);
        }
        all.extend(self.more.iter().cloned());
        let has = |name: &str| all.iter().any(|tool| tool.spec().name == name);
        let exposed: Vec<String> = match &self.exposed {
            Some(names) => names.clone(),
            None => EXPOSED_BY_DEFAULT
                .iter()
                .filter(|name| has(name))
                .map(|name| (*name).to_owned())
                .collect(),
        };
        if let Some(name) = exposed.iter().find(|name| !has(name)) {
            return Err(ToolSetupError::NotEnabled(name.clone()));
        }
        let shown = all.iter().filter(|tool| exposed.contains(&tool.spec().name)).cloned();
        let shown: Vec<Arc<dyn Tool>> = shown.collect();
        let agent = self.agent(&all);
        let exposed = self.agent(&shown);
        let reached = Reached { url: "", grpc: None };
        let mut own = card_of(&exposed, &Access::open(), &reached, true);
        own.supported_interfaces.clear();
        amend(&mut own, &self.id);
        card.set(own);
        self.directory.set_own(&self.id, None);
        let directory = self.directory;
        Ok(BidirectionalAgent(Arc::new(Inner { id: self.id, directory, agent, exposed, card })))
    }

    /// The agent with these tools.
    fn agent(&self, tools: &[Arc<dyn Tool>]) -> Agent {
        let offered = tools.iter().map(|tool| Arc::clone(tool.spec())).collect();
        let mut toolbox = Toolbox::new();
        for tool in tools {
            toolbox = toolbox.with_shared(Arc::clone(tool));
        }
        // The router's own: questions to the user, and the yes to something risky.
        if toolbox.get(HUMAN_INPUT).is_none() {
            toolbox = toolbox.with(tools::human_input());
        }
        let toolbox = toolbox.with(confirm_action()).with(ask_credentials());
        // The name is this module's own and a rule by itself, so it can be read.
        let policy = self.policy.clone().ask(CONFIRM).unwrap_or_else(|_| self.policy.clone());
        let worker = self.worker.clone().unwrap_or_else(|| self.own_worker(tools));
        let (known, waiting, children) =
            (self.directory.clone(), self.directory.clone(), self.directory.clone());
        let router = TaskRouter::new(self.settings, Tools::new(offered));
        let builder = self.furnished(Agent::builder(self.name.as_str(), router));
        builder
            .tools(toolbox)
            .policy(policy)
            .budget(self.budget)
            .function(KNOWN, move |_| {
                let peers = peers_of(&known);
                async move { Ok(json!(peers)) }
            })
            .function(CALL_OFF, move |input| call_off_all(waiting.clone(), input))
            .children_from(move |key| {
                let who = key.rsplit('/').next().unwrap_or(key);
                match who.strip_prefix("remote:") {
                    Some(id) => {
                        let called = Called::Listed(children.clone(), id.to_owned());
                        Some(agent_of(called, id.into(), Questions::GivenBack))
                    }
                    None if who == "local" => Some(worker.clone()),
                    None => None,
                }
            })
            .build()
    }

    fn own_worker(&self, tools: &[Arc<dyn Tool>]) -> Agent {
        // The model answers by itself; commands are for whoever is asked.
        let left_out = [LLM, SUMMARIZE, HUMAN_INPUT, EXECUTE_COMMAND];
        let mut toolbox = Toolbox::new();
        for tool in tools.iter().filter(|tool| !left_out.contains(&tool.spec().name.as_str())) {
            toolbox = toolbox.with_shared(Arc::clone(tool));
        }
        self.furnished(Agent::builder("worker", Worker))
            .tools(toolbox)
            .policy(self.policy.clone())
            .build()
    }

    fn furnished(&self, builder: AgentBuilder) -> AgentBuilder {
        let builder = builder
            .description(self.description.as_str())
            .system(self.system.as_str())
            .model(Arc::clone(&self.model))
            .options(self.options.clone());
        match &self.memory {
            Some(memory) => builder.memory(memory.clone()),
            None => builder,
        }
    }
}

#[derive(Deserialize, JsonSchema)]
#[allow(dead_code, reason = "whoever approves the call reads its arguments")]
struct Confirmation {
    /// What is about to be done.
    action: String,
    /// What could go wrong.
    #[serde(default)]
    why: String,
}

/// A call of it waits for the user's yes; running it does nothing.
fn confirm_action() -> impl Tool {
    tool(CONFIRM, "Asks for a yes.", Effect::Idempotent, |_: Confirmation, _| async move {
        Ok("confirmed")
    })
}

/// The known agents as a decision sees them: those that answer first.
fn peers_of(directory: &Directory) -> Vec<Peer> {
    let mut all = directory.list();
    all.sort_by_key(|agent| matches!(agent.health, Health::Down { .. }));
    all.truncate(MOST_PEERS);
    all.into_iter().map(peer_of).collect()
}

fn peer_of(agent: KnownAgent) -> Peer {
    let is_down = matches!(agent.health, Health::Down { .. });
    let skills = agent.skills.iter().map(|skill| match skill.description.as_str() {
        "" => skill.id.clone(),
        text => format!("{}: {text}", skill.id),
    });
    let skills = skills.collect();
    Peer { id: agent.id, name: agent.name, description: agent.description, skills, is_down }
}

#[derive(Deserialize)]
struct Waiting {
    agent: String,
    task: String,
}

/// Cancel tasks of other agents that wait for an answer that will not come.
async fn call_off_all(directory: Directory, input: Value) -> Result<Value, String> {
    let waiting: Vec<Waiting> = serde_json::from_value(input).map_err(|error| error.to_string())?;
    for Waiting { agent, task } in waiting {
        match directory.connect(&agent).await {
            Ok(remote) => call_off(&remote, &task).await,
            Err(error) => tracing::debug!(agent, %error, "a remote task was not cancelled"),
        }
    }
    Ok(Value::Null)
}
