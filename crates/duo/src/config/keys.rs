//! Every key there is: type, default and meaning, in one place.
//!
//! A new key is a line here; a new section is a `section!` here and a field in [`Config`]. The
//! checks, the environment variables, `duo config` and `docs/configuration.md` follow from it.

use std::{collections::BTreeMap, fmt, path::PathBuf};

use serde::Deserialize;

use super::schema::{Kind, Setting, Word, choice, section};

mod a2a;
mod browser;

pub(crate) use a2a::{A2a, Remote, Server};
pub(crate) use browser::Browser;

section! {
    /// Keys at the top of the file, before the first `[section]`.
    Config {
        /// The model that answers, as `provider/model`, such as `anthropic/claude-sonnet-4-5` or
        /// `ollama/qwen3`. Unset, the program takes the first one that it can reach.
        model: Option<String> = None => Kind::Model,
        /// The agent that `duo run` and `duo chat` start: a name from `[agents]`, or the name of a
        /// behavior.
        agent: String = "generic".into(),
        /// Where conversations are written down. `sqlite` is `duologue/journal.db` in the
        /// platform's data folder.
        journal: Journal = Journal::Sqlite,
        /// What a written entry survives.
        durability: Durability = Durability::Disk,
        /// The folder that the file tools see. They never leave it.
        workspace: PathBuf = ".".into(),
        /// What agents may do.
        permissions: Permissions = Permissions::default(),
        /// What goes into a prompt.
        memory: Memory = Memory::default(),
        /// What a task may use.
        budget: Budget = Budget::default(),
        /// Bounds.
        limits: Limits = Limits::default(),
        /// Tools.
        tools: Tools = Tools::default(),
        /// The browser.
        browser: Browser = Browser::default(),
        /// Agents that plan.
        planned: Planned = Planned::default(),
        /// Agents of two.
        dual: Dual = Dual::default(),
        /// Model providers.
        providers: BTreeMap<String, Provider> = BTreeMap::new(),
        /// Agents.
        agents: BTreeMap<String, Agent> = BTreeMap::new(),
        /// MCP servers.
        mcp_servers: BTreeMap<String, McpServer> = BTreeMap::new(),
        /// Agents as servers.
        server: Server = Server::default(),
        /// Agents elsewhere.
        remotes: BTreeMap<String, Remote> = BTreeMap::new(),
        /// Agents among others.
        a2a: A2a = A2a::default(),
        /// `duo chat`.
        repl: Repl = Repl::default(),
        /// The terminal.
        ui: Ui = Ui::default(),
    }
}

/// Where conversations are written down.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(from = "String")]
pub(crate) enum Journal {
    /// SQLite at the usual place. A loaded configuration has the place itself instead.
    Sqlite,
    /// SQLite in this file.
    File(PathBuf),
    /// Nowhere: gone when the program ends.
    Memory,
}

section! {
    /// What agents may do. A call meets the rules in the order `deny`, `ask`, `allow`; where none
    /// fits, `mode` decides. A rule is `tool`, `tool(pattern)` for the tool's first required
    /// argument, or `tool(argument=pattern)`.
    Permissions {
        /// What happens to a call that no rule names.
        mode: Mode = Mode::Ask,
        /// Calls that never run.
        deny: Vec<String> = Vec::new() => Kind::List(&Kind::Rule),
        /// Calls that always ask.
        ask: Vec<String> = Vec::new() => Kind::List(&Kind::Rule),
        /// Calls that run without a question, such as `shell(git status*)`.
        allow: Vec<String> = Vec::new() => Kind::List(&Kind::Rule),
    }
}

section! {
    /// What of a conversation goes into the next prompt. The journal keeps everything.
    Memory rivals &[("window_tokens", "window_messages")]; {
        /// The most tokens of conversation in a prompt. Not together with `window_messages`.
        window_tokens: u64 = 32_000 => Kind::Count { min: 256, max: i64::MAX },
        /// The most messages in a prompt, instead of counting tokens.
        window_messages: Option<u64> = None => Kind::Count { min: 2, max: i64::MAX },
        /// The share of the window that is kept when it is full.
        trim_to: f64 = 0.6 => Kind::Number { min: 0.1, max: 1.0 },
        /// What happens to messages that no longer fit.
        on_full: OnFull = OnFull::Trim,
    }
}

