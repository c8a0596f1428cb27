//! Other agents' cards, of both versions.

use std::time::Duration;

use a2a::{
    AgentCapabilities, AgentCard, AgentInterface, ApiKeySecurityScheme, HttpAuthSecurityScheme,
    SecurityScheme, TRANSPORT_PROTOCOL_GRPC, TRANSPORT_PROTOCOL_HTTP_JSON,
    TRANSPORT_PROTOCOL_JSONRPC,
};
use duologue_core::with_causes;
use futures::StreamExt;
use serde_json::Value;
use url::{Host, Url};

use super::RemoteError;
use crate::v03;

/// The most bytes of a card.
const LARGEST: usize = 1024 * 1024;
/// How long fetching one may take.
const PATIENCE: Duration = Duration::from_secs(20);
/// Where a card may be, today's place first.
const PLACES: [&str; 2] = ["/.well-known/agent-card.json", "/.well-known/agent.json"];

/// An address as a person writes it: a URL, or a host and a port.
pub(crate) fn parse_address(address: &str) -> Result<Url, RemoteError> {
    let text = address.trim();
    let whole = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
    let wrong = |why: String| RemoteError::Address(address.to_owned(), why);
    let url = Url::parse(&whole).map_err(|error| wrong(error.to_string()))?;
    match url.scheme() {
        "http" | "https" if url.host().is_some() => Ok(url),
        _ => Err(wrong("it must begin with https:// or http:// and name a host".to_owned())),
    }
}

/// Fetch the card of the agent at an address.
pub(super) async fn fetch(http: &reqwest::Client, base: &Url) -> Result<AgentCard, RemoteError> {
    let places: Vec<String> = if base.path().ends_with(".json") {
        vec![base.to_string()]
    } else {
        let base = base.as_str().trim_end_matches('/');
        PLACES.iter().map(|place| format!("{base}{place}")).collect()
    };
    let mut wrong = None;
    for url in places {
        match tokio::time::timeout(PATIENCE, fetch_one(http, &url)).await {
            Ok(Ok(card)) => return Ok(card),
            // What went wrong at today's place says more.
            Ok(Err(why)) => drop(wrong.get_or_insert(RemoteError::Card { url, why })),
            Err(_) => {
                let why = "it takes too long".to_owned();
                wrong.get_or_insert(RemoteError::Card { url, why });
            }
        }
    }
    Err(wrong.unwrap_or_else(|| RemoteError::NoCommonWay(base.to_string())))
}

async fn fetch_one(http: &reqwest::Client, url: &str) -> Result<AgentCard, String> {
    let response = http.get(url).send().await.map_err(|error| with_causes(&error.without_url()))?;
    if !response.status().is_success() {
        return Err(format!("the answer is {}", response.status()));
    }
    let mut body = Vec::new();
    let mut pieces = response.bytes_stream();
    while let Some(piece) = pieces.next().await {
        body.extend_from_slice(&piece.map_err(|error| with_causes(&error.without_url()))?);
        if body.len() > LARGEST {
            return Err(format!("it is larger than {LARGEST} bytes"));
        }
    }
    let value: Value = serde_json::from_slice(&body).map_err(|error| error.to_string())?;
    read(value)
}

/// A card of either version.
pub(super) fn read(value: Value) -> Result<AgentCard, String> {
    if value.get("supportedInterfaces").is_some() || value.get("supported_interfaces").is_some() {
        return crate::wire::request_from(Some(value)).map_err(|error| error.message);
    }
    read_old(&value).ok_or_else(|| "it has neither supportedInterfaces nor a url".to_owned())
}

