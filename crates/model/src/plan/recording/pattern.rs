//! Flows, by a text such as `tcp client web:80`.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::net::Ipv6Addr;
use core::str::FromStr;

use serde::{Deserialize, Serialize};

/// Which flows are meant. A flow fits where its protocol and, of its two ends, different ones fit
/// each end of the pattern.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct FlowPattern {
    /// `None`: any.
    pub protocol: Option<PatternProtocol>,
    /// At most two.
    pub ends: Vec<FlowEnd>,
}

/// A protocol that a pattern may name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatternProtocol {
    Tcp,
    Udp,
    Icmp,
}

/// One end of a flow; of its two parts at least one is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowEnd {
    /// The name of a node or group, or an IP address.
    pub host: Option<String>,
    pub port: Option<u16>,
}

/// Why a text is no pattern of flows.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a pattern of flows such as `tcp client web:80`, `udp :53` or `10.0.0.1`")]
pub struct PatternError(String);

impl FlowPattern {
    /// The names and addresses in it.
    pub fn hosts(&self) -> impl Iterator<Item = &str> {
        self.ends.iter().filter_map(|end| end.host.as_deref())
    }
}

impl PatternProtocol {
    /// Its numbers in IP headers (ICMP has one for each version of IP).
    #[must_use]
    pub fn has_number(self, number: u8) -> bool {
        match self {
            PatternProtocol::Tcp => number == 6,
            PatternProtocol::Udp => number == 17,
            PatternProtocol::Icmp => number == 1 || number == 58,
        }
    }

    const ALL: [(&'static str, PatternProtocol); 3] = [
        ("tcp", PatternProtocol::Tcp),
        ("udp", PatternProtocol::Udp),
        ("icmp", PatternProtocol::Icmp),
    ];
}

impl FromStr for FlowPattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        let wrong = || PatternError(text.chars().take(SHOWN_MAX).collect());
        let mut words = text.split_whitespace().peekable();
        let protocol = words.peek().and_then(|word| {
            let known = PatternProtocol::ALL.iter().find(|(name, _)| name == word);
            known.map(|(_, protocol)| *protocol)
        });
        if protocol.is_some() {
            words.next();
        }
        let ends: Option<Vec<FlowEnd>> = words.map(end).collect();
        let ends = ends.filter(|ends| ends.len() <= 2).ok_or_else(wrong)?;
        if protocol.is_none() && ends.is_empty() {
            return Err(wrong());
        }
        Ok(FlowPattern { protocol, ends })
    }
}

fn end(word: &str) -> Option<FlowEnd> {
    // An IPv6 address with a port stands in brackets (RFC 3986, 3.2.2).
    if word.parse::<Ipv6Addr>().is_ok() {
        return Some(FlowEnd { host: Some(word.to_owned()), port: None });
    }
    let (host, port) = match word.rsplit_once(':') {
        Some((host, port)) => (host, Some(port.parse().ok()?)),
        None => (word, None),
    };
    let bracketed = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let host = match bracketed {
        Some(address) => address.parse::<Ipv6Addr>().ok().map(|it| it.to_string())?,
        None => host.to_owned(),
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._:".contains(c);
    let host = Some(host).filter(|host| !host.is_empty());
    let sane = host.iter().all(|host| host.chars().all(plain));
    (sane && (host.is_some() || port.is_some())).then_some(FlowEnd { host, port })
}

impl fmt::Display for FlowPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named =
            PatternProtocol::ALL.iter().find(|(_, protocol)| Some(*protocol) == self.protocol);
        let protocol = named.map(|(name, _)| (*name).to_owned());
        let ends = self.ends.iter().map(ToString::to_string);
        let words: Vec<String> = protocol.into_iter().chain(ends).collect();
        f.write_str(&words.join(" "))
    }
}

impl fmt::Display for FlowEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = self.host.as_deref().unwrap_or("");
        match self.port {
            Some(port) if host.contains(':') => write!(f, "[{host}]:{port}"),
            Some(port) => write!(f, "{host}:{port}"),
            None => f.write_str(host),
        }
    }
}

impl TryFrom<String> for FlowPattern {
    type Error = PatternError;

    fn try_from(text: String) -> Result<Self, PatternError> {
        text.parse()
    }
}

impl From<FlowPattern> for String {
    fn from(pattern: FlowPattern) -> Self {
        format!("{pattern}")
    }
}

/// Characters of a wrong pattern that its error shows.
const SHOWN_MAX: usize = 80;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_names_a_protocol_and_up_to_two_ends() {
        for text in ["tcp", "tcp web:80", "udp :53", "client web", "10.0.0.1", "icmp fd00::1"] {
            let pattern: FlowPattern = text.parse().unwrap();
            assert_eq!(pattern.to_string(), text);
        }
        let pattern: FlowPattern = "tcp  client [fd00::1]:443".parse().unwrap();
        assert_eq!(pattern.protocol, Some(PatternProtocol::Tcp));
        let end = FlowEnd { host: Some("fd00::1".to_owned()), port: Some(443) };
        assert_eq!(pattern.ends[1], end);
        assert_eq!(pattern.to_string(), "tcp client [fd00::1]:443");
    }

    #[test]
    fn a_text_that_is_no_pattern_is_refused_with_examples() {
        for text in ["", "a b c", "web:http", "web:99999", ":", "[web]:80", "tcp we/b"] {
            let error = text.parse::<FlowPattern>().unwrap_err().to_string();
            assert!(error.contains("tcp client web:80"), "{text}: {error}");
        }
    }
}
