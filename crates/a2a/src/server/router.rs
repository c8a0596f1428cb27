//! Where requests go: who calls is asked first, then the path decides.

use std::{sync::Arc, time::Instant};

use a2a::{A2AError, AgentCard};
use axum::{
    Router,
    body::{Body, Bytes},
    extract::{DefaultBodyLimit, Request, State},
    http::{
        HeaderMap, HeaderValue, Method, StatusCode, Uri,
        header::{
            CACHE_CONTROL, CONTENT_TYPE, ETAG, HOST, IF_NONE_MATCH, LAST_MODIFIED, RETRY_AFTER,
            VARY, WWW_AUTHENTICATE,
        },
    },
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::{any, get, post},
};
use futures::StreamExt;
use ring::digest::{SHA256, digest};
use serde_json::json;

use super::{call, grpc, jsonrpc, legacy_rest, rate::Rate, rest};
use crate::{Access, Caller, service::Service, v03};

/// How long a card may be kept by who fetched it.
const CARD_AGE: &str = "public, max-age=300";

/// All that a handler needs.
#[derive(Clone)]
struct Shared {
    service: Service,
    cards: Arc<Cards>,
    gate: Arc<Gate>,
}

/// The card as it is sent.
struct Cards {
    /// For clients of today only.
    new: Sent,
    /// For those of 0.3 too.
    both: Sent,
    /// Since when it is so.
    since: HeaderValue,
}

struct Sent {
    body: Bytes,
    etag: HeaderValue,
}

/// What every request passes first.
pub(super) struct Gate {
    access: Access,
    rate: Option<Rate>,
    /// The names by which a server without access rules may be called. A page of another site whose
    /// name was bent to this machine calls it by its own.
    hosts: Option<Vec<String>>,
}

impl Gate {
    pub(super) fn new(access: Access, service: &Service, url: &str, is_private: bool) -> Self {
        let hosts = (access.is_open() && is_private).then(|| {
            let own = url::Url::parse(url).ok().and_then(|url| url.host_str().map(str::to_owned));
            let local = ["localhost", "127.0.0.1", "[::1]"].map(str::to_owned);
            local.into_iter().chain(own).collect()
        });
        Self { access, rate: service.limits().rate.map(Rate::new), hosts }
    }

    /// Who calls, or the answer to somebody who may not.
    fn admit(&self, request: &Request) -> Result<Caller, Box<Response>> {
        if !self.is_known_host(request) {
            return Err(Box::new(plain(
                StatusCode::FORBIDDEN,
                "PERMISSION_DENIED",
                "This host name is not served here",
            )));
        }
        let caller = match self.access.caller(request.headers()) {
            Ok(caller) => caller,
            Err(why) => return Err(Box::new(refused(why, &self.access))),
        };
        if self.rate.as_ref().is_some_and(|rate| !rate.allows(&caller, Instant::now())) {
            let mut response =
                plain(StatusCode::TOO_MANY_REQUESTS, "RESOURCE_EXHAUSTED", "Too many requests");
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
            return Err(Box::new(response));
        }
        Ok(caller)
    }

    fn is_known_host(&self, request: &Request) -> bool {
        let Some(hosts) = &self.hosts else { return true };
        let header = request.headers().get(HOST).and_then(|host| host.to_str().ok());
        // Requests of HTTP/2 name their host in the address.
        let host = header.or_else(|| request.uri().authority().map(|a| a.as_str()));
        let Some(host) = host else { return false };
        let name = match host.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
            _ => host,
        };
        hosts.iter().any(|known| known.eq_ignore_ascii_case(name))
    }
}

pub(super) fn router(service: Service, gate: Gate) -> Router {
    let cards = Arc::new(Cards::new(service.card()));
    let body_limit = service.limits().body;
    let grpc = grpc::service(service.clone(), body_limit);
    let gate = Arc::new(gate);
    let shared = Shared { service, cards, gate: Arc::clone(&gate) };
    let called = Router::new()
        .route("/extendedAgentCard", get(rest_call))
        .route("/message:send", any(rest_call))
        .route("/message:stream", any(rest_call))
        .route("/tasks", any(rest_call))
        .route("/tasks/{*rest}", any(rest_call))
        .route("/v1/{*rest}", any(rest_call))
        .route_service("/lf.a2a.v1.A2AService/{method}", grpc)
        .fallback(unknown)
        .layer(middleware::from_fn_with_state(gate, ask_who))
        .layer(DefaultBodyLimit::max(body_limit))
        .with_state(shared.clone());
    Router::new()
        // The way of nearly all requests: it asks by itself who calls, which costs less.
        .route("/", post(rpc))
        .route("/.well-known/agent-card.json", get(card))
        .route("/.well-known/agent.json", get(card))
        .with_state(shared)
        .merge(called)
}

/// Who calls must be known before anything else happens.
async fn ask_who(State(gate): State<Arc<Gate>>, mut request: Request, next: Next) -> Response {
    match gate.admit(&request) {
        Ok(caller) => {
            request.extensions_mut().insert(caller);
            next.run(request).await
        }
        Err(response) => *response,
    }
}

/// An error that is not of the protocol's own kinds.
fn plain(status: StatusCode, name: &str, message: &str) -> Response {
    let body = json!({ "error": {
        "code": status.as_u16(), "status": name, "message": message, "details": [],
    }});
    (status, [(CONTENT_TYPE, "application/json")], body.to_string()).into_response()
}

