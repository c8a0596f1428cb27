//! Calling other agents: any server of the protocol as an agent of ours.
//!
//! - `card` fetches an agent's card and chooses how to talk to it.
//! - `old` and `old_rest` talk to servers of 0.3; the bindings of today come from the protocol's own
//!   project.
//! - `follow` sends, waits and finds a task again when a connection breaks.
//! - `agent` is the behaviour that makes a remote agent one of ours.

mod agent;
mod card;
mod follow;
mod old;
mod old_rest;
mod sse;

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use a2a::{
    A2AError, AgentCard, AgentInterface, SVC_PARAM_VERSION, SecurityScheme,
    TRANSPORT_PROTOCOL_GRPC, TRANSPORT_PROTOCOL_HTTP_JSON, TRANSPORT_PROTOCOL_JSONRPC,
};
use a2a_client::{ServiceParams, Transport, jsonrpc::JsonRpcTransport, rest::RestTransport};
use duologue_core::{Agent, with_causes};
use tonic::transport::{Channel, ClientTlsConfig, Endpoint};
use url::Url;

pub(crate) use agent::{
    ANSWERS, ASK_CREDENTIALS, Asks, Called, Origin, Questions, agent_of, ask_credentials, call_off,
};
pub(crate) use card::parse_address;
pub(crate) use follow::{FIRST_PATIENCE, answer_of};

use crate::{CardError, v03, verify_card};

/// How long a connection may take to come about.
const CONNECT: Duration = Duration::from_secs(10);

/// Secrets for agents that ask for some, by the name of the scheme that their card gives it. `*` is
/// for every scheme.
#[derive(Clone, Default)]
pub struct Credentials(BTreeMap<String, String>);

impl Credentials {
    /// None.
    pub fn none() -> Self {
        Self::default()
    }

    /// The same with one more secret.
    #[must_use]
    pub fn with(mut self, scheme: impl Into<String>, secret: impl Into<String>) -> Self {
        self.0.insert(scheme.into(), secret.into());
        self
    }

