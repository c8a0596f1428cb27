//! The house: puts a configuration, a journal, models, tools and agents together.

#[cfg(feature = "browser")]
mod browsing;
mod cast;
#[cfg(feature = "mcp")]
pub(crate) mod mcp;
mod network;
mod resident;

use std::{
    collections::BTreeMap,
    io::{IsTerminal, Write},
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use duologue_a2a::Directory;
use duologue_core::{
    Agent, Attendance, MemoryStore, Model, SessionId, SessionOptions, Store, Toolbox,
};
use duologue_models::{KeyStatus, ProviderConfig, Providers, Replay, Scripted, Wire};
use duologue_store::{Durability, SqliteOptions, SqliteStore};
use duologue_tools::{
    BuiltinConfig, Enabled, HttpConfig, PrivateAddresses, ShellConfig, Workspace, builtin,
    builtin_named,
};
use serde_json::Value;
use tokio::sync::OnceCell;

pub(crate) use self::{
    cast::{Cast, How, Outside, OwnTools, lessons_file},
    network::Listen,
    resident::Resident,
};
use crate::{
    cli::{self, Recording},
    config::{
        Config, Flag, Loaded, Sources, Vocabulary,
        keys::{self, Journal, OnBreach, ProviderKind},
    },
    failure::Failure,
    terminal::Paint,
};

/// How many sessions that are over a journal in memory keeps.
const KEPT: usize = 10_000;

/// The words that stand for a model by themselves; those that end in `:` take a file.
const MODEL_WORDS: &[&str] = &[
    "demo",
    "script:",
    "replay:",
    #[cfg(feature = "local")]
    "local",
    #[cfg(feature = "local")]
    "local:",
];

/// The script behind `demo`.
const DEMO: &str = include_str!("demo.yaml");

/// The variable in which earlier agents looked for the key of Anthropic's models.
const CLAUDE_KEY: &str = "CLAUDE_API_KEY";

/// What a command brings along for the configuration, before flags are looked at.
#[derive(Default)]
pub(crate) struct Given {
    /// What a file of another form says.
    pub(crate) settings: Vec<Flag>,
    /// A key for Anthropic's models that stands in such a file.
    pub(crate) claude_key: Option<String>,
}

/// Everything that commands work with.
pub(crate) struct House {
    pub(crate) loaded: Loaded,
    pub(crate) providers: Providers,
    pub(crate) paint: Paint,
    /// Whether to go ahead without asking.
    pub(crate) yes: bool,
    store: OnceCell<Arc<dyn Store>>,
    #[cfg(feature = "mcp")]
    mcp: OnceCell<duologue_mcp::Servers>,
    directory: OnceLock<Directory>,
    /// The flag, which counts more than what a session remembers.
    asked_model: Option<String>,
    asked_agent: Option<String>,
    asked_workspace: bool,
    asked_how: How,
}

impl House {
    /// Read the configuration and make ready.
    pub(crate) fn open(flags: &cli::Shared, given: Given) -> Result<Self, Failure> {
        let vocabulary = Vocabulary {
            tools: tool_names(),
            models: MODEL_WORDS.iter().map(ToString::to_string).collect(),
            providers: known_providers()?,
            ..Vocabulary::default()
        };
        let mut sources = Sources::of_process(vocabulary)?;
        sources.flags = given.settings;
        sources.flags.extend(flags_of(flags));
        sources.set.clone_from(&flags.set);
        let loaded = Config::load(&sources)?;
        let variable = move |name: &str| match &given.claude_key {
            Some(key) if name == CLAUDE_KEY => Some(key.clone()),
            _ => std::env::var(name).ok(),
        };
        let configs = provider_configs(&loaded.config, &variable);
        let providers = Providers::with_environment(configs, variable).map_err(Failure::usage)?;
        let paint = Paint::new(match loaded.config.ui.color {
            keys::Color::Auto => cli::Color::Auto,
            keys::Color::Always => cli::Color::Always,
            keys::Color::Never => cli::Color::Never,
        });
        Ok(Self {
            loaded,
            providers,
            paint,
            yes: flags.yes,
            store: OnceCell::new(),
            #[cfg(feature = "mcp")]
            mcp: OnceCell::new(),
            directory: OnceLock::new(),
            asked_model: flags.model.clone(),
            asked_agent: flags.agent.clone(),
            asked_workspace: flags.workspace.is_some(),
            asked_how: How::asked(flags),
        })
    }

    pub(crate) fn config(&self) -> &Config {
        &self.loaded.config
    }

    /// Where sessions are kept.
    pub(crate) async fn store(&self) -> Result<Arc<dyn Store>, Failure> {
        let open = || async {
            let path = match &self.config().journal {
                Journal::Memory => {
                    return Ok(Arc::new(MemoryStore::keeping(KEPT)) as Arc<dyn Store>);
                }
                Journal::File(path) => path,
                Journal::Sqlite => {
                    return Err(Failure::usage(
                        "there is no folder for the journal because HOME is not set; say --journal FILE",
                    ));
                }
            };
            let durability = match self.config().durability {
                keys::Durability::Disk => Durability::Disk,
                keys::Durability::Process => Durability::Process,
            };
            let options = SqliteOptions { durability, ..SqliteOptions::default() };
            Ok(Arc::new(SqliteStore::open(path, options).await?) as Arc<dyn Store>)
        };
        self.store.get_or_try_init(open).await.cloned()
    }

    /// Whether sessions outlive the program.
    pub(crate) fn keeps_sessions(&self) -> bool {
        self.config().journal != Journal::Memory
    }

    /// The one session whose id begins so.
    pub(crate) async fn find(&self, prefix: &str) -> Result<SessionId, Failure> {
        let found = self.store().await?.find(prefix, 6).await?;
        match found.as_slice() {
            [one] => Ok(one.clone()),
            [] => Err(Failure::usage(format!(
                "there is no session {prefix}; `duo sessions list` shows which there are"
            ))),
            many => {
                let ids: Vec<&str> = many.iter().take(5).map(SessionId::as_str).collect();
                let more = if many.len() > 5 { ", …" } else { "" };
                let ids = ids.join(", ");
                Err(Failure::usage(format!("several sessions begin with {prefix}: {ids}{more}")))
            }
        }
    }

    /// Whether something may be deleted for good: a person is asked, unless they said so already.
    pub(crate) fn may_delete(&self, what: &str) -> Result<bool, Failure> {
        if self.yes {
            return Ok(true);
        }
        if !std::io::stdin().is_terminal() {
            return Err(Failure::usage("deleting is for good; say --yes"));
        }
        write!(std::io::stdout(), "Delete {what} for good? [y/N] ")?;
        std::io::stdout().flush()?;
        let mut answer = String::new();
        std::io::stdin().read_line(&mut answer)?;
        Ok(answer.trim().eq_ignore_ascii_case("y"))
    }

    /// How a session of this house begins.
    pub(crate) fn session_options(&self, plan: &Plan) -> SessionOptions {
        let mut metadata = vec![
            ("model", Value::from(plan.model.clone())),
            ("workspace", Value::from(plan.workspace.to_string_lossy().into_owned())),
        ];
        if plan.how != How::default() {
            metadata.push(("how", serde_json::to_value(&plan.how).unwrap_or_default()));
        }
        SessionOptions {
            metadata: metadata.into_iter().collect(),
            attendance: self.attendance(&plan.agent),
            ..SessionOptions::default()
        }
    }

    fn attendance(&self, agent: &str) -> Attendance {
        let budget = self.config().agents.get(agent).map_or(&self.config().budget, |a| &a.budget);
        match budget.on_breach {
            // A question can be answered later, from anywhere, if the session is kept.
            OnBreach::Ask if self.keeps_sessions() => Attendance::Attended,
            OnBreach::Ask | OnBreach::End => Attendance::Unattended,
        }
    }

    /// What somebody who works in a project of others should know: what its file lets agents do
    /// and to whom it sends conversations.
    pub(crate) fn project_notice(&self) -> Option<String> {
        let grants: Vec<String> =
            self.loaded.provenance.grants_of_project().map(|row| row.key.clone()).collect();
        if grants.is_empty() {
            return None;
        }
        let keys = grants.join(", ");
        Some(format!("duologue.toml of this project sets {keys}; `duo config` shows how"))
    }

    /// What a new session is to be held with.
    pub(crate) fn plan(&self) -> Result<Plan, Failure> {
        let agent = self.config().agent.clone();
        let model = self.model_name(&agent)?;
        let workspace = self.config().workspace.clone();
        Ok(Plan { agent, model, workspace, how: self.asked_how.clone(), remote: None })
    }

    /// What an agent is to be asked with: this model, unless flags name one for a half of it, or
    /// otherwise its own.
    pub(crate) fn plan_for(&self, agent: &str, model: Option<&str>) -> Result<Plan, Failure> {
        let (model, how) = match model {
            Some(model) => (model.to_owned(), self.asked_how.clone().with_usual_model(model)),
            None => (self.model_name(agent)?, self.asked_how.clone()),
        };
        let workspace = self.config().workspace.clone();
        Ok(Plan { agent: agent.to_owned(), model, workspace, how, remote: None })
    }

    /// What an existing session is to be held with: as it was, unless flags say otherwise.
    pub(crate) async fn plan_of(&self, id: &SessionId) -> Result<Plan, Failure> {
        let store = self.store().await?;
        let first = store.read(id, 0, 1).await?;
        let started = first.first().map(|entry| &entry.event);
        let Some(duologue_core::Event::SessionStarted { agent, metadata, .. }) = started else {
            return Err(Failure::new(format!("session {id} has no beginning")));
        };
        let text = |key: &str| metadata.get(key).and_then(Value::as_str).map(str::to_owned);
        let agent = self.asked_agent.clone().unwrap_or_else(|| agent.clone());
        let remote = text("remote").filter(|_| self.asked_agent.is_none());
        let model = match (&self.asked_model, text("model")) {
            (None, Some(model)) => model,
            _ => self.model_name(&agent)?,
        };
        let workspace = match text("workspace") {
            Some(folder) if !self.asked_workspace => folder.into(),
            _ => self.config().workspace.clone(),
        };
        let how = metadata.get("how").cloned().unwrap_or_default();
        let how = serde_json::from_value(how).unwrap_or_default();
        Ok(Plan { agent, model, workspace, how: self.asked_how.clone().over(how), remote })
    }

    /// The agent of a plan, ready to work.
    pub(crate) async fn agent(&self, plan: &Plan, recording: &Recording) -> Result<Agent, Failure> {
        Ok(self.resident(plan, recording).await?.agent().clone())
    }

    /// The agent of a plan without a model, for replays.
    pub(crate) fn mute_agent(&self, plan: &Plan) -> Result<Agent, Failure> {
        Cast::new(self, plan).agent()
    }

    /// The one rule for which tools an agent has: those that its section names, or else all that
    /// are on.
    pub(crate) fn tools(
        &self,
        workspace: &Path,
        named: Option<&[String]>,
    ) -> Result<Toolbox, Failure> {
        let tools = &self.config().tools;
        let workspace = Workspace::open(workspace).map_err(Failure::usage)?;
        let of_servers = self.server_tools(named);
        let (browsing, named): (Vec<String>, _) = match named {
            None => (Vec::new(), None),
            Some(names) => {
                let others = names.iter().filter(|name| !is_servers(name)).cloned();
                let (browsing, others) = others.partition(|name| is_browsing(name));
                (browsing, Some(others))
            }
        };
        let named: Option<Vec<String>> = named;
        let config = BuiltinConfig {
            enabled: match &named {
                Some(names) => Enabled::Only(names.clone()),
                None => Enabled::Usual,
            },
            shell: ShellConfig {
                timeout: std::time::Duration::from_secs(tools.shell_timeout_seconds),
                ..ShellConfig::default()
            },
            http: HttpConfig {
                private_addresses: if tools.http_allow_private {
                    PrivateAddresses::Allowed
                } else {
                    PrivateAddresses::Refused
                },
                ..HttpConfig::default()
            },
            ..BuiltinConfig::new(workspace)
        };
        let mut list = builtin(&config).map_err(Failure::usage)?;
        if named.is_none() {
            for name in &tools.enabled {
                list.push(builtin_named(name, &config).map_err(Failure::usage)?);
            }
        }
        #[cfg(feature = "browser")]
        if !browsing.is_empty() {
            let all = self.browser(&config.workspace)?.tools().into_iter();
            list.extend(all.filter(|tool| browsing.contains(&tool.spec().name)));
        }
        #[cfg(not(feature = "browser"))]
        drop(browsing);
        Ok(list.into_iter().chain(of_servers).fold(Toolbox::new(), Toolbox::with_shared))
    }

    /// Without MCP there are no servers.
    #[cfg(not(feature = "mcp"))]
    pub(crate) async fn bring_servers(&self) -> Result<(), Failure> {
        Ok(())
    }

    #[cfg(not(feature = "mcp"))]
    fn server_tools(&self, _: Option<&[String]>) -> Vec<Arc<dyn duologue_core::Tool>> {
        Vec::new()
    }

    /// The model's name for an agent: asked for, the agent's, the configuration's, or whatever can
    /// be had.
    fn model_name(&self, agent: &str) -> Result<String, Failure> {
        if let Some(model) = &self.asked_model {
            return Ok(model.clone());
        }
        let config = self.config();
        let of_agent = config.agents.get(agent).and_then(|agent| agent.model.clone());
        match of_agent.or_else(|| config.model.clone()).or_else(|| self.usual_model()) {
            Some(model) => Ok(model),
            None => Err(Failure::usage(NO_MODEL)),
        }
    }

    /// The usual model of the first provider whose key is set, or the local one.
    pub(crate) fn usual_model(&self) -> Option<String> {
        let usual = [
            ("anthropic", "anthropic/claude-sonnet-4-5"),
            ("openai", "openai/gpt-4.1"),
            ("gemini", "gemini/gemini-2.5-flash"),
        ];
        let has_key = |name: &str| {
            let mut known = self.providers.available().into_iter();
            known.any(|p| p.name == name && matches!(p.key, KeyStatus::Set { .. }))
        };
        let remote = usual.iter().find(|(name, _)| has_key(name)).map(|(_, model)| *model);
        let local = cfg!(feature = "local").then_some("local");
        remote.or(local).map(str::to_owned)
    }

    /// A model by its name.
    pub(crate) async fn model(&self, name: &str) -> Result<Arc<dyn Model>, Failure> {
        #[cfg(feature = "local")]
        if crate::local::is_local(name) {
            return crate::local::model(self, name).await;
        }
        if name == "demo" {
            return Ok(Arc::new(Scripted::from_yaml("demo", DEMO).map_err(Failure::new)?));
        }
        if let Some(file) = name.strip_prefix("script:") {
            return Ok(Arc::new(Scripted::from_file(file).map_err(Failure::usage)?));
        }
        if let Some(file) = name.strip_prefix("replay:") {
            return Ok(Arc::new(Replay::from_cassette(file).map_err(Failure::usage)?));
        }
        self.providers.model(name).map_err(Failure::usage)
    }
}

/// Whether a tool's name is one that MCP servers' tools have. Which there are is known only when the
/// server runs; one that is away takes its tools with it.
pub(crate) fn is_servers(name: &str) -> bool {
    name.contains("__") || name.starts_with("mcp_")
}

/// What a session is held with.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) agent: String,
    pub(crate) model: String,
    pub(crate) workspace: PathBuf,
    pub(crate) how: How,
    /// Where the agent is, if it is elsewhere.
    pub(crate) remote: Option<String>,
}

