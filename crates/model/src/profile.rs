//! What one direction of a link does to packets, and changes of it.

mod loss;

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

pub use crate::discipline::{
    CodelParameters, FairBy, FlowQueues, HostFairParameters, Pi2Parameters, PieParameters,
    QueueDiscipline, RedParameters,
};
use crate::probability::Probability;
use crate::quantity::{Bytes, Packets};
use crate::rate::Rate;
use crate::time::Span;
use crate::trace::Traces;
pub use crate::wf2q::{SendShare, Wf2qParameters};
pub use loss::{GilbertElliott, LossModel};

/// Declares the properties of one direction of a link, each once: its description, name, type,
/// default, and how a patch holds a new value. Makes [`LinkProfile`] and [`LinkPatch`].
macro_rules! properties {
    ($(
        $(#[doc = $doc:literal])*
        $name:ident: $value:ty = $default:expr, patched by $change:ty;
    )*) => {
        /// The properties of one direction of a link, resolved: every default has been applied,
        /// except for `overhead` and `queue`, whose defaults depend on the rate of the moment
        /// ([`LinkProfile::effective_overhead`], [`LinkProfile::effective_queue`]).
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
        pub struct LinkProfile {
            $($(#[doc = $doc])* pub $name: $value,)*
            /// Properties that follow a trace; above, they have its mean.
            #[serde(default, skip_serializing_if = "Traces::is_none")]
            pub traces: Traces,
            /// What the node at one end may send or receive at most: `rate` is never more.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub rate_limit: Option<Rate>,
        }

        impl Default for LinkProfile {
            /// A link without properties: as fast as it goes.
            fn default() -> Self {
                LinkProfile { $($name: $default,)* traces: Traces::default(), rate_limit: None }
            }
        }

        /// A change of a link's properties: only what is `Some` changes, all at one instant.
        #[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
        pub struct LinkPatch {
            $(
                $(#[doc = $doc])*
                #[serde(default, skip_serializing_if = "Option::is_none")]
                pub $name: Option<$change>,
            )*
            /// Traces that the new rate, latency and loss follow; where one of these changes
            /// without a trace here, it follows none any more.
            #[serde(default, skip_serializing_if = "Traces::is_none")]
            pub traces: Traces,
        }

        impl LinkPatch {
            /// Changes `profile` in the named properties and leaves the others.
            pub fn apply_to(&self, profile: &mut LinkProfile) {
                profile.traces = self.traces_over(&profile.traces);
                $(
                    if let Some(change) = &self.$name {
                        profile.$name = change.value();
                    }
                )*
                profile.limit_rate(profile.rate_limit);
            }

            /// This change, and then `later`, as one.
            #[must_use]
            pub fn with(&self, later: &LinkPatch) -> LinkPatch {
                LinkPatch {
                    $($name: later.$name.clone().or_else(|| self.$name.clone()),)*
                    traces: later.traces_over(&self.traces),
                }
            }
        }
    };
}

properties! {
    /// Propagation delay: the least time from the end of transmission to arrival.
    latency: Span = Span::ZERO, patched by Span;
    /// Random delay on top of the latency.
    jitter: Jitter = Jitter::default(), patched by Jitter;
    /// Packets that vanish.
    loss: LossModel = LossModel::None, patched by LossModel;
    /// Probability that a packet arrives twice.
    duplicate: Probability = Probability::NEVER, patched by Probability;
    /// Probability that one bit of a packet is flipped.
    corrupt: Probability = Probability::NEVER, patched by Probability;
    /// Packets that overtake others.
    reorder: PacketReordering = PacketReordering::default(), patched by PacketReordering;
    /// Bandwidth; without one there is no queue and no overhead.
    rate: Option<Rate> = None, patched by PropertySetting<Rate>;
    /// Framing bytes charged per MTU segment; the default is Ethernet's where a rate is set.
    overhead: Option<Overhead> = None, patched by PropertySetting<Overhead>;
    /// Largest IP packet in bytes that passes unfragmented.
    mtu: u32 = LinkProfile::DEFAULT_MTU, patched by u32;
    /// Room in front of the rate; the default depends on it.
    queue: Option<QueueLimit> = None, patched by PropertySetting<QueueLimit>;
    /// Which packets are dropped or marked when there is a queue.
    discipline: QueueDiscipline = QueueDiscipline::DropTail, patched by QueueDiscipline;
}

impl LinkProfile {
    /// The MTU where none is set: Ethernet's.
    pub(crate) const DEFAULT_MTU: u32 = 1500;
    /// The default queue holds at least this many packets.
    pub(crate) const DEFAULT_QUEUE_PACKETS: u64 = 100;
    /// The default queue holds at least what the rate carries in this time.
    pub(crate) const DEFAULT_QUEUE_TIME: Span = Span::from_millis(50);

    /// Framing bytes charged for each segment: what was asked, else Ethernet's where a rate is set,
    /// or mahimahi's where the rate is a trace of delivery opportunities.
    #[must_use]
    pub fn effective_overhead(&self) -> Overhead {
        match (self.overhead, self.rate) {
            (Some(asked), _) => asked,
            (None, Some(_)) if self.traces.has_opportunities() => Overhead::OPPORTUNITY,
            (None, Some(_)) => Overhead::ETHERNET,
            (None, None) => Overhead::NONE,
        }
    }

    /// The queue's limit: what was asked, else what the discipline needs
    /// ([`QueueDiscipline::default_packets`]), else the larger of 100 packets and 50 ms of the rate (in
    /// packets of one MTU plus overhead). `None` without a rate: there is nothing to wait for.
    #[must_use]
    pub fn effective_queue(&self) -> Option<QueueLimit> {
        let rate = self.rate?;
        Some(self.queue.unwrap_or_else(|| {
            if let Some(packets) = self.discipline.default_packets() {
                return QueueLimit::Packets(packets);
            }
            let frame = self.wire_packet();
            let packets = rate.bytes_in(Self::DEFAULT_QUEUE_TIME).div_ceil(frame.max(1));
            QueueLimit::Packets(Packets(packets.max(Self::DEFAULT_QUEUE_PACKETS)))
        }))
    }

    /// From now on, the rate is no more than `limit`, whatever is asked later.
    pub fn limit_rate(&mut self, limit: Option<Rate>) {
        self.rate_limit = limit;
        self.rate = self.rate.into_iter().chain(limit).min();
    }

    /// Whether the properties suit each other: RED's thresholds rise, whatever units they are in.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        match &self.discipline {
            QueueDiscipline::Red(red) => red.is_sound(self),
            _ => true,
        }
    }

    /// Bytes of a packet of one MTU with the overhead that is charged for it.
    #[must_use]
    pub fn wire_packet(&self) -> u64 {
        u64::from(self.mtu) + u64::from(self.effective_overhead().0)
    }
}

/// Random delay, never negative: it adds to the latency, which is the least a packet can take.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct Jitter {
    /// The scale of the distribution; zero means no jitter.
    pub spread: Span,
    /// Its form.
    pub distribution: JitterDistribution,
}

impl Jitter {
    /// Whether every packet has the same delay.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.spread.is_zero() && !matches!(self.distribution, JitterDistribution::Table(_))
    }
}

