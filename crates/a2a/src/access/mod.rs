//! Who may call, and who a caller is. Everybody sees only their own tasks.

mod jws;

use std::{
    borrow::Borrow,
    fmt,
    path::Path,
    sync::{Arc, LazyLock},
};

use a2a::{ApiKeySecurityScheme, HttpAuthSecurityScheme, SecurityScheme};
use axum::http::{HeaderMap, HeaderName, header::AUTHORIZATION};
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};

pub(crate) use jws::KeySet;

/// The header of an API key.
pub(crate) const API_KEY_HEADER: HeaderName = HeaderName::from_static("x-api-key");

/// Who calls. Tasks belong to the caller who began them.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Caller(Arc<str>);

/// The name of somebody about whom nothing is known.
static ANONYMOUS: LazyLock<Caller> = LazyLock::new(|| Caller::named("anonymous"));

impl Caller {
    /// Somebody about whom nothing is known.
    pub fn anonymous() -> Self {
        ANONYMOUS.clone()
    }

    /// Whether nothing is known about them.
    pub fn is_anonymous(&self) -> bool {
        *self == *ANONYMOUS
    }

    /// Somebody by their name, for who calls from within.
    pub fn named(name: &str) -> Self {
        Self(name.into())
    }

    /// The caller's name, as journals have it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

// Hashed and compared as the name that it is.
impl Borrow<str> for Caller {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Who may call.
#[derive(Clone, Default)]
pub struct Access {
    keys: Vec<(Arc<str>, [u8; 32])>,
    tokens: Option<Arc<Tokens>>,
}

struct Tokens {
    keys: KeySet,
    issuer: Option<String>,
    audience: Option<String>,
}

/// Why the rules of access cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct AccessError(String);

impl Access {
    /// Everybody may call, and all are the same caller.
    pub fn open() -> Self {
        Self::default()
    }

    /// Whoever has this key may call, under this name.
    #[must_use]
    pub fn with_key(mut self, name: &str, key: &str) -> Self {
        self.keys.push((name.into(), hash(key)));
        self
    }

    /// Whoever has a JSON Web Token that is signed with one of these keys may call. The issuer and
    /// the audience are checked where they are given.
    pub fn with_tokens(
        mut self,
        keys: &str,
        issuer: Option<String>,
        audience: Option<String>,
    ) -> Result<Self, AccessError> {
        let keys = KeySet::parse(keys).map_err(AccessError)?;
        self.tokens = Some(Arc::new(Tokens { keys, issuer, audience }));
        Ok(self)
    }

    /// The same with the keys of a JWKS file.
    pub fn with_token_file(
        self,
        file: &Path,
        issuer: Option<String>,
        audience: Option<String>,
    ) -> Result<Self, AccessError> {
        let text = std::fs::read_to_string(file)
            .map_err(|error| AccessError(format!("{}: {error}", file.display())))?;
        self.with_tokens(&text, issuer, audience)
            .map_err(|AccessError(why)| AccessError(format!("{}: {why}", file.display())))
    }

    /// Whether everybody may call.
    pub fn is_open(&self) -> bool {
        self.keys.is_empty() && self.tokens.is_none()
    }

    /// Who calls with these headers. The error says what is missing or wrong.
    pub(crate) fn caller(&self, headers: &HeaderMap) -> Result<Caller, &'static str> {
        if self.is_open() {
            return Ok(Caller::anonymous());
        }
        if let Some(key) = headers.get(&API_KEY_HEADER) {
            let found = hash_bytes(key.as_bytes());
            // All are compared, so that the time does not tell which was nearly right.
            let mut known = None;
            for (name, wanted) in &self.keys {
                if same(wanted, &found) {
                    known = Some(name);
                }
            }
            return match known {
                Some(name) => Ok(Caller(format!("key:{name}").into())),
                None => Err("the API key is not known"),
            };
        }
        let bearer = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let bearer = bearer.and_then(|value| {
            let (scheme, token) = value.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
        });
        match (bearer, &self.tokens) {
            (Some(token), Some(tokens)) => tokens.caller(token),
            _ => Err("credentials are required"),
        }
    }

    /// What a refused caller is told to bring.
    pub(crate) fn challenge(&self) -> String {
        let mut ways = Vec::new();
        if self.tokens.is_some() {
            ways.push("Bearer".to_owned());
        }
        if !self.keys.is_empty() {
            ways.push(format!("ApiKey header=\"{API_KEY_HEADER}\""));
        }
        ways.join(", ")
    }

    /// The schemes as a card declares them, by name.
    pub(crate) fn schemes(&self) -> Vec<(String, SecurityScheme)> {
        let mut schemes = Vec::new();
        if !self.keys.is_empty() {
            let scheme = ApiKeySecurityScheme {
                location: "header".to_owned(),
                name: API_KEY_HEADER.as_str().to_owned(),
                description: None,
            };
            schemes.push(("apiKey".to_owned(), SecurityScheme::ApiKey(scheme)));
        }
        if self.tokens.is_some() {
            let scheme = HttpAuthSecurityScheme {
                scheme: "Bearer".to_owned(),
                description: None,
                bearer_format: Some("JWT".to_owned()),
            };
            schemes.push(("bearer".to_owned(), SecurityScheme::HttpAuth(scheme)));
        }
        schemes
    }
}

impl Tokens {
    fn caller(&self, token: &str) -> Result<Caller, &'static str> {
        let claims = self.keys.verify(token)?;
        let now = chrono::Utc::now().timestamp();
        claims.check(now, self.issuer.as_deref(), self.audience.as_deref())?;
        let subject = claims.subject().ok_or("the token names no subject")?;
        let issuer = claims.issuer().unwrap_or_default();
        Ok(Caller(format!("sub:{issuer}|{subject}").into()))
    }
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.keys.iter().map(|(name, _)| &**name).collect();
        f.debug_struct("Access")
            .field("keys", &names)
            .field("tokens", &self.tokens.is_some())
            .finish()
    }
}

fn hash(text: &str) -> [u8; 32] {
    hash_bytes(text.as_bytes())
}

fn hash_bytes(bytes: &[u8]) -> [u8; 32] {
    let mut out = [0; 32];
    for (place, byte) in out.iter_mut().zip(digest(&SHA256, bytes).as_ref()) {
        *place = *byte;
    }
    out
}

fn same(a: &[u8; 32], b: &[u8; 32]) -> bool {
    a.iter().zip(b).fold(0, |difference, (a, b)| difference | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: &HeaderName, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(name.clone(), value.parse().unwrap())])
    }

    #[test]
    fn a_key_names_its_caller_and_another_is_refused() {
        let access = Access::open().with_key("ada", "secret-a").with_key("bob", "secret-b");
        let caller = |key: &str| access.caller(&headers(&API_KEY_HEADER, key));
        assert_eq!(caller("secret-b").unwrap().as_str(), "key:bob");
        assert!(caller("secret-c").is_err());
        assert!(access.caller(&HeaderMap::new()).is_err());
        assert!(access.caller(&headers(&AUTHORIZATION, "Bearer x")).is_err());
        assert!(!format!("{access:?}").contains("secret"));
    }

    #[test]
    fn an_open_server_knows_nobody() {
        assert_eq!(Access::open().caller(&HeaderMap::new()).unwrap(), Caller::anonymous());
    }
}