impl Plan {
    /// The same with another model, for everybody.
    pub(crate) fn with_model(&self, model: &str) -> Self {
        let how = self.how.clone().with_model(model);
        Self { model: model.to_owned(), how, ..self.clone() }
    }
}

/// What somebody without a model is told.
pub(crate) const NO_MODEL: &str = "there is no model to ask. Three ways to get one:
  1. a provider: set ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY
  2. a server of your own (Ollama, vLLM, llama.cpp, LM Studio): duo --model ollama/qwen3
  3. no model at all: duo --model demo answers from a script, with real tools
`duo models` shows what can be reached.";

/// Every tool that an agent's section can name.
fn tool_names() -> Vec<String> {
    let names = duologue_tools::names().iter();
    #[cfg(feature = "browser")]
    let names = names.chain(duologue_browser::NAMES);
    names.copied().chain(duologue_a2a::TOOL_NAMES).map(str::to_owned).collect()
}

/// Whether a tool is one of the browser's.
fn is_browsing(name: &str) -> bool {
    #[cfg(feature = "browser")]
    return duologue_browser::NAMES.contains(&name);
    #[cfg(not(feature = "browser"))]
    {
        let _ = name;
        false
    }
}

/// The providers that need no section.
fn known_providers() -> Result<Vec<String>, Failure> {
    let usual = Providers::new(BTreeMap::new()).map_err(Failure::usage)?;
    let mut names: Vec<String> = usual.available().into_iter().map(|known| known.name).collect();
    if cfg!(feature = "local") {
        names.push("local".into());
    }
    Ok(names)
}

