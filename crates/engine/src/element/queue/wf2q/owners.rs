//! Which class a flow of a node belongs to, as far as somebody has said.
//!
//! What is not known is asked for, and asked for again each second while the flow goes on, since a
//! port may be another program's by then.

use alloc::collections::{BTreeMap, VecDeque};

use windtunnel_model::{Span, Time};
use windtunnel_wire::flow::FiveTuple;

use crate::counters::TrafficOwnershipCounts;
use crate::packet::{EmulatedPacket, SenderClass};

#[derive(Debug)]
pub(super) struct FlowOwnerTable {
    known: BTreeMap<FiveTuple, FlowOwnerEntry>,
    questions: VecDeque<FiveTuple>,
    swept: Time,
    pub(super) counters: TrafficOwnershipCounts,
}

#[derive(Debug)]
struct FlowOwnerEntry {
    /// `None`: it has none, as far as is known.
    class: Option<u32>,
    asked: Time,
    used: Time,
    is_open: bool,
}

/// What is known of a packet's owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FlowOwnerStatus {
    Class(u32),
    /// There is no answer yet.
    Asked,
    /// It has no owner.
    Unowned,
    /// It names no socket.
    NoSocket,
    /// There are too many flows.
    Untracked,
}

/// By what a packet is counted for a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Attribution {
    /// Of its flow.
    pub(super) owner: FlowOwnerStatus,
    pub(super) sender: SenderClass,
}

impl FlowOwnerTable {
    pub(super) fn new() -> Self {
        FlowOwnerTable {
            known: BTreeMap::new(),
            questions: VecDeque::new(),
            swept: Time::ZERO,
            counters: TrafficOwnershipCounts::default(),
        }
    }

    /// Whose a packet is that is here at `now`; what is not known is asked for.
    pub(super) fn meet(&mut self, now: Time, key: Option<&FiveTuple>) -> FlowOwnerStatus {
        let Some(key) = key else { return FlowOwnerStatus::NoSocket };
        if let Some(owner) = self.known.get_mut(key) {
            owner.used = owner.used.max(now);
            if !owner.is_open && now.since(owner.asked) >= ANSWER_HOLDS {
                (owner.asked, owner.is_open) = (now, true);
                self.questions.push_back(*key);
            }
            return owner.known();
        }
        if !self.has_room(now) {
            return FlowOwnerStatus::Untracked;
        }
        self.counters.flows += 1;
        self.questions.push_back(*key);
        self.known
            .insert(*key, FlowOwnerEntry { class: None, asked: now, used: now, is_open: true });
        FlowOwnerStatus::Asked
    }

    /// Whose a packet is, as far as is known.
    pub(super) fn look_up(&self, key: Option<&FiveTuple>) -> FlowOwnerStatus {
        let Some(key) = key else { return FlowOwnerStatus::NoSocket };
        self.known.get(key).map_or(FlowOwnerStatus::Untracked, FlowOwnerEntry::known)
    }

    /// The next flow whose class is to be found.
    pub(super) fn question(&mut self) -> Option<FiveTuple> {
        self.questions.pop_front()
    }

    /// A flow, which may be yet to come, is of a class, or without an owner now, in which case it stays what
    /// it was. The class before, where it was another; `Some(None)`: it had none.
    pub(super) fn answer(
        &mut self,
        now: Time,
        key: &FiveTuple,
        class: Option<u32>,
    ) -> Option<Option<u32>> {
        if class.is_some() && !self.known.contains_key(key) && self.has_room(now) {
            self.counters.flows += 1;
            self.known
                .insert(*key, FlowOwnerEntry { class, asked: now, used: now, is_open: false });
            return None;
        }
        let owner = self.known.get_mut(key)?;
        owner.is_open = false;
        let before = owner.class;
        owner.class = class.or(before);
        (owner.class != before).then_some(before)
    }

    /// Counts what leaves, by what is known of its owner and of its sender.
    pub(super) fn count(&mut self, of: Attribution, packets: u64, bytes: u64) {
        match of.sender {
            SenderClass::Flow => {}
            SenderClass::Class(_) => return self.counters.attributed.add(packets, bytes),
            SenderClass::Unknown => self.counters.unattributed.add(packets, bytes),
        }
        let amount = match of.owner {
            FlowOwnerStatus::Class(_) => return,
            FlowOwnerStatus::Asked => &mut self.counters.asked,
            FlowOwnerStatus::Unowned => &mut self.counters.unowned,
            FlowOwnerStatus::NoSocket => &mut self.counters.no_socket,
            FlowOwnerStatus::Untracked => &mut self.counters.untracked,
        };
        amount.add(packets, bytes);
    }

