//! Local flows: what each (member, layer, node) has numbered and defined.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv6Addr};

use windtunnel_model::record::kind::{Call, NO_FLOW, RecordSource};
use windtunnel_model::record::{EventRecord, Kind, flag};

use super::{TCP, UDP};
use crate::evidence::{AttributedRecord, EventOrigin};

/// Collects definitions, then gives each record its flow.
#[derive(Debug, Default)]
pub(crate) struct FlowCorrelator {
    /// By origin: its scope.
    pub(super) scope_of: Vec<u32>,
    pub(super) scopes: Vec<FlowNumberSpace>,
    by_key: BTreeMap<(u16, u8, u32), u32>,
    pub(super) locals: Vec<LocalFlowDefinition>,
    /// By node: its addresses.
    pub(super) addresses: BTreeMap<u32, BTreeSet<Ipv6Addr>>,
}

/// Where flow numbers mean the same.
#[derive(Debug)]
pub(super) struct FlowNumberSpace {
    pub(super) member: u16,
    pub(super) layer: u8,
    pub(super) node: u32,
    /// By number: the latest local flow.
    low: Vec<u32>,
    high: BTreeMap<u32, u32>,
}

/// A number, from its definition until it is defined otherwise.
#[derive(Debug, Clone, Copy)]
pub(super) struct LocalFlowDefinition {
    pub(super) scope: u32,
    pub(super) origin: u32,
    pub(super) number: u32,
    /// What the number meant before.
    previous: u32,
    pub(super) defined_ns: u64,
    pub(super) protocol: u8,
    pub(super) from: Option<TransportAddress>,
    pub(super) to: Option<TransportAddress>,
    pub(super) cookie: Option<u64>,
    pub(super) process: Option<(u32, u32)>,
    /// Of `from`, and of `to`.
    pub(super) sequence: [Option<u32>; 2],
    pub(super) begin_ns: u64,
    pub(super) end_ns: u64,
    pub(super) records: u64,
    pub(super) opener: FlowOpenerEvidence,
}

/// An address and a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TransportAddress {
    pub(super) address: Ipv6Addr,
    pub(super) port: u16,
}

/// How well it is known which side opened a flow, and whether that is `to`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct FlowOpenerEvidence {
    pub(super) strength: u8,
    pub(super) reverse: bool,
}

const NONE: u32 = u32::MAX;
/// Numbers below are looked up in an array.
const LOW_NUMBERS: u32 = 1 << 20;

impl FlowCorrelator {
    /// Origins are numbered in the order in which they are added.
    pub(crate) fn add_origin(&mut self, origin: EventOrigin) {
        let (member, source) = (origin.member, origin.source);
        let (layer, node) = (source.layer, source.node);
        let scope = *self.by_key.entry((member, layer, node)).or_insert_with(|| {
            let (low, high) = (Vec::new(), BTreeMap::new());
            self.scopes.push(FlowNumberSpace { member, layer, node, low, high });
            u32::try_from(self.scopes.len() - 1).unwrap_or(NONE)
        });
        self.scope_of.push(scope);
    }

    /// Addresses of nodes, by node number.
    pub(crate) fn name_addresses(&mut self, nodes: &[Vec<IpAddr>]) {
        for (node, addresses) in (0..).zip(nodes) {
            let known = self.addresses.entry(node).or_default();
            known.extend(addresses.iter().map(|address| mapped(*address)));
        }
    }

    /// Takes a definition; definitions of a scope come in their order.
    pub(crate) fn define(&mut self, origin: u32, kind: Kind, record: &EventRecord) {
        let scope = self.scope_of[origin as usize];
        let index = match self.scopes[scope as usize].latest(record.flow) {
            NONE => self.add(LocalFlowDefinition::new(scope, origin, record)),
            index => index,
        };
        let local = &mut self.locals[index as usize];
        let mut changed = *local;
        if changed.define(kind, record) {
            *local = changed;
        } else {
            let mut next =
                LocalFlowDefinition { previous: index, defined_ns: record.time, ..changed };
            next.begin_ns = record.time;
            self.add(next);
        }
    }

    fn add(&mut self, local: LocalFlowDefinition) -> u32 {
        let index = u32::try_from(self.locals.len()).unwrap_or(NONE);
        self.scopes[local.scope as usize].set(local.number, index);
        self.locals.push(local);
        index
    }

    /// Binds each record to a local flow, and learns from it.
    pub(crate) fn bind(&mut self, entries: &mut [AttributedRecord]) {
        for entry in entries {
            let record = &entry.record;
            if record.flow == NO_FLOW || !has_flow(record) {
                continue;
            }
            let scope = self.scope_of[entry.origin()];
            let mut index = self.scopes[scope as usize].latest(record.flow);
            if index == NONE {
                let origin = u32::try_from(entry.origin()).unwrap_or(NONE);
                index = self.add(LocalFlowDefinition::new(scope, origin, record));
            }
            let mut local = &mut self.locals[index as usize];
            while local.previous != NONE && local.defined_ns > record.time {
                index = local.previous;
                local = &mut self.locals[index as usize];
            }
            let layer = self.scopes[scope as usize].layer;
            local.learn(layer, record);
            entry.bind(index, false);
        }
    }
}

impl FlowNumberSpace {
    fn latest(&self, number: u32) -> u32 {
        match self.low.get(number as usize) {
            Some(index) => *index,
            None => self.high.get(&number).copied().unwrap_or(NONE),
        }
    }

    fn set(&mut self, number: u32, index: u32) {
        if number >= LOW_NUMBERS {
            self.high.insert(number, index);
            return;
        }
        let at = number as usize;
        if self.low.len() <= at {
            self.low.resize(at + 1, NONE);
        }
        self.low[at] = index;
    }
}

