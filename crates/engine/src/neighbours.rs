//! The Ethernet addresses that one router knows on one LAN.
//!
//! What is not known is asked for (ARP, RFC 826; neighbour discovery, RFC 4861), and packets wait
//! for the answer. An entry older than [`FRESH`] is asked for again while it goes on being used;
//! without an answer it is forgotten, and so are entries that were asked for [`TRIES`] times in
//! vain. An entry also becomes fresh with every message in which its owner names itself.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::net::IpAddr;

use windtunnel_model::{Span, Time};

use crate::packet::EmulatedPacket;

/// How long an entry is used without a question (RFC 4861, 10: REACHABLE_TIME).
pub(crate) const FRESH: Span = Span::from_millis(30_000);
/// Between two questions (RFC 4861, 10: RETRANS_TIMER).
pub(crate) const PATIENCE: Span = Span::from_millis(1000);
/// Questions before an address counts as unassigned (RFC 4861, 10: MAX_MULTICAST_SOLICIT).
pub(crate) const TRIES: u8 = 3;
/// Packets that wait for one address; the oldest makes room for the next.
const WAITING_MAX: usize = 64;
/// Entries; beyond, those that nothing waits for are forgotten.
const KNOWN_MAX: usize = 8192;

#[derive(Debug, Default)]
pub(crate) struct Neighbours {
    known: BTreeMap<IpAddr, NeighbourEntry>,
}

#[derive(Debug, Default)]
struct NeighbourEntry {
    mac: Option<[u8; 6]>,
    /// When its owner last sent a message.
    last_seen: Time,
    asked: Option<Resolution>,
    waiting: VecDeque<EmulatedPacket>,
}

#[derive(Debug, Clone, Copy)]
struct Resolution {
    times: u8,
    /// When to ask again, or to give up.
    next: Time,
}

/// What to do to reach an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NeighbourLookup {
    /// Where it is, if that is known.
    pub(crate) mac: Option<[u8; 6]>,
    /// Whether to ask for it now.
    pub(crate) ask: bool,
}

impl Neighbours {
    /// Where `address` is.
    pub(crate) fn find(&mut self, now: Time, address: IpAddr) -> NeighbourLookup {
        if self.known.len() >= KNOWN_MAX && !self.known.contains_key(&address) {
            self.known.retain(|_, entry| entry.asked.is_some());
        }
        let entry = self.known.entry(address).or_default();
        let stale = entry.mac.is_none() || now.since(entry.last_seen) > FRESH;
        let ask = stale && entry.asked.is_none();
        if ask {
            entry.asked = Some(Resolution { times: 1, next: now + PATIENCE });
        }
        NeighbourLookup { mac: entry.mac, ask }
    }

    /// Where `address` is, if nothing has to be asked or to wait.
    pub(crate) fn fresh(&self, now: Time, address: IpAddr) -> Option<[u8; 6]> {
        let entry = self.known.get(&address)?;
        entry.mac.filter(|_| now.since(entry.last_seen) <= FRESH)
    }

    /// Keeps a packet until `address` is found; answers with one that lost its place.
    pub(crate) fn wait(
        &mut self,
        address: IpAddr,
        packet: EmulatedPacket,
    ) -> Option<EmulatedPacket> {
        let waiting = &mut self.known.entry(address).or_default().waiting;
        waiting.push_back(packet);
        if waiting.len() > WAITING_MAX { waiting.pop_front() } else { None }
    }

    /// `address` is at `mac`: answers with the packets that waited for that. An address that was
    /// not asked for is noted only where `unasked` is set.
    pub(crate) fn learn(
        &mut self,
        now: Time,
        address: IpAddr,
        mac: [u8; 6],
        unasked: bool,
    ) -> VecDeque<EmulatedPacket> {
        if !self.known.contains_key(&address) && (!unasked || self.known.len() >= KNOWN_MAX) {
            return VecDeque::new();
        }
        let entry = self.known.entry(address).or_default();
        entry.mac = Some(mac);
        entry.last_seen = now;
        entry.asked = None;
        core::mem::take(&mut entry.waiting)
    }

    /// When something is to be done next.
    pub(crate) fn next(&self) -> Option<Time> {
        self.known.values().filter_map(|entry| entry.asked.map(|asked| asked.next)).min()
    }

    /// The addresses to ask for again, and the packets for addresses without an answer.
    pub(crate) fn due(&mut self, now: Time) -> (Vec<IpAddr>, Vec<EmulatedPacket>) {
        let (mut again, mut lost) = (Vec::new(), Vec::new());
        self.known.retain(|address, entry| {
            match &mut entry.asked {
                Some(asked) if asked.next <= now && asked.times < TRIES => {
                    asked.times += 1;
                    asked.next = now + PATIENCE;
                    again.push(*address);
                }
                Some(asked) if asked.next <= now => {
                    lost.extend(entry.waiting.drain(..));
                    return false;
                }
                _ => {}
            }
            true
        });
        (again, lost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];

    fn at(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    fn host() -> IpAddr {
        [10, 0, 0, 9].into()
    }

    #[test]
    fn an_unknown_address_is_asked_for_three_times_and_given_up() {
        let mut neighbours = Neighbours::default();
        assert_eq!(neighbours.find(at(0), host()), NeighbourLookup { mac: None, ask: true });
        assert_eq!(neighbours.find(at(5), host()), NeighbourLookup { mac: None, ask: false });
        for second in [1, 2] {
            assert_eq!(neighbours.next(), Some(at(second * 1000)));
            assert_eq!(neighbours.due(at(second * 1000)).0, [host()]);
        }
        assert!(neighbours.due(at(3000)).0.is_empty());
        assert_eq!(neighbours.next(), None);
        assert_eq!(neighbours.find(at(3000), host()), NeighbourLookup { mac: None, ask: true });
    }

    #[test]
    fn an_old_entry_serves_while_it_is_queried_and_goes_without_a_reply() {
        let mut neighbours = Neighbours::default();
        neighbours.learn(at(0), host(), MAC, true);
        assert_eq!(neighbours.fresh(at(30_000), host()), Some(MAC));
        assert_eq!(neighbours.fresh(at(30_001), host()), None);
        assert_eq!(
            neighbours.find(at(30_001), host()),
            NeighbourLookup { mac: Some(MAC), ask: true }
        );
        for millis in [31_001, 32_001, 33_001] {
            neighbours.due(at(millis));
        }
        assert_eq!(neighbours.find(at(33_002), host()).mac, None);
    }

    #[test]
    fn an_unsolicited_reply_is_noted_only_if_addressed_to_the_router() {
        let mut neighbours = Neighbours::default();
        neighbours.learn(at(0), host(), MAC, false);
        assert_eq!(neighbours.fresh(at(0), host()), None);
        neighbours.learn(at(0), host(), MAC, true);
        assert_eq!(neighbours.fresh(at(0), host()), Some(MAC));
    }
}
