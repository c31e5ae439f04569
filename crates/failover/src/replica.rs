//! One replica's side of a connection.

use crate::event::ReplicaId;
use crate::health::{ReplicaHealth, ReplicaStreamPosition};
use crate::offset::SequenceSpace;
use crate::options::TcpOptions;
use crate::output::ReplicaOutputBuffer;
use crate::ranges::StreamRangeSet;
use crate::segment::ParsedTcpSegment;
use crate::stamps::ReplicaTimestampMap;
use windtunnel_model::Time;
use windtunnel_wire::tcp;

/// SACKed ranges kept of a replica; those beyond are not known, and so not shown to the client.
const SACKED_MAX: usize = 32;

/// Where a replica is in the life of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReplicaLifecycleStage {
    /// It was sent a SYN.
    Asked,
    /// Its SYN-ACK is here.
    Answered,
    /// It takes part.
    Live,
    /// It takes no part any more.
    Out,
}

/// What an acknowledgement of a replica says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReplicaAckKind {
    /// Nothing, or nothing new.
    Old,
    /// More, or another window.
    New,
    /// The same as before, in a segment without data.
    Duplicate,
    /// Something that the client never sent.
    Implausible,
}

/// A replica in a connection.
#[derive(Debug, Clone)]
pub(crate) struct ConnectionReplica {
    pub(crate) id: ReplicaId,
    pub(crate) status: ReplicaLifecycleStage,
    /// Its own sequence space, of what it sends.
    pub(crate) space: SequenceSpace,
    /// What its SYN-ACK offered.
    pub(crate) syn: TcpOptions,
    pub(crate) ecn: bool,
    /// The client's stream up to here has come to it.
    pub(crate) acked: u64,
    /// It takes the client's stream up to here.
    pub(crate) edge: u64,
    /// The offset of its segment that `edge` is from (SND.WL1 of RFC 9293).
    updated_by: u64,
    /// Its largest window.
    pub(crate) window_max: u64,
    /// Times that it was given the next byte of the client, and had room for it.
    pub(crate) offers: u32,
    /// Times that it repeated its acknowledgement: segments that came after a hole.
    pub(crate) repeated: u32,
    /// The end of what it has sent, by its sequence numbers.
    pub(crate) reached: u64,
    /// Segments of it with something that the client had not acknowledged.
    pub(crate) segments: u64,
    /// It has these, too.
    pub(crate) sacked: StreamRangeSet,
    pub(crate) output: ReplicaOutputBuffer,
    pub(crate) stamps: ReplicaTimestampMap,
    /// The client's TSval that it echoed last.
    pub(crate) echo: u32,
    /// Whether it reports congestion on its way (ECE).
    pub(crate) ece: bool,
    pub(crate) health: ReplicaHealth,
}

impl ConnectionReplica {
    /// One that is being sent a SYN.
    pub(crate) fn new(id: ReplicaId, now: Time) -> Self {
        Self {
            id,
            status: ReplicaLifecycleStage::Asked,
            space: SequenceSpace::default(),
            syn: TcpOptions::default(),
            ecn: false,
            acked: 0,
            edge: 0,
            updated_by: 0,
            window_max: 0,
            offers: 0,
            repeated: 0,
            reached: 1,
            segments: 0,
            sacked: StreamRangeSet::default(),
            output: ReplicaOutputBuffer::new(1),
            stamps: ReplicaTimestampMap::default(),
            echo: 0,
            ece: false,
            health: ReplicaHealth::new(now),
        }
    }

    pub(crate) fn is_live(&self) -> bool {
        self.status == ReplicaLifecycleStage::Live
    }

    /// How far it is in both streams.
    pub(crate) fn position(&self) -> ReplicaStreamPosition {
        let output = &self.output;
        ReplicaStreamPosition { acked: self.acked, data: output.data_end(), end: output.end() }
    }

