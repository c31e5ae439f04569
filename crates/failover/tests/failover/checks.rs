//! The invariants, looked at for each packet that the client is sent.

use windtunnel_failover::{ConnectionReplicator, ReplicatedConnectionKey, ReplicationRefusal};
use windtunnel_model::Time;

use crate::seg::{FIN, RST, SYN, Seg};
use crate::world::Host;

/// What was seen so far.
#[derive(Debug)]
pub(crate) struct Checks {
    key: ReplicatedConnectionKey,
    pub(crate) is_honest: bool,
    isn: Option<u32>,
    client_isn: u32,
    acked: u64,
    next: u64,
    fin: Option<u64>,
    stamp: Option<u32>,
    pub(crate) resets: u32,
    pub(crate) packets: u64,
    pub(crate) refused: Vec<ReplicationRefusal>,
    shift: u8,
}

impl Checks {
    pub(crate) fn new(key: ReplicatedConnectionKey) -> Self {
        Self {
            key,
            is_honest: true,
            isn: None,
            client_isn: 0,
            acked: 0,
            next: 1,
            fin: None,
            stamp: None,
            resets: 0,
            packets: 0,
            refused: Vec::new(),
            shift: 0,
        }
    }

    pub(crate) fn taken(&mut self, taken: Result<(), ReplicationRefusal>) {
        self.refused.extend(taken.err());
    }

    /// A packet to the client.
    pub(crate) fn look(
        &mut self,
        now: Time,
        frame: &[u8],
        machine: &ConnectionReplicator,
        hosts: &[Host],
    ) {
        let seg = Seg::parse(frame);
        self.packets += 1;
        assert_eq!((seg.from, seg.to), (self.key.service, self.key.client));
        if seg.has(RST) {
            self.resets += 1;
            return;
        }
        if seg.has(SYN) {
            self.isn.get_or_insert(seg.seq);
            assert_eq!(self.isn, Some(seg.seq), "another initial sequence number");
            self.client_isn = seg.ack.wrapping_sub(1);
            self.shift = seg.shift.unwrap_or(0);
            return;
        }
        let Some(isn) = self.isn else { return };
        let offset = |isn: u32, number: u32, near: u64| {
            let delta = number.wrapping_sub(isn.wrapping_add(near as u32)) as i32;
            (near as i64 + i64::from(delta)) as u64
        };
        let start = offset(isn, seg.seq, self.next);
        let acked = offset(self.client_isn, seg.ack, self.acked.max(1));
        let data_end = start + seg.payload.len() as u64;
        let end = data_end + u64::from(seg.has(FIN));
        // 3: the sequence space goes on; FIN is its end.
        assert!(start >= 1 && self.fin.is_none_or(|fin| end <= fin + 1), "{now}: {start}..{end}");
        if seg.has(FIN) {
            assert_eq!(*self.fin.get_or_insert(data_end), data_end, "{now}: another fin");
            assert!(data_end >= self.next || self.next == end, "{now}: a fin before data");
        }
        assert!(acked >= self.acked, "{now}: an acknowledgement goes back");
        self.next = self.next.max(end);
        self.acked = acked;
        if let Some((value, _)) = seg.stamps {
            let is_back = |last: u32| (value.wrapping_sub(last) as i32) < 0;
            assert!(!self.stamp.is_some_and(is_back), "{now}: a timestamp goes back");
            self.stamp = Some(value);
        }
        let Some(view) = machine.view(self.key) else { return };
        for id in &view.replicas {
            let Some(tcp) = &hosts[id.0 as usize].tcp else { continue };
            // 1: what is acknowledged is had by every live replica.
            assert!(acked <= tcp.rcv_nxt, "{now}: {acked} is acknowledged, {id:?} lacks it");
            let edge = acked + (u64::from(seg.window) << self.shift);
            assert!(
                edge <= tcp.rcv_nxt + tcp.settings.room,
                "{now}: {id:?} has no room for {edge}"
            );
            // 2: what is delivered was sent by every live replica.
            assert!(end <= tcp.max.max(1), "{now}: {end} is delivered, {id:?} has {}", tcp.max);
            for (start, end) in &seg.sacks {
                let (start, end) =
                    (offset(self.client_isn, *start, acked), offset(self.client_isn, *end, acked));
                assert!(tcp.has(start, end), "{now}: {start}..{end} is sacked, {id:?} lacks it");
            }
            if self.is_honest && data_end > start {
                let theirs = &tcp.data[start as usize - 1..data_end as usize - 1];
                assert!(theirs == seg.payload, "{now}: {id:?} sent other bytes");
            }
        }
    }
}
