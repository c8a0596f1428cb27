//! Which sites a browser may go to: those on the list freely, others when somebody says yes, some
//! never.

use std::{fmt, net::IpAddr, str::FromStr};

use duologue_tools::PrivateAddresses;
use url::{Host, Url};

/// The sites that were allowed beforehand.
///
/// ```
/// use duologue_browser::{Sites, Standing};
///
/// let sites = Sites::new(["docs.rs", "*.example.com"])?;
/// assert_eq!(sites.judge("https://docs.rs/tokio"), Standing::Listed);
/// assert_eq!(sites.judge("https://example.org/"), Standing::Unlisted);
/// assert!(matches!(sites.judge("file:///etc/passwd"), Standing::Refused(_)));
/// assert!(matches!(sites.judge("http://192.168.1.1/"), Standing::Refused(_)));
/// # Ok::<(), duologue_browser::SiteError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sites {
    listed: Vec<Site>,
}

/// What an address is to a browser.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It was allowed beforehand.
    Listed,
    /// Somebody has to say yes.
    Unlisted,
    /// It is not gone to, for this reason.
    Refused(String),
}

/// A site on the list: `example.com`, `*.example.com`, `https://example.com/docs`,
/// `http://127.0.0.1:8080`, `file:///home/ada/pages`, or `*` for every public site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    scheme: Option<String>,
    /// `None` stands for all.
    host: Option<HostPattern>,
    port: Option<u16>,
    path: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum HostPattern {
    Exactly(String),
    /// All that end so, from the dot on.
    Under(String),
}

/// A site that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "cannot read the site {site:?}: write a host such as example.com or *.example.com, or the \
     beginning of an address such as https://example.com/docs"
)]
pub struct SiteError {
    /// As it was written.
    pub site: String,
}

impl FromStr for Site {
    type Err = SiteError;

    fn from_str(text: &str) -> Result<Self, SiteError> {
        let wrong = || SiteError { site: text.to_owned() };
        let site = text.trim().trim_end_matches('*').trim_end_matches('/');
        if text.trim() == "*" {
            return Ok(Self { scheme: None, host: None, port: None, path: String::new() });
        }
        if let Some(path) = text.trim().strip_prefix("file://") {
            let path = path.trim_end_matches('*').to_owned();
            return Ok(Self { scheme: Some("file".into()), host: None, port: None, path });
        }
        let (scheme, rest) = match site.split_once("://") {
            Some((scheme @ ("http" | "https"), rest)) => (Some(scheme.to_owned()), rest),
            Some(_) => return Err(wrong()),
            None => (None, site),
        };
        let (authority, path) = match rest.split_once('/') {
            Some((authority, path)) => (authority, format!("/{path}")),
            None => (rest, String::new()),
        };
        let (pattern, under) = match authority.strip_prefix("*.") {
            Some(rest) => (rest, true),
            None => (authority, false),
        };
        // The reader of addresses also puts the host into its usual form.
        let url = Url::parse(&format!("http://{pattern}/")).map_err(|_| wrong())?;
        let host = url.host_str().filter(|host| !host.is_empty()).ok_or_else(wrong)?;
        if host.contains('*') || !url.username().is_empty() || pattern.ends_with(':') {
            return Err(wrong());
        }
        let port = match pattern.rsplit_once(':') {
            Some((_, digits)) if !digits.ends_with(']') => digits.parse().ok(),
            _ => None,
        };
        let host = match under {
            true => HostPattern::Under(format!(".{host}")),
            false => HostPattern::Exactly(host.to_owned()),
        };
        Ok(Self { scheme, host: Some(host), port, path })
    }
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(scheme) = &self.scheme {
            write!(f, "{scheme}://")?;
        }
        match &self.host {
            None if self.scheme.is_none() => f.write_str("*")?,
            None => {}
            Some(HostPattern::Exactly(host)) => f.write_str(host)?,
            Some(HostPattern::Under(host)) => write!(f, "*{host}")?,
        }
        if let Some(port) = self.port {
            write!(f, ":{port}")?;
        }
        f.write_str(&self.path)
    }
}

impl Site {
    fn matches(&self, url: &Url) -> bool {
        let scheme = match &self.scheme {
            Some(scheme) => scheme == url.scheme(),
            None => matches!(url.scheme(), "http" | "https"),
        };
        let host = match (&self.host, url.host_str()) {
            (None, _) => true,
            (Some(HostPattern::Exactly(host)), Some(other)) => host == other,
            (Some(HostPattern::Under(end)), Some(other)) => other.ends_with(end.as_str()),
            (Some(_), None) => false,
        };
        let port = self.port.is_none_or(|port| url.port_or_known_default() == Some(port));
        scheme && host && port && is_under(url.path(), &self.path)
    }

    /// Whether it names what it allows, instead of all there is.
    fn names(&self) -> bool {
        self.host.is_some()
    }
}

/// Whether a path is another or inside it: `/docs` holds `/docs/a` and not `/docsearch`.
fn is_under(path: &str, folder: &str) -> bool {
    let folder = folder.trim_end_matches('/');
    path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '?']))
        || folder.is_empty()
}

impl Sites {
    /// A list of sites.
    pub fn new<S: AsRef<str>>(sites: impl IntoIterator<Item = S>) -> Result<Self, SiteError> {
        let listed =
            sites.into_iter().map(|site| site.as_ref().parse()).collect::<Result<_, _>>()?;
        Ok(Self { listed })
    }

