//! Models behind an API: which there are, where their keys are, and how each is asked.

mod config;
mod errors;
mod genai_wire;
mod known;
mod openai_chat;
mod redact;
mod schema;
mod service;
mod sse;
mod status;

use std::{
    collections::BTreeMap,
    sync::{Arc, OnceLock},
    time::Duration,
};

use duologue_core::{Model, ModelError};
use reqwest::{
    Client, Url,
    header::{HeaderMap, HeaderName, HeaderValue},
    redirect,
};

pub use self::{
    config::{ProviderConfig, Wire},
    status::{KeyStatus, ProviderStatus, Reached},
};
use self::{
    genai_wire::{GenaiModel, Tongue},
    known::{KNOWN, Known},
    openai_chat::{Dialect, OpenAiChat},
    redact::Redactor,
    service::{Key, ModelEntry, Service},
};
use crate::price::known_price;

/// How long a connection may take to be made.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// How long nothing may arrive, unless the configuration says otherwise.
const IDLE_TIMEOUT: Duration = Duration::from_secs(300);

/// Why a model cannot be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProviderError {
    /// The name has no provider in it.
    #[error("{name:?} names no provider; models are written provider/model{}", hint(.suggestion))]
    NotQualified {
        /// What was asked for.
        name: String,
        /// What was probably meant.
        suggestion: Option<String>,
    },
    /// There is no such provider.
    #[error("unknown provider {name:?}{} (known: {})", hint(.suggestion), .known.join(", "))]
    UnknownProvider {
        /// What was asked for.
        name: String,
        /// The nearest that exists.
        suggestion: Option<String>,
        /// All that exist.
        known: Vec<String>,
    },
    /// The provider wants a key and none is set.
    #[error("{provider} needs a key: set {}", .variables.join(" or "))]
    MissingKey {
        /// The provider.
        provider: String,
        /// The variables that are looked at.
        variables: Vec<String>,
    },
    /// The configuration of a provider makes no sense.
    #[error("providers.{provider}.{field}: {problem}")]
    Misconfigured {
        /// The provider.
        provider: String,
        /// The field.
        field: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The HTTP client could not be made.
    #[error("no HTTP client can be made: {0}")]
    Client(String),
}

fn hint(suggestion: &Option<String>) -> String {
    suggestion.as_ref().map(|name| format!("; did you mean {name:?}?")).unwrap_or_default()
}

/// All providers of a program, known ones and configured ones.
///
/// ```
/// use std::collections::BTreeMap;
/// use duologue_models::{Providers, ProviderError};
///
/// let providers = Providers::new(BTreeMap::new())?;
/// let error = providers.model("antropic/claude-sonnet-4-5").err();
/// assert!(matches!(error, Some(ProviderError::UnknownProvider { suggestion: Some(name), .. })
///     if name == "anthropic"));
/// # Ok::<(), ProviderError>(())
/// ```
pub struct Providers {
    sites: BTreeMap<String, Site>,
    environment: Environment,
    remote: OnceLock<Result<Client, String>>,
    local: OnceLock<Result<Client, String>>,
}

type Environment = Box<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// A provider, with what is known and what is configured put together.
#[derive(Clone, Debug)]
struct Site {
    wire: Wire,
    base_url: Url,
    /// Whether it is where a known provider always is, so that a key must be needed.
    at_home: bool,
    key_vars: Vec<String>,
    headers: BTreeMap<String, String>,
    idle_timeout: Duration,
    prices: BTreeMap<String, duologue_core::Price>,
}

impl Providers {
    /// The known providers and those of a configuration, with keys from the environment.
    pub fn new(configs: BTreeMap<String, ProviderConfig>) -> Result<Self, ProviderError> {
        Self::with_environment(configs, |name| std::env::var(name).ok())
    }

    /// The same with another source of variables, for tests and for programs that keep keys
    /// elsewhere.
    pub fn with_environment(
        configs: BTreeMap<String, ProviderConfig>,
        environment: impl Fn(&str) -> Option<String> + Send + Sync + 'static,
    ) -> Result<Self, ProviderError> {
        let environment: Environment =
            Box::new(move |name| environment(name).filter(|value| !value.trim().is_empty()));
        let mut sites = BTreeMap::new();
        for known in &KNOWN {
            let config = configs.get(known.name).cloned().unwrap_or_default();
            sites.insert(
                known.name.to_owned(),
                Site::of(known.name, Some(known), config, &environment)?,
            );
        }
        for (name, config) in configs {
            if KNOWN.iter().all(|known| known.name != name) {
                let site = Site::of(&name, None, config, &environment)?;
                sites.insert(name, site);
            }
        }
        Ok(Self { sites, environment, remote: OnceLock::new(), local: OnceLock::new() })
    }