impl LocalFlowDefinition {
    fn new(scope: u32, origin: u32, record: &EventRecord) -> LocalFlowDefinition {
        LocalFlowDefinition {
            scope,
            origin,
            number: record.flow,
            previous: NONE,
            defined_ns: record.time,
            protocol: 0,
            from: None,
            to: None,
            cookie: None,
            process: None,
            sequence: [None; 2],
            begin_ns: record.time,
            end_ns: record.time,
            records: 0,
            opener: FlowOpenerEvidence::default(),
        }
    }

    /// Takes a definition. `false`: it contradicts what is known, so that the number means another
    /// flow from now on; `self` is then that one.
    fn define(&mut self, kind: Kind, record: &EventRecord) -> bool {
        let same = match kind {
            Kind::FlowFrom => {
                let side = TransportAddress::of(record);
                let same = self.protocol == 0 || self.protocol == record.flags;
                let fits = same && fits(self.from, side);
                self.protocol = record.flags;
                self.from = Some(if fits { side.completed_by(self.from) } else { side });
                fits
            }
            Kind::FlowTo => {
                let side = TransportAddress::of(record);
                let fits = fits(self.to, side);
                self.to = Some(if fits { side.completed_by(self.to) } else { side });
                fits
            }
            Kind::FlowSocket => {
                let cookie = (record.wide(0) != 0).then_some(record.wide(0));
                let fits = self.cookie.is_none() || cookie.is_none() || self.cookie == cookie;
                self.cookie = if fits { self.cookie.or(cookie) } else { cookie };
                if !fits || self.process.is_none() {
                    self.process =
                        (record.args[2] != 0).then_some((record.args[2], record.args[3]));
                }
                fits
            }
            Kind::FlowSequence => self.sequences(record),
            _ => true,
        };
        if !same {
            self.forget(kind);
        }
        same
    }

    fn sequences(&mut self, record: &EventRecord) -> bool {
        let given = |bit: usize| (record.flags >> bit & 1 != 0).then_some(record.args[bit]);
        let new = [given(0), given(1)];
        let contradicts = |bit: usize| match (self.sequence[bit], new[bit]) {
            (Some(old), Some(new)) => old != new,
            _ => false,
        };
        if contradicts(0) || contradicts(1) {
            self.sequence = new;
            return false;
        }
        self.sequence = [new[0].or(self.sequence[0]), new[1].or(self.sequence[1])];
        true
    }

    /// Forgets what the number meant before the definition of this kind came.
    fn forget(&mut self, kind: Kind) {
        if kind == Kind::FlowFrom {
            self.to = None;
        }
        if kind != Kind::FlowSocket {
            self.cookie = None;
            self.process = None;
        }
        if kind != Kind::FlowSequence {
            self.sequence = [None; 2];
        }
        (self.records, self.opener) = (0, FlowOpenerEvidence::default());
    }

    fn learn(&mut self, layer: u8, record: &EventRecord) {
        let is_accept = record.kind == Kind::Call as u8 && record.extra == Call::Accept as u16;
        self.begin_ns = match is_accept {
            // It may have waited for a long time before there was a connection.
            true => record.time + u64::from(record.args[3]),
            false => self.begin_ns.min(record.time),
        };
        self.end_ns = self.end_ns.max(record.time);
        self.records += 1;
        let reverse = record.flags & flag::REVERSE != 0;
        let opener = match Kind::from_number(record.kind) {
            Some(Kind::Call) => match Call::from_number(record.extra) {
                Some(Call::Connect) if self.protocol != UDP => {
                    FlowOpenerEvidence { strength: 5, reverse: false }
                }
                Some(Call::Accept) => FlowOpenerEvidence { strength: 5, reverse: true },
                _ => return,
            },
            Some(Kind::Offered) if self.protocol == TCP => {
                let first = record.flags & (flag::SYN | flag::ACK) == flag::SYN;
                FlowOpenerEvidence {
                    strength: if first { 4 } else { 3 },
                    reverse: reverse && first,
                }
            }
            _ if layer == RecordSource::Engine as u8 => {
                FlowOpenerEvidence { strength: 3, reverse: false }
            }
            _ => return,
        };
        if opener.strength > self.opener.strength {
            self.opener = opener;
        }
    }
}

impl TransportAddress {
    fn of(record: &EventRecord) -> TransportAddress {
        TransportAddress { address: Ipv6Addr::from(record.arg_bytes()), port: record.extra }
    }

    /// Whether the address says nothing.
    pub(super) fn is_open(self) -> bool {
        matches!(self.address.to_canonical(), address if address.is_unspecified())
    }

    fn completed_by(self, known: Option<TransportAddress>) -> TransportAddress {
        let Some(known) = known else { return self };
        TransportAddress {
            address: if self.is_open() { known.address } else { self.address },
            port: if self.port == 0 { known.port } else { self.port },
        }
    }
}

/// Whether a definition says the same as is known, or more, or less.
fn fits(known: Option<TransportAddress>, side: TransportAddress) -> bool {
    known.is_none_or(|known| {
        let address = known.is_open() || side.is_open() || known.address == side.address;
        address && (known.port == 0 || side.port == 0 || known.port == side.port)
    })
}

/// Whether the flow of such a record is one, and not something else's number.
fn has_flow(record: &EventRecord) -> bool {
    !matches!(Kind::from_number(record.kind), Some(Kind::Lost | Kind::Batch | Kind::Process) | None)
}

fn mapped(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    }
}
