//! Where programs may connect and send to.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::str::FromStr;

use windtunnel_model::lan::Subnet;

/// The addresses of a network, on one port or on all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AllowedDestination {
    network: Subnet,
    port: Option<u16>,
}

impl AllowedDestination {
    /// Whether it holds an address. Linux takes the address of no host (`0.0.0.0`, `::`) for that of
    /// the own one (ip(7)), and an IPv6 address can mean one of IPv4 (RFC 4291, 2.5.5.2).
    #[must_use]
    pub fn contains(&self, address: SocketAddr) -> bool {
        let ip = match address.ip().to_canonical() {
            IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(ip) if ip.is_unspecified() => std::net::Ipv6Addr::LOCALHOST.into(),
            ip => ip,
        };
        self.network.contains(ip) && self.port.is_none_or(|port| port == address.port())
    }
}

impl FromStr for AllowedDestination {
    type Err = String;

    /// `10.0.0.0/8`, `10.1.2.3`, `10.0.0.0/8:443`, `2001:db8::/32`, `[2001:db8::/32]:443`.
    fn from_str(text: &str) -> Result<AllowedDestination, String> {
        let (network, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((network, port)) => (network, port),
            // Of a version with colons in its addresses brackets say what is the port.
            None if text.matches(':').count() == 1 => text.split_at(text.find(':').unwrap_or(0)),
            None => (text, ""),
        };
        let port = match port.strip_prefix(':') {
            Some(port) => Some(port.parse().ok().filter(|port| *port > 0).ok_or(NO_NUMBER)?),
            None if port.is_empty() => None,
            None => return Err(format!("{text:?} has something behind the network")),
        };
        Ok(AllowedDestination { network: subnet(network)?, port })
    }
}

fn subnet(text: &str) -> Result<Subnet, String> {
    let (address, prefix) = text.split_once('/').map_or((text, None), |(a, b)| (a, Some(b)));
    let network: IpAddr = address.parse().map_err(|_| {
        format!("{text:?} is no network: write 10.0.0.0/8, 2001:db8::/32 or an address")
    })?;
    let most = if network.is_ipv4() { 32 } else { 128 };
    let prefix = match prefix {
        None => most,
        Some(prefix) => {
            let number = prefix.parse().ok().filter(|bits| *bits <= most);
            number.ok_or_else(|| format!("{text:?}: a prefix has 0 to {most} bits"))?
        }
    };
    let subnet = Subnet { network, prefix };
    let first = first_of(network, prefix);
    if first != network {
        let right = Subnet { network: first, prefix };
        return Err(format!("{text:?} has bits behind its prefix: is {right} meant?"));
    }
    Ok(subnet)
}

/// The address with nothing behind the prefix.
fn first_of(address: IpAddr, prefix: u8) -> IpAddr {
    let prefix = u32::from(prefix);
    match address {
        IpAddr::V4(ip) => {
            let hosts = u32::MAX.checked_shr(prefix).unwrap_or(0);
            IpAddr::V4((ip.to_bits() & !hosts).into())
        }
        IpAddr::V6(ip) => {
            let hosts = u128::MAX.checked_shr(prefix).unwrap_or(0);
            IpAddr::V6((ip.to_bits() & !hosts).into())
        }
    }
}

impl fmt::Display for AllowedDestination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.port, self.network.network) {
            (None, _) => write!(f, "{}", self.network),
            (Some(port), IpAddr::V4(_)) => write!(f, "{}:{port}", self.network),
            (Some(port), IpAddr::V6(_)) => write!(f, "[{}]:{port}", self.network),
        }
    }
}

const NO_NUMBER: &str = "a port is a number from 1 to 65535";

#[cfg(test)]
mod tests {
    use super::*;

    fn destination(text: &str) -> AllowedDestination {
        text.parse().unwrap()
    }

    #[test]
    fn a_network_has_a_prefix_and_perhaps_a_port() {
        for text in ["10.0.0.0/8", "10.0.0.0/8:443", "2001:db8::/32", "[2001:db8::/32]:443"] {
            assert_eq!(destination(text).to_string(), text);
        }
        assert_eq!(destination("10.1.2.3").to_string(), "10.1.2.3/32");
        assert_eq!(destination("::1").to_string(), "::1/128");
        for (text, why) in [
            ("10.0.0.1/8", "is 10.0.0.0/8 meant?"),
            ("10.0.0.0/33", "0 to 32 bits"),
            ("::/129", "0 to 128 bits"),
            ("10.0.0.0/8:0", "a number from 1"),
            ("[::1]443", "something behind"),
            ("example.org", "is no network"),
            ("", "is no network"),
        ] {
            let error = text.parse::<AllowedDestination>().unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn an_address_is_in_its_network_however_it_is_written() {
        let is_in =
            |text: &str, address: &str| destination(text).contains(address.parse().unwrap());
        assert!(is_in("10.0.0.0/8", "10.255.0.1:80") && !is_in("10.0.0.0/8", "11.0.0.0:80"));
        assert!(is_in("10.0.0.0/8", "[::ffff:10.0.0.1]:80"));
        assert!(is_in("0.0.0.0/0", "8.8.8.8:53") && !is_in("0.0.0.0/0", "[2001:db8::1]:53"));
        assert!(is_in("10.0.0.0/8:443", "10.0.0.1:443") && !is_in("10.0.0.0/8:443", "10.0.0.1:80"));
        assert!(is_in("127.0.0.0/8", "0.0.0.0:80") && !is_in("10.0.0.0/8", "0.0.0.0:80"));
        assert!(is_in("::1", "[::]:80") && is_in("::/0", "[2001:db8::1]:1"));
    }
}
