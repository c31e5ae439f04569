//! Which packets are dropped or marked when packets wait, and in which order they go.

use serde::{Deserialize, Serialize};

use crate::probability::Probability;
use crate::profile::{LinkProfile, QueueLimit};
use crate::quantity::{Bytes, Packets};
use crate::rate::Rate;
use crate::time::Span;
use crate::wf2q::Wf2qParameters;

/// Which packets are dropped when the queue is full, or before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum QueueDiscipline {
    /// The newcomer.
    DropTail,
    /// The oldest in the queue.
    DropHead,
    /// Controlled delay (RFC 8289); the limit holds as drop-tail.
    Codel(CodelParameters),
    /// Random early detection (Floyd and Jacobson 1993); the limit holds as drop-tail.
    Red(RedParameters),
    /// Proportional integral controller enhanced (RFC 8033); the limit holds as drop-tail.
    Pie(PieParameters),
    /// PI squared (De Schepper et al. 2016, RFC 9332); the limit holds as drop-tail.
    Pi2(Pi2Parameters),
    /// A queue for each flow, with CoDel in each (RFC 8290); the longest pays at the limit.
    FqCodel(FlowQueues),
    /// As `FqCodel`, where hosts share first, and then the flows of each host its share.
    Fair(HostFairParameters),
    /// Hierarchical weighted fair queueing (Bennett and Zhang 1997); the longest class pays at the
    /// limit.
    Wf2q(Wf2qParameters),
}

impl QueueDiscipline {
    /// The queue's limit where the file has none and the discipline keeps the queue short itself:
    /// the 10 240 packets of RFC 8290, section 5.2.3; Linux's 1000 for PIE, whose bursts of 150
    /// ms need room.
    #[must_use]
    pub fn default_packets(&self) -> Option<Packets> {
        match self {
            QueueDiscipline::FqCodel(_) | QueueDiscipline::Fair(_) => Some(Packets(10_240)),
            QueueDiscipline::Pie(_) | QueueDiscipline::Pi2(_) => Some(Packets(1000)),
            _ => None,
        }
    }
}

/// Parameters of CoDel (RFC 8289).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct CodelParameters {
    /// Acceptable standing delay; default 5 ms.
    pub target: Span,
    /// How long the delay may stay above the target; default 100 ms.
    pub interval: Span,
    /// Whether ECN-capable packets are marked instead of dropped; default true.
    pub ecn: bool,
}

impl Default for CodelParameters {
    fn default() -> Self {
        CodelParameters {
            target: Span::from_millis(5),
            interval: Span::from_millis(100),
            ecn: true,
        }
    }
}

/// Parameters of flow queues with CoDel (RFC 8290).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct FlowQueues {
    /// Number of queues that flows are hashed to; default 1024, at most
    /// [`FlowQueues::MOST_FLOWS`].
    pub flows: u32,
    /// Bytes with overhead that a flow may send in its turn; default 1514.
    pub quantum: u32,
    /// CoDel in each queue.
    pub codel: CodelParameters,
}

impl FlowQueues {
    /// The most queues: 2¹⁶, as in Linux.
    pub const MOST_FLOWS: u32 = 65_536;
}

impl Default for FlowQueues {
    fn default() -> Self {
        FlowQueues { flows: 1024, quantum: 1514, codel: CodelParameters::default() }
    }
}

/// Parameters of flow queues whose hosts share first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
pub struct HostFairParameters {
    /// Which address of a packet is its host; default the destination.
    pub by: FairBy,
    /// The queues of the flows.
    pub queues: FlowQueues,
}

/// One of the two addresses of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
pub enum FairBy {
    /// By source address.
    Source,
    /// By destination address.
    #[default]
    Destination,
}

