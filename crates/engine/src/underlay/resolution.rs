//! Questions and answers about Ethernet addresses on LANs (ARP, RFC 826; neighbour discovery,
//! RFC 4861), and what routers have learned from them.

use alloc::collections::BTreeMap;
use core::net::{IpAddr, Ipv6Addr};

use windtunnel_model::{Lane, Time};
use windtunnel_wire::arp::{self, ArpPacket};
use windtunnel_wire::ethernet;
use windtunnel_wire::icmp::{NEIGHBOUR_FRAME_LEN, NeighbourMessage};
use windtunnel_wire::packet::ParsedPacket;

use crate::neighbours::Neighbours;
use crate::network::RouterLanInterface;

/// What routers know of their neighbours.
#[derive(Debug, Default)]
pub(crate) struct NeighbourTables {
    /// By the lane from a router to a LAN.
    by_lane: BTreeMap<Lane, Neighbours>,
}

/// A message that a router sends.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ResolutionFrame {
    /// Of IPv4, and the Ethernet address to which it goes.
    Arp(ArpPacket, [u8; 6]),
    /// Who has `target`?
    Solicitation { own: Ipv6Addr, mac: [u8; 6], target: Ipv6Addr },
    /// The answer to such a question, with the own Ethernet address and the one to which it goes.
    Advertisement { question: NeighbourMessage, mac: [u8; 6], to: [u8; 6] },
}

/// What a message means to the router that it has come to.
#[derive(Debug)]
pub(crate) struct ResolutionOutcome {
    pub(crate) station: RouterLanInterface,
    /// Where an address is.
    pub(crate) found: Option<(IpAddr, [u8; 6])>,
    /// It is about the router's own address.
    pub(crate) is_own: bool,
    /// What the router answers.
    pub(crate) answer: Option<ResolutionFrame>,
}

impl NeighbourTables {
    /// Where an address is, if nothing has to be asked.
    pub(super) fn fresh(&self, now: Time, lane: Lane, address: IpAddr) -> Option<[u8; 6]> {
        self.by_lane.get(&lane)?.fresh(now, address)
    }

    /// What is known behind a lane, to be changed.
    pub(super) fn behind(&mut self, lane: Lane) -> &mut Neighbours {
        self.by_lane.entry(lane).or_default()
    }

    /// The same, where anything is known.
    pub(super) fn known_behind(&mut self, lane: Lane) -> Option<&mut Neighbours> {
        self.by_lane.get_mut(&lane)
    }

    /// When something is to be asked again behind a lane.
    pub(super) fn next(&self, lane: Lane) -> Option<Time> {
        self.by_lane.get(&lane)?.next()
    }
}

impl ResolutionOutcome {
    /// What a frame means to the router behind `station`; `None`: it is no such message.
    pub(super) fn of(
        station: RouterLanInterface,
        frame: &[u8],
        packet: Option<&ParsedPacket<'_>>,
    ) -> Option<ResolutionOutcome> {
        let Some(packet) = packet else {
            let message = ArpPacket::parse(frame).ok()?;
            return Some(ResolutionOutcome::of_arp(&message, station));
        };
        let message = NeighbourMessage::of(packet)?;
        Some(ResolutionOutcome::of_discovery(&message, frame, station))
    }

    fn of_arp(message: &ArpPacket, station: RouterLanInterface) -> ResolutionOutcome {
        let (mac, address) = message.sender;
        let is_own = station.v4 == Some(message.target.1);
        let answer = || {
            let answer = ArpPacket {
                operation: arp::REPLY,
                sender: (station.mac, message.target.1),
                target: message.sender,
            };
            ResolutionFrame::Arp(answer, mac)
        };
        ResolutionOutcome {
            station,
            found: Some((address.into(), mac)),
            is_own,
            answer: (is_own && message.operation == arp::REQUEST).then(answer),
        }
    }

    fn of_discovery(
        message: &NeighbourMessage,
        frame: &[u8],
        station: RouterLanInterface,
    ) -> ResolutionOutcome {
        let is_own = message.asks && station.v6 == Some(message.target);
        let about = if message.asks { message.source } else { message.target };
        let answer = || {
            let to = ethernet::EthernetFrame::parse(frame).map_or(BROADCAST, |view| view.source());
            let to = message.mac.unwrap_or(to);
            ResolutionFrame::Advertisement { question: *message, mac: station.mac, to }
        };
        ResolutionOutcome {
            station,
            found: message.mac.map(|mac| (about.into(), mac)),
            is_own,
            answer: is_own.then(answer),
        }
    }
}

impl ResolutionFrame {
    /// Room for any of them.
    pub(super) const LEN: usize = NEIGHBOUR_FRAME_LEN;

    /// The question for an address; `None`: the router has none of its version there.
    pub(super) fn question(station: RouterLanInterface, address: IpAddr) -> Option<Self> {
        match (address, station.v4, station.v6) {
            (IpAddr::V4(target), Some(own), _) => {
                let question = ArpPacket {
                    operation: arp::REQUEST,
                    sender: (station.mac, own),
                    target: ([0; 6], target),
                };
                Some(ResolutionFrame::Arp(question, BROADCAST))
            }
            (IpAddr::V6(target), _, Some(own)) => {
                Some(ResolutionFrame::Solicitation { own, mac: station.mac, target })
            }
            _ => None,
        }
    }

    /// Writes it; how long it is.
    pub(super) fn write(&self, buf: &mut [u8]) -> Option<usize> {
        match self {
            ResolutionFrame::Arp(packet, to) => packet.write(*to, buf),
            ResolutionFrame::Solicitation { own, mac, target } => {
                NeighbourMessage::write_solicitation(*own, *mac, *target, buf)
            }
            ResolutionFrame::Advertisement { question, mac, to } => {
                question.write_answer(*mac, *to, buf)
            }
        }
    }
}

const BROADCAST: [u8; 6] = [0xff; 6];
