//! The house among others: serving its agents, and reaching agents elsewhere.

use std::{
    net::{IpAddr, SocketAddr, ToSocketAddrs},
    path::Path,
};

use duologue_a2a::{Access, CardKey, Credentials, Directory, Limits, PushSettings, Remote, Server};

use super::House;
use crate::{
    config::keys::{self, Journal},
    failure::Failure,
};

/// Where to listen, as far as the command line says it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Listen {
    pub(crate) host: Option<String>,
    pub(crate) port: Option<u16>,
    pub(crate) grpc_port: Option<u16>,
}

impl House {
    /// What `[server]` and the command line say of a server.
    pub(super) fn server_setup(
        &self,
        listen: &Listen,
    ) -> Result<impl FnOnce(Server) -> Server + use<>, Failure> {
        let config = self.config().server.clone();
        let ip = address_of(listen.host.as_deref().unwrap_or(&config.host))?;
        let port = |number: u32| u16::try_from(number).unwrap_or_default();
        let bind = SocketAddr::new(ip, listen.port.unwrap_or_else(|| port(config.port)));
        let grpc = listen.grpc_port.or(config.grpc_port.map(port));
        let (access, push) = (access_of(&config)?, push_of(&config)?);
        let limits = Limits {
            body: usize::try_from(config.max_body_bytes).unwrap_or(usize::MAX),
            page: config.max_page as usize,
            streams: config.max_streams as usize,
            rate: config.max_requests_per_second,
            depth: config.max_delegations as usize,
        };
        let key = config.card_key_file.as_deref();
        let key = key.map(|file| self.card_key(file, &config.card_key_name)).transpose()?;
        Ok(move |server: Server| {
            let mut server = server.bind(bind).access(access).push(push).limits(limits);
            if let Some(number) = grpc {
                server = server.grpc(SocketAddr::new(ip, number));
            }
            if let Some(url) = config.url {
                server = server.url(url);
            }
            if let Some(name) = config.name {
                server = server.card(move |card| card.name = name);
            }
            if config.allow_unauthenticated {
                server = server.allow_unauthenticated();
            }
            match key {
                Some(key) => server.sign(key),
                None => server,
            }
        })
    }

    fn card_key(&self, file: &Path, name: &str) -> Result<CardKey, Failure> {
        let wrong = |why: String| {
            let why = format!("{}: {why}", file.display());
            Failure::from(self.loaded.error_at("server.card_key_file", None, why))
        };
        let bytes = std::fs::read(file).map_err(|error| wrong(error.to_string()))?;
        CardKey::from_pkcs8(name, &bytes).map_err(|error| wrong(error.to_string()))
    }

    /// The agents that are known elsewhere.
    pub(crate) fn directory(&self) -> Result<Directory, Failure> {
        if let Some(directory) = self.directory.get() {
            return Ok(directory.clone());
        }
        let directory = match &self.config().a2a.directory {
            Some(file) => Directory::open(file).map_err(Failure::new)?,
            None => Directory::in_memory(),
        };
        for remote in self.config().remotes.values() {
            let credentials = credentials_of(remote)?;
            directory.set_credentials(Some(&remote.url), credentials);
        }
        Ok(self.directory.get_or_init(|| directory).clone())
    }

    /// What somebody who serves without a journal should know.
    pub(crate) fn serving_notice(&self) -> Option<&'static str> {
        (self.config().journal == Journal::Memory).then_some(
            "tasks are kept in memory and end with this process; --journal FILE keeps them",
        )
    }

    /// An agent elsewhere, by a name of `[remotes]`, an address, or a host and a port. `key` is the
    /// environment variable with a secret for whatever it asks for.
    pub(crate) async fn reach(&self, place: &str, key: Option<&str>) -> Result<Remote, Failure> {
        let remotes = &self.config().remotes;
        let known = remotes.get(place);
        let address = known.map_or(place, |known| known.url.as_str());
        let known = known.or_else(|| remotes.values().find(|other| same_place(&other.url, place)));
        let mut credentials = known.map_or(Ok(Credentials::none()), credentials_of)?;
        if let Some(variable) = key {
            credentials = credentials.with("*", secret(variable)?);
        }
        let pinned = known.and_then(|known| known.pinned_keys.as_ref());
        let found = match pinned {
            None => Remote::connect(address, &credentials).await,
            Some(file) => {
                let keys = std::fs::read_to_string(file)
                    .map_err(|error| Failure::usage(format!("{}: {error}", file.display())))?;
                Remote::connect_pinned(address, &credentials, &keys).await
            }
        };
        found.map_err(|error| match error {
            duologue_a2a::RemoteError::Address(..) => Failure::usage(error),
            _ => Failure::new(error),
        })
    }
}

