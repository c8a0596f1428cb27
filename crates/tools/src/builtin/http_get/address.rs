//! Which addresses may be reached.
//!
//! A page that an agent reads can name any address. Those that only this machine or this network
//! can reach are refused, so that nobody outside can look inside through the agent.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What happens to addresses that are not on the public internet: this machine, the local
/// network, a cloud's metadata service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum PrivateAddresses {
    /// None is reached.
    #[default]
    Refused,
    /// Only these are, such as that of a development server.
    Only(Vec<IpAddr>),
    /// All are.
    Allowed,
}

impl PrivateAddresses {
    /// Whether an address may be connected to.
    pub fn permit(&self, address: IpAddr) -> bool {
        match self {
            Self::Allowed => true,
            Self::Only(listed) if listed.contains(&address.to_canonical()) => true,
            Self::Only(_) | Self::Refused => is_public(address),
        }
    }
}

/// Whether an address is one of the public internet.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let special = match address.octets() {
        // This host, private networks, shared address space of carriers, loopback.
        [0 | 10 | 127, ..] | [100, 64..=127, ..] | [172, 16..=31, ..] | [192, 168, ..] => true,
        // Link-local, where cloud metadata services are.
        [169, 254, ..] => true,
        // Protocol assignments, documentation, 6to4 relays, benchmarks.
        [192, 0, 0 | 2, _] | [192, 88, 99, _] | [198, 18 | 19, ..] => true,
        [198, 51, 100, _] | [203, 0, 113, _] => true,
        // The host service of one cloud, at a public address.
        [168, 63, 129, 16] => true,
        // Multicast, reserved, broadcast.
        [224..=255, ..] => true,
        _ => false,
    };
    !special
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    if let Some(inner) = embedded_v4(address) {
        return is_public_v4(inner);
    }
    match address.segments() {
        // Protocol assignments with Teredo among them, documentation.
        [0x2001, 0..=0x01ff, ..] | [0x2001, 0x0db8, ..] | [0x3fff, 0..=0x0fff, ..] => false,
        // The only range that global unicast addresses are given from.
        [0x2000..=0x3fff, ..] => true,
        _ => false,
    }
}

/// The older address that a newer one stands for, by which it is then judged.
fn embedded_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let join = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    match address.segments() {
        // Mapped, and translated by a gateway.
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            Some(join(high, low))
        }
        // 6to4.
        [0x2002, high, low, ..] => Some(join(high, low)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_the_inside_are_not_public() {
        for inside in [
            "0.0.0.0",
            "10.1.2.3",
            "100.64.0.1",
            "100.100.100.200",
            "127.0.0.1",
            "127.9.9.9",
            "168.63.129.16",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.192",
            "192.0.2.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.51.100.7",
            "203.0.113.9",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::127.0.0.1",
            "64:ff9b::a00:1",
            "64:ff9b:1::1",
            "2002:7f00:1::",
            "2002:a00:1::1",
            "2001:0:1::1",
            "2001:db8::1",
            "3fff::1",
            "100::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "4000::1",
        ] {
            let address: IpAddr = inside.parse().unwrap();
            assert!(!is_public(address), "{inside}");
            assert!(!PrivateAddresses::Refused.permit(address), "{inside}");
            assert!(PrivateAddresses::Allowed.permit(address), "{inside}");
        }
    }

    #[test]
    fn addresses_of_the_internet_are_public() {
        for outside in [
            "1.1.1.1",
            "8.8.8.8",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "168.63.129.15",
            "172.15.255.255",
            "172.32.0.0",
            "192.0.1.1",
            "223.255.255.255",
            "2606:4700::1111",
            "2a00:1450::1",
            "64:ff9b::808:808",
            "::ffff:8.8.8.8",
            "2002:808:808::1",
        ] {
            assert!(is_public(outside.parse().unwrap()), "{outside}");
        }
    }

    #[test]
    fn only_the_listed_ones_are_let_through() {
        let listed = PrivateAddresses::Only(vec!["127.0.0.1".parse().unwrap()]);
        for (address, permitted) in [
            ("127.0.0.1", true),
            ("::ffff:127.0.0.1", true),
            ("127.0.0.2", false),
            ("::1", false),
            ("10.0.0.1", false),
            ("8.8.8.8", true),
        ] {
            assert_eq!(listed.permit(address.parse().unwrap()), permitted, "{address}");
        }
    }
}
