//! What the outside has said of a packet, as it is handed on to the packet's sender.

use rustix::io::Errno;
use windtunnel_sys::socket_error::QueuedError;
use windtunnel_wire::icmp::IcmpErrorKind;

/// The error for the sender: an ICMP message keeps its type and code; what the machine itself says
/// becomes the message for it. `None`: nothing that a message exists for.
pub(crate) fn kind(error: &QueuedError) -> Option<IcmpErrorKind> {
    let errno = Errno::from_raw_os_error(error.errno);
    if error.is_icmp {
        let is_size = errno == Errno::MSGSIZE;
        let word = if is_size { error.mtu } else { 0 };
        return Some(IcmpErrorKind::Said { kind: error.kind, code: error.code, word });
    }
    Some(match errno {
        Errno::CONNREFUSED => IcmpErrorKind::PortUnreachable,
        Errno::HOSTUNREACH => IcmpErrorKind::HostUnreachable,
        Errno::NETUNREACH => IcmpErrorKind::NetUnreachable,
        Errno::MSGSIZE => IcmpErrorKind::TooBig { mtu: error.mtu },
        Errno::ACCESS | Errno::PERM => IcmpErrorKind::AdminProhibited,
        _ => return None,
    })
}

/// Whether a host says it of itself, and not a router before it: that nothing has the port, or the
/// protocol (RFC 1122, 3.2.2.1; RFC 4443, 3.1 and 3.4).
pub(crate) fn is_of_host(kind: IcmpErrorKind, v4: bool) -> bool {
    match kind {
        IcmpErrorKind::PortUnreachable => true,
        IcmpErrorKind::Said { kind: 3, code: 2 | 3, .. } => v4,
        IcmpErrorKind::Said { kind: 1, code: 4, .. } | IcmpErrorKind::Said { kind: 4, .. } => !v4,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(errno: Errno, is_icmp: bool, kind: u8, code: u8, mtu: u32) -> QueuedError {
        let destination = "192.0.2.1:9".parse().unwrap();
        let errno = errno.raw_os_error();
        QueuedError { destination, errno, is_icmp, kind, code, mtu, bytes: 0 }
    }

    #[test]
    fn messages_keep_their_type_and_code() {
        // RFC 792: time exceeded; RFC 1812: communication prohibited; RFC 1191 has an MTU.
        for (errno, number, code, mtu, word) in [
            (Errno::HOSTUNREACH, 11, 0, 0, 0),
            (Errno::HOSTUNREACH, 3, 13, 0, 0),
            (Errno::HOSTUNREACH, 3, 1, 99, 0),
            (Errno::PROTO, 12, 0, 0, 0),
            (Errno::MSGSIZE, 3, 4, 1400, 1400),
        ] {
            let said = kind(&error(errno, true, number, code, mtu));
            assert_eq!(said, Some(IcmpErrorKind::Said { kind: number, code, word }));
        }
        assert_eq!(
            kind(&error(Errno::NETUNREACH, false, 0, 0, 0)),
            Some(IcmpErrorKind::NetUnreachable)
        );
        assert_eq!(kind(&error(Errno::NOMEM, false, 0, 0, 0)), None);
    }

    #[test]
    fn ports_and_protocols_are_the_word_of_their_host() {
        let said = |kind, code| IcmpErrorKind::Said { kind, code, word: 0 };
        assert!(is_of_host(said(3, 3), true) && is_of_host(said(3, 2), true));
        assert!(is_of_host(said(1, 4), false));
        assert!(!is_of_host(said(3, 1), true) && !is_of_host(said(3, 3), false));
        assert!(!is_of_host(said(11, 0), true) && !is_of_host(said(1, 3), false));
    }
}
