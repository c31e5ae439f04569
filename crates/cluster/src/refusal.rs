//! Why the other end closed a connection.

use quinn::ConnectionError;

/// Why an agent does not take this end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HandshakeRefusal {
    /// It has another key.
    Key,
    /// It is of a version with another handshake.
    Version,
    /// It has too many connections that are not made yet.
    Busy,
}

impl HandshakeRefusal {
    /// What the error of a connection means, if the other end refuses.
    pub(crate) fn of(error: &ConnectionError) -> Option<Self> {
        let code = match error {
            ConnectionError::TransportError(error) => u64::from(error.code),
            ConnectionError::ConnectionClosed(close) => u64::from(close.error_code),
            _ => return None,
        };
        match code {
            CONNECTION_REFUSED => Some(HandshakeRefusal::Busy),
            NO_APPLICATION_PROTOCOL => Some(HandshakeRefusal::Version),
            0x100..=0x1ff => Some(HandshakeRefusal::Key),
            _ => None,
        }
    }

    /// In words, as something that the other agent does.
    pub(crate) fn text(self) -> String {
        match self {
            HandshakeRefusal::Key => "it has another key".to_owned(),
            HandshakeRefusal::Version => {
                let own = windtunnel_control::SoftwareVersion::own();
                format!("it is of an older version, which does not say which it is; this is {own}")
            }
            HandshakeRefusal::Busy => {
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

#[cfg(test)]
mod tests {
    use quinn::{ApplicationClose, ConnectionClose, TransportErrorCode as Code, VarInt};

    use super::*;

    fn closed(error_code: Code) -> ConnectionError {
        let (frame_type, reason) = (None, Default::default());
        ConnectionError::ConnectionClosed(ConnectionClose { error_code, frame_type, reason })
    }

    #[test]
    fn only_codes_that_refuse_are_refusals() {
        // RFC 9000, 20.1: CONNECTION_REFUSED; RFC 9001, 4.8: 0x100 and TLS's alert.
        let cases = [
            (Code::NO_ERROR, None),
            (Code::INTERNAL_ERROR, None),
            (Code::CONNECTION_REFUSED, Some(HandshakeRefusal::Busy)),
            (Code::PROTOCOL_VIOLATION, None),
            (Code::crypto(0), Some(HandshakeRefusal::Key)),
            // bad_certificate, unknown_ca, no_application_protocol.
            (Code::crypto(42), Some(HandshakeRefusal::Key)),
            (Code::crypto(48), Some(HandshakeRefusal::Key)),
            (Code::crypto(120), Some(HandshakeRefusal::Version)),
            (Code::crypto(255), Some(HandshakeRefusal::Key)),
        ];
        for (code, refusal) in cases {
            assert_eq!(HandshakeRefusal::of(&closed(code)), refusal, "{code:?}");
        }
        let close =
            ApplicationClose { error_code: VarInt::from_u32(2), reason: Default::default() };
        for other in [
            ConnectionError::ApplicationClosed(close),
            ConnectionError::TimedOut,
            ConnectionError::Reset,
            ConnectionError::LocallyClosed,
            ConnectionError::VersionMismatch,
        ] {
            assert_eq!(HandshakeRefusal::of(&other), None, "{other:?}");
        }
    }
}
