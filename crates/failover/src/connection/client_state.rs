//! The client's side of a connection.

use super::replica_set::ConnectionReplicaSet;
use super::server_state::AnnouncedWindow;
use crate::draft::PacketHeaderTemplate;
use crate::event::ReplicatedConnectionKey;
use crate::offset::{SequenceSpace, is_later};
use crate::options::TcpOptions;
use crate::segment::ParsedTcpSegment;
use windtunnel_wire::tcp;

/// The MSS where the option is missing (RFC 9293, 3.7.1): IPv4, IPv6.
const MSS_DEFAULT: (u16, u16) = (536, 1220);

/// What the client has sent, has received, and takes.
#[derive(Debug, Clone)]
pub(super) struct ClientTcpState {
    pub(super) space: SequenceSpace,
    /// What its SYN offered, MSS lowered to that of the way to the replicas.
    pub(super) syn: TcpOptions,
    pub(super) wants_ecn: bool,
    /// Its window at SYN.
    pub(super) syn_window: u16,
    /// The end of what it has sent.
    pub(super) sent: u64,
    /// The server's stream up to here has come to it.
    pub(super) acked: u64,
    /// How its window field is scaled.
    shift: u8,
    /// It takes the server's stream up to here.
    pub(super) edge: u64,
    /// Its latest TSval.
    pub(super) stamp: u32,
    /// Offset of its FIN.
    pub(super) fin: Option<u64>,
    /// It has asked for room (a window probe), and has sent nothing new since.
    pub(super) asks: bool,
    /// It has sent what it was acknowledged, or an old number, and received nothing since: the
    /// acknowledgement was lost, or it asks whether a server is there (a keep-alive).
    pub(super) lacks_ack: bool,
    /// Times that it sent data again since anything of it was acknowledged.
    pub(super) retransmissions: u32,
    /// Headers of its packets.
    pub(super) template: PacketHeaderTemplate,
}

impl ClientTcpState {
    /// From its SYN. `mss_max` is the largest segment on the way to the replicas.
    pub(super) fn new(
        key: ReplicatedConnectionKey,
        segment: &ParsedTcpSegment<'_>,
        mss_max: u16,
    ) -> Self {
        let options = &segment.options;
        let mss = options.mss.unwrap_or(mss_default(&key)).min(mss_max);
        Self {
            space: SequenceSpace { isn: segment.sequence },
            syn: TcpOptions {
                mss: Some(mss),
                shift: options.shift,
                sack_permitted: options.sack_permitted,
                stamps: options.stamps,
                ..TcpOptions::default()
            },
            wants_ecn: segment.has(tcp::ECE) && segment.has(tcp::CWR),
            syn_window: segment.window,
            sent: 1,
            acked: 0,
            shift: 0,
            edge: 1 + u64::from(segment.window),
            stamp: options.stamps.map_or(0, |(value, _)| value),
            fin: None,
            asks: false,
            lacks_ack: false,
            retransmissions: 0,
            template: PacketHeaderTemplate::new(
                segment.head,
                key.client.port(),
                key.service.port(),
            ),
        }
    }

    /// Its SYN has come again, perhaps with a later timestamp.
    pub(super) fn repeat_syn(&mut self, segment: &ParsedTcpSegment<'_>) {
        if let (Some(stamps), true) = (segment.options.stamps, self.syn.stamps.is_some()) {
            self.syn.stamps = Some(stamps);
            self.stamp = stamps.0;
        }
    }

    /// Whether a replica's segment acknowledges its SYN.
    pub(super) fn is_syn_answered_by(&self, segment: &ParsedTcpSegment<'_>) -> bool {
        segment.has(tcp::ACK) && self.space.offset(segment.acknowledgement, 1) == Some(1)
    }

    /// It is offered this window scale. It scales its own window only where that is there
    /// (RFC 7323, 2.2).
    pub(super) fn agree_shift(&mut self, offered: Option<u8>) {
        self.shift = offered.and(self.syn.shift).unwrap_or(0);
    }

    /// Where its window ends, by a segment of it.
    pub(super) fn window_edge(&self, segment: &ParsedTcpSegment<'_>, acked: u64) -> u64 {
        acked + (u64::from(segment.window) << self.shift)
    }

    /// Whether a segment asks for room: with a byte beyond the window, or an old number (RFC 9293,
    /// 3.8.6.1; Linux does the latter).
    pub(super) fn note_request(
        &mut self,
        segment: &ParsedTcpSegment<'_>,
        offset: u64,
        announced: AnnouncedWindow,
        replicas: &ConnectionReplicaSet,
    ) {
        let end = offset + segment.len();
        let is_beyond = segment.len() > 0 && end > announced.edge;
        self.lacks_ack |= offset < announced.acked || is_beyond;
        if end > self.sent {
            self.asks = is_beyond;
        } else if segment.len() == 0 && offset < replicas.acked().unwrap_or(announced.acked) {
            self.asks = true;
        }
    }

    /// What a segment says of its streams. `true` if it sends data again.
    pub(super) fn advance(
        &mut self,
        segment: &ParsedTcpSegment<'_>,
        offset: u64,
        acked: u64,
    ) -> bool {
        let end = offset + segment.len();
        self.template.renew(segment.head);
        let is_again = segment.len() > 0 && end <= self.sent;
        if is_again {
            self.retransmissions += 1;
        }
        self.sent = self.sent.max(end);
        if segment.has(tcp::FIN) {
            self.fin = Some(end - 1);
        }
        if acked >= self.acked {
            self.acked = acked;
            self.edge = self.window_edge(segment, acked);
        }
        if let Some((value, _)) = segment.options.stamps
            && is_later(value, self.stamp)
        {
            self.stamp = value;
        }
        is_again
    }
}

/// The MSS of an end that has not said any.
pub(super) fn mss_default(key: &ReplicatedConnectionKey) -> u16 {
    if key.client.is_ipv4() { MSS_DEFAULT.0 } else { MSS_DEFAULT.1 }
}
