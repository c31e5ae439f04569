//! Whether packets left on time: all together, on each link direction by itself, and without long
//! stalls.

use windtunnel_dataplane::Tally;
use windtunnel_model::{Lane, NetworkVertex, Span, Time};

use super::cause::{LONG_FACTOR, cause, lane_text, long_above};
use crate::evidence::RunEvidence;
use crate::text::rounded;

/// Why the lateness makes the run doubtful; empty if it does not.
pub(super) fn doubts(evidence: &RunEvidence<'_>) -> Vec<String> {
    let tally = evidence.tally;
    if exceeds_share(tally.late, tally.departures.packets()) {
        return vec![all(evidence)];
    }
    let long = ExtremeLateness::find(tally, evidence.late_above).map(|long| long.text(evidence));
    let directions = late_directions(evidence.tally, evidence.late_above, |lane| {
        matches!(evidence.plan.lane_end(lane), NetworkVertex::Node(_))
    });
    let by_itself = directions.first().map(|worst| worst.text(evidence, directions.len()));
    long.into_iter().chain(by_itself).collect()
}

/// More than one packet in a thousand of all left late.
fn all(evidence: &RunEvidence<'_>) -> String {
    let tally = evidence.tally;
    let packets = tally.departures.packets();
    let worst = Span::from_nanos(tally.departures.summary().max_ns);
    format!(
        "{} of {packets} packets ({}) left more than {} late, at the worst {}{}, mostly on {}; \
         likely cause: {}",
        tally.late,
        percent(tally.late, packets),
        evidence.late_above,
        rounded(worst),
        when(intervals(tally, evidence.late_above)),
        worst_lanes(evidence, evidence.late_above),
        cause(evidence, worst),
    )
}

/// Packets, or the packet loop, later than any share excuses.
#[derive(Debug, PartialEq, Eq)]
struct ExtremeLateness {
    packets: u64,
    /// The latest of them; of the loop, if there are none.
    worst: Span,
}

impl ExtremeLateness {
    fn find(tally: &Tally, late_above: Span) -> Option<Self> {
        let bound = long_above(late_above);
        let packet = Span::from_nanos(tally.departures.summary().max_ns);
        if packet > bound {
            // The latest is known exactly, the others to the histogram's precision.
            let packets = tally.departures.later_than(bound).max(1);
            return Some(ExtremeLateness { packets, worst: packet });
        }
        let worst = tally.stalls.longest.max(tally.overloads.furthest);
        (worst > bound).then_some(ExtremeLateness { packets: 0, worst })
    }

    fn text(&self, evidence: &RunEvidence<'_>) -> String {
        let ExtremeLateness { packets, worst } = *self;
        let bound = long_above(evidence.late_above);
        let times = format!("more than {LONG_FACTOR} times the bound of {}", evidence.late_above);
        let cause = cause(evidence, worst);
        let worst = rounded(worst);
        if packets > 0 {
            let all = evidence.tally.departures.packets();
            return format!(
                "{packets} of {all} packets left up to {worst} late, {times}{}, mostly on {}; \
                 likely cause: {cause}",
                when(intervals(evidence.tally, bound)),
                worst_lanes(evidence, bound),
            );
        }
        let stalls = evidence.tally.stalls;
        let at = match stalls.longest > bound {
            true => format!(" until {}", rounded(stalls.at.since(Time::ZERO))),
            false => String::new(),
        };
        format!("the emulation stood still for {worst}{at}, {times}; likely cause: {cause}")
    }
}

/// A direction of which more packets were late than may be.
#[derive(Debug, PartialEq, Eq)]
struct DirectionLateness {
    lane: Lane,
    late: u64,
    packets: u64,
    worst: Span,
    /// The ends of the first and the last interval in which packets were late.
    during: Option<(Time, Time)>,
}

impl DirectionLateness {
    fn text(&self, evidence: &RunEvidence<'_>, directions: usize) -> String {
        let more = match directions - 1 {
            0 => String::new(),
            1 => ", and too many on another link direction".to_owned(),
            more => format!(", and too many on {more} other link directions"),
        };
        format!(
            "{} of {} packets ({}) left {} more than {} late, at the worst {}{}{more}; likely \
             cause: {}",
            self.late,
            self.packets,
            percent(self.late, self.packets),
            lane_text(evidence, self.lane),
            evidence.late_above,
            rounded(self.worst),
            when(self.during),
            cause(evidence, self.worst),
        )
    }
}

