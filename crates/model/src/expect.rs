//! What must hold at the end of a run: claims about programs, paths, link directions and services, each with
//! bounds.

mod percentile;
mod service;

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize};

use crate::drop_reason::DropReason;
use crate::id::{Lane, NodeId, ServiceId};
use crate::probability::Probability;
use crate::quantity::{Bytes, Packets};
use crate::rate::Rate;
use crate::time::Span;

pub use percentile::Percentile;
pub use service::ServiceFact;

/// Something that must hold at the end of the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Expectation {
    /// The line of the file that asks for it, from 1; 0 where there is no file. Not part of the
    /// plan's hash: a comment added to the file makes no other experiment.
    #[serde(skip)]
    pub line: u32,
    /// The part of the run that it is about; `None`: all of it.
    pub window: Option<ExpectationWindow>,
    /// What is claimed.
    pub claim: ExpectationClaim,
}

/// A part of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExpectationWindow {
    /// Its beginning, after the run began.
    pub from: Span,
    /// Its end, after the run began; `None`: the end of the run.
    pub to: Option<Span>,
}

/// What an expectation is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExpectationClaim {
    /// Programs of nodes.
    Program {
        /// The nodes: one, or the members of a group of which any may make it true.
        nodes: Vec<NodeId>,
        /// What is claimed of them.
        fact: ProgramFact,
    },
    /// The way from one node to another.
    Path {
        /// Where it begins.
        from: NodeId,
        /// Where it ends.
        to: NodeId,
        /// What is claimed of it.
        fact: PathFact,
        /// How often echo requests are sent in the window; `None`: 20 of them before the run
        /// begins.
        every: Option<Span>,
    },
    /// One direction of a link.
    Link {
        /// The direction.
        lane: Lane,
        /// What is claimed of it.
        fact: LinkFact,
    },
    /// A service.
    Service {
        /// The service.
        service: ServiceId,
        /// What is claimed of it.
        fact: ServiceFact,
    },
}

/// What can be claimed of programs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProgramFact {
    /// How each exits.
    Exit(ExitWanted),
    /// When each exited, after the run began.
    Exited(ValueBounds<Span>),
    /// When each became ready, after the run began.
    Ready(ValueBounds<Span>),
    /// How long the last life of each lasted, to the end of the run at the most.
    Runtime(ValueBounds<Span>),
    /// How many lines of their output match.
    Log {
        /// The regular expression.
        pattern: String,
        /// Only this stream.
        stream: Option<StandardStream>,
        /// The number of lines.
        count: ValueBounds<u64>,
    },
}

/// How a program is to exit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExitWanted {
    /// Anyhow.
    Any,
    /// With this code; 128+n also means signal n.
    Code(u8),
    /// By this signal.
    Signal(i32),
}

/// Where a program writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StandardStream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// What can be claimed of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PathFact {
    /// A statistic of the round trips of windtunnel's own echo requests.
    Rtt(TimeStatistic, ValueBounds<Span>),
    /// The share of these requests that got no reply.
    Loss(ValueBounds<Probability>),
    /// A rate of TCP and UDP payload delivered to the second node.
    Throughput(RateStatistic, ValueBounds<Rate>),
    /// The spread of that rate over whole seconds: standard deviation by mean.
    Deviation(ValueBounds<Probability>),
}

/// What can be claimed of a link direction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LinkFact {
    /// A rate of delivered wire bytes, with overhead.
    Rate(RateStatistic, ValueBounds<Rate>),
    /// The spread of that rate over whole seconds: standard deviation by mean.
    Deviation(ValueBounds<Probability>),
    /// The share of packets that the loss element took, of those that reached it.
    Loss(ValueBounds<Probability>),
    /// Packets dropped, for one reason or all together.
    Drops(#[serde(with = "drop_key")] Option<DropReason>, ValueBounds<u64>),
    /// The share of offered packets that were dropped, for any cause.
    DropShare(ValueBounds<Probability>),
    /// What waited in the queue.
    Queue(LevelStatistic, QueueOccupancyBounds),
    /// Packets counted.
    Packets(PacketCount, ValueBounds<u64>),
    /// How late packets left.
    Lateness(LevelStatistic, ValueBounds<Span>),
}

