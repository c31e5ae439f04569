//! One connection over time: what has changed since the last sample becomes records.

use windtunnel_model::record::{EventRecord, Kind, flag};

use super::message::InetDiagSocket;
use crate::flow;
use windtunnel_notification::tcp_info::{TcpInfo, state};

/// A connection as it was last seen.
#[derive(Debug)]
pub(super) struct TcpConnectionSampler {
    flow: u32,
    is_defined: bool,
    /// Whether the kernel's count of acknowledged bytes includes the SYN, once that is known.
    syn_counted: Option<bool>,
    info: TcpInfo,
    /// What was recorded last, of each kind: `flags`, `extra` and arguments.
    last: [Option<(u8, u16, [u32; 4])>; KINDS.len()],
}

impl TcpConnectionSampler {
    /// A connection that was not seen before.
    pub(super) fn new(flow: u32, described: &InetDiagSocket) -> TcpConnectionSampler {
        let last = [None; KINDS.len()];
        TcpConnectionSampler {
            flow,
            is_defined: false,
            syn_counted: None,
            info: described.info,
            last,
        }
    }

    /// Has the next sample define the flow, and be recorded as a whole.
    pub(super) fn begin_anew(&mut self) {
        self.is_defined = false;
        self.last = [None; KINDS.len()];
    }

    /// Takes a sample; records what is not as in the last one.
    pub(super) fn update(
        &mut self,
        described: &InetDiagSocket,
        time: u64,
        emit: &mut dyn FnMut(&EventRecord),
    ) {
        if !std::mem::replace(&mut self.is_defined, true) {
            let (own, peer) = (described.own, described.peer);
            let ends = flow::definitions(time, self.flow, flow::TCP, own, peer);
            ends.iter().for_each(&mut *emit);
            emit(&flow::socket(time, self.flow, described.cookie, 0, 0));
        }
        let info = &described.info;
        self.syn_counted = self.syn_counted.or(info.syn_counted());
        let unknown = if self.syn_counted.is_none() { flag::OFFSET_UNKNOWN } else { 0 };
        let (received, received_unknown) = self.received(info);
        // A FIN that was not read counts as unread, and never as read.
        let read = info.bytes_received.saturating_sub(described.unread.into()).min(received);
        let acknowledged = info.acknowledged(self.syn_counted.unwrap_or(false));
        let extra = u16::from_le_bytes([info.state, info.ca_state]);
        let segment = u16::try_from(info.snd_mss).unwrap_or(u16::MAX);
        let samples = [
            (0, extra, [info.cwnd, info.ssthresh, info.srtt_us, info.rto_us]),
            (
                unknown | received_unknown,
                segment,
                [low(acknowledged), low(received), info.notsent, info.total_retrans],
            ),
            (
                0,
                0,
                [
                    saturate(info.busy_us),
                    saturate(info.rwnd_limited_us),
                    saturate(info.sndbuf_limited_us),
                    info.snd_wnd,
                ],
            ),
            (0, 0, [described.unread, described.unacknowledged, described.drops, info.rcv_wnd]),
            (
                received_unknown,
                0,
                [low(info.written()), low(info.sent()), low(read), low(info.bytes_retrans)],
            ),
        ];
        for ((kind, last), sample) in KINDS.iter().zip(&mut self.last).zip(samples) {
            if *last != Some(sample) {
                *last = Some(sample);
                let (flags, extra, args) = sample;
                emit(&EventRecord { time, kind: *kind as u8, flags, extra, flow: self.flow, args });
            }
        }
        self.info = *info;
    }

    /// The socket was destroyed.
    pub(super) fn end(&self, time: u64, emit: &mut dyn FnMut(&EventRecord)) {
        let (kind, flow) = (Kind::TcpEnd as u8, self.flow);
        emit(&EventRecord { time, kind, flags: 0, extra: 0, flow, args: [0; 4] });
    }

    /// Bytes received, and a flag where that may be one too many: whether a FIN is among them does
    /// not show of a connection that is closed, unless nothing has come since the last sample.
    fn received(&self, info: &TcpInfo) -> (u64, u8) {
        if info.state != state::CLOSED {
            return (info.received(), 0);
        }
        let same = info.bytes_received == self.info.bytes_received;
        if same && self.info.state != state::CLOSED {
            (self.info.received(), 0)
        } else {
            (info.received(), flag::OFFSET_UNKNOWN)
        }
    }
}