/// The directions that are doubted by themselves, the one with the most late packets first.
///
/// What is late at the end of a direction that leads to a router may leave the network on time, as
/// the next one makes good for it. So no more of it counts than left the network late in the whole
/// run.
fn late_directions(
    tally: &Tally,
    late_above: Span,
    ends_at_node: impl Fn(Lane) -> bool,
) -> Vec<DirectionLateness> {
    let lanes = tally.lanes.iter().enumerate().map(|(index, lane)| (Lane::from_index(index), lane));
    let directions = lanes.map(|(lane, result)| {
        let late = result.lateness.later_than(late_above);
        DirectionLateness {
            lane,
            late: if ends_at_node(lane) { late } else { late.min(tally.late) },
            packets: result.lateness.packets(),
            worst: Span::from_nanos(result.lateness.summary().max_ns),
            during: result.late,
        }
    });
    let is_late = |found: &DirectionLateness| {
        found.late >= LATE_LEAST && exceeds_share(found.late, found.packets)
    };
    let mut late: Vec<DirectionLateness> = directions.filter(is_late).collect();
    late.sort_by_key(|found| (std::cmp::Reverse(found.late), found.lane));
    late
}

/// Whether more than the part of the packets that may be late is.
fn exceeds_share(late: u64, packets: u64) -> bool {
    late.saturating_mul(LATE_ONE_IN) > packets
}

/// The ends of the first and the last interval in which packets were later than `bound`.
fn intervals(tally: &Tally, bound: Span) -> Option<(Time, Time)> {
    let late = || tally.late_intervals.iter().filter(|interval| interval.max > bound);
    late().next().zip(late().next_back()).map(|(first, last)| (first.at, last.at))
}

/// An interval's end is kept; packets were late in the 100 ms before it.
fn when(during: Option<(Time, Time)>) -> String {
    let after = |time: Time| rounded(time.since(Time::ZERO));
    match during {
        None => String::new(),
        Some((first, last)) if first == last => format!(", in the 100ms before {}", after(first)),
        Some((first, last)) => format!(", between {} and {}", after(first), after(last)),
    }
}

/// `0.96%`.
fn percent(part: u64, whole: u64) -> String {
    let hundredths = part.saturating_mul(10_000) / whole.max(1);
    format!("{}.{:02}%", hundredths / 100, hundredths % 100)
}

/// The lanes with the most packets later than `bound`, at most three.
fn worst_lanes(evidence: &RunEvidence<'_>, bound: Span) -> String {
    let lanes = evidence.tally.lanes.iter().enumerate();
    let mut late: Vec<(u64, Lane)> = lanes
        .map(|(index, lane)| (lane.lateness.later_than(bound), Lane::from_index(index)))
        .filter(|(late, _)| *late > 0)
        .collect();
    late.sort_by_key(|(late, lane)| (std::cmp::Reverse(*late), *lane));
    let names = late.iter().take(LANES_NAMED).map(|(_, lane)| lane_text(evidence, *lane));
    names.collect::<Vec<_>>().join(", ")
}

/// At most one packet in so many may be late: 0.1 %.
const LATE_ONE_IN: u64 = 1000;
/// One late packet on a direction says nothing of that direction: with many that carry little, some
/// has it. All together are judged by the share alone.
const LATE_LEAST: u64 = 2;
const LANES_NAMED: usize = 3;

#[cfg(test)]
mod tests {
    use windtunnel_trace::lateness::LatenessHistogram;

    use super::*;
    use windtunnel_dataplane::{LaneResult, LateInterval};

    const BOUND: Span = Span::from_millis(1);

    fn lateness(on_time: u64, late: u64, by: Span) -> LatenessHistogram {
        let mut lateness = LatenessHistogram::new();
        (0..on_time).for_each(|_| lateness.record(Span::from_micros(80)));
        (0..late).for_each(|_| lateness.record(by));
        lateness
    }

    /// Lanes with (on time, late) packets, and all of them leave the network.
    fn tally(lanes: &[(u64, u64)], by: Span) -> Tally {
        let mut tally = Tally::default();
        for &(on_time, late) in lanes {
            let lateness = lateness(on_time, late, by);
            tally.departures.add(&lateness);
            let late = None;
            let counters = Default::default();
            tally.lanes.push(LaneResult {
                counters,
                lateness,
                late,
                no_memory: 0,
                phases: Vec::new(),
                series: None,
            });
        }
        tally.late = tally.departures.later_than(BOUND);
        tally
    }