/// Which packets are counted; a packet is an MTU segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PacketCount {
    /// Those that came to the link's start.
    Offered,
    /// Those that came out at its end.
    Delivered,
    /// Those marked with ECN congestion experienced.
    Marked,
}

/// Bounds of a queue, in one unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum QueueOccupancyBounds {
    /// MTU segments.
    Packets(ValueBounds<Packets>),
    /// Bytes with overhead.
    Bytes(ValueBounds<Bytes>),
    /// How long the link's rate needs for them.
    Time(ValueBounds<Span>),
}

/// A figure of a rate over a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RateStatistic {
    /// Over all of it.
    Mean,
    /// Over its best second.
    Peak,
    /// Over its worst second.
    Lowest,
}

/// A figure of many times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TimeStatistic {
    /// The middle one, or the mean of the middle two.
    Median,
    /// The arithmetic mean.
    Mean,
    /// A percentile by nearest rank.
    Percentile(Percentile),
}

/// A figure of something that goes up and down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LevelStatistic {
    /// The most at any time.
    Peak,
    /// A percentile by nearest rank.
    Percentile(Percentile),
}

/// A reason in the words of the file that a person writes, which a plan has, too.
mod drop_key {
    use alloc::format;
    use alloc::string::String;

    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::drop_reason::DropReason;
    use crate::message::shown;

    #[expect(clippy::ref_option, reason = "serde passes a reference to the field")]
    pub(super) fn serialize<S: Serializer>(
        reason: &Option<DropReason>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        reason.map(DropReason::key).serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<DropReason>, D::Error> {
        let Some(key) = Option::<String>::deserialize(from)? else { return Ok(None) };
        let reason = DropReason::ALL.into_iter().find(|reason| reason.key() == key);
        reason
            .map(Some)
            .ok_or_else(|| Error::custom(format!("{} is no reason for drops", shown(&key))))
    }
}

/// A least and a greatest value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ValueBounds<T> {
    /// At least this.
    pub min: Option<T>,
    /// At most this.
    pub max: Option<T>,
}

impl<T: Ord> ValueBounds<T> {
    /// Whether `value` is within.
    pub fn allow(&self, value: &T) -> bool {
        self.min.as_ref().is_none_or(|min| value >= min)
            && self.max.as_ref().is_none_or(|max| value <= max)
    }
}

impl<T: fmt::Display + PartialEq> fmt::Display for ValueBounds<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.min, &self.max) {
            (Some(min), Some(max)) if min == max => write!(f, "{min}"),
            (Some(min), Some(max)) => write!(f, "{min} to {max}"),
            (Some(min), None) => write!(f, "at least {min}"),
            (None, Some(max)) => write!(f, "at most {max}"),
            (None, None) => f.write_str("any"),
        }
    }
}

impl fmt::Display for ExpectationWindow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.to {
            Some(to) => write!(f, "{} to {to}", self.from),
            None => write!(f, "{} to the end", self.from),
        }
    }
}

impl fmt::Display for RateStatistic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RateStatistic::Mean => "mean",
            RateStatistic::Peak => "best second",
            RateStatistic::Lowest => "worst second",
        })
    }
}

impl fmt::Display for TimeStatistic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TimeStatistic::Median => f.write_str("median"),
            TimeStatistic::Mean => f.write_str("mean"),
            TimeStatistic::Percentile(percentile) => percentile.fmt(f),
        }
    }
}

impl fmt::Display for LevelStatistic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LevelStatistic::Peak => f.write_str("most"),
            LevelStatistic::Percentile(percentile) => percentile.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_include_their_ends() {
        let bounds = ValueBounds { min: Some(2), max: Some(4) };
        let allowed: Vec<_> = (0..7).filter(|value| bounds.allow(value)).collect();
        assert_eq!(allowed, [2, 3, 4]);
        assert_eq!(bounds.to_string(), "2 to 4");
        assert_eq!(ValueBounds { min: Some(3), max: Some(3) }.to_string(), "3");
    }

    #[test]
    fn a_line_number_is_not_part_of_an_experiment() {
        let claim = ExpectationClaim::Path {
            from: NodeId(0),
            to: NodeId(1),
            fact: PathFact::Loss(ValueBounds { min: None, max: None }),
            every: None,
        };
        let json = |line| {
            serde_json::to_string(&Expectation { line, window: None, claim: claim.clone() })
                .unwrap()
        };
        assert_eq!(json(3), json(9));
    }
}