fn refused(why: &str, access: &Access) -> Response {
    let mut response = plain(StatusCode::UNAUTHORIZED, "UNAUTHENTICATED", why);
    if let Ok(challenge) = HeaderValue::from_str(&access.challenge()) {
        response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
    }
    response
}

async fn rpc(State(shared): State<Shared>, request: Request) -> Response {
    let caller = match shared.gate.admit(&request) {
        Ok(caller) => caller,
        Err(response) => return *response,
    };
    let (head, body) = request.into_parts();
    match read_body(body, shared.service.limits().body).await {
        Ok(body) => jsonrpc::answer(&shared.service, caller, &head.headers, &head.uri, &body).await,
        Err(status) => {
            let error = A2AError::invalid_request(too_large(&shared.service));
            let mut response = jsonrpc::failed(&a2a::JsonRpcId::Null, &error);
            *response.status_mut() = status;
            response
        }
    }
}

/// A whole body of at most so many bytes. One that came in one piece is not copied.
async fn read_body(body: Body, most: usize) -> Result<Bytes, StatusCode> {
    let mut pieces = body.into_data_stream();
    let mut first = Bytes::new();
    let mut all = Vec::new();
    while let Some(piece) = pieces.next().await {
        let piece = piece.map_err(|_| StatusCode::BAD_REQUEST)?;
        if first.len() + all.len() + piece.len() > most {
            return Err(StatusCode::PAYLOAD_TOO_LARGE);
        }
        if first.is_empty() && all.is_empty() {
            first = piece;
            continue;
        }
        all.extend_from_slice(&std::mem::take(&mut first));
        all.extend_from_slice(&piece);
    }
    Ok(if all.is_empty() { first } else { all.into() })
}

async fn rest_call(
    State(shared): State<Shared>,
    axum::Extension(caller): axum::Extension<Caller>,
    method: Method,
    headers: HeaderMap,
    uri: Uri,
    body: Result<Bytes, axum::extract::rejection::BytesRejection>,
) -> Response {
    let body = match body {
        Ok(body) => body,
        Err(rejection) => {
            let error = A2AError::invalid_request(too_large(&shared.service));
            return rest::failed_as(&error, rejection.status());
        }
    };
    let is_old_path = uri.path().trim_start_matches('/').split('/').next() == Some(rest::OLD);
    match (call::version(&headers, &uri), is_old_path) {
        (Ok(call::Version::V1_0), false) | (Ok(call::Version::V0_3), true) => {}
        (Ok(call::Version::V1_0), true) => return rest::failed(&legacy_rest::wrong_version()),
        (Ok(call::Version::V0_3), false) => {
            let message = "This path speaks 1.0; send the header A2A-Version: 1.0 with the request. \
                           0.3 is spoken on the same paths below /v1, and over JSON-RPC";
            let error = A2AError::new(a2a::error_code::VERSION_NOT_SUPPORTED, message);
            return rest::failed(&error);
        }
        (Err(error), _) => return rest::failed(&error),
    }
    let call = call::call(&headers, caller);
    rest::answer(&shared.service, &call, &method, &headers, &uri, &body).await
}

fn too_large(service: &Service) -> String {
    format!(
        "The request is too large or broke off; {} bytes are read at most",
        service.limits().body
    )
}

async fn unknown(uri: Uri) -> Response {
    let message = format!("There is nothing at {}", uri.path());
    plain(StatusCode::NOT_FOUND, "NOT_FOUND", &message)
}

async fn card(State(shared): State<Shared>, headers: HeaderMap, uri: Uri) -> Response {
    let is_new = matches!(call::version(&headers, &uri), Ok(call::Version::V1_0));
    let sent = if is_new { &shared.cards.new } else { &shared.cards.both };
    let is_known = headers.get(IF_NONE_MATCH).is_some_and(|etag| *etag == sent.etag);
    let common = [
        (CACHE_CONTROL, HeaderValue::from_static(CARD_AGE)),
        (ETAG, sent.etag.clone()),
        (LAST_MODIFIED, shared.cards.since.clone()),
        (VARY, HeaderValue::from_static("a2a-version")),
    ];
    if is_known {
        return (StatusCode::NOT_MODIFIED, common).into_response();
    }
    let kind = [(CONTENT_TYPE, "application/json")];
    (common, kind, Body::from(sent.body.clone())).into_response()
}

impl Cards {
    fn new(card: &AgentCard) -> Self {
        let new = serde_json::to_vec(card).unwrap_or_default();
        let both = serde_json::to_vec(&v03::card(card)).unwrap_or_default();
        let since = chrono::Utc::now().format("%a, %d %b %Y %H:%M:%S GMT").to_string();
        let since = HeaderValue::from_str(&since);
        Self {
            new: Sent::new(new),
            both: Sent::new(both),
            since: since.unwrap_or_else(|_| HeaderValue::from_static("")),
        }
    }
}

impl Sent {
    fn new(body: Vec<u8>) -> Self {
        let hash = digest(&SHA256, &body);
        let text: String =
            hash.as_ref().iter().take(12).map(|byte| format!("{byte:02x}")).collect();
        let etag = HeaderValue::from_str(&format!("\"{text}\""));
        let etag = etag.unwrap_or_else(|_| HeaderValue::from_static("\"card\""));
        Self { body: body.into(), etag }
    }
}
