//! Transport payload delivered from node to node, for the paths whose throughput is asked for.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use windtunnel_model::expect::{Claim, PathFact};
use windtunnel_model::plan::Interface;
use windtunnel_model::{NodeId, Plan, PortId, Time};
use windtunnel_trace::rate::Intervals;
use windtunnel_wire::packet::Info;

/// Counts at the ports of nodes that somebody asks about; costs nothing at the others.
#[derive(Debug)]
pub(super) struct Meter {
    /// By port: who sends to it, as addresses and the position among `flows`.
    ports: Vec<Vec<(Vec<IpAddr>, usize)>>,
    flows: Vec<Flow>,
}

/// What one node got delivered to another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Flow {
    pub(crate) from: NodeId,
    pub(crate) to: NodeId,
    /// Bytes of TCP and UDP payload by interval.
    pub(crate) payload: Intervals,
    counted: u64,
}

impl Meter {
    pub(super) fn new(plan: &Plan) -> Self {
        let mut meter = Meter { ports: vec![Vec::new(); plan.ports().count()], flows: Vec::new() };
        for expectation in &plan.expectations {
            let Claim::Path { from, to, fact, .. } = expectation.claim else { continue };
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
        let sources: Vec<IpAddr> = interfaces.iter().flat_map(Interface::addresses).collect();
        let flow = self.flows.len();
        for ((owner, _), senders) in plan.ports().zip(&mut self.ports) {
            if owner == to {
                senders.push((sources.clone(), flow));
            }
        }
        self.flows.push(Flow { from, to, payload: Intervals::default(), counted: 0 });
    }

    /// Forgets what was counted.
    pub(super) fn begin(&mut self) {
        for flow in &mut self.flows {
            (flow.payload, flow.counted) = (Intervals::default(), 0);
        }
    }

    /// A frame, perhaps a train of segments behind one header, goes to a port.
    pub(super) fn delivered(&mut self, port: PortId, frame: &[u8]) {
        let Some(senders) = self.ports.get(port.index()).filter(|list| !list.is_empty()) else {
            return;
        };
        let Ok(info) = Info::parse(frame) else { return };
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

    pub(super) fn finish(self) -> Vec<Flow> {
        self.flows
    }
}

/// Bytes after the TCP or UDP header; all of a later fragment, which has none.
fn payload(info: &Info, frame: &[u8]) -> u64 {
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