    /// The headers that a card's schemes want.
    fn headers(&self, card: &AgentCard) -> Vec<(String, String)> {
        let mut headers = Vec::new();
        for (name, scheme) in card.security_schemes.iter().flatten() {
            let Some(secret) = self.0.get(name).or_else(|| self.0.get("*")) else { continue };
            match scheme {
                SecurityScheme::ApiKey(key) if key.location == "header" => {
                    headers.push((key.name.clone(), secret.clone()));
                }
                // Other places of a key would end up in logs on the way.
                SecurityScheme::ApiKey(_) | SecurityScheme::MutualTls(_) => {}
                SecurityScheme::HttpAuth(auth) => {
                    headers.push(("authorization".into(), format!("{} {secret}", auth.scheme)));
                }
                SecurityScheme::OAuth2(_) | SecurityScheme::OpenIdConnect(_) => {
                    headers.push(("authorization".into(), format!("Bearer {secret}")));
                }
            }
        }
        headers
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// Why another agent cannot be talked to.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// Its address is none.
    #[error("{0:?} is not the address of an agent: {1}")]
    Address(String, String),
    /// Its card cannot be had.
    #[error("the card at {url} cannot be read: {why}")]
    Card {
        /// Where it was looked for.
        url: String,
        /// Why.
        why: String,
    },
    /// It speaks nothing that we do.
    #[error("{0} offers no way to talk that is known here")]
    NoCommonWay(String),
    /// Its card is not what a pinned key signed.
    #[error("the card at {url} is not trusted: {source}")]
    Untrusted {
        /// Where the card is.
        url: String,
        /// What is wrong with its signature.
        source: CardError,
    },
    /// It said no, or nothing.
    #[error("{0}")]
    Protocol(#[from] A2AError),
}

/// Another agent, reached over the protocol. Clones are the same.
#[derive(Clone)]
pub struct Remote(Arc<Inner>);

struct Inner {
    card: AgentCard,
    face: AgentInterface,
    transport: Box<dyn Transport>,
    params: ServiceParams,
}

impl Remote {
    /// Find an agent by its address: fetch its card and choose a way to talk that both know. The
    /// bindings of 1.0 come before those of 0.3.
    pub async fn connect(address: &str, credentials: &Credentials) -> Result<Self, RemoteError> {
        Self::find(address, credentials, None).await
    }

    /// The same, but only if one of these keys (a JWKS) signed its card.
    pub async fn connect_pinned(
        address: &str,
        credentials: &Credentials,
        pinned: &str,
    ) -> Result<Self, RemoteError> {
        Self::find(address, credentials, Some(pinned)).await
    }

    async fn find(
        address: &str,
        credentials: &Credentials,
        pinned: Option<&str>,
    ) -> Result<Self, RemoteError> {
        crate::install_tls();
        let base = card::parse_address(address)?;
        let http = reqwest::Client::builder()
            .connect_timeout(CONNECT)
            .build()
            .map_err(|error| RemoteError::Address(address.to_owned(), error.to_string()))?;
        let card = card::fetch(&http, &base).await?;
        if let Some(pinned) = pinned {
            verify_card(&card, pinned)
                .map_err(|source| RemoteError::Untrusted { url: base.to_string(), source })?;
        }
        Self::with_card(card, &base, http, credentials).await
    }

    async fn with_card(
        card: AgentCard,
        base: &Url,
        http: reqwest::Client,
        credentials: &Credentials,
    ) -> Result<Self, RemoteError> {
        let faces = card::by_preference(&card);
        let mut last = RemoteError::NoCommonWay(card.name.clone());
        for face in faces {
            match transport(&face, &http).await {
                Ok(transport) => {
                    let mut params = ServiceParams::new();
                    params.insert(
                        SVC_PARAM_VERSION.to_owned(),
                        vec![card::spoken_version(&face).to_owned()],
                    );
                    // A card may name any address; secrets go only to where the card came from.
                    if card::is_same_host(&face.url, base) {
                        for (name, value) in credentials.headers(&card) {
                            params.insert(name, vec![value]);
                        }
                    } else if !credentials.0.is_empty() {
                        tracing::warn!(url = face.url, "no credentials are sent to another host");
                    }
                    return Ok(Self(Arc::new(Inner { card, face, transport, params })));
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// Its card.
    pub fn card(&self) -> &AgentCard {
        &self.0.card
    }

    /// How it is talked to.
    pub fn interface(&self) -> &AgentInterface {
        &self.0.face
    }

    /// The operations of the protocol, for those who need more than an agent.
    pub fn transport(&self) -> &dyn Transport {
        &*self.0.transport
    }

    /// What goes with every request.
    pub fn params(&self) -> &ServiceParams {
        &self.0.params
    }

    /// As an agent of ours, under this name: it can be talked to, run under another agent and
    /// supervised like any other. What it asks, its user is asked; cancelling it cancels its task.
    pub fn agent(&self, name: impl Into<Arc<str>>) -> Agent {
        agent::agent_of(Called::Known(self.clone()), name.into(), Questions::Asked)
    }
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remote")
            .field("name", &self.0.card.name)
            .field("url", &self.0.face.url)
            .field("binding", &self.0.face.protocol_binding)
            .finish_non_exhaustive()
    }
}

async fn transport(
    face: &AgentInterface,
    http: &reqwest::Client,
) -> Result<Box<dyn Transport>, RemoteError> {
    let url = face.url.clone();
    if card::spoken_version(face) == v03::VERSION {
        return Ok(match face.protocol_binding.as_str() {
            TRANSPORT_PROTOCOL_HTTP_JSON => {
                Box::new(old_rest::OldRestTransport::new(http.clone(), &url))
            }
            _ => Box::new(old::OldTransport::new(http.clone(), url)),
        });
    }
    Ok(match face.protocol_binding.as_str() {
        TRANSPORT_PROTOCOL_JSONRPC => Box::new(JsonRpcTransport::new(http.clone(), url)),
        TRANSPORT_PROTOCOL_HTTP_JSON => Box::new(RestTransport::new(http.clone(), url)),
        TRANSPORT_PROTOCOL_GRPC => {
            let url = if url.contains("://") { url } else { format!("http://{url}") };
            Box::new(a2a_grpc::GrpcTransport::from_channel(grpc_channel(url).await?))
        }
        other => return Err(RemoteError::NoCommonWay(other.to_owned())),
    })
}

/// A connection for gRPC. One with TLS trusts the certificates that this machine trusts.
async fn grpc_channel(url: String) -> Result<Channel, A2AError> {
    let wrong = |error: tonic::transport::Error| {
        A2AError::internal(format!("no connection for gRPC: {}", with_causes(&error)))
    };
    let is_secure = url.starts_with("https://");
    let mut endpoint =
        Endpoint::from_shared(url).map_err(wrong)?.connect_timeout(CONNECT).tcp_nodelay(true);
    if is_secure {
        let tls = ClientTlsConfig::new().with_native_roots();
        endpoint = endpoint.tls_config(tls).map_err(wrong)?;
    }
    endpoint.connect().await.map_err(wrong)
}