fn flags_of(flags: &cli::Shared) -> Vec<Flag> {
    let mut found = Vec::new();
    if let Some(model) = &flags.model {
        found.push(Flag::new("--model", "model", model.as_str()));
    }
    if let Some(agent) = &flags.agent {
        found.push(Flag::new("--agent", "agent", agent.as_str()));
    }
    if let Some(journal) = &flags.journal {
        found.push(Flag::new("--journal", "journal", journal.as_str()));
    }
    if let Some(folder) = &flags.workspace {
        let folder = folder.to_string_lossy().into_owned();
        found.push(Flag::new("--workspace", "workspace", folder));
    }
    if let Some(mode) = flags.permissions {
        let word = match mode {
            cli::PermissionsMode::ReadOnly => "read-only",
            cli::PermissionsMode::Ask => "ask",
            cli::PermissionsMode::AutoEdit => "auto-edit",
            cli::PermissionsMode::Full => "full",
        };
        found.push(Flag::new("--permissions", "permissions.mode", word));
    }
    if let Some(color) = flags.color {
        let word = match color {
            cli::Color::Auto => "auto",
            cli::Color::Always => "always",
            cli::Color::Never => "never",
        };
        found.push(Flag::new("--color", "ui.color", word));
    }
    found.extend(How::flags(&flags.how));
    found
}

