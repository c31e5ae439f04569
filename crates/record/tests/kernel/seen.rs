//! Questions to records of the kernel layer.

use std::collections::{BTreeMap, BTreeSet};

use windtunnel_model::record::kind::NO_FLOW;
use windtunnel_model::record::{EventRecord, Kind, flag};

pub(crate) struct Seen {
    pub(crate) records: Vec<EventRecord>,
    pub(crate) lost: u64,
}

impl Seen {
    pub(crate) fn new(all: Vec<EventRecord>) -> Seen {
        let is_lost = |it: &EventRecord| it.kind == Kind::Lost as u8;
        let lost = all.iter().filter(|it| is_lost(it)).map(|it| it.wide(2)).sum();
        Seen { records: all.into_iter().filter(|it| !is_lost(it)).collect(), lost }
    }

    pub(crate) fn of(&self, kind: Kind) -> impl Iterator<Item = &EventRecord> {
        self.records.iter().filter(move |it| it.kind == kind as u8)
    }

    /// The only flow with that port at one of its ends, and a port at the other.
    pub(crate) fn flow_to_port(&self, port: u16) -> u32 {
        let ports =
            |kind| -> BTreeMap<u32, u16> { self.of(kind).map(|it| (it.flow, it.extra)).collect() };
        let (from, to) = (ports(Kind::FlowFrom), ports(Kind::FlowTo));
        let is_between = |a: u16, b: u16| a.min(b) != 0 && a != b && (a == port || b == port);
        let flows = from.iter().filter(|(flow, port)| is_between(**port, to[flow]));
        let flows: Vec<u32> = flows.map(|(flow, _)| *flow).collect();
        let [flow] = flows[..] else { panic!("flows with port {port}: {flows:?}") };
        flow
    }

    /// Checks that each call of the kind begins where the one before ended; where the last ended.
    pub(crate) fn ends_of_calls(&self, kind: Kind, flow: u32) -> u32 {
        let mut at = 0;
        for record in self.of(kind).filter(|it| it.flow == flow) {
            assert!(record.flags & flag::OFFSET_UNKNOWN == 0, "{record:?}");
            assert_eq!(record.args[0], at, "{record:?}");
            at += record.args[1];
        }
        at
    }

    /// From where to where each packet of the kind carries bytes.
    pub(crate) fn ranges(&self, kind: Kind, flow: u32) -> Vec<(u32, u32)> {
        let of_flow = self.of(kind).filter(|it| it.flow == flow && it.args[1] > 0);
        let ranges = of_flow.map(|it| {
            assert!(it.flags & flag::OFFSET_UNKNOWN == 0, "{it:?}");
            (it.args[0], it.args[0] + it.args[1])
        });
        ranges.collect()
    }

    /// Number and length of each datagram.
    pub(crate) fn numbered(&self, kind: Kind, flow: u32) -> Vec<(u32, u32)> {
        let of_flow = self.of(kind).filter(|it| it.flow == flow);
        of_flow.map(|it| (it.args[0], it.args[1])).collect()
    }

    /// Whether each flow was defined before it was used.
    pub(crate) fn records_are_of_defined_flows(&self) -> bool {
        let mut defined = BTreeSet::from([NO_FLOW]);
        self.records.iter().all(|record| {
            if record.kind == Kind::FlowFrom as u8 {
                defined.insert(record.flow);
            }
            defined.contains(&record.flow)
        })
    }
}

/// The same bytes, in as few ranges as there can be.
pub(crate) fn union(ranges: &[(u32, u32)]) -> Vec<(u32, u32)> {
    let mut sorted = ranges.to_vec();
    sorted.sort_unstable();
    let mut all: Vec<(u32, u32)> = Vec::new();
    for (from, to) in sorted {
        match all.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(to),
            _ => all.push((from, to)),
        }
    }
    all
}
