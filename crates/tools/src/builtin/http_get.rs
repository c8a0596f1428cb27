//! `http_get`: reads a page of the public internet.

use std::{error::Error, net::IpAddr, sync::Arc, time::Duration};

use duologue_core::{Effect, Reach, Tool, ToolError, tool, with_causes};
use reqwest::{Client, Response, StatusCode, Url, header, redirect};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::sync::OnceCell;

use self::names::{Guard, LookUp, Refused, SystemLookUp};
use super::text::looks_binary;

mod address;
mod html;
mod names;
#[cfg(test)]
mod tests;

pub use address::PrivateAddresses;

/// The longest address that is taken.
const LONGEST_URL: usize = 8 * 1024;
/// How much of an error page is shown.
const SHOWN_OF_ERROR: usize = 2000;
/// How long a connection may take to come about.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// What the `http_get` tool may do.
///
/// It goes straight to the address, never through a proxy: a proxy would look the names up
/// itself, after the check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpConfig {
    /// Whether addresses of this machine and this network are reached.
    pub private_addresses: PrivateAddresses,
    /// How many bytes of a page are read, counted after decompression.
    pub most_bytes: usize,
    /// How many redirects are followed.
    pub most_redirects: usize,
    /// How long a call may take in all.
    pub timeout: Duration,
}

impl Default for HttpConfig {
    fn default() -> Self {
        Self {
            private_addresses: PrivateAddresses::default(),
            most_bytes: 2 << 20,
            most_redirects: 10,
            timeout: Duration::from_secs(30),
        }
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The address, beginning with https:// or http://.
    url: String,
    /// Give a page of HTML as it is, instead of the text in it.
    #[serde(default)]
    raw: bool,
}

/// Fetches text over HTTP.
pub(crate) fn http_get(config: &HttpConfig) -> impl Tool + use<> {
    http_get_through(config, Arc::new(SystemLookUp))
}

fn http_get_through(config: &HttpConfig, look_up: Arc<dyn LookUp>) -> impl Tool + use<> {
    let timeout = config.timeout;
    // The tool keeps its own time, to say what took too long; the driver's limit is behind it.
    let backstop = timeout + Duration::from_secs(5);
    let fetcher = Arc::new(Fetcher { config: config.clone(), look_up, client: OnceCell::new() });
    tool(
        "http_get",
        "Reads a page or a document of the public internet by HTTP GET and gives its text. Pages \
         inside a private network are not reached.",
        Effect::Pure,
        move |arguments: Arguments, context| {
            let fetcher = Arc::clone(&fetcher);
            async move {
                tokio::select! {
                    result = fetcher.get(&arguments) => result,
                    () = context.cancel.cancelled() => Err(ToolError::new("cancelled")),
                    () = tokio::time::sleep(timeout) => {
                        Err(ToolError(format!("{} took too long to answer", arguments.url)))
                    }
                }
            }
        },
    )
    .timeout(backstop)
    .reach(Reach::Network)
}

struct Fetcher {
    config: HttpConfig,
    look_up: Arc<dyn LookUp>,
    client: OnceCell<Client>,
}

impl Fetcher {
    async fn get(&self, arguments: &Arguments) -> Result<String, ToolError> {
        let response = self.follow(&arguments.url).await?;
        let status = response.status();
        let url = response.url().clone();
        let kind = Kind::of(&response);
        if kind == Kind::Binary && status.is_success() {
            let named = content_type(&response).unwrap_or_else(|| "unknown".to_owned());
            return Err(ToolError(format!("{url} is not text: its type is {named}")));
        }
        let charset = charset_of(&response);
        let body = self.read(response).await?;
        if kind == Kind::Unknown && looks_binary(&body.bytes) {
            return Err(ToolError(format!("{url} is not text")));
        }
        let text = decode(&body.bytes, charset.as_deref());
        let mut text = match kind {
            Kind::Html if !arguments.raw => html::to_text(&text),
            _ => text,
        };
        if !status.is_success() {
            return Err(ToolError(format!("{url} answered {}", failure(status, &text))));
        }
        if text.is_empty() {
            "[the page has no text]".clone_into(&mut text);
        }
        if body.goes_on {
            text.push_str(&format!(
                "\n[the page is longer; only its first {} bytes were read]",
                self.config.most_bytes
            ));
        }
        if url.as_str() != arguments.url && !same_but_for_slash(&url, &arguments.url) {
            text = format!("[redirected to {url}]\n{text}");
        }
        Ok(text)
    }

