//! The disciplines of a queue as the schema shows them.

use schemars::JsonSchema;

use super::text::{Probability, Queue, Size, Time};

/// Who is dropped when packets wait, and who goes first.
#[derive(JsonSchema)]
#[schemars(untagged)]
pub(crate) enum Discipline {
    /// By name, with its defaults.
    Name(DisciplineName),
    /// With parameters.
    Form(Box<DisciplineForm>),
}

/// The disciplines.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case")]
pub(crate) enum DisciplineName {
    /// The newcomer is dropped when the queue is full.
    DropTail,
    /// The oldest is dropped when the queue is full.
    DropHead,
    /// Controlled delay (RFC 8289), marking packets that can carry ECN.
    Codel,
    /// Random early detection (Floyd and Jacobson 1993).
    Red,
    /// Proportional integral controller enhanced (RFC 8033).
    Pie,
    /// A queue for each flow, with CoDel in each (RFC 8290).
    FqCodel,
    /// As fq-codel, but hosts share first, and then the flows of each.
    Fair,
}

/// A discipline with parameters: exactly one of these.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct DisciplineForm {
    /// Controlled delay (RFC 8289).
    codel: Option<Codel>,
    /// Random early detection (Floyd and Jacobson 1993).
    red: Option<Red>,
    /// Proportional integral controller enhanced (RFC 8033).
    pie: Option<Pie>,
    /// A queue for each flow, with CoDel in each (RFC 8290).
    fq_codel: Option<FqCodel>,
    /// As fq-codel, but hosts share first, and then the flows of each.
    fair: Option<Fair>,
}

/// The parameters of CoDel.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct Codel {
    /// Acceptable standing delay; default 5ms.
    target: Option<Time>,
    /// How long the delay may stay above the target; default 100ms.
    interval: Option<Time>,
    /// Whether packets that can carry ECN are marked instead of dropped; default true.
    ecn: Option<bool>,
}

/// The parameters of RED. Lengths are in packets of one MTU, bytes with overhead, or time at the
/// rate.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct Red {
    /// Average length of the queue from which on packets are dropped; default: a third of `max`.
    min: Option<Queue>,
    /// Average length at which `probability` is reached, and beyond which all are dropped;
    /// default: a quarter of the queue's limit.
    max: Option<Queue>,
    /// Probability of a drop just below `max`; default 2%.
    probability: Option<Probability>,
    /// Weight of a new sample in the average; default 0.2%.
    weight: Option<Probability>,
    /// Size of a typical packet, by which the average decays while nothing waits; default 1000B.
    packet: Option<Size>,
    /// Whether the probability rises on to 100% between `max` and twice of it; default false.
    gentle: Option<bool>,
    /// Whether `probability` is adapted every 500ms to hold the average midway; default false.
    adaptive: Option<bool>,
    /// Whether packets that can carry ECN are marked instead of dropped; default true.
    ecn: Option<bool>,
}

/// The parameters of PIE.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct Pie {
    /// Delay to be held; default 15ms.
    target: Option<Time>,
    /// Time between two computations of the drop probability, at least 1ms; default 15ms.
    update: Option<Time>,
    /// How long a burst after calm is left alone; default 150ms.
    burst: Option<Time>,
    /// Whether drops are spread more evenly than chance would, as Linux does; default false.
    derandomise: Option<bool>,
    /// Whether packets that can carry ECN are marked instead of dropped, up to a probability of
    /// 10%; default true.
    ecn: Option<bool>,
}

/// The parameters of FQ-CoDel.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct FqCodel {
    /// Number of queues that flows are hashed to, 1 to 65536; default 1024.
    #[schemars(range(min = 1, max = 65_536))]
    flows: Option<u32>,
    /// Bytes with overhead that a flow sends in its turn, 64B to 1MB; default 1514B.
    quantum: Option<Size>,
    /// Acceptable standing delay of a flow; default 5ms.
    target: Option<Time>,
    /// How long the delay may stay above the target; default 100ms.
    interval: Option<Time>,
    /// Whether packets that can carry ECN are marked instead of dropped; default true.
    ecn: Option<bool>,
}

/// The parameters of fair sharing over hosts.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct Fair {
    /// Which address of a packet is its host: `destination` (default) or `source`.
    by: Option<Side>,
    /// Number of queues that flows are hashed to, and of those for hosts, 1 to 65536; default
    /// 1024.
    #[schemars(range(min = 1, max = 65_536))]
    flows: Option<u32>,
    /// Bytes with overhead that a host, and a flow of it, sends in its turn, 64B to 1MB; default
    /// 1514B.
    quantum: Option<Size>,
    /// Acceptable standing delay of a flow; default 5ms.
    target: Option<Time>,
    /// How long the delay may stay above the target; default 100ms.
    interval: Option<Time>,
    /// Whether packets that can carry ECN are marked instead of dropped; default true.
    ecn: Option<bool>,
}

/// One of the two addresses of a packet.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case")]
pub(crate) enum Side {
    /// Who sent it.
    Source,
    /// Who is to get it.
    Destination,
}
