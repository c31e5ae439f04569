//! The machine's outside as a node: what of it may be reached, and what of the machine leads in.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use core::str::FromStr;

use serde::{Deserialize, Serialize};

use super::written;
use crate::lan::Subnet;

/// What a node has that stands for the machine's outside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct InternetAccess {
    /// What leads to the machine's loopback, by IPv4, unless IPv4 is off.
    pub host_v4: Option<Ipv4Addr>,
    /// The same by IPv6.
    pub host_v6: Option<Ipv6Addr>,
    /// What may be reached; `None`: all that an ordinary program of the machine reaches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allow: Option<Vec<InternetAllowRule>>,
}

impl InternetAccess {
    /// The addresses that lead to the machine's loopback.
    pub fn host_addresses(&self) -> impl Iterator<Item = IpAddr> + use<> {
        self.host_v4.map(IpAddr::V4).into_iter().chain(self.host_v6.map(IpAddr::V6))
    }
}

/// Something outside that may be reached; as text `dns`, `192.0.2.0/24:443`,
/// `[2001:db8::]/32:80-90`, or without a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum InternetAllowRule {
    /// Names are resolved.
    Dns,
    /// Addresses, perhaps at some ports only.
    Range {
        /// The first of the addresses.
        network: IpAddr,
        /// How many bits of it count.
        prefix: u8,
        /// The first and the last port of TCP and UDP; `None`: all of them, and ICMP echo.
        ports: Option<(u16, u16)>,
    },
}

impl InternetAllowRule {
    /// Whether it lets packets to an address pass; with `None` as port, those of ICMP echo.
    #[must_use]
    pub fn permits(&self, address: IpAddr, port: Option<u16>) -> bool {
        let InternetAllowRule::Range { network, prefix, ports } = *self else { return false };
        let within = match (ports, port) {
            (None, _) => true,
            (Some((first, last)), Some(port)) => (first..=last).contains(&port),
            (Some(_), None) => false,
        };
        within && Subnet { network, prefix }.contains(address)
    }
}

impl fmt::Display for InternetAllowRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let InternetAllowRule::Range { network, prefix, ports } = self else {
            return f.write_str("dns");
        };
        match network {
            IpAddr::V4(v4) => write!(f, "{v4}/{prefix}")?,
            IpAddr::V6(v6) => write!(f, "[{v6}]/{prefix}")?,
        }
        match ports {
            None => Ok(()),
            Some((first, last)) if first == last => write!(f, ":{first}"),
            Some((first, last)) => write!(f, ":{first}-{last}"),
        }
    }
}

impl FromStr for InternetAllowRule {
    type Err = AllowError;

    fn from_str(text: &str) -> Result<Self, AllowError> {
        if text == "dns" {
            return Ok(InternetAllowRule::Dns);
        }
        let error = || AllowError(text.to_owned());
        let (address, rest) = split_address(text).ok_or_else(error)?;
        let network: IpAddr = address.parse().map_err(|_| error())?;
        let width = if network.is_ipv4() { 32 } else { 128 };
        let (prefix, ports) = match rest.split_once(':') {
            Some((prefix, ports)) => (prefix, Some(ports)),
            None => (rest, None),
        };
        let prefix = match prefix {
            "" => Some(width),
            prefix => prefix.strip_prefix('/').and_then(written::number),
        };
        let prefix = prefix.filter(|prefix| *prefix <= width).ok_or_else(error)?;
        let ports = ports.map(|ports| written::ports(ports).ok_or_else(error)).transpose()?;
        Ok(InternetAllowRule::Range { network, prefix, ports })
    }
}

/// The address at the beginning, and what follows it: `[2001:db8::]`, or up to the first `/` or
/// `:`. Without brackets an IPv6 address has no port.
fn split_address(text: &str) -> Option<(&str, &str)> {
    if let Some(inside) = text.strip_prefix('[') {
        return inside.split_once(']');
    }
    let is_v6 = text.matches(':').count() > 1;
    let end = if is_v6 { text.find('/') } else { text.find(['/', ':']) };
    Some(text.split_at(end.unwrap_or(text.len())))
}

impl From<InternetAllowRule> for String {
    fn from(allow: InternetAllowRule) -> String {
        allow.to_string()
    }
}

impl TryFrom<String> for InternetAllowRule {
    type Error = AllowError;

    fn try_from(text: String) -> Result<Self, AllowError> {
        text.parse()
    }
}

/// A text that names nothing that could be allowed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not an address with perhaps a prefix and a port, such as 192.0.2.0/24:443, or `dns`"
)]
pub struct AllowError(String);

/// A TCP port of the machine that leads to a port of a node; as text `8080:80`, at the machine's
/// loopback, or `192.0.2.7:8080:80`, `[::]:8080:80`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct PortPublication {
    /// The address of the machine; `None`: 127.0.0.1, and `::1` where there is IPv6.
    pub address: Option<IpAddr>,
    /// The machine's port.
    pub port: u16,
    /// The node's port.
    pub to: u16,
}