    /// Ask, and follow redirects one by one: every address on the way is checked like the first.
    async fn follow(&self, address: &str) -> Result<Response, ToolError> {
        let mut url = parse(address)?;
        for _ in 0..=self.config.most_redirects {
            self.check_literal(&url)?;
            let response = self.ask(&url).await?;
            let Some(next) = redirect_of(&response) else { return Ok(response) };
            let next = url.join(&next).map_err(|error| {
                ToolError(format!("{url} redirects to {next:?}, which is no address: {error}"))
            })?;
            url = check(next).map_err(|error| ToolError(format!("{url} redirects: {error}")))?;
        }
        Err(ToolError(format!(
            "{address} redirects more than {} times",
            self.config.most_redirects
        )))
    }

    async fn ask(&self, url: &Url) -> Result<Response, ToolError> {
        let client = self.client.get_or_try_init(|| async { self.build() }).await?;
        let response = client
            .get(url.clone())
            .header(header::ACCEPT, "text/html, text/*;q=0.9, application/json;q=0.9, */*;q=0.5")
            .send()
            .await
            .map_err(|error| explain(url, &error))?;
        // The resolver and the check of literals leave no other way; this would show one.
        if let Some(peer) = response.remote_addr()
            && !self.config.private_addresses.permit(peer.ip())
        {
            let host = url.host_str().unwrap_or_default().to_owned();
            let address = peer.ip();
            return Err(ToolError(Refused { host, address }.to_string()));
        }
        Ok(response)
    }

    /// An address in the place of a name is never looked up, so it is checked here.
    fn check_literal(&self, url: &Url) -> Result<(), ToolError> {
        let host = url.host_str().unwrap_or_default();
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        match bare.parse::<IpAddr>() {
            Ok(address) if !self.config.private_addresses.permit(address) => {
                let host = address.to_string();
                Err(ToolError(Refused { host, address }.to_string()))
            }
            _ => Ok(()),
        }
    }

    fn build(&self) -> Result<Client, ToolError> {
        // Without a provider the client panics. If the program has chosen one, that one stays.
        if rustls::crypto::CryptoProvider::get_default().is_none() {
            let _ = rustls::crypto::ring::default_provider().install_default();
        }
        Client::builder()
            .user_agent(concat!("duologue/", env!("CARGO_PKG_VERSION")))
            .redirect(redirect::Policy::none())
            .no_proxy()
            .referer(false)
            .connect_timeout(CONNECT_TIMEOUT)
            .dns_resolver(Arc::new(Guard {
                look_up: Arc::clone(&self.look_up),
                private: self.config.private_addresses.clone(),
            }))
            .build()
            .map_err(|error| ToolError(format!("cannot prepare for HTTP: {}", with_causes(&error))))
    }

