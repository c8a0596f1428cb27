//! How a provider is configured.

use std::{collections::BTreeMap, fmt};

use duologue_core::Price;
use serde::{Deserialize, Serialize};

/// What a configuration may say about a provider, under its name.
///
/// For a known name it changes what is said and keeps the rest; any other name is a new provider,
/// which needs at least a `base_url`.
///
/// ```
/// use duologue_models::{ProviderConfig, Wire};
///
/// let config: ProviderConfig = serde_json::from_value(serde_json::json!({
///     "wire": "openai-chat",
///     "base_url": "https://models.example.com/v1",
///     "api_key_env": "EXAMPLE_KEY",
///     "headers": { "x-team": "${TEAM}" },
/// }))?;
/// assert_eq!(config.wire, Some(Wire::OpenaiChat));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ProviderConfig {
    /// The wire that it speaks. A new provider speaks `openai-chat` unless this says otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wire: Option<Wire>,
    /// Where it is, as `https://host/v1`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// The environment variable that holds the key. The key itself does not belong in a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_key_env: Option<String>,
    /// Headers for every request. `${NAME}` stands for an environment variable.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// How many seconds nothing may arrive before a request counts as lost (default 300: models
    /// that think send nothing meanwhile).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_timeout_secs: Option<u64>,
    /// Prices of its models, by their own names, before the listed ones.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub prices: BTreeMap<String, Price>,
}

/// Headers may hold secrets, so only their names are shown.
impl fmt::Debug for ProviderConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProviderConfig")
            .field("wire", &self.wire)
            .field("base_url", &self.base_url)
            .field("api_key_env", &self.api_key_env)
            .field("headers", &self.headers.keys().collect::<Vec<_>>())
            .field("idle_timeout_secs", &self.idle_timeout_secs)
            .field("prices", &self.prices)
            .finish()
    }
}

/// The protocols that providers speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wire {
    /// OpenAI's chat completions, which nearly every server speaks.
    OpenaiChat,
    /// OpenAI's responses.
    OpenaiResponses,
    /// Anthropic's messages.
    Anthropic,
    /// Google's `generateContent`.
    Gemini,
    /// Ollama's own, without structured output and tool choice; `ollama/…` speaks chat instead.
    Ollama,
}

impl fmt::Display for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::OpenaiChat => "openai-chat",
            Self::OpenaiResponses => "openai-responses",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::Ollama => "ollama",
        })
    }
}
