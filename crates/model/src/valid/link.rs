//! What links do to packets, and changes of it.

use alloc::borrow::ToOwned;
use alloc::format;

use crate::discipline::{CodelParameters, FlowQueues, QueueDiscipline};
use crate::plan::{Link, Plan};
use crate::probability::Probability;
use crate::profile::{
    Jitter, JitterDistribution, LinkPatch, LinkProfile, LossModel, Overhead, PropertySetting,
};
use crate::quantity::Bytes;
use crate::time::Span;
use crate::trace::Traces;

use super::trace;
use crate::message::{PlanValidationError, ensure};

pub(super) fn validate(plan: &Plan, link: &Link) -> Result<(), PlanValidationError> {
    let named = |error: PlanValidationError| {
        PlanValidationError::new(format!("link `{}`: {error}", link.name))
    };
    link.profiles.iter().try_for_each(|profile| of_profile(plan, profile)).map_err(named)
}

impl LinkPatch {
    /// Whether every value is one that a file can set.
    ///
    /// # Errors
    /// The first that is not.
    pub fn validate(&self, plan: &Plan) -> Result<(), PlanValidationError> {
        let mut profile = LinkProfile::default();
        self.apply_to(&mut profile);
        of_values(plan, &profile)
    }
}

pub(super) fn is_mtu(mtu: u32) -> Result<(), PlanValidationError> {
    ensure((MTU_MIN..=MTU_MAX).contains(&mtu), || {
        format!("the MTU {mtu} is not between {MTU_MIN} and {MTU_MAX}")
    })
}

fn of_profile(plan: &Plan, profile: &LinkProfile) -> Result<(), PlanValidationError> {
    of_values(plan, profile)?;
    let limited = profile.rate_limit.is_none_or(|limit| {
        profile.rate.is_some_and(|rate| rate <= limit) && profile.traces.rate.is_none()
    });
    ensure(limited, || "its rate is more than its node may have".to_owned())?;
    ensure(profile.is_sound(), || "the thresholds of RED do not rise".to_owned())
}

/// Each property by itself.
fn of_values(plan: &Plan, profile: &LinkProfile) -> Result<(), PlanValidationError> {
    is_mtu(profile.mtu)?;
    of_jitter(&profile.jitter)?;
    of_loss(&profile.loss)?;
    profile.overhead.map_or(Ok(()), of_overhead)?;
    of_discipline(&profile.discipline)?;
    ensure(profile.reorder.correlation != Probability::ALWAYS, || {
        "a correlation of 100 % decides about one packet only".to_owned()
    })?;
    of_traces(plan, &profile.traces)
}

fn of_jitter(jitter: &Jitter) -> Result<(), PlanValidationError> {
    let JitterDistribution::Table(table) = &jitter.distribution else { return Ok(()) };
    ensure((2..=TABLE_MAX).contains(&table.len()) && table.is_sorted(), || {
        "the table of a jitter does not hold quantiles".to_owned()
    })
}

fn of_loss(loss: &LossModel) -> Result<(), PlanValidationError> {
    let LossModel::Listed(numbers) = loss else { return Ok(()) };
    let rise = numbers.windows(2).all(|pair| pair[0] < pair[1]);
    ensure(rise && numbers.first().is_some_and(|first| *first > 0), || {
        "the numbers of lost packets do not rise from 1".to_owned()
    })
}

fn of_overhead(overhead: Overhead) -> Result<(), PlanValidationError> {
    ensure(overhead.0 <= OVERHEAD_MAX, || {
        format!("an overhead of {} bytes is more than {OVERHEAD_MAX}", overhead.0)
    })
}

impl LinkProfile {
    /// Whether a patch leaves the classes that share the rate as they are, and their minimums
    /// within it.
    pub(super) fn takes(&self, patch: &LinkPatch) -> Result<(), PlanValidationError> {
        let QueueDiscipline::Wf2q(shares) = &self.discipline else { return Ok(()) };
        if shares.classes.is_empty() {
            return Ok(());
        }
        ensure(patch.discipline.is_none(), || {
            "the discipline of a link that programs share does not change".to_owned()
        })?;
        let reserved = shares.reserved();
        ensure(reserved == 0 || patch.traces.rate.is_none(), || {
            "a link of which programs have minimums follows no trace".to_owned()
        })?;
        let rate = match patch.rate {
            Some(PropertySetting::To(rate)) => rate.bits_per_second(),
            _ => return Ok(()),
        };
        ensure(rate >= reserved, || {
            format!("the rate is less than the {reserved} bit/s of the programs' minimums")
        })
    }
}

fn of_discipline(discipline: &QueueDiscipline) -> Result<(), PlanValidationError> {
    let sound = match discipline {
        QueueDiscipline::DropTail | QueueDiscipline::DropHead => true,
        QueueDiscipline::Codel(codel) => is_codel(codel),
        QueueDiscipline::Red(red) => {
            !red.probability.is_never() && !red.weight.is_never() && red.packet != Bytes(0)
        }
        QueueDiscipline::Pie(pie) => !pie.target.is_zero() && pie.update >= UPDATE_MIN,
        QueueDiscipline::Pi2(pi2) => pi2.update() >= UPDATE_MIN && pi2.max_rtt <= RTT_MAX,
        QueueDiscipline::FqCodel(queues) => are_queues(queues),
        QueueDiscipline::Fair(fair) => are_queues(&fair.queues),
        QueueDiscipline::Wf2q(shares) => shares.is_sound(),
    };
    ensure(sound, || "a discipline has parameters that it cannot work with".to_owned())
}

fn is_codel(codel: &CodelParameters) -> bool {
    !codel.interval.is_zero() && codel.target <= codel.interval
}

fn are_queues(queues: &FlowQueues) -> bool {
    let flows = (1..=FlowQueues::MOST_FLOWS).contains(&queues.flows);
    flows && (QUANTUM_MIN..=QUANTUM_MAX).contains(&queues.quantum) && is_codel(&queues.codel)
}

fn of_traces(plan: &Plan, traces: &Traces) -> Result<(), PlanValidationError> {
    let columns = [
        (traces.rate, trace::TraceDrivenProperty::Rate),
        (traces.latency, trace::TraceDrivenProperty::Latency),
        (traces.loss, trace::TraceDrivenProperty::Loss),
    ];
    let mut used = columns.into_iter().filter_map(|(following, column)| Some((following?, column)));
    used.try_for_each(|(following, column)| trace::is_followed(plan, following, column))
}

/// What every IPv4 link carries (RFC 791), and what the length field can say.
const MTU_MIN: u32 = 68;
const MTU_MAX: u32 = 65_535;
const OVERHEAD_MAX: u32 = 1_000;
/// Quantiles of a jitter.
const TABLE_MAX: usize = 1_000;
/// PIE's computations, not more often than each.
const UPDATE_MIN: Span = Span::from_millis(1);
/// The longest round trip that PI2 accepts.
const RTT_MAX: Span = Span::from_secs(600);
/// Bytes that a flow may send in its turn.
const QUANTUM_MIN: u32 = 64;
const QUANTUM_MAX: u32 = 1_000_000;