    /// Read the body up to the bound. It counts decompressed bytes, chunk by chunk, so a small
    /// answer that unpacks to a huge one fills nothing.
    async fn read(&self, mut response: Response) -> Result<Body, ToolError> {
        let url = response.url().clone();
        let mut bytes = Vec::new();
        let mut goes_on = false;
        while let Some(chunk) = response.chunk().await.map_err(|error| explain(&url, &error))? {
            let room = self.config.most_bytes - bytes.len();
            bytes.extend_from_slice(chunk.get(..room).unwrap_or(&chunk));
            if chunk.len() > room {
                goes_on = true;
                break;
            }
        }
        Ok(Body { bytes, goes_on })
    }
}

struct Body {
    bytes: Vec<u8>,
    goes_on: bool,
}

fn parse(address: &str) -> Result<Url, ToolError> {
    if address.len() > LONGEST_URL {
        return Err(ToolError(format!("url: longer than {LONGEST_URL} bytes")));
    }
    let url = Url::parse(address.trim()).map_err(|error| {
        ToolError(format!("url: {address:?} is no address: {error}; write it as https://host/path"))
    })?;
    check(url).map_err(|error| ToolError(format!("url: {error}")))
}

fn check(url: Url) -> Result<Url, String> {
    if !matches!(url.scheme(), "http" | "https") {
        return Err(format!("\"{}:\" is not reached; only http and https are", url.scheme()));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("a user name or password in an address is not sent".to_owned());
    }
    Ok(url)
}

fn same_but_for_slash(url: &Url, address: &str) -> bool {
    Url::parse(address.trim()).is_ok_and(|asked| {
        let strip = |url: &Url| {
            let mut url = url.clone();
            url.set_fragment(None);
            url
        };
        strip(&asked) == strip(url)
    })
}

fn redirect_of(response: &Response) -> Option<String> {
    let redirects = matches!(
        response.status(),
        StatusCode::MOVED_PERMANENTLY
            | StatusCode::FOUND
            | StatusCode::SEE_OTHER
            | StatusCode::TEMPORARY_REDIRECT
            | StatusCode::PERMANENT_REDIRECT
    );
    let location = response.headers().get(header::LOCATION)?;
    redirects.then(|| String::from_utf8_lossy(location.as_bytes()).into_owned())
}

/// What a document is, as far as reading it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Html,
    Text,
    /// The server does not say; the content tells.
    Unknown,
    Binary,
}

impl Kind {
    fn of(response: &Response) -> Self {
        let Some(named) = content_type(response) else { return Self::Unknown };
        let media = named.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        let (family, form) = media.split_once('/').unwrap_or((&media, ""));
        match (family, form) {
            (_, "html" | "xhtml+xml") => Self::Html,
            ("text", _) => Self::Text,
            ("application", "octet-stream") => Self::Unknown,
            ("application", "json" | "xml" | "javascript" | "yaml" | "toml" | "x-ndjson") => {
                Self::Text
            }
            ("application", "x-yaml" | "x-javascript" | "ecmascript" | "sql" | "x-sh") => {
                Self::Text
            }
            (_, form) if form.ends_with("+json") || form.ends_with("+xml") => Self::Text,
            _ => Self::Binary,
        }
    }
}

fn content_type(response: &Response) -> Option<String> {
    let value = response.headers().get(header::CONTENT_TYPE)?;
    Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
}

fn charset_of(response: &Response) -> Option<String> {
    let named = content_type(response)?;
    named.split(';').skip(1).find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        let is_charset = name.trim().eq_ignore_ascii_case("charset");
        is_charset.then(|| value.trim().trim_matches('"').to_owned())
    })
}

/// The bytes as text, by the named encoding or by what the page says of itself near its top.
fn decode(bytes: &[u8], charset: Option<&str>) -> String {
    let by_name = |name: &str| encoding_rs::Encoding::for_label(name.as_bytes());
    let encoding = charset
        .and_then(by_name)
        .or_else(|| {
            let top = bytes.get(..bytes.len().min(1024)).unwrap_or_default();
            let top = String::from_utf8_lossy(top).to_ascii_lowercase();
            let (_, named) = top.split_once("charset=")?;
            let named = named.trim_start_matches(['"', '\'']);
            let end = named.find(|c: char| !(c.is_ascii_alphanumeric() || "-_:".contains(c)))?;
            by_name(named.get(..end)?)
        })
        .unwrap_or(encoding_rs::UTF_8);
    encoding.decode(bytes).0.into_owned()
}

fn failure(status: StatusCode, text: &str) -> String {
    let shown: String = text.chars().take(SHOWN_OF_ERROR).collect();
    match shown.trim() {
        "" => status.to_string(),
        shown => format!("{status}:\n{shown}"),
    }
}

/// Why a request failed. A refusal of ours is told in its own words.
fn explain(url: &Url, error: &reqwest::Error) -> ToolError {
    let mut source: Option<&(dyn Error + 'static)> = error.source();
    while let Some(inner) = source {
        if let Some(refused) = inner.downcast_ref::<Refused>() {
            return ToolError(refused.to_string());
        }
        source = inner.source();
    }
    if error.is_timeout() {
        return ToolError(format!("{url} took too long to answer"));
    }
    ToolError(format!("{url} could not be read: {}", with_causes(error)))
}
