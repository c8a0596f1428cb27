//! Turning host names into addresses that may be reached.
//!
//! The check is inside the client's own resolver, so the addresses that were checked are those
//! that are connected to. A name that answers differently the next time is checked again then.

use std::{
    fmt,
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use futures::future::BoxFuture;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::address::PrivateAddresses;

/// Looks names up.
pub(super) trait LookUp: Send + Sync {
    fn look_up(&self, name: String) -> BoxFuture<'static, std::io::Result<Vec<IpAddr>>>;
}

/// The way this machine looks names up.
pub(super) struct SystemLookUp;

impl LookUp for SystemLookUp {
    fn look_up(&self, name: String) -> BoxFuture<'static, std::io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}

/// A resolver that gives only addresses that may be reached.
pub(super) struct Guard {
    pub(super) look_up: Arc<dyn LookUp>,
    pub(super) private: PrivateAddresses,
}

/// An address was refused.
#[derive(Debug)]
pub(super) struct Refused {
    pub(super) host: String,
    pub(super) address: IpAddr,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, address } = self;
        write!(f, "{host} ")?;
        if *host != address.to_string() {
            write!(f, "has the address {address}, which ")?;
        }
        f.write_str("is not on the public internet, so it is not reached")
    }
}

impl std::error::Error for Refused {}

impl Resolve for Guard {
    fn resolve(&self, name: Name) -> Resolving {
        let host = name.as_str().to_owned();
        let found = self.look_up.look_up(host.clone());
        let private = self.private.clone();
        Box::pin(async move {
            let addresses = found.await?;
            // One bad address among good ones is a trick, so the whole name is refused.
            if let Some(bad) = addresses.iter().find(|address| !private.permit(**address)) {
                return Err(Refused { host, address: *bad }.into());
            }
            let addresses = addresses.into_iter().map(|address| SocketAddr::new(address, 0));
            Ok(Box::new(addresses) as Addrs)
        })
    }
}
