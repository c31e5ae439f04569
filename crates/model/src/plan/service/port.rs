//! Ports of services: `80/tcp`.

use alloc::borrow::ToOwned;
use alloc::string::{String, ToString};
use core::fmt;
use core::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::plan::written;

/// A port of a transport protocol; as text `80/tcp`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct ServicePort {
    /// From 1.
    pub port: u16,
    /// The protocol.
    pub transport: TransportProtocol,
}

/// A transport protocol with ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TransportProtocol {
    /// RFC 9293.
    Tcp,
    /// RFC 768.
    Udp,
}

impl TransportProtocol {
    /// Its number in IP headers.
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            TransportProtocol::Tcp => 6,
            TransportProtocol::Udp => 17,
        }
    }

    /// The word for it in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            TransportProtocol::Tcp => "tcp",
            TransportProtocol::Udp => "udp",
        }
    }
}

impl fmt::Display for ServicePort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.port, self.transport.name())
    }
}

impl FromStr for ServicePort {
    type Err = PortError;

    fn from_str(text: &str) -> Result<Self, PortError> {
        let error = || PortError(text.to_owned());
        let (port, transport) = text.split_once('/').ok_or_else(error)?;
        let transport = match transport {
            "tcp" => TransportProtocol::Tcp,
            "udp" => TransportProtocol::Udp,
            _ => return Err(error()),
        };
        let port = written::port(port).ok_or_else(error)?;
        Ok(ServicePort { port, transport })
    }
}

impl From<ServicePort> for String {
    fn from(port: ServicePort) -> String {
        port.to_string()
    }
}

impl TryFrom<String> for ServicePort {
    type Error = PortError;

    fn try_from(text: String) -> Result<Self, PortError> {
        text.parse()
    }
}

/// A text that is no port of a service.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a port such as 80/tcp or 53/udp")]
pub struct PortError(String);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_printed_as_it_is_written() {
        for text in ["80/tcp", "53/udp", "65535/tcp", "1/udp"] {
            assert_eq!(text.parse::<ServicePort>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn what_is_no_port_is_refused() {
        for text in ["80", "80/", "/tcp", "0/tcp", "65536/tcp", "080/tcp", "+80/tcp", "80/sctp"] {
            assert!(text.parse::<ServicePort>().is_err(), "{text}");
        }
        let error = "http/tcp".parse::<ServicePort>().unwrap_err();
        assert_eq!(error.to_string(), "`http/tcp` is not a port such as 80/tcp or 53/udp");
    }
}
