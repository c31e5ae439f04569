//! What kernels say to the link itself, and multicast without a receiver, never enters a lane.
//!
//! A node's kernel reports multicast membership at moments of its own choosing (IGMP, RFC 3376;
//! MLD, RFC 3810) and looks for routers and neighbours (RFC 4861). On these point-to-point links
//! that changes nothing, but every report would take a packet number, and with it the random draws
//! of the packets after it: two runs of the same programs would lose different packets. The same
//! holds for any multicast or broadcast towards a router, which forwards none.
//!
//! On a LAN they do enter the lanes: address resolution is what a LAN is about, and it takes its
//! time, its place in queues, and its chance of loss. So that the random draws of programs' packets
//! depend on those packets alone, what kernels send of their own accord there ([`is_kernels_own`])
//! has numbers of its own, and so random draws of their own; bursts of loss go on only with
//! programs' packets.

use windtunnel_wire::packet::ParsedPacket;
use windtunnel_wire::{ethernet, icmp};

/// Whether a frame that a node sent stays out of its lane, which ends at a router or at a node.
pub(crate) fn stays_out(frame: &[u8], towards_router: bool) -> bool {
    let to_a_group = ethernet::EthernetFrame::parse(frame).is_ok_and(|view| view.is_multicast());
    to_a_group
        && ParsedPacket::parse(frame).is_ok_and(|packet| towards_router || is_housekeeping(&packet))
}

/// Whether a kernel sends such a frame without being asked by a program: ARP (RFC 826), and what
/// [`stays_out`] calls housekeeping.
pub(crate) fn is_kernels_own(frame: &[u8]) -> bool {
    ethernet::EthernetFrame::parse(frame).is_ok_and(|view| match view.ethertype() {
        ethernet::ARP => true,
        ethernet::IPV4 | ethernet::IPV6 => {
            ParsedPacket::parse(frame).is_ok_and(|packet| is_housekeeping(&packet))
        }
        _ => false,
    })
}

fn is_housekeeping(packet: &ParsedPacket<'_>) -> bool {
    const IGMP: u8 = 2;
    match packet.info.protocol {
        IGMP => true,
        icmp::PROTOCOL_V6 => icmp::IcmpMessage::parse(packet.payload())
            .is_ok_and(|message| is_link_message(message.kind())),
        _ => false,
    }
}

/// ICMPv6: multicast listener queries, reports and done (130–132, 143); router and neighbour
/// discovery and redirects (133–137).
fn is_link_message(kind: u8) -> bool {
    matches!(kind, 130..=137 | 143)
}

#[cfg(test)]
mod tests {
    use windtunnel_wire::build;

    use super::*;

    /// A UDP packet to `destination`, whose Ethernet destination is a group where `group` says so.
    fn udp(destination: [u8; 4], group: bool) -> Vec<u8> {
        let end = |address: [u8; 4]| (address, 5353).into();
        let mut frame = build::udp(end([10, 0, 0, 1]), end(destination), b"hello");
        frame[0] = u8::from(group);
        frame
    }

    #[test]
    fn unicast_enters_every_lane() {
        assert!(!stays_out(&udp([10, 0, 0, 2], false), true));
        assert!(!stays_out(&udp([10, 0, 0, 2], false), false));
    }

    #[test]
    fn multicast_enters_a_lane_to_a_node_but_none_to_a_router() {
        assert!(stays_out(&udp([224, 0, 0, 251], true), true));
        assert!(!stays_out(&udp([224, 0, 0, 251], true), false));
    }

    #[test]
    fn kernels_send_address_resolution_and_membership_of_their_own_accord() {
        let mut arp = udp([10, 0, 0, 2], true);
        arp[12..14].copy_from_slice(&[0x08, 0x06]);
        assert!(is_kernels_own(&arp));
        let mut igmp = udp([224, 0, 0, 22], true);
        igmp[14 + 9] = 2;
        assert!(is_kernels_own(&igmp));
        assert!(!is_kernels_own(&udp([224, 0, 0, 251], true)));
        assert!(!is_kernels_own(&[0; 20]));
    }

    #[test]
    fn membership_reports_enter_no_lane() {
        let mut igmp = udp([224, 0, 0, 22], true);
        igmp[14 + 9] = 2;
        assert!(stays_out(&igmp, false));
    }
}
