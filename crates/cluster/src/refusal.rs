//! Why the other end closed a connection.

use quinn::ConnectionError;

/// Why an agent does not take this end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// It has another key.
    Key,
    /// It is of a version with another handshake.
    Version,
    /// It has too many connections that are not made yet.
    Busy,
}

impl Refusal {
    /// What the error of a connection means, if the other end refuses.
    pub(crate) fn of(error: &ConnectionError) -> Option<Self> {
        let code = match error {
            ConnectionError::TransportError(error) => u64::from(error.code),
            ConnectionError::ConnectionClosed(close) => u64::from(close.error_code),
            _ => return None,
        };
        match code {
            CONNECTION_REFUSED => Some(Refusal::Busy),
            NO_APPLICATION_PROTOCOL => Some(Refusal::Version),
            0x100..=0x1ff => Some(Refusal::Key),
            _ => None,
        }
    }

    /// In words, as something that the other agent does.
    pub(crate) fn text(self) -> String {
        match self {
            Refusal::Key => "it has another key".to_owned(),
            Refusal::Version => {
                let own = windtunnel_control::Version::own();
                format!("it is of an older version, which does not say which it is; this is {own}")
            }
            Refusal::Busy => {
                "it has too many handshakes that are not finished, and takes no more for now"
                    .to_owned()
            }
        }
    }
}

/// RFC 9000, 20.1.
const CONNECTION_REFUSED: u64 = 0x02;
/// TLS's alerts are 0x100 and more (RFC 9001, 4.8); this is 120 (RFC 7301, 3.2).
const NO_APPLICATION_PROTOCOL: u64 = 0x178;