    fn doubted(tally: &Tally) -> Vec<(usize, u64, u64)> {
        let found = late_directions(tally, BOUND, |_| true);
        found.iter().map(|found| (found.lane.index(), found.late, found.packets)).collect()
    }

    #[test]
    fn a_stalled_link_is_not_diluted_by_a_busy_one() {
        let tally = tally(&[(75_000, 0), (211, 39)], Span::from_millis(900));
        assert!(!exceeds_share(tally.late, tally.departures.packets()));
        assert_eq!(doubted(&tally), [(1, 39, 250)]);
        let worst = Span::from_millis(900);
        assert_eq!(
            ExtremeLateness::find(&tally, BOUND),
            Some(ExtremeLateness { packets: 39, worst })
        );
    }

    #[test]
    fn a_direction_with_few_packets_is_not_hidden_by_others() {
        let tally = tally(&[(75_000, 0), (17, 3), (298, 2), (9, 1), (0, 1)], Span::from_millis(2));
        assert!(!exceeds_share(tally.late, tally.departures.packets()));
        assert_eq!(doubted(&tally), [(1, 3, 20), (2, 2, 300)], "and not one packet alone");
    }

    #[test]
    fn a_direction_may_have_one_late_packet_in_a_thousand_and_no_more() {
        for (packets, late, is_doubted) in [
            (2_000, 2, false),
            (1_999, 2, true),
            (30_000, 30, false),
            (30_000, 31, true),
            // 0.6 % on one direction among many.
            (5_000, 30, true),
        ] {
            let all = [(400_000, 0), (packets - late, late)];
            let tally = tally(&all, Span::from_millis(2));
            assert!(!exceeds_share(tally.late, tally.departures.packets()));
            assert_eq!(!doubted(&tally).is_empty(), is_doubted, "{late} of {packets}");
        }
    }

    #[test]
    fn one_packet_is_doubted_when_it_is_later_than_many_times_the_bound() {
        let late = |by| ExtremeLateness::find(&tally(&[(75_000, 1)], by), BOUND);
        assert_eq!(late(Span::from_millis(20)), None);
        let worst = Span::from_micros(20_001);
        assert_eq!(late(worst), Some(ExtremeLateness { packets: 1, worst }));
    }

    #[test]
    fn a_stall_of_many_times_the_bound_is_doubted_also_if_no_packet_was_due() {
        let mut tally = tally(&[(100, 0)], Span::ZERO);
        tally.stalls.longest = Span::from_millis(20);
        assert_eq!(ExtremeLateness::find(&tally, BOUND), None);
        tally.stalls.longest = Span::from_millis(21);
        let worst = Span::from_millis(21);
        assert_eq!(
            ExtremeLateness::find(&tally, BOUND),
            Some(ExtremeLateness { packets: 0, worst })
        );
        tally.overloads.furthest = Span::from_millis(30);
        let worst = Span::from_millis(30);
        assert_eq!(
            ExtremeLateness::find(&tally, BOUND),
            Some(ExtremeLateness { packets: 0, worst })
        );
    }

    #[test]
    fn lateness_at_a_router_alone_is_not_doubted() {
        let mut tally = tally(&[(9_000, 0), (250, 0)], Span::ZERO);
        tally.lanes[1].lateness = lateness(211, 39, Span::from_millis(3));
        assert_eq!(late_directions(&tally, BOUND, |lane| lane.index() == 0), []);
    }

    #[test]
    fn times_are_those_of_the_intervals_that_were_that_late() {
        let mut tally = tally(&[(1, 0)], Span::ZERO);
        let interval = |ms: u64, max| LateInterval {
            at: Time::from_nanos(ms * 1_000_000),
            lane: Lane::from_index(0),
            max: Span::from_millis(max),
        };
        tally.late_intervals = vec![interval(100, 2), interval(2_100, 900), interval(3_000, 3)];
        assert_eq!(when(intervals(&tally, BOUND)), ", between 100ms and 3.00s");
        assert_eq!(when(intervals(&tally, long_above(BOUND))), ", in the 100ms before 2.10s");
    }
}