    /// Whether one more flow can be known; those that have ended are forgotten for it.
    fn has_room(&mut self, now: Time) -> bool {
        if self.known.len() < FLOWS_MOST {
            return true;
        }
        if now.since(self.swept) >= ANSWER_HOLDS {
            self.swept = now;
            self.known.retain(|_, owner| owner.is_open || now.since(owner.used) < QUIET);
        }
        self.known.len() < FLOWS_MOST
    }
}

impl FlowOwnerEntry {
    fn known(&self) -> FlowOwnerStatus {
        match self.class {
            Some(class) => FlowOwnerStatus::Class(class),
            None if self.is_open => FlowOwnerStatus::Asked,
            None => FlowOwnerStatus::Unowned,
        }
    }
}

/// The socket that sent a packet; `None` where it has no ports.
pub(super) fn socket(packet: &EmulatedPacket) -> Option<FiveTuple> {
    FiveTuple::parse(packet.frame()).ok()?.socket()
}

/// Flows that are known of one link.
const FLOWS_MOST: usize = 16_384;
/// A flow that sends nothing for so long may be forgotten.
const QUIET: Span = Span::from_secs(10);
/// How long an answer is good.
const ANSWER_HOLDS: Span = Span::from_secs(1);

#[cfg(test)]
mod tests {
    use core::net::{IpAddr, Ipv4Addr};

    use super::*;

    fn key(port: u16) -> FiveTuple {
        let source = IpAddr::V4(Ipv4Addr::LOCALHOST);
        FiveTuple {
            source,
            destination: source,
            protocol: 17,
            source_port: port,
            destination_port: 0,
        }
    }

    #[test]
    fn a_flow_is_asked_for_once_and_again_after_a_second_of_use() {
        let mut owners = FlowOwnerTable::new();
        assert_eq!(owners.meet(Time::ZERO, Some(&key(1))), FlowOwnerStatus::Asked);
        assert_eq!(owners.meet(Time::ZERO, Some(&key(1))), FlowOwnerStatus::Asked);
        assert_eq!((owners.question(), owners.question()), (Some(key(1)), None));
        assert_eq!(owners.answer(Time::ZERO, &key(1), Some(3)), Some(None));
        assert_eq!(
            owners.meet(Time::from_nanos(999_999_999), Some(&key(1))),
            FlowOwnerStatus::Class(3)
        );
        assert_eq!(owners.question(), None);
        assert_eq!(
            owners.meet(Time::from_nanos(1_000_000_000), Some(&key(1))),
            FlowOwnerStatus::Class(3)
        );
        assert_eq!(owners.question(), Some(key(1)));
    }

    #[test]
    fn a_socket_that_has_gone_leaves_its_flow_where_it_was() {
        let mut owners = FlowOwnerTable::new();
        owners.meet(Time::ZERO, Some(&key(1)));
        owners.meet(Time::ZERO, Some(&key(2)));
        assert_eq!(owners.answer(Time::ZERO, &key(1), Some(3)), Some(None));
        assert_eq!(owners.answer(Time::ZERO, &key(1), None), None);
        assert_eq!(owners.look_up(Some(&key(1))), FlowOwnerStatus::Class(3));
        assert_eq!(owners.answer(Time::ZERO, &key(2), None), None);
        assert_eq!(owners.look_up(Some(&key(2))), FlowOwnerStatus::Unowned);
        assert_eq!(owners.answer(Time::ZERO, &key(9), None), None);
    }

    #[test]
    fn a_flow_may_be_known_before_it_begins() {
        let mut owners = FlowOwnerTable::new();
        assert_eq!(owners.answer(Time::ZERO, &key(1), Some(3)), None);
        assert_eq!(owners.meet(Time::ZERO, Some(&key(1))), FlowOwnerStatus::Class(3));
        assert_eq!(owners.question(), None);
    }

    #[test]
    fn flows_beyond_the_most_are_not_tracked_until_others_have_been_quiet() {
        let mut owners = FlowOwnerTable::new();
        let keys = (0..FLOWS_MOST).map(|n| {
            let source = IpAddr::V4(Ipv4Addr::from_bits(u32::try_from(n).unwrap_or(0)));
            FiveTuple { source, ..key(1) }
        });
        for one in keys {
            owners.meet(Time::ZERO, Some(&one));
            owners.answer(Time::ZERO, &one, Some(0));
        }
        assert_eq!(owners.meet(Time::ZERO, Some(&key(7))), FlowOwnerStatus::Untracked);
        let later = Time::ZERO + QUIET;
        assert_eq!(owners.meet(later, Some(&key(7))), FlowOwnerStatus::Asked);
    }
}
