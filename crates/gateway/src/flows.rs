//! Connections by their addresses, and what becomes of a segment of one.

use std::net::SocketAddr;

use windtunnel_wire::packet::ParsedPacket;
use windtunnel_wire::tcp;

/// A connection, as its client in the network knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ProxiedConnectionKey {
    pub(crate) client: SocketAddr,
    pub(crate) server: SocketAddr,
}

/// How far a connection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProxiedConnectionStage {
    /// The outside is being asked; the client's SYN is kept meanwhile.
    Dialled,
    /// The outside has accepted, and the kernel has the client's SYN.
    Offered,
    /// Both sides are joined.
    Joined,
    /// Nothing is carried any more, but the kernel may still have to end it with the client.
    Over,
}

/// What becomes of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SegmentDisposition {
    /// It asks for a new connection.
    Begin,
    /// It asks for one that is being made: the newest request is kept.
    Keep,
    /// It goes to the kernel.
    Pass,
    /// The client wants it no more.
    Cancel,
    /// It belongs to nothing, and is answered with a reset.
    Stray,
    /// It belongs to nothing, and must not be answered.
    Drop,
}

impl ProxiedConnectionKey {
    /// That of a packet with ports; `None` for others.
    pub(crate) fn of(packet: &ParsedPacket<'_>) -> Option<ProxiedConnectionKey> {
        let (info, (from, to)) = (&packet.info, packet.ports()?);
        let client = SocketAddr::new(info.source, from);
        let server = SocketAddr::new(info.final_destination, to);
        Some(ProxiedConnectionKey { client, server })
    }
}

/// What becomes of a segment with these flags, of a connection at that stage.
pub(crate) fn step(stage: Option<ProxiedConnectionStage>, flags: u8) -> SegmentDisposition {
    let is_request = flags & (tcp::SYN | tcp::ACK | tcp::RST) == tcp::SYN;
    let is_reset = flags & tcp::RST != 0;
    match stage {
        None | Some(ProxiedConnectionStage::Over) if is_request => SegmentDisposition::Begin,
        Some(ProxiedConnectionStage::Dialled) if is_request => SegmentDisposition::Keep,
        Some(ProxiedConnectionStage::Dialled) if is_reset => SegmentDisposition::Cancel,
        Some(
            ProxiedConnectionStage::Offered
            | ProxiedConnectionStage::Joined
            | ProxiedConnectionStage::Over,
        ) => SegmentDisposition::Pass,
        None | Some(ProxiedConnectionStage::Dialled) if is_reset => SegmentDisposition::Drop,
        None | Some(ProxiedConnectionStage::Dialled) => SegmentDisposition::Stray,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_held_until_the_outside_has_accepted() {
        assert_eq!(step(None, tcp::SYN), SegmentDisposition::Begin);
        // With congestion notification negotiated (RFC 3168, 6.1.1).
        assert_eq!(step(None, tcp::SYN | tcp::ECE | tcp::CWR), SegmentDisposition::Begin);
        assert_eq!(step(Some(ProxiedConnectionStage::Dialled), tcp::SYN), SegmentDisposition::Keep);
        assert_eq!(step(Some(ProxiedConnectionStage::Offered), tcp::SYN), SegmentDisposition::Pass);
    }

    #[test]
    fn a_client_that_gives_up_before_is_forgotten() {
        assert_eq!(
            step(Some(ProxiedConnectionStage::Dialled), tcp::RST),
            SegmentDisposition::Cancel
        );
        assert_eq!(
            step(Some(ProxiedConnectionStage::Dialled), tcp::RST | tcp::ACK),
            SegmentDisposition::Cancel
        );
    }

    #[test]
    fn what_belongs_to_a_connection_goes_to_the_kernel_until_that_is_done_with_it() {
        for stage in [
            ProxiedConnectionStage::Offered,
            ProxiedConnectionStage::Joined,
            ProxiedConnectionStage::Over,
        ] {
            for flags in [tcp::ACK, tcp::ACK | tcp::FIN, tcp::RST, tcp::ACK | tcp::PSH] {
                assert_eq!(step(Some(stage), flags), SegmentDisposition::Pass);
            }
        }
        // The same ports again: the kernel decides whether the old connection is over (RFC 6191).
        assert_eq!(step(Some(ProxiedConnectionStage::Over), tcp::SYN), SegmentDisposition::Begin);
    }

    #[test]
    fn strays_are_answered_unless_they_are_resets() {
        assert_eq!(step(None, tcp::ACK), SegmentDisposition::Stray);
        assert_eq!(step(None, tcp::SYN | tcp::ACK), SegmentDisposition::Stray);
        assert_eq!(step(None, tcp::RST), SegmentDisposition::Drop);
        assert_eq!(step(None, tcp::RST | tcp::SYN), SegmentDisposition::Drop);
    }
}