fn provider_configs(
    config: &Config,
    variable: &impl Fn(&str) -> Option<String>,
) -> BTreeMap<String, ProviderConfig> {
    let convert = |provider: &keys::Provider| ProviderConfig {
        wire: provider.kind.map(|kind| match kind {
            ProviderKind::OpenAi => Wire::OpenaiChat,
            ProviderKind::OpenAiResponses => Wire::OpenaiResponses,
            ProviderKind::Anthropic => Wire::Anthropic,
            ProviderKind::Gemini => Wire::Gemini,
            ProviderKind::Ollama => Wire::Ollama,
        }),
        base_url: provider.base_url.clone(),
        api_key_env: provider.api_key_env.clone(),
        headers: provider.headers.templates().clone(),
        idle_timeout_secs: provider.idle_timeout_seconds,
        prices: provider.prices.iter().map(|(name, p)| (name.clone(), p.to_core())).collect(),
    };
    let convert = |(name, provider): (&String, _)| (name.clone(), convert(provider));
    let mut configs: BTreeMap<String, ProviderConfig> =
        config.providers.iter().map(convert).collect();
    // The name that earlier agents know their key by, where nothing else is said.
    let is_set = |name: &str| variable(name).is_some_and(|value| !value.trim().is_empty());
    let anthropic = configs.entry("anthropic".to_owned()).or_default();
    if anthropic.api_key_env.is_none() && !is_set("ANTHROPIC_API_KEY") && is_set(CLAUDE_KEY) {
        anthropic.api_key_env = Some(CLAUDE_KEY.to_owned());
    }
    configs
}