section! {
    /// What one task may use, sub-agents included. An unset bound is no bound.
    Budget {
        /// Model calls.
        steps: Option<u64> = None => Kind::Count { min: 1, max: i64::MAX },
        /// Tokens, read and written.
        tokens: Option<u64> = None => Kind::Count { min: 1, max: i64::MAX },
        /// Money, in US dollars.
        cost_usd: Option<f64> = None => Kind::Number { min: 0.0, max: 1e9 },
        /// Time, in seconds.
        seconds: Option<u64> = None => Kind::Count { min: 1, max: 31_536_000 },
        /// What happens when a bound is reached.
        on_breach: OnBreach = OnBreach::Ask,
    }
}

section! {
    /// Bounds that keep a run in hand.
    Limits {
        /// How many characters of one tool result a prompt carries. The journal has the whole, and
        /// the agent can read on.
        tool_output_chars: u32 = 20_000 => Kind::Count { min: 200, max: 10_000_000 },
        /// How often a hook may send an agent back to work in one turn.
        max_send_backs: u32 = 3 => Kind::Count { min: 0, max: 100 },
        /// How often a model call is tried, the first try included.
        retry_attempts: u32 = 4 => Kind::Count { min: 1, max: 20 },
    }
}

section! {
    /// The built-in tools. Which of them an agent has is said by `tools` in `[agents.NAME]`; what
    /// it may do with them by `[permissions]`.
    Tools {
        /// Tools that are off unless they are named here, such as `shell`.
        enabled: Vec<String> = Vec::new() => Kind::List(&Kind::Tool),
        /// Whether `http_get` may reach private addresses. Leave it off unless you trust whatever
        /// can speak to the agent.
        http_allow_private: bool = false,
        /// How long one `shell` command may take, in seconds.
        shell_timeout_seconds: u64 = 120 => Kind::Count { min: 1, max: 86_400 },
    }
}

section! {
    /// How an agent with the behavior `planned` goes about a task (see `docs/planned-react.md`).
    /// An interval of 0 means never.
    Planned {
        /// How it goes about a task. `--strategy` sets it.
        strategy: Strategy = Strategy::Auto,
        /// How `auto` finds a strategy for a task that names none.
        classifier: Classifier = Classifier::Model,
        /// Whether the model checks the work. Without, a task ends when the model calls `done`.
        validator: bool = true,
        /// Whether `done` is checked, too, while TODO items are open. Weak models call it early.
        check_done: bool = true,
        /// After how many steps re-planning is considered. `--plan-every` sets it.
        plan_every: u64 = 5 => Kind::Count { min: 0, max: 100_000 },
        /// After how many steps the work is checked. `--validate-every` sets it.
        validate_every: u64 = 3 => Kind::Count { min: 0, max: 100_000 },
        /// After how many steps the model looks at the run itself and may change strategy and
        /// intervals.
        meta_every: u64 = 0 => Kind::Count { min: 0, max: 100_000 },
        /// How often one task may be planned again.
        max_replans: u32 = 5 => Kind::Count { min: 0, max: 1_000 },
        /// Whether it learns: what plan worked or failed is kept, and shown to later planning of
        /// similar tasks. `duo lessons` shows and deletes it.
        lessons: bool = false,
        /// The file with the lessons. Unset, it is `duologue/lessons.jsonl` in the platform's data
        /// folder.
        lessons_file: Option<PathBuf> = None,
    }
}

