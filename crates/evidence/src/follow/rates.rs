//! Rates and latencies of flows and lanes, interval by interval.

use std::collections::BTreeMap;

use serde::Serialize;
use windtunnel_model::record::kind::Call;
use windtunnel_model::record::{Kind, flag};

use crate::file::FlowDirection;
use crate::rows::{RecordFormatter, is_packet, signed};
use crate::{AttributedRecord, RecordedRun};

/// Sums records up until they are asked for.
#[derive(Debug, Default)]
pub struct RateAccumulator {
    flows: BTreeMap<(usize, bool), FlowCount>,
    lanes: BTreeMap<(u16, u32), LinkIntervalCounters>,
    lost: u64,
}

/// A direction of a flow in an interval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FlowRate {
    pub flow: usize,
    pub from: String,
    pub to: String,
    pub direction: FlowDirection,
    /// What programs sent and received.
    pub written_bytes: u64,
    pub read_bytes: u64,
    /// Payload that came to lanes, each lane for itself.
    pub offered_bytes: u64,
    pub dropped_packets: u64,
    pub marked_packets: u64,
    /// The latest, of the side that sends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwnd: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub srtt_us: Option<u32>,
    /// Of what programs received.
    pub read_bits_per_second: u64,
}

/// A lane in an interval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LaneRate {
    pub link: String,
    pub lane_from: String,
    pub lane_to: String,
    pub offered_packets: u64,
    pub delivered_packets: u64,
    pub delivered_bytes: u64,
    pub dropped_packets: u64,
    /// After transmission, mean and greatest.
    pub delay_ns_mean: u64,
    pub delay_ns_max: u64,
    /// Of the payload that came out.
    pub delivered_bits_per_second: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct FlowCount {
    written: u64,
    read: u64,
    offered: u64,
    dropped: u64,
    marked: u64,
    cwnd: Option<u32>,
    srtt_us: Option<u32>,
}

#[derive(Debug, Clone, Copy, Default)]
struct LinkIntervalCounters {
    offered: u64,
    delivered: u64,
    delivered_records: u64,
    delivered_bytes: u64,
    dropped: u64,
    delay_ns: u64,
    delay_ns_max: u64,
}

impl RateAccumulator {
    /// Counts a record.
    pub fn add(&mut self, evidence: &RecordedRun, entry: &AttributedRecord) {
        let record = &entry.record;
        let kind = entry.kind();
        if kind == Some(Kind::Lost) {
            self.lost += record.wide(2);
        }
        if kind.is_some_and(is_packet) {
            let member = evidence.origin_of(entry).member;
            self.lanes.entry((member, record.args[2])).or_default().add(entry);
        }
        let Some(flow) = entry.flow() else { return };
        let is_reverse = entry.direction() == FlowDirection::Reverse;
        self.flows.entry((flow, is_reverse)).or_default().add(entry);
    }

    /// Events that were lost since the last call.
    pub fn take_lost(&mut self) -> u64 {
        std::mem::take(&mut self.lost)
    }

    /// What was counted since the last call, in an interval of `length_ns`.
    pub fn take(
        &mut self,
        rows: &RecordFormatter<'_>,
        length_ns: u64,
    ) -> (Vec<FlowRate>, Vec<LaneRate>) {
        let flows = std::mem::take(&mut self.flows);
        let lanes = std::mem::take(&mut self.lanes);
        let flows = flows.into_iter().map(|((flow, is_reverse), count)| {
            let (from, to) = rows.ends(flow);
            FlowRate {
                flow,
                from: from.to_owned(),
                to: to.to_owned(),
                direction: if is_reverse { FlowDirection::Reverse } else { FlowDirection::Forward },
                written_bytes: count.written,
                read_bytes: count.read,
                offered_bytes: count.offered,
                dropped_packets: count.dropped,
                marked_packets: count.marked,
                cwnd: count.cwnd,
                srtt_us: count.srtt_us,
                read_bits_per_second: per_second(count.read, length_ns),
            }
        });
        let lanes = lanes.into_iter().filter_map(|((member, lane), count)| {
            let lane = rows.lane_of(member, lane)?;
            Some(LaneRate {
                link: lane.link.clone(),
                lane_from: lane.from.clone(),
                lane_to: lane.to.clone(),
                offered_packets: count.offered,
                delivered_packets: count.delivered,
                delivered_bytes: count.delivered_bytes,
                dropped_packets: count.dropped,
                delay_ns_mean: count.delay_ns.checked_div(count.delivered_records).unwrap_or(0),
                delay_ns_max: count.delay_ns_max,
                delivered_bits_per_second: per_second(count.delivered_bytes, length_ns),
            })
        });
        (flows.collect(), lanes.collect())
    }
}

impl FlowCount {
    fn add(&mut self, entry: &AttributedRecord) {
        let record = &entry.record;
        let segments = u64::from(record.extra.max(1));
        match entry.kind() {
            Some(Kind::Call) if record.flags & flag::PEEK == 0 => {
                let moves = Call::from_number(record.extra).is_some_and(|call| call as u16 >= 16);
                let moved = u64::try_from(signed(record.args[2])).unwrap_or(0);
                match record.flags & flag::REVERSE == 0 {
                    _ if !moves => {}
                    true => self.written += moved,
                    false => self.read += moved,
                }
            }
            Some(Kind::Offered) => self.offered += u64::from(record.args[1]),
            Some(Kind::Dropped) => self.dropped += segments,
            Some(Kind::Marked) => self.marked += segments,
            Some(Kind::TcpWindows) => {
                (self.cwnd, self.srtt_us) = (Some(record.args[0]), Some(record.args[2]));
            }
            _ => {}
        }
    }
}

impl LinkIntervalCounters {
    fn add(&mut self, entry: &AttributedRecord) {
        let record = &entry.record;
        let segments = u64::from(record.extra.max(1));
        match entry.kind() {
            Some(Kind::Offered) => self.offered += segments,
            Some(Kind::Dropped) => self.dropped += segments,
            Some(Kind::Delivered) => {
                let delay = u64::from(record.args[3]);
                self.delivered += segments;
                self.delivered_records += 1;
                self.delivered_bytes += u64::from(record.args[1]);
                self.delay_ns += delay;
                self.delay_ns_max = self.delay_ns_max.max(delay);
            }
            _ => {}
        }
    }
}

fn per_second(bytes: u64, length_ns: u64) -> u64 {
    let bits = u128::from(bytes) * 8 * 1_000_000_000;
    u64::try_from(bits.checked_div(length_ns.into()).unwrap_or(0)).unwrap_or(u64::MAX)
}
