//! Which program has sent a datagram of a socket that several programs have.
//!
//! A program declares in its ring of the node's region what it is about to send, before it does: so what
//! it has declared is there when the datagram arrives, and the datagram is of its class from the
//! beginning. They are found together by port and digest of the payload (module `declared`). What cannot
//! be found stays in the class of its flow, and is counted; so is all of TCP, whose order one queue must
//! keep.

mod declared;

use std::collections::BTreeSet;
use std::sync::Arc;

use windtunnel_engine::SenderClass;
use windtunnel_model::record::region::RecordRegionLayout;
use windtunnel_model::record::{EventRecord, sends};
use windtunnel_model::{Lane, NetworkVertex, Plan, PortId, Span, Time};
use windtunnel_sys::region::{MappedRecordRegion, RecordRegionReader};
use windtunnel_wire::digest::PayloadDigest;
use windtunnel_wire::flow::FiveTuple;
use windtunnel_wire::packet::ParsedPacket;
use windtunnel_wire::udp;

use crate::owners::FlowOwnerReply;
use declared::{DatagramDigest, DeclaredDatagrams};

/// The region in which the programs of a lane's node declare what they send.
#[derive(Debug, Clone)]
pub struct LaneSenderRegion {
    pub lane: Lane,
    pub region: Arc<MappedRecordRegion>,
}

/// The layout of such a region, for so many programs of a node.
pub fn layout(programs: usize) -> RecordRegionLayout {
    // The last ring is for what belongs to none.
    let rings = u32::try_from(programs).unwrap_or(u32::MAX).saturating_add(1);
    RecordRegionLayout { rings, slots: SLOTS, sockets: 0 }
}

/// Those of all lanes that programs share.
#[derive(Debug, Default)]
pub(super) struct SharedSocketTable {
    lanes: Vec<LaneSharedSockets>,
    /// By port: the position of its lane, where that has shared sockets.
    of_port: Vec<Option<usize>>,
}

#[derive(Debug)]
struct LaneSharedSockets {
    lane: Lane,
    /// By which its node sends.
    port: Option<PortId>,
    /// Sockets that several programs have.
    shared: BTreeSet<FiveTuple>,
    programs: Option<SenderDeclarations>,
}

/// What programs declare.
#[derive(Debug)]
struct SenderDeclarations {
    reader: RecordRegionReader,
    declared: DeclaredDatagrams,
    records: Vec<EventRecord>,
    /// By ring: the slot that is waited for, and since when.
    waits: Vec<Option<(u64, Time)>>,
}

impl SharedSocketTable {
    pub(super) fn new(plan: &Plan, regions: Vec<LaneSenderRegion>) -> SharedSocketTable {
        let mut senders =
            SharedSocketTable { lanes: Vec::new(), of_port: vec![None; plan.ports().count()] };
        for LaneSenderRegion { lane, region } in regions {
            senders.add(plan, lane, Some(SenderDeclarations::new(region)));
        }
        senders
    }

    /// What has been found of a flow: whether several programs have its socket.
    pub(super) fn note(&mut self, plan: &Plan, answer: &FlowOwnerReply) {
        let FlowOwnerReply { lane, key, is_shared, .. } = *answer;
        let position = self.lanes.iter().position(|it| it.lane == lane);
        let position = match (position, is_shared) {
            (Some(position), _) => position,
            (None, true) => self.add(plan, lane, None),
            (None, false) => return,
        };
        let Some(on_lane) = self.lanes.get_mut(position) else { return };
        let is_new = match is_shared {
            true => on_lane.insert(key),
            false => on_lane.shared.remove(&key),
        };
        if is_new {
            on_lane.ask();
            let is_any = !on_lane.shared.is_empty();
            if let Some(port) = on_lane.port {
                self.of_port[port.index()] = is_any.then_some(position);
            }
        }
    }

    /// Which program has sent a frame that has come from a node by this port.
    #[inline]
    pub(super) fn of(&mut self, port: PortId, at: Time, frame: &[u8]) -> SenderClass {
        match self.of_port.get(port.index()) {
            Some(Some(position)) => self.lanes[*position].sender(at, frame),
            _ => SenderClass::Flow,
        }
    }