    /// The model of a name like `anthropic/claude-sonnet-4-5`.
    pub fn model(&self, name: &str) -> Result<Arc<dyn Model>, ProviderError> {
        let (provider, id) = match name.split_once('/') {
            Some((provider, id)) if !provider.is_empty() && !id.is_empty() => (provider, id),
            _ => {
                return Err(ProviderError::NotQualified {
                    name: name.to_owned(),
                    suggestion: known::guess(name).map(|provider| format!("{provider}/{name}")),
                });
            }
        };
        let site = self.site(provider)?;
        let entry = ModelEntry {
            name: name.into(),
            id: id.into(),
            price: site.prices.get(id).copied().or_else(|| known_price(id)),
            service: Arc::new(self.service(provider, site)?),
        };
        let made: Result<Arc<dyn Model>, ModelError> = match site.wire {
            Wire::OpenaiChat => {
                OpenAiChat::new(entry, dialect(&site.base_url)).map(|model| Arc::new(model) as _)
            }
            Wire::OpenaiResponses => genai_model(entry, Tongue::Responses),
            Wire::Anthropic => genai_model(entry, Tongue::Anthropic),
            Wire::Gemini => genai_model(entry, Tongue::Gemini),
            Wire::Ollama => genai_model(entry, Tongue::Ollama),
        };
        made.map_err(|error| ProviderError::Client(error.to_string()))
    }

    fn site(&self, provider: &str) -> Result<&Site, ProviderError> {
        self.sites.get(provider).ok_or_else(|| {
            let known: Vec<String> = self.sites.keys().cloned().collect();
            ProviderError::UnknownProvider {
                name: provider.to_owned(),
                suggestion: nearest(provider, &known),
                known,
            }
        })
    }

    /// Everything needed to talk to a provider, its key included.
    fn service(&self, provider: &str, site: &Site) -> Result<Service, ProviderError> {
        let key = site
            .key_vars
            .iter()
            .find_map(|name| (self.environment)(name))
            .map(|key| Key(key.trim().into()));
        if key.is_none() && site.needs_key() {
            return Err(ProviderError::MissingKey {
                provider: provider.to_owned(),
                variables: site.key_vars.clone(),
            });
        }
        let mut secrets: Vec<String> = Vec::new();
        let headers = site.headers(provider, &self.environment, &mut secrets)?;
        secrets.extend(key.iter().map(|key| key.0.to_string()));
        secrets.extend(site.base_url.password().map(str::to_owned));
        Ok(Service {
            provider: provider.to_owned(),
            base_url: site.base_url.clone(),
            key,
            headers,
            idle_timeout: site.idle_timeout,
            redactor: Redactor::new(secrets.iter().map(String::as_str)),
            client: self.client(&site.base_url)?,
        })
    }

    /// One pool for the world and one for this machine, which no proxy may get in the way of.
    fn client(&self, base_url: &Url) -> Result<Client, ProviderError> {
        let (cell, local) =
            if is_local(base_url) { (&self.local, true) } else { (&self.remote, false) };
        cell.get_or_init(|| build_client(local)).clone().map_err(ProviderError::Client)
    }
}

impl std::fmt::Debug for Providers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.sites.keys()).finish()
    }
}

fn genai_model(entry: ModelEntry, tongue: Tongue) -> Result<Arc<dyn Model>, ModelError> {
    GenaiModel::new(entry, tongue).map(|model| Arc::new(model) as _)
}

fn build_client(local: bool) -> Result<Client, String> {
    // Whoever comes first in the process decides; an error only says that somebody did.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = Client::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_nodelay(true)
        // Packed events wait for each other; and a redirect would carry the key elsewhere.
        .no_gzip()
        .redirect(redirect::Policy::none())
        .user_agent(concat!("duologue/", env!("CARGO_PKG_VERSION")));
    let builder = if local { builder.no_proxy() } else { builder };
    builder.build().map_err(|error| duologue_core::with_causes(&error))
}

