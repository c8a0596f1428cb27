//! What `duo models` shows: which providers there are, whether their keys are set, and which
//! servers on this machine answer.

use std::time::Duration;

use futures::future::join_all;
use reqwest::{Method, header::AUTHORIZATION};
use serde_json::Value;

use super::{ProviderError, Providers, Site, Wire, errors, is_local, service::Service};

/// How long a server on this machine may take to say what it has.
const PROBE_TIMEOUT: Duration = Duration::from_millis(1500);

/// How much of a list of models is read.
const MAX_LIST_BYTES: usize = 4 << 20;

/// A provider, as far as it is known without asking it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderStatus {
    /// Its name, as model names begin with it.
    pub name: String,
    /// What it speaks.
    pub wire: Wire,
    /// Where it is, without any secret in it.
    pub base_url: String,
    /// Whether it is on this machine.
    pub local: bool,
    /// Whether its key is there.
    pub key: KeyStatus,
}

/// Whether a provider's key is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyStatus {
    /// It wants none.
    NotNeeded,
    /// It is in this variable.
    Set {
        /// The variable.
        variable: String,
    },
    /// It is in none of these variables.
    Missing {
        /// The variables that are looked at.
        variables: Vec<String>,
    },
}

/// What a server on this machine answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reached {
    /// The provider's name.
    pub provider: String,
    /// Where it was looked for.
    pub base_url: String,
    /// The models that it has, as `provider/model`, or why it did not answer.
    pub models: Result<Vec<String>, String>,
}

impl Providers {
    /// All providers, and whether their keys are set. Nobody is asked anything.
    pub fn available(&self) -> Vec<ProviderStatus> {
        self.sites
            .iter()
            .map(|(name, site)| ProviderStatus {
                name: name.clone(),
                wire: site.wire,
                base_url: shown(site),
                local: is_local(&site.base_url),
                key: self.key_status(site),
            })
            .collect()
    }

    fn key_status(&self, site: &Site) -> KeyStatus {
        let set = site.key_vars.iter().find(|name| (self.environment)(name).is_some());
        match set {
            Some(variable) => KeyStatus::Set { variable: variable.clone() },
            None if site.needs_key() => KeyStatus::Missing { variables: site.key_vars.clone() },
            None => KeyStatus::NotNeeded,
        }
    }

    /// Ask every server on this machine what models it has. Short, whatever they do.
    pub async fn reachable(&self) -> Vec<Reached> {
        let local = self.sites.iter().filter(|(_, site)| is_local(&site.base_url));
        join_all(local.map(|(name, site)| async move {
            Reached {
                provider: name.clone(),
                base_url: shown(site),
                models: self.probe(name, site).await,
            }
        }))
        .await
    }

    /// Ask one provider what models it has, wherever it is.
    pub async fn models_of(&self, provider: &str) -> Result<Vec<String>, ProviderError> {
        let site = self.site(provider)?;
        let service = self.service(provider, site)?;
        list(&service, site.wire, super::CONNECT_TIMEOUT * 2).await.map_err(ProviderError::Client)
    }

    async fn probe(&self, name: &str, site: &Site) -> Result<Vec<String>, String> {
        let service = self.service(name, site).map_err(|error| error.to_string())?;
        list(&service, site.wire, PROBE_TIMEOUT).await
    }
}

fn shown(site: &Site) -> String {
    super::Redactor::default().clean(site.base_url.as_str())
}

async fn list(service: &Service, wire: Wire, timeout: Duration) -> Result<Vec<String>, String> {
    match tokio::time::timeout(timeout, fetch(service, wire)).await {
        Ok(result) => result,
        Err(_) => Err(format!("no answer within {timeout:?}")),
    }
}

async fn fetch(service: &Service, wire: Wire) -> Result<Vec<String>, String> {
    let path = match wire {
        Wire::Ollama => "api/tags",
        _ => "models",
    };
    let url = service.url(path).map_err(|error| error.to_string())?;
    let mut get = service.client.request(Method::GET, url).headers(service.headers.clone());
    if let Some(key) = &service.key {
        get = match wire {
            Wire::Anthropic => {
                get.header("x-api-key", &*key.0).header("anthropic-version", "2023-06-01")
            }
            Wire::Gemini => get.header("x-goog-api-key", &*key.0),
            _ => get.header(AUTHORIZATION, format!("Bearer {}", key.0)),
        };
    }
    let lost = |error: reqwest::Error| {
        errors::from_transport(&service.provider, error, &service.redactor).to_string()
    };
    let mut response = get.send().await.map_err(lost)?;
    let mut body = Vec::new();
    while let Some(more) = response.chunk().await.map_err(lost)? {
        body.extend_from_slice(&more);
        if body.len() > MAX_LIST_BYTES {
            return Err("the list of models is too long".to_owned());
        }
    }
    if !response.status().is_success() {
        let text = String::from_utf8_lossy(&body);
        let error = errors::from_status(
            &service.provider,
            response.status(),
            response.headers(),
            &text,
            &service.redactor,
        );
        return Err(error.to_string());
    }
    let body: Value = serde_json::from_slice(&body)
        .map_err(|error| format!("the list of models is not JSON: {error}"))?;
    let mut names: Vec<String> = ["data", "models"]
        .iter()
        .find_map(|key| body.get(key)?.as_array())
        .into_iter()
        .flatten()
        .filter_map(|model| model.get("id").or_else(|| model.get("name"))?.as_str())
        .map(|id| {
            let id = id.strip_prefix("models/").unwrap_or(id);
            format!("{}/{id}", service.provider)
        })
        .collect();
    names.sort_unstable();
    Ok(names)
}