    /// What an address is, as far as it tells by itself. What a name stands for is looked at when
    /// the browser asks for it.
    pub fn judge(&self, address: &str) -> Standing {
        let Ok(url) = Url::parse(address) else {
            return Standing::Refused(format!(
                "{address:?} is no address; write it whole, such as https://example.com/"
            ));
        };
        let listed = || self.listed.iter().any(|site| site.matches(&url));
        match url.scheme() {
            "http" | "https" if !self.names(&url) && is_inside(&url) => Standing::Refused(format!(
                "{} is an address of this machine or of the local network, which must be named \
                     on the list of allowed sites",
                url.host_str().unwrap_or_default()
            )),
            "http" | "https" if listed() => Standing::Listed,
            "http" | "https" => Standing::Unlisted,
            "about" if url.path() == "blank" => Standing::Listed,
            "file" if listed() => Standing::Listed,
            other => Standing::Refused(format!(
                "addresses that begin with {other}: are not opened; only http and https are, and \
                 files that the list of allowed sites names"
            )),
        }
    }

    /// Whether the list names the host of an address.
    fn names(&self, url: &Url) -> bool {
        self.listed.iter().any(|site| site.names() && site.matches(url))
    }

    /// Whether an address that a name stands for may be reached.
    pub(crate) fn permit(&self, url: &Url, address: IpAddr) -> bool {
        self.names(url) || PrivateAddresses::Refused.permit(address)
    }
}

/// Whether an address itself says that it is of this machine or this network.
fn is_inside(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => !PrivateAddresses::Refused.permit(IpAddr::V4(address)),
        Some(Host::Ipv6(address)) => !PrivateAddresses::Refused.permit(IpAddr::V6(address)),
        Some(Host::Domain(name)) => {
            let name = name.trim_end_matches('.');
            name == "localhost"
                || [".localhost", ".local", ".internal", ".lan", ".home.arpa"]
                    .iter()
                    .any(|end| name.ends_with(end))
        }
        None => true,
    }
}

/// The origin of an address: scheme, host and port.
pub(crate) fn origin_of(address: &str) -> Option<String> {
    let url = Url::parse(address).ok()?;
    match url.scheme() {
        "http" | "https" => Some(url.origin().ascii_serialization()),
        "file" => Some("file://".into()),
        "about" => Some("about:blank".into()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn standing(list: &[&str], address: &str) -> Standing {
        Sites::new(list).unwrap().judge(address)
    }

    #[test]
    fn a_listed_host_is_free_and_its_look_alikes_are_not() {
        for (site, address, listed) in [
            ("example.com", "https://example.com/a?b", true),
            ("example.com", "http://example.com:8080/", true),
            ("example.com", "https://www.example.com/", false),
            ("example.com", "https://example.com.evil.test/", false),
            ("example.com", "https://example.com@evil.test/", false),
            ("example.com", "https://evil.test/example.com", false),
            ("example.com", "https://notexample.com/", false),
            ("EXAMPLE.com", "https://Example.COM/", true),
            ("*.example.com", "https://a.b.example.com/", true),
            ("*.example.com", "https://example.com/", false),
            ("*.example.com", "https://evilexample.com/", false),
            ("https://example.com", "http://example.com/", false),
            ("example.com:8443", "https://example.com:8443/", true),
            ("example.com:8443", "https://example.com/", false),
            ("https://example.com/docs", "https://example.com/docs/a", true),
            ("https://example.com/docs/**", "https://example.com/docs", true),
            ("https://example.com/docs", "https://example.com/docsearch", false),
            ("https://example.com/docs", "https://example.com/docs/../admin", false),
            ("*", "https://anything.test/", true),
        ] {
            let expected = if listed { Standing::Listed } else { Standing::Unlisted };
            assert_eq!(standing(&[site], address), expected, "{site} {address}");
        }
    }

    #[test]
    fn the_inside_of_a_network_and_of_a_machine_is_refused_unless_named() {
        for address in [
            "http://127.0.0.1/",
            "http://127.1:8080/",
            "http://0x7f000001/",
            "http://localhost:3000/",
            "http://printer.local/",
            "http://metadata.google.internal/",
            "http://[::1]/",
            "http://[::ffff:10.0.0.1]/",
            "http://169.254.169.254/latest",
            "http://10.0.0.1/",
            "file:///etc/passwd",
            "chrome://settings",
            "view-source:https://example.com/",
            "javascript:alert(1)",
            "data:text/html,x",
            "devtools://devtools/",
            "about:config",
            "ftp://example.com/",
            "example.com",
        ] {
            for list in [&[][..], &["*"]] {
                assert!(matches!(standing(list, address), Standing::Refused(_)), "{address}");
            }
        }
        assert_eq!(standing(&["127.0.0.1:8080"], "http://127.0.0.1:8080/x"), Standing::Listed);
        assert_eq!(standing(&["localhost"], "http://localhost:3000/"), Standing::Listed);
        assert_eq!(standing(&["file:///srv/pages"], "file:///srv/pages/a.html"), Standing::Listed);
        let outside = standing(&["file:///srv/pages"], "file:///srv/pages/../x");
        assert!(matches!(outside, Standing::Refused(_)));
        assert_eq!(standing(&[], "about:blank"), Standing::Listed);
    }

    #[test]
    fn an_unreadable_site_says_how_to_write_one() {
        for wrong in ["", "ftp://a", "a b", "http://", "*.*", "a*b.com", "user@host"] {
            assert!(wrong.parse::<Site>().is_err(), "{wrong}");
        }
        for good in ["example.com", "*.example.com", "https://example.com:8443/docs", "*"] {
            assert_eq!(good.parse::<Site>().unwrap().to_string(), good);
        }
    }
}
