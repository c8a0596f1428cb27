//! The keys of A2A: serving agents, reaching others, knowing who is there.

use std::{collections::BTreeMap, path::PathBuf};

use serde::Deserialize;

use crate::config::schema::{Kind, Setting, section};

section! {
    /// How an agent is served to others (see `docs/a2a.md`): `duo serve`, and `:listen` in a chat.
    /// Without `callers` and `jwks_file` nobody is asked who they are, and the server listens on
    /// this machine only.
    Server {
        /// The address to listen on, or the name of one. `--host` sets it.
        host: String = "127.0.0.1".into(),
        /// The port of all bindings; 0 is a free one. `--port` sets it.
        port: u32 = 8080 => Kind::Count { min: 0, max: 65_535 },
        /// One more port, for gRPC alone. `--grpc-port` sets it.
        grpc_port: Option<u32> = None => Kind::Count { min: 0, max: 65_535 },
        /// What the agent is called on its card. Unset, it is the agent's own name.
        name: Option<String> = None,
        /// The tools of the agent that others reach. Unset, they reach all of them; of an agent with
        /// the behavior `bidirectional`, those that run no commands and write nothing down.
        expose: Option<Vec<String>> = None => Kind::List(&Kind::Tool),
        /// Where others reach it, if that is not where it listens.
        url: Option<String> = None => Kind::Url,
        /// Whether everybody who reaches the server may call, from other machines too.
        allow_unauthenticated: bool = false,
        /// Who may call with an API key: names, each with the environment variable that has the
        /// key, such as `callers.ada = "ADA_API_KEY"`.
        callers: Variables = Variables::default(),
        /// A JWKS file: whoever has a token that one of its keys signed may call.
        jwks_file: Option<PathBuf> = None,
        /// Who must have issued a token.
        issuer: Option<String> = None,
        /// Whom a token must be for.
        audience: Option<String> = None,
        /// The most bytes of a request.
        max_body_bytes: u64 = 10 << 20 => Kind::Count { min: 1_024, max: 1 << 30 },
        /// The most tasks of a page.
        max_page: u32 = 100 => Kind::Count { min: 1, max: 10_000 },
        /// The most streams that are open at once.
        max_streams: u32 = 20_000 => Kind::Count { min: 1, max: 1_000_000 },
        /// The most requests of one caller in a second. Unset, there is no bound.
        max_requests_per_second: Option<u32> = None => Kind::Count { min: 1, max: 1_000_000 },
        /// How many agents a request may have been passed on by before it comes here.
        max_delegations: u32 = 8 => Kind::Count { min: 1, max: 1_000 },
        /// Whether clients can have themselves notified.
        push: bool = true,
        /// Whether notifications may go to private addresses.
        push_allow_private: bool = false,
        /// The environment variable with 64 hexadecimal digits that seal the secrets of
        /// notification targets in the journal. Unset, such targets end with the process.
        push_seal_env: Option<String> = None => Kind::Variable,
        /// A file with a P-256 key (PKCS#8, DER) that signs the card.
        card_key_file: Option<PathBuf> = None,
        /// The name of that key, as clients who pinned it know it.
        card_key_name: String = "duologue".into(),
    }
}

section! {
    /// An agent elsewhere, by a name that `duo send`, `duo card` and `:connect` take for its
    /// address. What it says counts for every address of the same host and port.
    Remote requires &["url"]; {
        /// Where it is.
        url: String = String::new() => Kind::Url,
        /// Secrets by the names that its card gives to its schemes, each as the environment
        /// variable that has it, such as `credentials.apiKey = "FAR_API_KEY"`. `"*"` is for every
        /// scheme.
        credentials: Variables = Variables::default(),
        /// A JWKS file. The agent's card must be signed with one of its keys.
        pinned_keys: Option<PathBuf> = None,
    }
}

section! {
    /// An agent among others.
    A2a {
        /// The file with the agents that are known. Unset, it is `duologue/agents.json` in the
        /// platform's data folder.
        directory: Option<PathBuf> = None,
        /// After how many seconds the agents that are known are looked at again, while an agent is
        /// served; 0 means never.
        refresh_seconds: u64 = 60 => Kind::Count { min: 0, max: 86_400 },
        /// Whether an agent with the behavior `bidirectional` asks what a vague request means before
        /// it begins.
        clarification: bool = false,
        /// Whether such an agent takes large requests apart and has the parts done side by side, by
        /// itself or by other agents.
        decomposition: bool = false,
        /// Whether such an agent looks for a way out when another agent fails.
        recovery: bool = false,
        /// Whether such an agent asks for a yes before something risky is done.
        confirmation: bool = false,
    }
}

/// Names, each with an environment variable that holds a secret.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub(crate) struct Variables(BTreeMap<String, String>);

impl Variables {
    /// The names with their variables.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, variable)| (name.as_str(), variable.as_str()))
    }
}

impl Setting for Variables {
    const KIND: Kind = Kind::Map(&Kind::Variable);

    fn to_value(&self) -> Option<toml::Value> {
        None
    }
}