section! {
    /// How an agent with the behavior `dual` is put together (see `docs/dual-act.md`): H decides,
    /// R works. What the agent's own section says of instructions, tools and model is for R, unless
    /// `reactive` names others.
    Dual {
        /// The agent that decides. Unset, it is one without tools that does nothing else.
        human: Option<String> = None,
        /// The agents that work, side by side if there are several. Empty, it is one with the
        /// behavior `planned`.
        reactive: Vec<String> = Vec::new(),
        /// The most runs of R in one task. `--max-hr-loops` sets it.
        max_hr_loops: u32 = 5 => Kind::Count { min: 1, max: 1_000 },
        /// H's model. Unset, it is that of the agent it is. `--model-h` sets it.
        model_h: Option<String> = None => Kind::Model,
        /// R's model. Unset, it is that of the agent it is. `--model-r` sets it.
        model_r: Option<String> = None => Kind::Model,
        /// Whether H and R read each other's words, or only instructions and conclusions.
        shared_memory: bool = false,
        /// What H reads when it is to decide.
        human_decision_prompt: Option<String> = None,
        /// What R reads when it is to work.
        reactive_task_prompt: Option<String> = None,
        /// What R reads about how to conclude.
        conclusion_format_prompt: Option<String> = None,
    }
}

section! {
    /// A model provider, for models named `NAME/…`. The usual ones, such as `anthropic`, `openai`,
    /// `openai-responses`, `gemini` and `ollama`, need no section: their keys are in the usual
    /// environment variables, and `duo models` lists them. A section for one of them changes what
    /// it says; any other name is a new provider, which needs a `base_url`.
    Provider {
        /// The protocol that it speaks. Unset, it is what is known of that name; a new provider
        /// speaks `openai`.
        kind: Option<ProviderKind> = None,
        /// Where it is, as `http://host:port/v1`.
        base_url: Option<String> = None => Kind::Url,
        /// The environment variable with its key. Keys never stand in a file.
        api_key_env: Option<String> = None => Kind::Variable,
        /// Headers of every request, such as `headers.X-Team = "${TEAM}"`.
        headers: Headers = Headers::default(),
        /// How long nothing may arrive before a request counts as lost, in seconds. Unset, it is
        /// 300: models that think are silent meanwhile.
        idle_timeout_seconds: Option<u64> = None => Kind::Count { min: 1, max: 86_400 },
        /// What its models cost, as `prices."MODEL".input` and so on.
        prices: BTreeMap<String, Price> = BTreeMap::new(),
    }
}

section! {
    /// What a model costs, in US dollars per million tokens.
    Price requires &["input", "output"]; named "MODEL"; {
        /// Tokens read.
        input: f64 = 0.0,
        /// Tokens written.
        output: f64 = 0.0,
        /// Tokens read from the provider's cache. Unset, they cost as much as others.
        cached: Option<f64> = None,
    }
}

section! {
    /// An agent, chosen by its name. Every behavior is also an agent of that name without a
    /// section.
    Agent rivals &[("system", "system_file")]; {
        /// How it works. Where the section's name is a behavior, that is the default.
        behavior: String = "generic".into() => Kind::Behavior,
        /// What it is for, in a line.
        description: Option<String> = None,
        /// Its model. Unset, it is `model`.
        model: Option<String> = None => Kind::Model,
        /// Its instructions.
        system: Option<String> = None,
        /// A file with its instructions, instead of `system`.
        system_file: Option<PathBuf> = None,
        /// The tools it has. Unset, it has all built-in tools that are on.
        tools: Option<Vec<String>> = None => Kind::List(&Kind::Tool),
        /// How many model calls one turn may take. Unset, the behavior decides.
        max_steps: Option<u32> = None => Kind::Count { min: 1, max: 100_000 },
        /// How freely the model chooses.
        temperature: Option<f64> = None => Kind::Number { min: 0.0, max: 2.0 },
        /// Same seed, same answer, as far as the provider can.
        seed: Option<u64> = None,
        /// The most tokens of one answer.
        max_tokens: Option<u32> = None => Kind::Count { min: 1, max: 10_000_000 },
        /// How hard the model thinks, where it can be told.
        reasoning_effort: Option<ReasoningEffort> = None,
        /// Its own memory. Missing keys are those of `[memory]`.
        memory: Memory = Memory::default() => Kind::Inherited("memory", <Memory as super::schema::Section>::SPEC),
        /// Its own budget. Missing keys are those of `[budget]`.
        budget: Budget = Budget::default() => Kind::Inherited("budget", <Budget as super::schema::Section>::SPEC),
        /// How it plans, if it does. Missing keys are those of `[planned]`.
        planned: Planned = Planned::default() => Kind::Inherited("planned", <Planned as super::schema::Section>::SPEC),
        /// How it is put together, if it is dual. Missing keys are those of `[dual]`.
        dual: Dual = Dual::default() => Kind::Inherited("dual", <Dual as super::schema::Section>::SPEC),
    }
}