    fn add(&mut self, plan: &Plan, lane: Lane, programs: Option<SenderDeclarations>) -> usize {
        let end = &plan.links[lane.link.index()].ends[lane.direction.index()];
        let port = match end.vertex {
            NetworkVertex::Node(node) => {
                let interface = usize::try_from(end.interface).unwrap_or(usize::MAX);
                plan.nodes[node.index()].interfaces.get(interface).map(|it| it.port)
            }
            _ => None,
        };
        self.lanes.push(LaneSharedSockets { lane, port, shared: BTreeSet::new(), programs });
        self.lanes.len() - 1
    }
}

impl LaneSharedSockets {
    /// A socket is shared: whether that is new.
    fn insert(&mut self, key: FiveTuple) -> bool {
        // No answer ever takes out a closed one; for those in use there is another within a second.
        if self.shared.len() >= SHARED_MOST && !self.shared.contains(&key) {
            self.shared.clear();
        }
        self.shared.insert(key)
    }

    /// Asks programs for what they send on sockets that are shared.
    fn ask(&self) {
        let Some(programs) = &self.programs else { return };
        let datagrams = self.shared.iter().filter(|key| key.protocol == udp::PROTOCOL);
        let bits = datagrams.fold(0, |bits, key| bits | sends::bit(key.source_port));
        programs.reader.region().set_ports(bits);
    }

    fn sender(&mut self, at: Time, frame: &[u8]) -> SenderClass {
        let Ok(packet) = ParsedPacket::parse(frame) else { return SenderClass::Flow };
        let socket = FiveTuple::of(&packet).socket();
        let Some(key) = socket.filter(|key| self.shared.contains(key)) else {
            return SenderClass::Flow;
        };
        let Some(programs) = self.programs.as_mut().filter(|_| key.protocol == udp::PROTOCOL)
        else {
            return SenderClass::Unknown;
        };
        programs.receive(at);
        let payload = packet.payload().get(udp::HEADER_LEN..).unwrap_or_default();
        let mut digest = PayloadDigest::new();
        digest.add(payload);
        let found = programs
            .declared
            .find(DatagramDigest { port: key.source_port, digest: digest.finish() });
        found.map_or(SenderClass::Unknown, SenderClass::Class)
    }
}

impl SenderDeclarations {
    fn new(region: Arc<MappedRecordRegion>) -> SenderDeclarations {
        let rings = region.layout().rings as usize;
        let reader = RecordRegionReader::new(region);
        SenderDeclarations {
            reader,
            declared: DeclaredDatagrams::default(),
            records: Vec::new(),
            waits: vec![None; rings],
        }
    }

    /// Takes what programs have declared until now.
    fn receive(&mut self, now: Time) {
        for (ring, waits) in (0..).zip(&mut self.waits) {
            // Most programs send nothing on sockets that are shared.
            if self.reader.waiting(ring) == 0 {
                *waits = None;
                continue;
            }
            self.records.clear();
            let drained = self.reader.drain(ring, SLOTS as usize, &mut self.records);
            self.records.iter().for_each(|record| self.declared.take(ring, record));
            // A writer that was killed in between; what comes behind its slot is not seen until then.
            *waits = match (drained.waits_for, *waits) {
                (None, _) => None,
                (Some(slot), Some((known, since))) if slot == known => {
                    if now.since(since) > PATIENCE {
                        let _ = self.reader.pass_over(ring, slot, now.as_nanos());
                    }
                    Some((known, since))
                }
                (Some(slot), _) => Some((slot, now)),
            };
        }
        self.declared.forget(now);
    }
}

