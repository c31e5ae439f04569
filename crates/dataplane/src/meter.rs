//! Transport payload delivered from node to node, for the paths whose throughput is asked for.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use windtunnel_model::expect::{ExpectationClaim, PathFact};
use windtunnel_model::plan::NodeInterface;
use windtunnel_model::{NodeId, Plan, PortId, Time};
use windtunnel_trace::rate::IntervalByteCounts;
use windtunnel_wire::packet::{IpPacketSummary, ParsedPacket};

/// Counts at the ports of nodes that an expectation names; costs nothing at the others.
#[derive(Debug)]
pub(super) struct DeliveryMeter {
    /// By port: its senders, as addresses and the position among `flows`.
    ports: Vec<Vec<(Vec<IpAddr>, usize)>>,
    flows: Vec<NodePairThroughput>,
}

/// What one node got delivered to another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodePairThroughput {
    pub from: NodeId,
    pub to: NodeId,
    /// Bytes of TCP and UDP payload by interval.
    pub payload: IntervalByteCounts,
    counted: u64,
}

#[cfg(any(test, feature = "testing"))]
impl NodePairThroughput {
    /// What has been counted, for tests of what is made of it.
    pub fn counted(from: NodeId, to: NodeId, payload: IntervalByteCounts) -> Self {
        NodePairThroughput { from, to, payload, counted: 0 }
    }
}

impl DeliveryMeter {
    pub(super) fn new(plan: &Plan) -> Self {
        let mut meter =
            DeliveryMeter { ports: vec![Vec::new(); plan.ports().count()], flows: Vec::new() };
        for expectation in &plan.expectations {
            let ExpectationClaim::Path { from, to, fact, .. } = expectation.claim else { continue };
            let asked = matches!(fact, PathFact::Throughput(..) | PathFact::Deviation(_));
            let known = meter.flows.iter().any(|flow| (flow.from, flow.to) == (from, to));
            if asked && !known {
                meter.add(plan, from, to);
            }
        }
        meter
    }

    fn add(&mut self, plan: &Plan, from: NodeId, to: NodeId) {
        let interfaces = &plan.nodes[from.index()].interfaces;
        let sources: Vec<IpAddr> = interfaces.iter().flat_map(NodeInterface::addresses).collect();
        let flow = self.flows.len();
        for ((owner, _), senders) in plan.ports().zip(&mut self.ports) {
            if owner == to {
                senders.push((sources.clone(), flow));
            }
        }
        self.flows.push(NodePairThroughput {
            from,
            to,
            payload: IntervalByteCounts::default(),
            counted: 0,
        });
    }

    /// Forgets what was counted.
    pub(super) fn begin(&mut self) {
        for flow in &mut self.flows {
            (flow.payload, flow.counted) = (IntervalByteCounts::default(), 0);
        }
    }

    /// A frame, perhaps a train of segments behind one header, goes to a port.
    pub(super) fn delivered(&mut self, port: PortId, frame: &[u8]) {
        let Some(senders) = self.ports.get(port.index()).filter(|list| !list.is_empty()) else {
            return;
        };
        let Ok(ParsedPacket { info, .. }) = ParsedPacket::parse(frame) else { return };
        if let Some((_, flow)) = senders.iter().find(|(known, _)| known.contains(&info.source)) {
            self.flows[*flow].counted += payload(&info, frame);
        }
    }

    /// An interval ends `at` after the run began.
    pub(super) fn sample(&mut self, at: Time) {
        for flow in &mut self.flows {
            flow.payload.counts.push((at, std::mem::take(&mut flow.counted)));
        }
    }

    pub(super) fn finish(self) -> Vec<NodePairThroughput> {
        self.flows
    }
}

/// Bytes after the TCP or UDP header; all of a later fragment, which has none.
fn payload(info: &IpPacketSummary, frame: &[u8]) -> u64 {
    const TCP: u8 = 6;
    const UDP: u8 = 17;
    let header = match info.protocol {
        _ if info.is_later_fragment => 0,
        TCP => frame.get(info.transport + 12).map_or(0, |byte| usize::from(byte >> 4) * 4),
        UDP => 8,
        _ => return 0,
    };
    if info.is_later_fragment && info.protocol != TCP && info.protocol != UDP {
        return 0;
    }
    u64::try_from(info.end.saturating_sub(info.transport + header)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "
nodes: {a: {}, b: {}, c: {}}
links: [{between: [a, b]}, {between: [c, b]}]
expect:
  - {path: [a, b], throughput: {min: 1kbit}}
  - {path: [a, b], throughput: {peak: {max: 1gbit}}}
";

    /// An Ethernet frame with an IPv4 packet of so many bytes from `source` to 10.9.9.9.
    fn frame(source: IpAddr, protocol: u8, bytes: u16) -> Vec<u8> {
        let IpAddr::V4(source) = source else { panic!("not IPv4") };
        let mut frame = vec![0; 14];
        frame[12..14].copy_from_slice(&[0x08, 0x00]);
        frame.extend([0x45, 0]);
        frame.extend(bytes.to_be_bytes());
        frame.extend([0, 0, 0, 0, 64, protocol, 0, 0]);
        frame.extend(source.octets());
        frame.extend([10, 9, 9, 9]);
        frame.resize(14 + usize::from(bytes), 0);
        if protocol == 6 {
            // A header of eight words: 12 bytes of options.
            frame[14 + 20 + 12] = 0x80;
        }
        frame
    }

    fn counted(meter: DeliveryMeter) -> Vec<(u32, u32, Vec<u64>)> {
        let flows = meter.finish().into_iter();
        let bytes = |flow: &NodePairThroughput| {
            flow.payload.counts.iter().map(|(_, bytes)| *bytes).collect()
        };
        flows.map(|flow| (flow.from.0, flow.to.0, bytes(&flow))).collect()
    }

    #[test]
    fn payload_is_what_follows_the_transports_header_and_counts_by_interval() {
        let plan = crate::testing::plan(FILE);
        let mut meter = DeliveryMeter::new(&plan);
        let address = |node: usize| plan.nodes[node].interfaces[0].addresses().next().unwrap();
        let port = plan.nodes[1].interfaces[0].port;
        meter.delivered(port, &frame(address(0), 6, 20 + 32 + 1000));
        meter.delivered(port, &frame(address(0), 17, 20 + 8 + 500));
        meter.sample(Time::from_nanos(1));
        // ICMP carries no payload of programs; the third node is not asked about.
        meter.delivered(port, &frame(address(0), 1, 84));
        meter.delivered(port, &frame(address(2), 17, 20 + 8 + 500));
        meter.sample(Time::from_nanos(2));
        assert_eq!(counted(meter), [(0, 1, vec![1500, 0])]);
    }

    #[test]
    fn packets_from_before_the_run_and_malformed_ones_are_not_counted() {
        let plan = crate::testing::plan(FILE);
        let mut meter = DeliveryMeter::new(&plan);
        let address = plan.nodes[0].interfaces[0].addresses().next().unwrap();
        let port = plan.nodes[1].interfaces[0].port;
        meter.delivered(port, &frame(address, 17, 528));
        meter.begin();
        meter.delivered(port, &[0; 9]);
        meter.delivered(PortId(99), &frame(address, 17, 528));
        meter.sample(Time::from_nanos(1));
        assert_eq!(counted(meter), [(0, 1, vec![0])]);
    }
}