section! {
    /// An MCP server, whose tools every agent has as `NAME__tool` unless its section names others.
    /// Servers of a `.mcp.json` in the workspace folder count too. `${VARIABLE}` stands for an
    /// environment variable in `command`, `args`, `env`, `url` and `headers`.
    McpServer rivals &[("command", "url")]; {
        /// The program that is started and spoken to over its standard input and output.
        command: Option<String> = None,
        /// Its arguments.
        args: Vec<String> = Vec::new() => Kind::List(&Kind::Text),
        /// Variables for it, such as `env.TOKEN = "${MY_TOKEN}"`. Of the others it gets only
        /// harmless ones, such as PATH and HOME.
        env: Headers = Headers::default(),
        /// The folder that it starts in. Unset, it is the current one.
        cwd: Option<PathBuf> = None,
        /// The address of a server that runs already, instead of `command`.
        url: Option<String> = None => Kind::Url,
        /// Headers of every request to that address.
        headers: Headers = Headers::default(),
        /// Whether it is used.
        enabled: bool = true,
        /// Which of its tools agents get. Unset, all of them.
        tools: Option<Vec<String>> = None => Kind::List(&Kind::Text),
        /// How long it may take to start, in seconds.
        startup_seconds: u64 = 30 => Kind::Count { min: 1, max: 3_600 },
        /// How long a call may go on without a sign of progress, in seconds.
        timeout_seconds: u64 = 60 => Kind::Count { min: 1, max: 86_400 },
    }
}

section! {
    /// `duo chat`.
    Repl {
        /// The file with the lines typed so far. Unset, it is `duologue/history.txt` in the
        /// platform's data folder.
        history: Option<PathBuf> = None,
        /// A file that gets everything that is said and done as a text, turn by turn: an export of
        /// the journal for people.
        log: Option<PathBuf> = None,
    }
}

section! {
    /// How the terminal looks.
    Ui {
        /// Whether to use color.
        color: Color = Color::Auto,
    }
}

choice! {
    /// What a written entry survives.
    Durability {
        /// The end of power.
        Disk = "disk",
        /// The end of the process, also by `kill -9`; faster.
        Process = "process",
    }
}

choice! {
    /// What happens to a call that no rule names.
    Mode {
        /// What only looks runs; everything else is refused.
        ReadOnly = "read-only",
        /// What only looks runs; everything else asks.
        Ask = "ask",
        /// Changes inside the workspace run too; everything else asks.
        AutoEdit = "auto-edit",
        /// Everything runs.
        Full = "full",
    }
}

choice! {
    /// What happens to messages that no longer fit into the prompt.
    OnFull {
        /// The oldest are left out.
        Trim = "trim",
        /// The model writes a summary that stands for them.
        Summarize = "summarize",
    }
}

choice! {
    /// How a planned agent goes about a task.
    Strategy {
        /// As the request's `execution_mode` says, or as the classifier finds.
        Auto = "auto",
        /// Directly, without a plan.
        Simple = "simple",
        /// Plan, work the plan off, check, plan again.
        MultiStep = "multi_step",
        /// Thought and action in turn, with a plan, regular checks and re-planning.
        React = "react",
        /// Begins without a plan and switches among the others.
        Hybrid = "hybrid",
    }
}