    /// Takes a SYN-ACK. Without a shift of the client's a replica's counts for nothing
    /// (RFC 7323, 2.2).
    pub(crate) fn answer(&mut self, segment: &ParsedTcpSegment<'_>, is_scaled: bool) {
        self.status = ReplicaLifecycleStage::Answered;
        self.space = SequenceSpace { isn: segment.sequence };
        self.syn = segment.options;
        self.syn.shift = self.syn.shift.filter(|_| is_scaled);
        self.ecn = segment.has(tcp::ECE) && !segment.has(tcp::CWR);
        self.acked = 1;
        // The window of a SYN is not scaled (RFC 7323, 2.2).
        self.edge = 1 + u64::from(segment.window);
        self.window_max = u64::from(segment.window);
        self.echo = segment.options.stamps.map_or(0, |(_, echo)| echo);
    }

    /// Takes what a segment acknowledges. `near` is its own offset, `client` the client's space,
    /// `sent` the end of what the client has sent.
    pub(crate) fn acknowledge(
        &mut self,
        segment: &ParsedTcpSegment<'_>,
        near: u64,
        client: SequenceSpace,
        sent: u64,
    ) -> ReplicaAckKind {
        if !segment.has(tcp::ACK) {
            return ReplicaAckKind::Old;
        }
        let Some(acked) = client.offset(segment.acknowledgement, self.acked) else {
            return ReplicaAckKind::Implausible;
        };
        if acked > sent {
            return ReplicaAckKind::Implausible;
        }
        if acked < self.acked {
            return ReplicaAckKind::Old;
        }
        let has_moved = acked > self.acked;
        let edge = acked + (u64::from(segment.window) << self.syn.shift.unwrap_or(0));
        let is_newer =
            has_moved || near > self.updated_by || near == self.updated_by && edge > self.edge;
        let has_changed = is_newer && edge != self.edge;
        if is_newer {
            self.edge = edge;
            self.updated_by = near;
        }
        self.acked = acked;
        self.window_max = self.window_max.max(self.edge - acked.min(self.edge));
        if has_moved {
            (self.offers, self.repeated) = (0, 0);
        }
        self.take_blocks(segment, client, sent);
        self.ece = segment.has(tcp::ECE);
        if let Some((_, echo)) = segment.options.stamps {
            self.echo = echo;
        }
        match (has_moved || has_changed, segment.len()) {
            (true, _) => ReplicaAckKind::New,
            (false, 0) => {
                self.repeated = self.repeated.saturating_add(1);
                ReplicaAckKind::Duplicate
            }
            (false, _) => ReplicaAckKind::Old,
        }
    }

    /// Counts what it has sent: it cannot be more than the client takes. `acked` and `edge` are the
    /// client's.
    pub(crate) fn note_sent(
        &mut self,
        segment: &ParsedTcpSegment<'_>,
        offset: u64,
        acked: u64,
        edge: u64,
    ) {
        let end = offset + segment.len();
        // FIN takes no place in the window.
        if end <= edge + 1 {
            self.reached = self.reached.max(end);
        }
        if segment.len() > 0 && end > acked {
            self.segments += 1;
        }
    }

    /// Whether a client that has sent its stream up to `sent` may send it more: a segment of `mss`, or
    /// half of the largest window, as senders wait for (RFC 9293, 3.8.6.2.1).
    pub(crate) fn is_open(&self, sent: u64, mss: u64) -> bool {
        self.edge >= sent + mss.min(self.window_max / 2).max(1)
    }

    /// A report without blocks says that there are none, also where there were some: a receiver
    /// may discard what it has only SACKed (RFC 2018, 8).
    fn take_blocks(&mut self, segment: &ParsedTcpSegment<'_>, client: SequenceSpace, sent: u64) {
        self.sacked.remove_below(self.acked);
        let blocks = segment.options.blocks();
        if blocks.is_empty() {
            self.sacked.clear();
        }
        for (start, end) in blocks {
            let offset = |sequence| client.offset(sequence, self.acked);
            if let (Some(start), Some(end)) = (offset(*start), offset(*end))
                && end <= sent
                && start < end
                && end > self.acked
            {
                self.sacked.insert(start.max(self.acked)..end, SACKED_MAX);
            }
        }
    }

    /// It takes no part any more: memory is given back.
    pub(crate) fn leave(&mut self) {
        self.status = ReplicaLifecycleStage::Out;
        self.output.release();
        self.sacked.clear();
        self.stamps = ReplicaTimestampMap::default();
    }
}
