//! Which addresses may be posted to, and the HTTP client that goes nowhere else.
//!
//! A name is looked at when it is resolved and the connection goes to an address that was looked at,
//! so a name that changes its mind in between gains nothing. Redirects are followed by hand and each
//! is looked at like the first address.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    time::Duration,
};

use a2a::A2AError;
use reqwest::{
    Client, StatusCode,
    dns::{Addrs, Name, Resolve, Resolving},
    header::{HeaderMap, LOCATION},
    redirect::Policy,
};
use url::{Host, Url};

/// The most redirects of one post.
const MOST_REDIRECTS: u32 = 3;

pub(super) struct Guard {
    allow_private: bool,
    client: Client,
}

impl Guard {
    pub(super) fn new(allow_private: bool, timeout: Duration) -> Result<Self, A2AError> {
        crate::install_tls();
        let client = Client::builder()
            .redirect(Policy::none())
            // A proxy would resolve names where nobody looks.
            .no_proxy()
            .timeout(timeout)
            .dns_resolver(Resolver { allow_private })
            .build()
            .map_err(|error| A2AError::internal(error.to_string()))?;
        Ok(Self { allow_private, client })
    }

    /// Whether an address may be posted to, as far as can be told without resolving its name.
    pub(super) fn check_url(&self, text: &str) -> Result<Url, String> {
        let url = Url::parse(text).map_err(|error| format!("it is not an address: {error}"))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(format!("it must begin with https:// or http://, not {}:", url.scheme()));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err("it must not hold credentials; use authentication".to_owned());
        }
        let ip = match url.host() {
            None => return Err("it has no host".to_owned()),
            Some(Host::Ipv4(ip)) => Some(IpAddr::V4(ip)),
            Some(Host::Ipv6(ip)) => Some(IpAddr::V6(ip)),
            Some(Host::Domain(name)) => {
                let is_local = name == "localhost" || name.ends_with(".localhost");
                is_local.then_some(IpAddr::V4(Ipv4Addr::LOCALHOST))
            }
        };
        match ip {
            Some(ip) if !self.allow_private && !is_public(ip) => {
                Err("it is an address of a private network".to_owned())
            }
            _ => Ok(url),
        }
    }

    /// Post, and follow redirects that keep it a post.
    pub(super) async fn post(
        &self,
        target: &str,
        headers: &HeaderMap,
        body: &[u8],
    ) -> Result<StatusCode, String> {
        let mut url = self.check_url(target)?;
        let mut headers = headers.clone();
        for _ in 0..=MOST_REDIRECTS {
            let request = self.client.post(url.clone()).headers(headers.clone());
            // The error's own text holds the address, which may hold a secret.
            let response = request
                .body(body.to_vec())
                .send()
                .await
                .map_err(|error| cause_of(&error.without_url()))?;
            let status = response.status();
            if !matches!(status, StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT) {
                return Ok(status);
            }
            let location = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
            let location = location.ok_or("it redirects to nowhere")?;
            let next =
                url.join(location).map_err(|error| format!("it redirects wrongly: {error}"))?;
            let next = self.check_url(next.as_str()).map_err(|why| format!("redirect: {why}"))?;
            if next.origin() != url.origin() {
                headers.remove(reqwest::header::AUTHORIZATION);
                headers.remove(super::worker::TOKEN_HEADER);
            }
            url = next;
        }
        Err(format!("it redirects more than {MOST_REDIRECTS} times"))
    }
}

/// The innermost reason, which tells a person more than the outer ones.
fn cause_of(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

/// Resolves names to addresses that may be posted to.
struct Resolver {
    allow_private: bool,
}

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let allow_private = self.allow_private;
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let allowed: Vec<SocketAddr> =
                found.filter(|address| allow_private || is_public(address.ip())).collect();
            if allowed.is_empty() {
                let why = "its name leads to private addresses only";
                return Err(Box::<dyn std::error::Error + Send + Sync>::from(why));
            }
            Ok(Box::new(allowed.into_iter()) as Addrs)
        })
    }
}

/// Whether an address belongs to the open network.
pub(crate) fn is_public(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => is_public_v4(ip),
        IpAddr::V6(ip) => is_public_v6(ip),
    }
}

fn is_public_v4(ip: Ipv4Addr) -> bool {
    let [a, b, c, _] = ip.octets();
    let is_shared = a == 100 && (64..128).contains(&b);
    let is_for_protocols = a == 192 && b == 0 && c == 0;
    let is_for_benchmarks = a == 198 && (b == 18 || b == 19);
    !(a == 0
        || a >= 240
        || ip.is_private()
        || ip.is_loopback()
        || ip.is_link_local()
        || ip.is_multicast()
        || ip.is_documentation()
        || is_shared
        || is_for_protocols
        || is_for_benchmarks)
}

fn is_public_v6(ip: Ipv6Addr) -> bool {
    let [a, b, _, _, _, _, g, h] = ip.segments();
    let last = Ipv4Addr::from((u32::from(g) << 16) | u32::from(h));
    if let Some(mapped) = ip.to_ipv4_mapped() {
        return is_public_v4(mapped);
    }
    // Ways of writing an address of version 4 inside one of version 6.
    let is_translated = a == 0x64 && b == 0xff9b;
    let is_compatible = ip.segments().iter().take(6).all(|segment| *segment == 0);
    if is_translated || is_compatible {
        return is_public_v4(last) && !is_compatible;
    }
    let is_6to4 = a == 0x2002;
    let is_teredo = a == 0x2001 && b == 0;
    let is_documentation = a == 0x2001 && b == 0xdb8;
    let is_local = (a & 0xfe00) == 0xfc00 || (a & 0xffc0) == 0xfe80 || (a & 0xffc0) == 0xfec0;
    !(ip.is_loopback()
        || ip.is_unspecified()
        || ip.is_multicast()
        || is_6to4
        || is_teredo
        || is_documentation
        || is_local)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_private_networks_are_told_apart() {
        let private = [
            "127.0.0.1",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "0.0.0.0",
            "100.64.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "198.18.0.1",
            "::1",
            "::",
            "::ffff:127.0.0.1",
            "::127.0.0.1",
            "64:ff9b::7f00:1",
            "fe80::1",
            "fd00::1",
            "2002:7f00:1::",
            "ff02::1",
        ];
        for text in private {
            assert!(!is_public(text.parse().unwrap()), "{text}");
        }
        for text in ["8.8.8.8", "93.184.216.34", "2606:4700::1111", "64:ff9b::808:808"] {
            assert!(is_public(text.parse().unwrap()), "{text}");
        }
    }

    #[test]
    fn an_address_is_looked_at_before_it_is_kept() {
        let guard = Guard::new(false, Duration::from_secs(1)).unwrap();
        for wrong in [
            "ftp://example.com/",
            "http://localhost/x",
            "http://127.1/",
            "https://[::1]/",
            "nonsense",
            "https://user:pass@example.com/",
            "http://0x7f000001/",
            "http://a.localhost/",
        ] {
            assert!(guard.check_url(wrong).is_err(), "{wrong}");
        }
        assert!(guard.check_url("https://example.com/hook?x=1").is_ok());
    }
}