choice! {
    /// How a strategy is found for a task that names none.
    Classifier {
        /// The model is asked once.
        Model = "model",
        /// By phrases in the task, without a question to the model.
        Phrases = "phrases",
    }
}

choice! {
    /// What happens when a bound of the budget is reached.
    OnBreach {
        /// The run pauses and asks, where there is someone to ask; otherwise it ends.
        Ask = "ask",
        /// The run ends.
        End = "end",
    }
}

choice! {
    /// The protocol that a provider speaks.
    ProviderKind {
        /// OpenAI's chat completions, which nearly every server speaks.
        OpenAi = "openai",
        /// OpenAI's responses.
        OpenAiResponses = "openai-responses",
        /// Anthropic's messages.
        Anthropic = "anthropic",
        /// Google's Gemini.
        Gemini = "gemini",
        /// Ollama's own; its chat completions are `openai`.
        Ollama = "ollama",
    }
}

choice! {
    /// How hard a model thinks before it speaks.
    ReasoningEffort {
        /// As little as possible.
        Minimal = "minimal",
        /// A little.
        Low = "low",
        /// The usual.
        Medium = "medium",
        /// A lot.
        High = "high",
    }
}

choice! {
    /// Whether to use color.
    Color {
        /// On a terminal, unless `NO_COLOR` is set.
        Auto = "auto",
        /// Yes.
        Always = "always",
        /// No.
        Never = "never",
    }
}

/// The most that a prompt carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Window {
    /// This many tokens.
    Tokens(u64),
    /// This many messages.
    Messages(u64),
}

impl Memory {
    /// The most that a prompt carries.
    pub(crate) fn window(&self) -> Window {
        self.window_messages.map_or(Window::Tokens(self.window_tokens), Window::Messages)
    }
}

impl Journal {
    const WORDS: &[Word] = &[
        Word { word: "sqlite", doc: "A database at the usual place." },
        Word { word: "memory", doc: "Nowhere: gone when the program ends." },
    ];
}

impl From<String> for Journal {
    fn from(text: String) -> Self {
        match text.as_str() {
            "sqlite" => Self::Sqlite,
            "memory" => Self::Memory,
            _ => Self::File(text.into()),
        }
    }
}

impl Setting for Journal {
    const KIND: Kind = Kind::PathOr(Self::WORDS);

    fn to_value(&self) -> Option<toml::Value> {
        match self {
            Self::Sqlite => Some("sqlite".into()),
            Self::Memory => Some("memory".into()),
            Self::File(path) => path.to_value(),
        }
    }
}

/// Headers or variables for somebody else, as they were written: `${VARIABLE}` is not yet replaced.
///
/// They often carry credentials, so that their values are never printed.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub(crate) struct Headers(BTreeMap<String, String>);

impl Headers {
    /// The names with the values as they were written.
    pub(crate) fn templates(&self) -> &BTreeMap<String, String> {
        &self.0
    }
}

impl fmt::Debug for Headers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl Setting for Headers {
    const KIND: Kind = Kind::Map(&Kind::Hidden);

    fn to_value(&self) -> Option<toml::Value> {
        None
    }
}

/// A part of a value that may hold `${VARIABLE}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Piece<'a> {
    /// Text as it is.
    Literal(&'a str),
    /// The name of a variable.
    Variable(&'a str),
}

/// The parts of a value that may hold `${VARIABLE}`.
pub(crate) fn pieces(template: &str) -> Vec<Piece<'_>> {
    let mut found = Vec::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("${") {
        let Some((name, behind)) = after.split_once('}') else {
            break;
        };
        if !before.is_empty() {
            found.push(Piece::Literal(before));
        }
        found.push(Piece::Variable(name));
        rest = behind;
    }
    if !rest.is_empty() {
        found.push(Piece::Literal(rest));
    }
    found
}