fn read_old(value: &Value) -> Option<AgentCard> {
    let text =
        |field: &str| value.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    let url = value.get("url").and_then(Value::as_str)?;
    let face = |url: &str, binding: &str| {
        let mut face = AgentInterface::new(url, binding);
        v03::VERSION.clone_into(&mut face.protocol_version);
        face
    };
    let preferred = match text("preferredTransport") {
        none if none.is_empty() => TRANSPORT_PROTOCOL_JSONRPC.to_owned(),
        some => some,
    };
    let mut faces = vec![face(url, &preferred)];
    let more = value.get("additionalInterfaces").and_then(Value::as_array);
    for other in more.into_iter().flatten() {
        let at = |field: &str| other.get(field).and_then(Value::as_str);
        if let (Some(url), Some(binding)) = (at("url"), at("transport")) {
            faces.push(face(url, binding));
        }
    }
    let capabilities = value.get("capabilities");
    let can = |name: &str| capabilities.and_then(|all| all.get(name)).and_then(Value::as_bool);
    let list = |field: &str| {
        let items = value.get(field).and_then(Value::as_array).into_iter().flatten();
        items.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let skills = value.get("skills").cloned().unwrap_or_else(|| Value::Array(Vec::new()));
    let schemes = value.get("securitySchemes").and_then(Value::as_object);
    let schemes = schemes.map(|all| {
        let known =
            all.iter().filter_map(|(name, scheme)| Some((name.clone(), old_scheme(scheme)?)));
        known.collect()
    });
    Some(AgentCard {
        name: text("name"),
        description: text("description"),
        version: text("version"),
        supported_interfaces: faces,
        capabilities: AgentCapabilities {
            streaming: can("streaming"),
            push_notifications: can("pushNotifications"),
            extensions: None,
            extended_agent_card: None,
        },
        default_input_modes: list("defaultInputModes"),
        default_output_modes: list("defaultOutputModes"),
        skills: serde_json::from_value(skills).unwrap_or_default(),
        provider: None,
        documentation_url: None,
        icon_url: None,
        security_schemes: schemes,
        security_requirements: None,
        signatures: None,
    })
}

fn old_scheme(scheme: &Value) -> Option<SecurityScheme> {
    let text =
        |field: &str| scheme.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    match text("type").as_str() {
        "apiKey" => Some(SecurityScheme::ApiKey(ApiKeySecurityScheme {
            location: text("in"),
            name: text("name"),
            description: None,
        })),
        // The others are sent as bearer tokens too.
        "http" | "oauth2" | "openIdConnect" => {
            let scheme = match text("scheme") {
                none if none.is_empty() => "Bearer".to_owned(),
                some => some,
            };
            Some(SecurityScheme::HttpAuth(HttpAuthSecurityScheme {
                scheme,
                description: None,
                bearer_format: None,
            }))
        }
        _ => None,
    }
}

/// The version that an interface is spoken to in.
pub(super) fn spoken_version(face: &AgentInterface) -> &'static str {
    if face.protocol_version.starts_with("1.") || face.protocol_version == "1" {
        a2a::VERSION
    } else {
        v03::VERSION
    }
}

/// The interfaces that can be talked to, the best first.
pub(super) fn by_preference(card: &AgentCard) -> Vec<AgentInterface> {
    let rank = |face: &AgentInterface| match (spoken_version(face), face.protocol_binding.as_str())
    {
        (a2a::VERSION, TRANSPORT_PROTOCOL_JSONRPC) => Some(0),
        (a2a::VERSION, TRANSPORT_PROTOCOL_HTTP_JSON) => Some(1),
        (a2a::VERSION, TRANSPORT_PROTOCOL_GRPC) => Some(2),
        (v03::VERSION, TRANSPORT_PROTOCOL_JSONRPC) => Some(3),
        (v03::VERSION, TRANSPORT_PROTOCOL_HTTP_JSON) => Some(4),
        _ => None,
    };
    let mut faces: Vec<(i32, AgentInterface)> = card
        .supported_interfaces
        .iter()
        .filter_map(|face| Some((rank(face)?, face.clone())))
        .collect();
    faces.sort_by_key(|(rank, _)| *rank);
    faces.into_iter().map(|(_, face)| face).collect()
}

/// Whether an interface is on the host that the card came from. The names of this machine are one.
pub(super) fn is_same_host(face: &str, base: &Url) -> bool {
    let whole = if face.contains("://") { face.to_owned() } else { format!("http://{face}") };
    let Ok(url) = Url::parse(&whole) else { return false };
    let is_local = |url: &Url| match url.host() {
        Some(Host::Ipv4(ip)) => ip.is_loopback() || ip.is_unspecified(),
        Some(Host::Ipv6(ip)) => ip.is_loopback() || ip.is_unspecified(),
        Some(Host::Domain(name)) => name == "localhost",
        None => false,
    };
    url.host() == base.host() || (is_local(&url) && is_local(base))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_card_of_0_3_is_read_as_one_of_today() {
        let card = read(json!({
            "name": "Old", "description": "d", "version": "1", "protocolVersion": "0.3.0",
            "url": "http://localhost:9/a", "preferredTransport": "JSONRPC",
            "additionalInterfaces": [{"url": "http://localhost:9/rest", "transport": "HTTP+JSON"}],
            "capabilities": {"streaming": true}, "skills": [],
            "securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "X-Key"}},
        }))
        .unwrap();
        let faces = by_preference(&card);
        // JSON-RPC is what agents of then speak best.
        assert_eq!(faces.len(), 2);
        assert_eq!(faces[1].url, "http://localhost:9/rest");
        assert_eq!(
            (faces[0].url.as_str(), spoken_version(&faces[0])),
            ("http://localhost:9/a", "0.3")
        );
        let keys = super::super::Credentials::none().with("key", "s3cret");
        assert_eq!(keys.headers(&card), [("X-Key".to_owned(), "s3cret".to_owned())]);
        assert!(!format!("{keys:?}").contains("s3cret"));
        assert!(read(json!({"name": "neither"})).is_err());
    }

    #[test]
    fn an_address_is_a_url_or_a_host_and_a_port() {
        assert_eq!(parse_address("localhost:8080").unwrap().as_str(), "http://localhost:8080/");
        assert!(parse_address("https://agents.example/a").is_ok());
        for wrong in ["", "ftp://x/", "http://"] {
            assert!(parse_address(wrong).is_err(), "{wrong}");
        }
        let base = Url::parse("http://localhost:1/").unwrap();
        assert!(is_same_host("http://127.0.0.1:2/", &base));
        assert!(!is_same_host("http://evil.example/", &base));
    }
}
