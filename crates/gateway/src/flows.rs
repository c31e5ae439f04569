//! Connections by their addresses, and what becomes of a segment of one.

use std::net::SocketAddr;

use windtunnel_wire::packet::ParsedPacket;
use windtunnel_wire::tcp;

/// A connection, as its client in the network knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct FlowKey {
    pub(crate) client: SocketAddr,
    pub(crate) server: SocketAddr,
}

/// How far a connection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
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
pub(crate) enum Step {
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

impl FlowKey {
    /// That of a packet with ports; `None` for others.
    pub(crate) fn of(packet: &ParsedPacket<'_>) -> Option<FlowKey> {
        let (info, (from, to)) = (&packet.info, packet.ports()?);
        let client = SocketAddr::new(info.source, from);
        let server = SocketAddr::new(info.final_destination, to);
        Some(FlowKey { client, server })
    }
}

/// What becomes of a segment with these flags, of a connection at that stage.
pub(crate) fn step(stage: Option<Stage>, flags: u8) -> Step {
    let is_request = flags & (tcp::SYN | tcp::ACK | tcp::RST) == tcp::SYN;
    let is_reset = flags & tcp::RST != 0;
    match stage {
        None | Some(Stage::Over) if is_request => Step::Begin,
        Some(Stage::Dialled) if is_request => Step::Keep,
        Some(Stage::Dialled) if is_reset => Step::Cancel,
        Some(Stage::Offered | Stage::Joined | Stage::Over) => Step::Pass,
        None | Some(Stage::Dialled) if is_reset => Step::Drop,
        None | Some(Stage::Dialled) => Step::Stray,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_held_until_the_outside_has_accepted() {
        assert_eq!(step(None, tcp::SYN), Step::Begin);
        // With congestion notification negotiated (RFC 3168, 6.1.1).
        assert_eq!(step(None, tcp::SYN | tcp::ECE | tcp::CWR), Step::Begin);
        assert_eq!(step(Some(Stage::Dialled), tcp::SYN), Step::Keep);
        assert_eq!(step(Some(Stage::Offered), tcp::SYN), Step::Pass);
    }

    #[test]
    fn a_client_that_gives_up_before_is_forgotten() {
        assert_eq!(step(Some(Stage::Dialled), tcp::RST), Step::Cancel);
        assert_eq!(step(Some(Stage::Dialled), tcp::RST | tcp::ACK), Step::Cancel);
    }

    #[test]
    fn what_belongs_to_a_connection_goes_to_the_kernel_until_that_is_done_with_it() {
        for stage in [Stage::Offered, Stage::Joined, Stage::Over] {
            for flags in [tcp::ACK, tcp::ACK | tcp::FIN, tcp::RST, tcp::ACK | tcp::PSH] {
                assert_eq!(step(Some(stage), flags), Step::Pass);
            }
        }
        // The same ports again: the kernel decides whether the old connection is over (RFC 6191).
        assert_eq!(step(Some(Stage::Over), tcp::SYN), Step::Begin);
    }

    #[test]
    fn strays_are_answered_unless_they_are_resets() {
        assert_eq!(step(None, tcp::ACK), Step::Stray);
        assert_eq!(step(None, tcp::SYN | tcp::ACK), Step::Stray);
        assert_eq!(step(None, tcp::RST), Step::Drop);
        assert_eq!(step(None, tcp::RST | tcp::SYN), Step::Drop);
    }
}