/// The form of a jitter's distribution, with J for its spread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
pub enum JitterDistribution {
    /// Uniform over [0, J].
    #[default]
    Uniform,
    /// The absolute value of a normal variable with standard deviation J (half-normal), cut at 4·J.
    Normal,
    /// Pareto of the second kind (Lomax) with shape 3 and mean J: density 3·(2J)³/(x+2J)⁴, cut at
    /// 40·J.
    Pareto,
    /// Quantiles at equal steps of probability from 0 to 1, at least two and not decreasing; linear
    /// in between. The spread is not used.
    Table(Vec<Span>),
}

/// Overtaking. By default none: jitter keeps the order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
pub struct PacketReordering {
    /// Whether packets may overtake each other because of jitter.
    pub by_jitter: bool,
    /// Probability that a packet is held back by `extra`, so that later ones overtake it.
    pub probability: Probability,
    /// How long such a packet is held back.
    pub extra: Span,
    /// How much the decision about a packet depends on the one before: ρ of
    /// x(n) = ρ·x(n−1) + (1−ρ)·u(n), less than 100 %.
    #[serde(default, skip_serializing_if = "is_never")]
    pub correlation: Probability,
}

/// What a plan does not mention, so that plans without a correlation stay what they were.
fn is_never(probability: &Probability) -> bool {
    probability.is_never()
}

/// Framing bytes that a link charges for each MTU segment on top of the IP packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Overhead(pub u32);

impl Overhead {
    /// Nothing beyond the IP packet.
    pub const NONE: Overhead = Overhead(0);
    /// Ethernet: header 14, frame check 4, preamble 8, gap 12.
    pub const ETHERNET: Overhead = Overhead(38);
    /// The header of a TUN device, which mahimahi counts: 1504 bytes for a packet of 1500.
    pub(crate) const OPPORTUNITY: Overhead = Overhead(4);
}

/// How much may wait in front of a rate, the packet in transmission not counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum QueueLimit {
    /// So many MTU segments.
    Packets(Packets),
    /// So many bytes of IP packets with overhead.
    Bytes(Bytes),
    /// What the rate of the moment carries in this time.
    Time(Span),
}

impl QueueLimit {
    /// The most bytes that it holds at `rate`, with packets of `mtu` bytes.
    #[must_use]
    pub fn bytes_at(self, rate: Rate, mtu: u32) -> u64 {
        match self {
            QueueLimit::Packets(Packets(packets)) => packets.saturating_mul(u64::from(mtu)),
            QueueLimit::Bytes(Bytes(bytes)) => bytes,
            QueueLimit::Time(span) => rate.bytes_in(span),
        }
    }
}

impl core::fmt::Display for QueueLimit {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            QueueLimit::Packets(packets) => packets.fmt(f),
            QueueLimit::Bytes(bytes) => bytes.fmt(f),
            QueueLimit::Time(span) => span.fmt(f),
        }
    }
}

/// A value to set, or the default to go back to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PropertySetting<T> {
    /// This value.
    To(T),
    /// The default: no rate; the overhead or queue that the rate implies.
    Default,
}

/// How a patch holds a new value of a property.
trait PropertyChange<T> {
    fn value(&self) -> T;
}

impl<T: Clone> PropertyChange<T> for T {
    fn value(&self) -> T {
        self.clone()
    }
}

impl<T: Clone> PropertyChange<Option<T>> for PropertySetting<T> {
    fn value(&self) -> Option<T> {
        match self {
            PropertySetting::To(value) => Some(value.clone()),
            PropertySetting::Default => None,
        }
    }
}

impl LinkPatch {
    /// Whether nothing would change.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == LinkPatch::default()
    }

    /// The traces that are followed where `before` were: a trace goes with the value that it gives.
    fn traces_over(&self, before: &Traces) -> Traces {
        let Traces { rate, latency, loss } = self.traces;
        Traces {
            rate: if self.rate.is_some() { rate } else { before.rate },
            latency: if self.latency.is_some() { latency } else { before.latency },
            loss: if self.loss.is_some() { loss } else { before.loss },
        }
    }
}
