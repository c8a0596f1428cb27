//! The providers that need no configuration.

use super::Wire;

/// A provider as everybody finds it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    pub(super) name: &'static str,
    pub(super) wire: Wire,
    pub(super) base_url: &'static str,
    /// Variables that move it elsewhere.
    pub(super) base_url_vars: &'static [&'static str],
    /// Variables that may hold the key; the first that is set counts. None: no key is needed.
    pub(super) key_vars: &'static [&'static str],
}

const fn remote(
    name: &'static str,
    wire: Wire,
    base_url: &'static str,
    base_url_vars: &'static [&'static str],
    key_vars: &'static [&'static str],
) -> Known {
    Known { name, wire, base_url, base_url_vars, key_vars }
}

const fn local(
    name: &'static str,
    base_url: &'static str,
    base_url_vars: &'static [&'static str],
) -> Known {
    remote(name, Wire::OpenaiChat, base_url, base_url_vars, &[])
}

pub(super) const KNOWN: [Known; 12] = [
    remote(
        "anthropic",
        Wire::Anthropic,
        "https://api.anthropic.com/v1/",
        &["ANTHROPIC_BASE_URL"],
        &["ANTHROPIC_API_KEY", "CLAUDE_API_KEY"],
    ),
    remote(
        "openai",
        Wire::OpenaiChat,
        "https://api.openai.com/v1/",
        &["OPENAI_BASE_URL", "OPENAI_API_BASE"],
        &["OPENAI_API_KEY"],
    ),
    remote(
        "openai-responses",
        Wire::OpenaiResponses,
        "https://api.openai.com/v1/",
        &["OPENAI_BASE_URL", "OPENAI_API_BASE"],
        &["OPENAI_API_KEY"],
    ),
    remote(
        "gemini",
        Wire::Gemini,
        "https://generativelanguage.googleapis.com/v1beta/",
        &["GEMINI_BASE_URL", "GOOGLE_GEMINI_BASE_URL"],
        &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
    ),
    remote(
        "openrouter",
        Wire::OpenaiChat,
        "https://openrouter.ai/api/v1/",
        &["OPENROUTER_BASE_URL"],
        &["OPENROUTER_API_KEY"],
    ),
    remote(
        "groq",
        Wire::OpenaiChat,
        "https://api.groq.com/openai/v1/",
        &["GROQ_BASE_URL"],
        &["GROQ_API_KEY"],
    ),
    remote(
        "deepseek",
        Wire::OpenaiChat,
        "https://api.deepseek.com/v1/",
        &["DEEPSEEK_BASE_URL"],
        &["DEEPSEEK_API_KEY"],
    ),
    remote("xai", Wire::OpenaiChat, "https://api.x.ai/v1/", &["XAI_BASE_URL"], &["XAI_API_KEY"]),
    local("ollama", "http://localhost:11434/v1/", &["OLLAMA_HOST"]),
    local("lmstudio", "http://localhost:1234/v1/", &["LMSTUDIO_BASE_URL"]),
    local("llamacpp", "http://localhost:8080/v1/", &["LLAMACPP_BASE_URL"]),
    local("vllm", "http://localhost:8000/v1/", &["VLLM_BASE_URL"]),
];

/// The provider that a bare model name most likely means.
pub(super) fn guess(model: &str) -> Option<&'static str> {
    let is_o =
        model.strip_prefix('o').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    [
        ("anthropic", model.starts_with("claude")),
        ("openai", model.starts_with("gpt-") || is_o),
        ("gemini", model.starts_with("gemini")),
    ]
    .into_iter()
    .find_map(|(provider, fits)| fits.then_some(provider))
}