/// Entries of a program that have not been read yet: more than a burst of the packet ring has frames.
const SLOTS: u32 = 1 << 13;
/// Sockets of a lane that are known to be shared.
const SHARED_MOST: usize = 1 << 12;
/// Longer than a process is kept from running between two instructions.
const PATIENCE: Span = Span::from_secs(1);

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr};

    use windtunnel_model::record::sends::{FAILED, SENDING, entry};
    use windtunnel_model::{LinkDirection, LinkId};
    use windtunnel_wire::build;

    use super::*;

    const LANE: Lane = Lane { link: LinkId(0), direction: LinkDirection::Up };

    fn plan() -> Plan {
        crate::testing::plan(
            "nodes: {a: {run: [{run: x, send: {weight: 3}}, {run: y}]}, b: {}}\n\
             links: [{between: [a, b], rate: 1mbit}]",
        )
    }

    fn address(last: u8, port: u16) -> SocketAddr {
        SocketAddr::new(Ipv4Addr::new(10, 0, 0, last).into(), port)
    }

    /// Two programs with a shared socket of this port.
    struct Two {
        plan: Plan,
        region: Arc<MappedRecordRegion>,
        senders: SharedSocketTable,
    }

    impl Two {
        fn new() -> Two {
            let (plan, (region, _)) = (plan(), MappedRecordRegion::create(layout(2)).unwrap());
            let region = Arc::new(region);
            let senders = SharedSocketTable::new(
                &plan,
                vec![LaneSenderRegion { lane: LANE, region: Arc::clone(&region) }],
            );
            Two { plan, region, senders }
        }

        fn note(&mut self, frame: &[u8], is_shared: bool) {
            let key = FiveTuple::parse(frame).unwrap().socket().unwrap();
            let answer = FlowOwnerReply { lane: LANE, key, class: Some(0), is_shared };
            self.senders.note(&self.plan, &answer);
        }

        fn declare(&self, ring: u32, kind: u8, payload: &[u8]) {
            let mut digest = PayloadDigest::new();
            digest.add(payload);
            assert!(self.region.push(ring, &entry(1, kind, 7000, digest.finish())));
        }

        fn sender(&mut self, payload: &[u8]) -> SenderClass {
            self.senders.of(PortId(0), Time::ZERO, &frame(payload))
        }
    }

    fn frame(payload: &[u8]) -> Vec<u8> {
        build::udp(address(1, 7000), address(2, 9), payload)
    }

    #[test]
    fn each_datagram_of_a_shared_socket_is_of_the_program_that_has_said_it() {
        let mut two = Two::new();
        assert_eq!(two.sender(b"before"), SenderClass::Flow);
        two.note(&frame(b""), true);
        assert_eq!(two.region.ports(), sends::bit(7000));
        two.declare(1, SENDING, b"one");
        two.declare(0, SENDING, b"two");
        two.declare(0, SENDING, b"lost in the node");
        two.declare(1, SENDING, b"three");
        assert_eq!(two.sender(b"two"), SenderClass::Class(0));
        assert_eq!(two.sender(b"one"), SenderClass::Class(1));
        assert_eq!(two.sender(b"three"), SenderClass::Class(1));
        assert_eq!(two.sender(b"not declared"), SenderClass::Unknown);
        assert_eq!(two.sender(b"two"), SenderClass::Unknown, "it was declared once");
        let other = build::udp(address(1, 7001), address(2, 9), b"x");
        assert_eq!(two.senders.of(PortId(0), Time::ZERO, &other), SenderClass::Flow);
        assert_eq!(two.senders.of(PortId(1), Time::ZERO, &frame(b"x")), SenderClass::Flow);
        two.note(&frame(b""), false);
        assert_eq!((two.region.ports(), two.sender(b"two")), (0, SenderClass::Flow));
    }

    #[test]
    fn what_failed_was_not_sent() {
        let mut two = Two::new();
        two.note(&frame(b""), true);
        two.declare(1, SENDING, b"x");
        two.declare(1, FAILED, b"x");
        two.declare(0, SENDING, b"x");
        assert_eq!(two.sender(b"x"), SenderClass::Class(0));
        assert_eq!(two.sender(b"x"), SenderClass::Unknown);
    }

    #[test]
    fn streams_of_several_programs_are_not_attributed() {
        let mut two = Two::new();
        let segment = build::tcp(address(1, 80), address(2, 9), 1, 0x10, b"x");
        two.note(&segment, true);
        assert_eq!(two.region.ports(), 0);
        assert_eq!(two.senders.of(PortId(0), Time::ZERO, &segment), SenderClass::Unknown);
    }

    #[test]
    fn without_a_region_shared_datagrams_are_unknown() {
        let plan = plan();
        let mut senders = SharedSocketTable::new(&plan, Vec::new());
        let key = FiveTuple::parse(&frame(b"")).unwrap().socket().unwrap();
        let answer = FlowOwnerReply { lane: LANE, key, class: Some(0), is_shared: true };
        senders.note(&plan, &answer);
        assert_eq!(senders.of(PortId(0), Time::ZERO, &frame(b"x")), SenderClass::Unknown);
    }
}
