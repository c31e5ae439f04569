//! How far a TCP connection has got, as far as what is between its ends can see it (RFC 5382, 4.2
//! and 5).

use windtunnel_model::Span;
use windtunnel_model::plan::{IpTransport, Timeouts};

/// What has been seen of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct TcpTrackingState(u8);

/// The way of a packet: that of the one which began the flow, or the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TrackedFlowDirection {
    Forth,
    Back,
}

impl TcpTrackingState {
    /// Takes a segment with these flags into account.
    #[inline]
    pub(crate) fn note(&mut self, flags: u8, way: TrackedFlowDirection) {
        if flags & (SYN | RST) == SYN && self.is_closed() {
            // Another connection of the same ends.
            self.0 = 0;
        }
        let bit = |own: u8| match way {
            TrackedFlowDirection::Forth => own,
            TrackedFlowDirection::Back => own << 1,
        };
        if flags & SYN != 0 {
            self.0 |= bit(SYN_FORTH);
        }
        if flags & FIN != 0 {
            self.0 |= bit(FIN_FORTH);
        }
        if flags & RST != 0 {
            self.0 |= RESET;
        }
        self.0 |= bit(SEEN_FORTH);
        let syns = self.0 & (SYN_FORTH | SYN_FORTH << 1);
        // The handshake is over with an ACK behind both SYNs; what was seen first in its middle is
        // established when both ends have spoken.
        let seen = self.0 & (SEEN_FORTH | SEEN_FORTH << 1) == SEEN_FORTH | SEEN_FORTH << 1;
        if flags & (SYN | RST) == 0 && (syns == SYN_FORTH | SYN_FORTH << 1 || (syns == 0 && seen)) {
            self.0 |= ESTABLISHED;
        }
    }

    fn is_closed(self) -> bool {
        let fins = FIN_FORTH | FIN_FORTH << 1;
        self.0 & RESET != 0 || self.0 & fins == fins
    }

    /// How long the flow is known without a packet.
    #[inline]
    pub(crate) fn timeout(self, transport: IpTransport, timeouts: &Timeouts) -> Span {
        match transport {
            IpTransport::Udp => timeouts.udp,
            IpTransport::Icmp => timeouts.icmp,
            IpTransport::Tcp if self.0 & ESTABLISHED != 0 && !self.is_closed() => timeouts.tcp,
            IpTransport::Tcp => timeouts.tcp_transitory,
        }
    }
}

const FIN: u8 = 0x01;
const SYN: u8 = 0x02;
const RST: u8 = 0x04;

// Of the way back, each is the bit above.
const SYN_FORTH: u8 = 0x01;
const FIN_FORTH: u8 = 0x04;
const SEEN_FORTH: u8 = 0x10;
const ESTABLISHED: u8 = 0x40;
const RESET: u8 = 0x80;

#[cfg(test)]
mod tests {
    use super::*;

    const ACK: u8 = 0x10;

    /// Whether a connection with these segments has the long time-out.
    fn is_established(segments: &[(u8, TrackedFlowDirection)]) -> bool {
        let mut progress = TcpTrackingState::default();
        segments.iter().for_each(|(flags, way)| progress.note(*flags, *way));
        progress.timeout(IpTransport::Tcp, &Timeouts::NAT) == Timeouts::NAT.tcp
    }

    #[test]
    fn a_connection_is_established_between_its_handshake_and_the_second_fin() {
        use TrackedFlowDirection::{Back, Forth};
        let open = [(SYN, Forth), (SYN | ACK, Back), (ACK, Forth)];
        assert!(!is_established(&open[..2]));
        assert!(is_established(&open));
        let closing = [&open[..], &[(FIN | ACK, Forth), (ACK, Back)]].concat();
        assert!(is_established(&closing), "one end still sends");
        assert!(!is_established(&[&closing[..], &[(FIN | ACK, Back)]].concat()));
        assert!(!is_established(&[&open[..], &[(RST, Back)]].concat()));
    }

    #[test]
    fn a_simultaneous_open_is_a_handshake() {
        use TrackedFlowDirection::{Back, Forth};
        let open = [(SYN, Forth), (SYN, Back), (SYN | ACK, Forth), (SYN | ACK, Back)];
        assert!(!is_established(&open));
        assert!(is_established(&[&open[..], &[(ACK, Forth)]].concat()));
    }

    #[test]
    fn a_new_syn_begins_anew_and_a_connection_may_be_seen_first_in_its_middle() {
        use TrackedFlowDirection::{Back, Forth};
        assert!(!is_established(&[(ACK, Forth), (RST, Back), (SYN, Forth)]));
        assert!(!is_established(&[(ACK, Forth)]));
        assert!(is_established(&[(ACK, Forth), (ACK, Back)]));
    }
}