/// Parameters of random early detection (Floyd and Jacobson 1993; tc-red(8)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct RedParameters {
    /// Average queue from which on packets are dropped; `None`: a third of `max`.
    pub min: Option<QueueLimit>,
    /// Average queue at which `probability` is reached; `None`: a quarter of the queue's limit.
    pub max: Option<QueueLimit>,
    /// Probability just below `max`; default 2 %.
    pub probability: Probability,
    /// Weight of a new sample in the average; default 0.2 %.
    pub weight: Probability,
    /// Size of a typical packet, by which the average decays while nothing waits; default 1000
    /// bytes.
    pub packet: Bytes,
    /// Whether the probability rises on to 1 from `max` to twice of it, instead of at once (Floyd
    /// 2000); default false.
    pub gentle: bool,
    /// Whether `probability` is adapted so that the average stays midway (Floyd, Gummadi and
    /// Shenker 2001); default false.
    pub adaptive: bool,
    /// Whether ECN-capable packets are marked instead of dropped; default true.
    pub ecn: bool,
}

impl RedParameters {
    /// `min` and `max` in bytes with overhead on a link of this profile at `rate`; `max` is above
    /// `min` where the setting is sound ([`RedParameters::is_sound`]).
    #[must_use]
    pub fn thresholds(&self, profile: &LinkProfile, rate: Rate) -> (u64, u64) {
        let bytes = |limit: QueueLimit| match limit {
            QueueLimit::Packets(packets) => packets.0.saturating_mul(profile.wire_packet()),
            other => other.bytes_at(rate, profile.mtu),
        };
        let max = self
            .max
            .map(bytes)
            .unwrap_or_else(|| profile.effective_queue().map_or(u64::MAX, bytes) / 4);
        (self.min.map_or(max / 3, bytes), max)
    }

    /// Whether `max` is above `min` on a link of this profile.
    #[must_use]
    pub fn is_sound(&self, profile: &LinkProfile) -> bool {
        profile.rate.is_none_or(|rate| {
            let (min, max) = self.thresholds(profile, rate);
            min < max
        })
    }
}

impl Default for RedParameters {
    fn default() -> Self {
        let parts = |parts| Probability::from_parts_per_billion(parts).unwrap_or_default();
        RedParameters {
            min: None,
            max: None,
            probability: parts(20_000_000),
            weight: parts(2_000_000),
            packet: Bytes(1000),
            gentle: false,
            adaptive: false,
            ecn: true,
        }
    }
}

/// Parameters of PI2 (RFC 9332, appendix A.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Pi2Parameters {
    /// Delay to be held; default 15 ms.
    pub target: Span,
    /// The longest round trip for which the loop is to be stable; default 100 ms.
    pub max_rtt: Span,
    /// Whether ECN-capable packets are marked instead of dropped up to a share of 25 %; default
    /// true.
    pub ecn: bool,
}

impl Pi2Parameters {
    /// Time between two computations of the probability: the target or a third of the longest
    /// round trip, whichever is shorter.
    #[must_use]
    pub fn update(&self) -> Span {
        self.target.min(Span::from_nanos(self.max_rtt.as_nanos() / 3))
    }
}

impl Default for Pi2Parameters {
    fn default() -> Self {
        Pi2Parameters { target: Span::from_millis(15), max_rtt: Span::from_millis(100), ecn: true }
    }
}

/// Parameters of PIE (RFC 8033).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct PieParameters {
    /// Delay to be held; default 15 ms.
    pub target: Span,
    /// Time between two computations of the drop probability; default 15 ms.
    pub update: Span,
    /// How long a burst after calm is left alone; default 150 ms.
    pub burst: Span,
    /// Whether drops are spread more evenly than chance would (RFC 8033, section 5.4); default
    /// false.
    pub derandomise: bool,
    /// Whether ECN-capable packets are marked instead of dropped up to a drop probability of 10 %;
    /// default true.
    pub ecn: bool,
}

impl Default for PieParameters {
    fn default() -> Self {
        PieParameters {
            target: Span::from_millis(15),
            update: Span::from_millis(15),
            burst: Span::from_millis(150),
            derandomise: false,
            ecn: true,
        }
    }
}
