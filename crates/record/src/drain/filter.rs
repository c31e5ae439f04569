//! Which records are wanted, and what of them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, Ipv6Addr};

use windtunnel_evidence::file::EventSource;
use windtunnel_model::plan::{
    FlowPattern, NodeInterface, PatternProtocol, RecordChoice, RecordDirection,
};
use windtunnel_model::record::kind::{MACHINE, NO_FLOW, RecordSource};
use windtunnel_model::record::{EventRecord, Kind, flag, words};
use windtunnel_model::{NodeId, Plan};

use super::unseen::{CallRecordingScope, UnseenCallTracker};

/// Which records are wanted: those of layers, nodes, flows and a direction. It learns flows from
/// their definitions.
#[derive(Debug, Default)]
pub struct RecordDrainFilter {
    /// By number; empty: all.
    layers: BTreeSet<u8>,
    /// Positions in the plan; empty: all.
    nodes: BTreeSet<u32>,
    flows: Option<FlowChoice>,
    direction: Option<RecordDirection>,
    /// By source and number.
    known: HashMap<(EventSource, u32), FlowFilterEntry>,
    unseen: UnseenCallTracker,
}

/// Which flows are wanted.
#[derive(Debug, Clone, Default)]
pub struct FlowChoice {
    /// One of them has to fit; empty: any flow.
    patterns: Vec<FlowFilterPattern>,
    /// Addresses of nodes, of which one has to be an end, where the source is of no node; empty:
    /// any.
    ends: BTreeSet<IpAddr>,
}

#[derive(Debug, Clone)]
struct FlowFilterPattern {
    protocol: Option<PatternProtocol>,
    ends: Vec<(Option<BTreeSet<IpAddr>>, Option<u16>)>,
}

/// What definitions say of a flow.
#[derive(Debug, Default)]
struct FlowFilterEntry {
    /// Those that came, latest of each kind.
    definitions: BTreeMap<u8, EventRecord>,
    /// Whether it is wanted, once both ends are known.
    wanted: Option<bool>,
}

impl RecordDrainFilter {
    /// What a choice means in a plan. Names that the plan does not have fit nothing.
    #[must_use]
    pub fn new(choice: &RecordChoice, plan: &Plan) -> RecordDrainFilter {
        let addresses = |node: NodeId| {
            let interfaces = plan.nodes.get(node.index()).map(|node| &node.interfaces[..]);
            interfaces.unwrap_or_default().iter().flat_map(NodeInterface::addresses)
        };
        let pattern = |pattern: &FlowPattern| {
            let ends = pattern.ends.iter().map(|end| {
                let of_host = |host: &String| match host.parse() {
                    Ok(address) => BTreeSet::from([address]),
                    Err(_) => plan.nodes_named(host).into_iter().flat_map(addresses).collect(),
                };
                (end.host.as_ref().map(of_host), end.port)
            });
            FlowFilterPattern { protocol: pattern.protocol, ends: ends.collect() }
        };
        let ends: BTreeSet<IpAddr> = choice.nodes.iter().copied().flat_map(addresses).collect();
        let patterns: Vec<FlowFilterPattern> = choice.flows.iter().map(pattern).collect();
        let any = ends.is_empty() && patterns.is_empty();
        RecordDrainFilter {
            layers: choice.layers.iter().map(|layer| layer as u8).collect(),
            nodes: choice.nodes.iter().map(|node| node.0).collect(),
            flows: (!any).then_some(FlowChoice { patterns, ends }),
            direction: choice.direction,
            known: HashMap::new(),
            unseen: UnseenCallTracker::default(),
        }
    }

    /// Leaves out what is not wanted.
    pub(super) fn apply(&mut self, source: EventSource, records: &mut Vec<EventRecord>) {
        if !self.has_source(source) {
            // What it defines may be wanted later; what it has lost is not missing.
            records.iter().for_each(|record| self.learn(source, record));
            records.clear();
            return;
        }
        if records.iter().any(is_definition) {
            self.apply_with_definitions(source, records);
        } else if self.flows.is_some() || self.direction.is_some() {
            records.retain(|record| self.wants(source, record));
        }
    }

    /// Another choice from now on. Returns the definitions of flows that are wanted only now.
    pub(super) fn replace(
        &mut self,
        by: RecordDrainFilter,
    ) -> BTreeMap<EventSource, Vec<EventRecord>> {
        let mut before = std::mem::replace(self, by);
        let known = std::mem::take(&mut before.known);
        self.unseen = std::mem::take(&mut before.unseen);
        let mut definitions: BTreeMap<EventSource, Vec<EventRecord>> = BTreeMap::new();
        for ((source, number), mut flow) in known {
            let was = flow.wanted != Some(false) && before.has_source(source);
            flow.wanted = self.judge(source, &flow);
            if !was && flow.wanted != Some(false) && self.has_source(source) {
                definitions.entry(source).or_default().extend(flow.definitions.values());
            }
            self.known.insert((source, number), flow);
        }
        definitions
    }

    /// Calls of each connection of these nodes should be there.
    pub(super) fn expect_calls_of(&mut self, homes: CallRecordingScope) {
        self.unseen = UnseenCallTracker::new(homes);
    }

    /// By node: what is not among its calls.
    pub(super) fn unseen(&self) -> Vec<(u32, String)> {
        let flows = self.known.iter().filter(|(_, flow)| flow.wanted == Some(true));
        let connections = flows.filter_map(|((source, _), flow)| {
            let (from, to) = flow.ends()?;
            let is_tcp = PatternProtocol::Tcp.has_number(from.flags);
            is_tcp.then(|| (*source, [(address(from), from.extra), (address(to), to.extra)]))
        });
        self.unseen.sentences(connections)
    }

