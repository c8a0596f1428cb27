//! `bidirectional_agent.toml`: the file that earlier bidirectional agents were configured with, read
//! as it is and put into the words of our own configuration.

use std::{collections::BTreeMap, fmt, path::Path};

use serde::Deserialize;
use toml::Value;

use crate::{config::Flag, failure::Failure};

/// The most bytes of such a file.
const LARGEST: u64 = 1 << 20;
/// What the agent is called where the file does not say it.
const USUAL_ID: &str = "bidirectional-agent";

/// The file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct SeedFile {
    server: Server,
    client: Client,
    llm: Llm,
    pub(super) mode: Mode,
    tools: Tools,
    experimental_clarification: Option<bool>,
    experimental_decomposition: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Server {
    port: Option<u16>,
    bind_address: Option<String>,
    agent_id: Option<String>,
    agent_name: Option<String>,
    agent_description: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Client {
    target_url: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Llm {
    claude_api_key: Option<String>,
    /// Any model of ours, such as `ollama/qwen3`.
    model: Option<String>,
    system_prompt: Option<String>,
    experimental_clarification: Option<bool>,
    experimental_decomposition: Option<bool>,
}

/// The key is not shown.
impl fmt::Debug for Llm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Llm").field("model", &self.model).finish_non_exhaustive()
    }
}

/// What to do.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Mode {
    /// Talk with a person.
    pub(super) repl: Option<bool>,
    /// Answer one message.
    pub(super) message: Option<String>,
    /// Show the other agent's card.
    pub(super) get_agent_card: bool,
    /// Send a task to the other agent.
    pub(super) remote_task: Option<String>,
    repl_log_file: Option<String>,
    experimental_clarification: Option<bool>,
    experimental_decomposition: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Tools {
    enabled: Option<Vec<String>>,
    agent_directory_path: Option<String>,
}

impl SeedFile {
    pub(super) fn read(file: &Path) -> Result<Self, Failure> {
        let wrong = |why: String| Failure::usage(format!("{}: {why}", file.display()));
        let about = std::fs::metadata(file).map_err(|error| wrong(error.to_string()))?;
        if about.len() > LARGEST {
            return Err(wrong(format!("it has more than {LARGEST} bytes")));
        }
        let text = std::fs::read_to_string(file).map_err(|error| wrong(error.to_string()))?;
        Self::parse(&text).map_err(wrong)
    }

    fn parse(text: &str) -> Result<Self, String> {
        toml::from_str(text).map_err(|error| {
            // The whole error shows the line, which may hold a key.
            let at = error.span().and_then(|span| text.get(..span.start));
            let line = at.map_or(1, |before| before.matches('\n').count() + 1);
            format!("line {line}: {}", error.message())
        })
    }

    /// The agent that it wants to connect to.
    pub(super) fn target(&self) -> Option<&str> {
        self.client.target_url.as_deref()
    }

    /// The key for Anthropic's models, if it stands in the file.
    pub(super) fn claude_key(&self) -> Option<&str> {
        self.llm.claude_api_key.as_deref()
    }

    /// The file in the words of our configuration. `name` is what the person calls the file.
    pub(super) fn settings(&self, name: &str) -> Vec<Flag> {
        let id = self.server.agent_id.as_deref().unwrap_or(USUAL_ID);
        // Ids of earlier agents may hold anything; ours are words.
        let id: String = id
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' })
            .collect();
        let id = if id.is_empty() { USUAL_ID.to_owned() } else { id };
        let either = |flags: [Option<bool>; 3]| flags.into_iter().flatten().next();
        let clarification = either([
            self.experimental_clarification,
            self.llm.experimental_clarification,
            self.mode.experimental_clarification,
        ]);
        let decomposition = either([
            self.experimental_decomposition,
            self.llm.experimental_decomposition,
            self.mode.experimental_decomposition,
        ]);
        let text = |text: &Option<String>| text.clone().map(Value::String);
        let tools = self.tools.enabled.clone();
        let tools = tools.map(|all| Value::Array(all.into_iter().map(Value::String).collect()));
        let of_agent = |key: &str| format!("agents.{id}.{key}");
        let mut all: BTreeMap<String, (&str, Option<Value>)> = BTreeMap::new();
        let mut put = |key: String, said: &'static str, value| all.insert(key, (said, value));
        put("agent".into(), "server.agent_id", Some(id.clone().into()));
        put(of_agent("behavior"), "server.agent_id", Some("bidirectional".into()));
        put(
            of_agent("description"),
            "server.agent_description",
            text(&self.server.agent_description),
        );
        put(of_agent("system"), "llm.system_prompt", text(&self.llm.system_prompt));
        put(of_agent("tools"), "tools.enabled", tools);
        put(
            "a2a.clarification".into(),
            "experimental_clarification",
            clarification.map(Value::from),
        );
        put(
            "a2a.decomposition".into(),
            "experimental_decomposition",
            decomposition.map(Value::from),
        );
        put(
            "a2a.directory".into(),
            "tools.agent_directory_path",
            text(&self.tools.agent_directory_path),
        );
        put("model".into(), "llm.model", text(&self.llm.model));
        put("repl.log".into(), "mode.repl_log_file", text(&self.mode.repl_log_file));
        put("server.host".into(), "server.bind_address", text(&self.server.bind_address));
        put("server.name".into(), "server.agent_name", text(&self.server.agent_name));
        put(
            "server.port".into(),
            "server.port",
            self.server.port.map(|port| i64::from(port).into()),
        );
        let flags = all.into_iter().filter_map(|(key, (said, value))| {
            Some(Flag { flag: format!("{name}: {said}"), key, value: value? })
        });
        flags.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_of_earlier_agents_is_read_as_it_is() {
        let sample = include_str!("../../../../../bidirectional_agent.toml");
        let file = SeedFile::parse(sample).unwrap();
        assert_eq!(file.target(), Some("http://localhost:8081"));
        assert_eq!((file.mode.repl, file.claude_key()), (Some(true), None));
        let settings: Vec<(String, String)> =
            file.settings("f").into_iter().map(|flag| (flag.key, flag.value.to_string())).collect();
        let said = |key: &str| {
            let found = settings.iter().find(|(known, _)| known == key);
            found.map(|(_, value)| value.as_str()).unwrap_or_default()
        };
        assert_eq!(said("server.port"), "8080");
        assert_eq!(said("server.host"), "\"0.0.0.0\"");
        assert_eq!(said("agent"), "\"bidirectional-agent\"");
        assert_eq!(said("server.name"), "\"My Bidirectional Agent\"");
        assert_eq!(said("repl.log"), "\"agent_interactions.log\"");
        assert_eq!(said("a2a.directory"), "\"./data/agent_directory.json\"");
        let tools = "[\"echo\", \"llm\", \"summarize\", \"list_agents\"]";
        assert_eq!(said("agents.bidirectional-agent.tools"), tools);
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line_and_without_the_key() {
        let wrong = "[llm]\nclaude_api_key = \"sk-secret\"\nclaude_api_kee = 1\n";
        let error = SeedFile::parse(wrong).unwrap_err();
        assert!(error.starts_with("line 3: unknown field `claude_api_kee`"), "{error}");
        let error = SeedFile::parse("[llm]\nclaude_api_key = [\"sk-secret\"]\n").unwrap_err();
        assert!(!error.contains("sk-secret"), "{error}");
        let file = SeedFile::parse("[llm]\nclaude_api_key = \"sk-secret\"\n").unwrap();
        assert!(!format!("{file:?}").contains("sk-secret"));
    }
}
