//! Headers of a packet from its record.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use windtunnel_model::record::flag;

use crate::file::FlowDirection;
use crate::flows::{FlowEndpoint, GlobalFlow, TCP, UDP};
use crate::{AttributedRecord, RecordedRun};

/// Ethernet, IPv6 and TCP: the longest headers that are made.
pub(super) const SNAP_BYTES: u32 = 14 + 40 + 20;

/// Makes frames of the packets of each flow.
#[derive(Debug)]
pub(super) struct CaptureFrameBuilder {
    flows: Vec<FrameHeaderTemplate>,
}

/// What headers need of a flow.
#[derive(Debug, Clone, Copy)]
struct FrameHeaderTemplate {
    protocol: u8,
    from: FlowEndpoint,
    to: FlowEndpoint,
    /// Initial sequence numbers, of the direction and of the reverse; 0 where not known.
    sequence: [u32; 2],
}

const UNKNOWN: FlowEndpoint = FlowEndpoint { address: Ipv6Addr::UNSPECIFIED, port: 0, node: None };

impl CaptureFrameBuilder {
    pub(super) fn new(evidence: &RecordedRun) -> CaptureFrameBuilder {
        CaptureFrameBuilder {
            flows: evidence.flows().iter().map(FrameHeaderTemplate::of).collect(),
        }
    }

    /// The frame's headers, and how long it was with its payload.
    pub(super) fn frame(&self, entry: &AttributedRecord, ack: Option<u32>) -> (Vec<u8>, u32) {
        let nothing =
            FrameHeaderTemplate { protocol: 0, from: UNKNOWN, to: UNKNOWN, sequence: [0; 2] };
        let flow = entry.flow().and_then(|flow| self.flows.get(flow)).copied().unwrap_or(nothing);
        let flow = if entry.direction() == FlowDirection::Reverse { flow.reversed() } else { flow };
        let length = entry.record.args[1];
        let transport = transport(&flow, entry, ack);
        let mut bytes = ethernet(&flow);
        let payload = transport.len() + length as usize;
        match (flow.from.ip(), flow.to.ip()) {
            (IpAddr::V4(from), IpAddr::V4(to)) => {
                bytes.extend(ipv4(&flow, from, to, entry.record.flags, payload));
            }
            _ => bytes.extend(ipv6(&flow, entry.record.flags, payload)),
        }
        bytes.extend(transport);
        let original = u32::try_from(bytes.len()).unwrap_or(u32::MAX).saturating_add(length);
        (bytes, original)
    }
}

impl FrameHeaderTemplate {
    fn of(flow: &GlobalFlow) -> FrameHeaderTemplate {
        let known = |at: usize| flow.parts.iter().find_map(|part| part.sequence[at]).unwrap_or(0);
        FrameHeaderTemplate {
            protocol: flow.protocol,
            from: flow.from.unwrap_or(UNKNOWN),
            to: flow.to.unwrap_or(UNKNOWN),
            sequence: [known(0), known(1)],
        }
    }

    fn reversed(self) -> FrameHeaderTemplate {
        let [a, b] = self.sequence;
        FrameHeaderTemplate { from: self.to, to: self.from, sequence: [b, a], ..self }
    }
}

fn transport(flow: &FrameHeaderTemplate, entry: &AttributedRecord, ack: Option<u32>) -> Vec<u8> {
    let record = &entry.record;
    let ports = [flow.from.port.to_be_bytes(), flow.to.port.to_be_bytes()].concat();
    let length = record.args[1];
    match flow.protocol {
        TCP => {
            let syn = record.flags & flag::SYN != 0;
            let unknown = record.flags & flag::OFFSET_UNKNOWN != 0;
            let first = |sequence: u32| if unknown { 0 } else { sequence.wrapping_add(1) };
            let at = first(flow.sequence[0]).wrapping_add(record.args[0]);
            let sequence = if syn && !unknown { at.wrapping_sub(1) } else { at };
            let has_ack = record.flags & flag::ACK != 0;
            let ack = ack.filter(|_| has_ack).map(|ack| first(flow.sequence[1]).wrapping_add(ack));
            let flags = [(flag::FIN, 1), (flag::SYN, 2), (flag::RST, 4), (flag::ACK, 16)];
            let bits: u8 =
                flags.iter().map(|(bit, tcp)| tcp * u8::from(record.flags & bit != 0)).sum();
            let mut bytes = ports;
            bytes.extend(sequence.to_be_bytes());
            bytes.extend(ack.unwrap_or(0).to_be_bytes());
            bytes.extend([5 << 4, bits, 0xff, 0xff, 0, 0, 0, 0]);
            bytes
        }
        UDP => {
            let mut bytes = ports;
            bytes.extend(u16::try_from(length + 8).unwrap_or(0).to_be_bytes());
            bytes.extend([0, 0]);
            bytes
        }
        _ => Vec::new(),
    }
}

/// Addresses are made from the nodes' numbers, locally administered.
fn ethernet(flow: &FrameHeaderTemplate) -> Vec<u8> {
    let address = |end: &FlowEndpoint| {
        let [a, b, c, d] = end.node.map_or([0xff; 4], u32::to_be_bytes);
        [0x02, 0, a, b, c, d]
    };
    let v4 = flow.from.ip().is_ipv4() && flow.to.ip().is_ipv4();
    let kind: [u8; 2] = if v4 { [0x08, 0x00] } else { [0x86, 0xdd] };
    [address(&flow.to).as_slice(), &address(&flow.from), &kind].concat()
}

/// Congestion experienced.
fn marks(flags: u8) -> u8 {
    if flags & flag::MARKED != 0 { 3 } else { 0 }
}

fn ipv4(
    flow: &FrameHeaderTemplate,
    from: Ipv4Addr,
    to: Ipv4Addr,
    flags: u8,
    payload: usize,
) -> Vec<u8> {
    // 0 stands for a train that is longer than a packet can be.
    let [high, low] = u16::try_from(payload + 20).unwrap_or(0).to_be_bytes();
    let mut bytes = vec![0x45, marks(flags), high, low, 0, 0, 0x40, 0, 64, flow.protocol, 0, 0];
    bytes.extend(from.octets());
    bytes.extend(to.octets());
    let sum: u32 = bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    let folded = (folded & 0xffff) + (folded >> 16);
    let checksum = !u16::try_from(folded).unwrap_or(0);
    bytes[10..12].copy_from_slice(&checksum.to_be_bytes());
    bytes
}

fn ipv6(flow: &FrameHeaderTemplate, flags: u8, payload: usize) -> Vec<u8> {
    let [high, low] = u16::try_from(payload).unwrap_or(0).to_be_bytes();
    let mut bytes = vec![0x60, marks(flags) << 4, 0, 0, high, low, flow.protocol, 64];
    bytes.extend(flow.from.address.octets());
    bytes.extend(flow.to.address.octets());
    bytes
}