fn is_local(url: &Url) -> bool {
    match url.host() {
        Some(url::Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

fn dialect(url: &Url) -> Dialect {
    match url.host_str() {
        Some(host) if host == "openai.com" || host.ends_with(".openai.com") => Dialect::OpenAi,
        _ => Dialect::Compatible,
    }
}

/// The nearest of some names, if one is near enough to be a slip of the hand.
fn nearest(name: &str, known: &[String]) -> Option<String> {
    known
        .iter()
        .map(|candidate| (strsim::jaro_winkler(name, candidate), candidate))
        .filter(|(likeness, _)| *likeness > 0.8)
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, candidate)| candidate.clone())
}

impl Site {
    fn of(
        name: &str,
        known: Option<&Known>,
        config: ProviderConfig,
        environment: &Environment,
    ) -> Result<Self, ProviderError> {
        let wrong = |field: &str, problem: String| ProviderError::Misconfigured {
            provider: name.to_owned(),
            field: field.to_owned(),
            problem,
        };
        let wire = config.wire.or(known.map(|known| known.wire)).unwrap_or(Wire::OpenaiChat);
        let moved = config.base_url.or_else(|| {
            let vars = known.map(|known| known.base_url_vars).unwrap_or_default();
            vars.iter().find_map(|name| environment(name))
        });
        let at_home = moved.is_none();
        let text = match (moved, known) {
            (Some(text), _) => text,
            (None, Some(known)) => known.base_url.to_owned(),
            (None, None) => {
                return Err(wrong(
                    "base_url",
                    "a new provider needs an address, such as https://host/v1".to_owned(),
                ));
            }
        };
        let mut base_url = base_url(&text, wire).map_err(|problem| wrong("base_url", problem))?;
        // Ollama's own variable may name a host alone.
        if name == "ollama" && !text.contains("://") && base_url.port().is_none() {
            let _ = base_url.set_port(Some(11434));
        }
        Ok(Self {
            wire,
            base_url,
            at_home,
            key_vars: match config.api_key_env {
                Some(name) => vec![name],
                None => known
                    .map(|known| known.key_vars.iter().map(|name| (*name).to_owned()).collect())
                    .unwrap_or_default(),
            },
            headers: config.headers,
            idle_timeout: config.idle_timeout_secs.map_or(IDLE_TIMEOUT, Duration::from_secs),
            prices: config.prices,
        })
    }

    /// A provider that was moved elsewhere may be any server, and many want no key.
    fn needs_key(&self) -> bool {
        self.at_home && !self.key_vars.is_empty()
    }

    fn headers(
        &self,
        provider: &str,
        environment: &Environment,
        secrets: &mut Vec<String>,
    ) -> Result<HeaderMap, ProviderError> {
        let mut headers = HeaderMap::new();
        for (name, template) in &self.headers {
            let wrong = |problem: String| ProviderError::Misconfigured {
                provider: provider.to_owned(),
                field: format!("headers.{name}"),
                problem,
            };
            let key = HeaderName::try_from(name.as_str())
                .map_err(|_| wrong("this is not a header's name".to_owned()))?;
            let text = expand(template, environment).map_err(wrong)?;
            let mut value = HeaderValue::try_from(text.as_str()).map_err(|_| {
                wrong("the value has characters that no header can carry".to_owned())
            })?;
            value.set_sensitive(true);
            // Only what came from a variable, or looks like it, is a secret; `x-team: web` is not.
            if text != *template {
                secrets.push(text);
            }
            headers.insert(key, value);
        }
        Ok(headers)
    }
}

/// Put environment variables where `${NAME}` stands.
fn expand(template: &str, environment: &Environment) -> Result<String, String> {
    let mut text = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("${") {
        let (name, tail) = after.split_once('}').ok_or_else(|| "a ${ has no }".to_owned())?;
        text.push_str(before);
        text.push_str(&environment(name).ok_or_else(|| format!("the variable {name} is not set"))?);
        rest = tail;
    }
    text.push_str(rest);
    Ok(text)
}

/// The address that paths are added to. People write it with and without the version, the slash
/// and the scheme, as the tools they know do.
fn base_url(text: &str, wire: Wire) -> Result<Url, String> {
    let text = text.trim();
    let with_scheme = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
    let mut url = Url::parse(&with_scheme)
        .map_err(|error| format!("{with_scheme:?} is not an address: {error}"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(format!("{with_scheme:?} is not an http or https address"));
    }
    // A server listens on all interfaces, but is reached at one.
    if url.host_str() == Some("0.0.0.0") {
        let _ = url.set_host(Some("127.0.0.1"));
    }
    let mut path = url.path().trim_end_matches('/').to_owned();
    if path.is_empty() {
        path.push_str(match wire {
            Wire::OpenaiChat | Wire::OpenaiResponses | Wire::Anthropic => "/v1",
            Wire::Gemini => "/v1beta",
            Wire::Ollama => "",
        });
    }
    url.set_path(&format!("{path}/"));
    Ok(url)
}