#[expect(clippy::cast_possible_truncation, reason = "records hold the low half of offsets")]
fn low(number: u64) -> u32 {
    number as u32
}

fn saturate(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// The kinds of records of a sample, in this order.
const KINDS: [Kind; 5] =
    [Kind::TcpWindows, Kind::TcpProgress, Kind::TcpLimits, Kind::TcpQueues, Kind::TcpOffsets];

#[cfg(test)]
mod tests {
    use super::*;

    fn described(info: TcpInfo) -> InetDiagSocket {
        let (own, peer) = ("10.0.0.1:80".parse().unwrap(), "10.0.0.2:4000".parse().unwrap());
        InetDiagSocket {
            own,
            peer,
            cookie: 7,
            file: 1,
            unread: 0,
            unacknowledged: 0,
            drops: 0,
            info,
        }
    }

    fn kinds(records: &[EventRecord]) -> Vec<Kind> {
        records.iter().map(|record| Kind::from_number(record.kind).unwrap()).collect()
    }

    fn established() -> TcpInfo {
        let state = state::ESTABLISHED;
        TcpInfo { state, bytes_sent: 10, bytes_acked: 11, bytes_received: 4, ..TcpInfo::default() }
    }

    #[test]
    fn a_connection_is_defined_once_and_only_what_has_changed_is_recorded() {
        let mut records = Vec::new();
        let mut emit = |record: &EventRecord| records.push(*record);
        let first = described(established());
        let mut sampled = TcpConnectionSampler::new(3, &first);
        sampled.update(&first, 1, &mut emit);
        sampled.update(&first, 2, &mut emit);
        sampled.update(&described(TcpInfo { cwnd: 9, ..established() }), 3, &mut emit);
        sampled.end(4, &mut emit);
        sampled.begin_anew();
        sampled.update(&first, 5, &mut emit);
        let expected = [
            Kind::FlowFrom,
            Kind::FlowTo,
            Kind::FlowSocket,
            Kind::TcpWindows,
            Kind::TcpProgress,
            Kind::TcpLimits,
            Kind::TcpQueues,
            Kind::TcpOffsets,
            Kind::TcpWindows,
            Kind::TcpEnd,
        ];
        assert_eq!(kinds(&records[..10]), expected);
        assert_eq!(kinds(&records[10..]), expected[..8], "all of it, when begun anew");
        assert!(records.iter().all(|record| record.flow == 3));
        assert_eq!((records[8].time, records[8].args[0]), (3, 9));
    }

    #[test]
    fn the_syn_is_taken_off_once_it_has_shown_that_it_is_counted() {
        let mut records = Vec::new();
        let mut emit = |record: &EventRecord| records.push(*record);
        let in_flight = TcpInfo { unacked: 1, bytes_sent: 20, ..established() };
        let mut sampled = TcpConnectionSampler::new(0, &described(in_flight));
        sampled.update(&described(in_flight), 1, &mut emit);
        sampled.update(&described(established()), 2, &mut emit);
        sampled.update(&described(in_flight), 3, &mut emit);
        let progress: Vec<(u8, u32)> = records
            .iter()
            .filter(|record| record.kind == Kind::TcpProgress as u8)
            .map(|record| (record.flags, record.args[0]))
            .collect();
        assert_eq!(progress, [(flag::OFFSET_UNKNOWN, 11), (0, 10)]);
    }

    #[test]
    fn a_closed_connection_has_the_bytes_that_it_had_or_says_that_one_may_be_a_fin() {
        let mut records = Vec::new();
        let mut emit = |record: &EventRecord| records.push(*record);
        let waiting = TcpInfo { state: state::CLOSE_WAIT, bytes_received: 5, ..established() };
        let closed = TcpInfo { state: state::CLOSED, ..waiting };
        let mut sampled = TcpConnectionSampler::new(0, &described(waiting));
        sampled.update(&described(waiting), 1, &mut emit);
        sampled.update(&described(closed), 2, &mut emit);
        let mut unseen = TcpConnectionSampler::new(1, &described(closed));
        unseen.update(&described(closed), 3, &mut emit);
        let progress: Vec<(u32, u8, u32)> = records
            .iter()
            .filter(|record| record.kind == Kind::TcpProgress as u8)
            .map(|record| (record.flow, record.flags & flag::OFFSET_UNKNOWN, record.args[1]))
            .collect();
        assert_eq!(progress[0], (0, 0, 4));
        assert_eq!(progress[1..], [(1, flag::OFFSET_UNKNOWN, 5)]);
    }
}