    fn has_source(&self, source: EventSource) -> bool {
        let of_node =
            source.node == MACHINE || self.nodes.is_empty() || self.nodes.contains(&source.node);
        of_node && (self.layers.is_empty() || self.layers.contains(&source.layer))
    }

    fn apply_with_definitions(&mut self, source: EventSource, records: &mut Vec<EventRecord>) {
        let all = std::mem::take(records);
        for record in all {
            let before = self.known.get(&(source, record.flow)).and_then(|flow| flow.wanted);
            self.learn(source, &record);
            if record.flow == NO_FLOW && is_definition(&record) {
                records.push(record);
                continue;
            }
            if !is_definition(&record) {
                if self.wants(source, &record) {
                    records.push(record);
                }
                continue;
            }
            let Some(flow) = self.known.get(&(source, record.flow)) else {
                // Of a process.
                records.push(record);
                continue;
            };
            match (self.flows.is_some(), before, flow.wanted) {
                (false, ..) | (true, Some(true), Some(true)) => records.push(record),
                // Now both ends are known: what came before is written with it.
                (true, None, Some(true)) => records.extend(flow.definitions.values()),
                _ => {}
            }
        }
    }

    fn learn(&mut self, source: EventSource, record: &EventRecord) {
        if !is_definition(record) {
            return;
        }
        self.unseen.learn(source, record);
        if record.kind == Kind::Process as u8 || record.flow == NO_FLOW {
            return;
        }
        let mut flow = self.known.remove(&(source, record.flow)).unwrap_or_default();
        if record.kind == Kind::FlowFrom as u8 {
            // The number stands for another flow from now on.
            flow = FlowFilterEntry::default();
        }
        flow.definitions.insert(record.kind, *record);
        flow.wanted = self.judge(source, &flow);
        self.known.insert((source, record.flow), flow);
    }

    /// Whether a flow is wanted; `None`: its ends are not known yet.
    fn judge(&self, source: EventSource, flow: &FlowFilterEntry) -> Option<bool> {
        let (from, to) = flow.ends()?;
        let Some(choice) = &self.flows else { return Some(true) };
        let ends = [(address(from), from.extra), (address(to), to.extra)];
        let of_nodes = choice.ends.is_empty()
            || source.node != MACHINE
            || ends.iter().any(|(address, _)| choice.ends.contains(address));
        let fits = |pattern: &FlowFilterPattern| pattern.fits(from.flags, ends);
        Some(of_nodes && (choice.patterns.is_empty() || choice.patterns.iter().any(fits)))
    }

    fn wants(&self, source: EventSource, record: &EventRecord) -> bool {
        if record.kind == Kind::Lost as u8 {
            return true;
        }
        let flow = self.known.get(&(source, record.flow)).and_then(|flow| flow.wanted);
        if self.flows.is_some() && (record.flow == NO_FLOW || flow != Some(true)) {
            return false;
        }
        let reverse = record.flags & flag::REVERSE != 0;
        match self.direction.filter(|_| has_direction(record)) {
            Some(RecordDirection::Forward) => !reverse,
            Some(RecordDirection::Reverse) => reverse,
            None => true,
        }
    }
}

impl FlowFilterEntry {
    fn ends(&self) -> Option<(&EventRecord, &EventRecord)> {
        let of = |kind: Kind| self.definitions.get(&(kind as u8));
        Some((of(Kind::FlowFrom)?, of(Kind::FlowTo)?))
    }
}

impl FlowFilterPattern {
    fn fits(&self, protocol: u8, ends: [(IpAddr, u16); 2]) -> bool {
        let fits = |wanted: &(Option<BTreeSet<IpAddr>>, Option<u16>), end: &(IpAddr, u16)| {
            wanted.0.as_ref().is_none_or(|addresses| addresses.contains(&end.0))
                && wanted.1.is_none_or(|port| port == end.1)
        };
        let [one, other] = ends;
        self.protocol.is_none_or(|it| it.has_number(protocol))
            && match &self.ends[..] {
                [] => true,
                [end] => fits(end, &one) || fits(end, &other),
                [a, b, ..] => {
                    (fits(a, &one) && fits(b, &other)) || (fits(a, &other) && fits(b, &one))
                }
            }
    }
}

/// Replaces addresses and ports by numbers that say nothing of them, the same for each use of an
/// address with a port: so flows stay distinct, and those of several layers can still be joined.
#[derive(Debug, Default)]
pub struct AddressAnonymiser {
    /// Its keys are random, and in no file.
    key: RandomState,
}

impl AddressAnonymiser {
    pub(super) fn apply(&self, record: &mut EventRecord) {
        if record.kind == Kind::FlowFrom as u8 || record.kind == Kind::FlowTo as u8 {
            let mut address = DISCARD.octets();
            let number = self.key.hash_one((record.arg_bytes(), record.extra));
            address[8..].copy_from_slice(&number.to_be_bytes());
            (record.args, record.extra) = (words(address), 0);
        }
    }
}

/// The prefix that no traffic uses (RFC 6666).
const DISCARD: Ipv6Addr = Ipv6Addr::new(0x100, 0, 0, 0, 0, 0, 0, 0);

fn is_definition(record: &EventRecord) -> bool {
    Kind::from_number(record.kind).is_some_and(Kind::is_definition)
}

/// Whether it is of one direction: a packet, a call, or one of the kernel's.
fn has_direction(record: &EventRecord) -> bool {
    let kind = Kind::from_number(record.kind);
    let layer = kind.and_then(Kind::layer);
    matches!(layer, Some(RecordSource::Engine | RecordSource::Calls | RecordSource::Kernel))
        && kind != Some(Kind::KernelProbe)
}

fn address(record: &EventRecord) -> IpAddr {
    Ipv6Addr::from(record.arg_bytes()).to_canonical()
}