impl PortPublication {
    /// Where the machine listens.
    #[must_use]
    pub fn addresses(&self) -> Vec<SocketAddr> {
        let loopback = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
        let all = match self.address {
            Some(address) => Vec::from([address]),
            None => Vec::from(loopback),
        };
        all.into_iter().map(|address| SocketAddr::new(address, self.port)).collect()
    }

    /// Whether only programs of the machine get to it.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        self.address.is_none_or(|address| address.is_loopback())
    }
}

impl fmt::Display for PortPublication {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.address {
            Some(IpAddr::V4(address)) => write!(f, "{address}:")?,
            Some(IpAddr::V6(address)) => write!(f, "[{address}]:")?,
            None => {}
        }
        write!(f, "{}:{}", self.port, self.to)
    }
}

impl FromStr for PortPublication {
    type Err = PublishError;

    fn from_str(text: &str) -> Result<Self, PublishError> {
        let error = || PublishError(text.to_owned());
        let (front, to) = text.rsplit_once(':').ok_or_else(error)?;
        let (address, machine) = match front.rsplit_once(':') {
            Some((address, machine)) => (Some(address), machine),
            None => (None, front),
        };
        let parse = |text: &str| {
            let inside = text.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
            match inside {
                Some(inside) => inside.parse().ok().map(IpAddr::V6),
                None => text.parse().ok().map(IpAddr::V4),
            }
        };
        let address = address.map(|text| parse(text).ok_or_else(error)).transpose()?;
        let port = written::port(machine).ok_or_else(error)?;
        let to = written::port(to).ok_or_else(error)?;
        Ok(PortPublication { address, port, to })
    }
}

impl From<PortPublication> for String {
    fn from(publish: PortPublication) -> String {
        publish.to_string()
    }
}

impl TryFrom<String> for PortPublication {
    type Error = PublishError;

    fn try_from(text: String) -> Result<Self, PublishError> {
        text.parse()
    }
}

/// A text that names no published port.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", published(.0))]
pub struct PublishError(String);

fn published(text: &str) -> String {
    format!("`{text}` is not a port of the machine and one of the node, such as 8080:80")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allow(text: &str) -> InternetAllowRule {
        text.parse().unwrap()
    }

    #[test]
    fn what_is_allowed_is_printed_as_it_is_written() {
        for text in [
            "dns",
            "192.0.2.0/24:443",
            "192.0.2.7/32",
            "0.0.0.0/0:80-90",
            "[2001:db8::]/32:443",
            "[::]/0",
        ] {
            assert_eq!(allow(text).to_string(), text);
        }
        assert_eq!(allow("192.0.2.7:53").to_string(), "192.0.2.7/32:53");
        assert_eq!(allow("2001:db8::/32").to_string(), "[2001:db8::]/32");
        assert_eq!(allow("2001:db8::1").to_string(), "[2001:db8::1]/128");
    }

    #[test]
    fn what_names_no_range_is_refused() {
        for text in [
            "",
            "example",
            "192.0.2.0/33",
            "192.0.2.0/24:",
            "192.0.2.0/24:0",
            "1.2.3.4:9-8",
            "1.2.3.4:080",
            "[::1:80",
            "2001:db8::/129",
            "1.2.3.4/+8",
            "1.2.3/8",
            "dns:53",
        ] {
            assert!(text.parse::<InternetAllowRule>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_range_permits_its_addresses_at_its_ports_and_echo_only_without_ports() {
        let at = |text: &str| text.parse::<IpAddr>().unwrap();
        let web = allow("192.0.2.0/24:443");
        assert!(web.permits(at("192.0.2.255"), Some(443)));
        assert!(!web.permits(at("192.0.3.0"), Some(443)));
        assert!(!web.permits(at("192.0.2.1"), Some(80)));
        assert!(!web.permits(at("192.0.2.1"), None));
        assert!(!web.permits(at("2001:db8::1"), Some(443)));
        assert!(allow("192.0.2.0/24").permits(at("192.0.2.1"), None));
        assert!(allow("0.0.0.0/0").permits(at("203.0.113.9"), Some(1)));
        assert!(!InternetAllowRule::Dns.permits(at("192.0.2.1"), Some(53)));
    }

    #[test]
    fn a_published_port_is_of_the_loopback_unless_an_address_is_written() {
        let publish = |text: &str| text.parse::<PortPublication>().unwrap();
        for text in ["8080:80", "127.0.0.1:8080:80", "[::]:8080:80", "0.0.0.0:1:65535"] {
            assert_eq!(publish(text).to_string(), text);
        }
        let own = publish("8080:80");
        let addresses: Vec<String> = own.addresses().iter().map(ToString::to_string).collect();
        assert_eq!(addresses, ["127.0.0.1:8080", "[::1]:8080"]);
        assert!(own.is_loopback() && publish("127.0.0.1:8080:80").is_loopback());
        assert!(!publish("0.0.0.0:8080:80").is_loopback());
        for text in ["80", "0:80", "80:0", "x:80", ":80", "::1:8080:80", "1.2.3:8080:80", "80:080"]
        {
            assert!(text.parse::<PortPublication>().is_err(), "{text}");
        }
    }
}