fn credentials_of(remote: &keys::Remote) -> Result<Credentials, Failure> {
    remote.credentials.iter().try_fold(Credentials::none(), |all, (scheme, variable)| {
        Ok(all.with(scheme, secret(variable)?))
    })
}

fn access_of(config: &keys::Server) -> Result<Access, Failure> {
    let mut access = Access::open();
    for (name, variable) in config.callers.iter() {
        access = access.with_key(name, &secret(variable)?);
    }
    match &config.jwks_file {
        None => Ok(access),
        Some(file) => access
            .with_token_file(file, config.issuer.clone(), config.audience.clone())
            .map_err(Failure::usage),
    }
}

fn push_of(config: &keys::Server) -> Result<PushSettings, Failure> {
    let key = config.push_seal_env.as_deref().map(seal).transpose()?;
    Ok(PushSettings {
        enabled: config.push,
        allow_private: config.push_allow_private,
        key,
        ..PushSettings::default()
    })
}

/// The key in a variable, 64 hexadecimal digits.
fn seal(variable: &str) -> Result<[u8; 32], Failure> {
    let text = secret(variable)?;
    let wrong = || Failure::usage(format!("{variable} must have 64 hexadecimal digits"));
    let text = text.trim();
    if text.len() != 64 || !text.is_ascii() {
        return Err(wrong());
    }
    let mut key = [0; 32];
    for (at, byte) in key.iter_mut().enumerate() {
        let digits = text.get(at * 2..at * 2 + 2).ok_or_else(wrong)?;
        *byte = u8::from_str_radix(digits, 16).map_err(|_| wrong())?;
    }
    Ok(key)
}

/// What a variable holds.
fn secret(variable: &str) -> Result<String, Failure> {
    match std::env::var(variable) {
        Ok(value) if !value.trim().is_empty() => Ok(value),
        _ => Err(Failure::usage(format!("the environment variable {variable} is not set"))),
    }
}

fn address_of(host: &str) -> Result<IpAddr, Failure> {
    if let Ok(ip) = host.parse() {
        return Ok(ip);
    }
    let found = (host, 0).to_socket_addrs().ok().and_then(|mut all| all.next());
    let what = || Failure::usage(format!("{host:?} is not an address of this machine"));
    found.map(|address| address.ip()).ok_or_else(what)
}

/// Whether two addresses have the same scheme, host and port.
fn same_place(known: &str, asked: &str) -> bool {
    let origin = |text: &str| {
        let whole = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
        let (scheme, rest) = whole.split_once("://")?;
        let authority = rest.split(['/', '?', '#']).next()?.to_ascii_lowercase();
        let usual = if scheme == "https" { ":443" } else { ":80" };
        let authority = authority.strip_suffix(usual).unwrap_or(&authority).to_owned();
        Some((scheme.to_owned(), authority))
    };
    origin(known).is_some() && origin(known) == origin(asked)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_go_to_the_same_scheme_host_and_port_only() {
        assert!(same_place("http://far.example:80/a", "far.example"));
        assert!(same_place("https://far.example", "https://FAR.example:443/card.json"));
        for other in ["http://far.example:81", "https://far.example", "http://far.example.evil"] {
            assert!(!same_place("http://far.example", other), "{other}");
        }
    }
}
