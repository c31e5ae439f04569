//! Expectations of link directions.

use windtunnel_model::Lane;
use windtunnel_model::expect::{
    ExpectationWindow, LevelStatistic, LinkFact, PacketCount, Percentile, QueueOccupancyBounds,
    RateStatistic, ValueBounds,
};
use windtunnel_model::{Bytes, DropReason, Packets, Span};
use windtunnel_trace::series::{LinkSample, LinkSampleWindow};

use super::outcome::{
    ExpectationFinding, ExpectationOutcome, allows, allows_share, megabits, percent, seconds,
    share, when,
};
use crate::evidence::RunEvidence;
use crate::text::rounded;

pub(super) fn check(
    evidence: &RunEvidence<'_>,
    window: Option<ExpectationWindow>,
    lane: Lane,
    fact: &LinkFact,
) -> ExpectationOutcome {
    let (figure, asked) = describe(fact);
    let link = &evidence.plan.links[lane.link.index()].name;
    let about = format!("link {link} {} {figure}", evidence.plan.lane_name(lane));
    let rows = LinkTableRows { evidence, lane };
    let result = evidence.tally.lanes.get(lane.index());
    let cut = result.and_then(|result| result.series.as_ref()?.cut(window));
    let Some(cut) = cut else {
        let (seen, look) = ("no sample".to_owned(), "links.csv".to_owned());
        return ExpectationOutcome { about, asked, seen, met: false, look };
    };
    let ExpectationFinding { seen, met, look } = match fact {
        LinkFact::Rate(which, bounds) => rate(&rows, &cut, *which, bounds),
        LinkFact::Deviation(bounds) => {
            let found = cut.delivered().deviation_ppb();
            let seconds = cut.delivered().bins().len();
            let seen = match found {
                Some(ppb) => format!("{} over {seconds} seconds", percent(ppb)),
                None => "no two seconds with traffic".to_owned(),
            };
            ExpectationFinding::new(
                seen,
                found.is_some_and(|ppb| allows_share(bounds, ppb)),
                rows.all(&cut),
            )
        }
        LinkFact::Loss(bounds) => {
            let lost = |sample: &LinkSample| sample.dropped_for(Some(DropReason::Loss));
            let (lost, offered) = (cut.sum(lost), cut.sum(LinkSample::offered_to_loss));
            portion(lost, offered, bounds, rows.all(&cut))
        }
        LinkFact::DropShare(bounds) => {
            let dropped = cut.sum(|sample| sample.dropped_for(None));
            let offered = cut.sum(|sample| sample.row.offered_packets);
            portion(dropped, offered, bounds, rows.all(&cut))
        }
        LinkFact::Drops(reason, bounds) => drops(&rows, &cut, *reason, bounds),
        LinkFact::Packets(which, bounds) => {
            let packets = cut.sum(|sample| counted(sample, *which));
            ExpectationFinding::new(
                format!("{packets} packets"),
                bounds.allow(&packets),
                rows.all(&cut),
            )
        }
        LinkFact::Queue(level, bounds) => queue(&rows, &cut, *level, bounds),
        LinkFact::Lateness(level, bounds) => lateness(&rows, &cut, *level, bounds),
    };
    ExpectationOutcome { about, asked, seen, met, look }
}

/// The figure's name, and its bounds.
fn describe(fact: &LinkFact) -> (String, String) {
    match fact {
        LinkFact::Rate(which, bounds) => (format!("rate, {which}"), bounds.to_string()),
        LinkFact::Deviation(bounds) => ("rate, deviation".to_owned(), bounds.to_string()),
        LinkFact::Loss(bounds) => ("loss".to_owned(), bounds.to_string()),
        LinkFact::Drops(Some(reason), bounds) => {
            (format!("drops, {}", reason.key()), bounds.to_string())
        }
        LinkFact::Drops(None, bounds) => ("drops".to_owned(), bounds.to_string()),
        LinkFact::DropShare(bounds) => ("drops, share".to_owned(), bounds.to_string()),
        LinkFact::Queue(level, bounds) => {
            let bounds = match bounds {
                QueueOccupancyBounds::Packets(bounds) => bounds.to_string(),
                QueueOccupancyBounds::Bytes(bounds) => bounds.to_string(),
                QueueOccupancyBounds::Time(bounds) => bounds.to_string(),
            };
            (format!("queue, {level}"), bounds)
        }
        LinkFact::Packets(which, bounds) => {
            let name = match which {
                PacketCount::Offered => "offered",
                PacketCount::Delivered => "delivered",
                PacketCount::Marked => "marked",
            };
            (name.to_owned(), bounds.to_string())
        }
        LinkFact::Lateness(level, bounds) => (format!("lateness, {level}"), bounds.to_string()),
    }
}

fn rate(
    rows: &LinkTableRows<'_>,
    cut: &LinkSampleWindow<'_>,
    which: RateStatistic,
    bounds: &ValueBounds<windtunnel_model::Rate>,
) -> ExpectationFinding {
    let delivered = cut.delivered();
    let found = match which {
        RateStatistic::Mean => delivered.mean(),
        RateStatistic::Peak => delivered.best_second(),
        RateStatistic::Lowest => delivered.worst_second(),
    };
    let Some(found) = found else {
        return ExpectationFinding::new("no sample".to_owned(), false, rows.all(cut));
    };
    let rate = megabits(found.bits_per_second);
    let position = |time| cut.samples.iter().position(|sample| sample.at >= time).unwrap_or(0);
    let first = if found.from == cut.start { 0 } else { position(found.from) + 1 };
    let look = rows.some(cut, first, position(found.to));
    ExpectationFinding::new(
        format!("{rate} ({})", when(&found)),
        allows(bounds, found.bits_per_second),
        look,
    )
}

fn portion(
    part: u64,
    whole: u64,
    bounds: &ValueBounds<windtunnel_model::Probability>,
    look: String,
) -> ExpectationFinding {
    match share(part, whole) {
        Some(ppb) => ExpectationFinding::new(
            format!("{} ({part} of {whole})", percent(ppb)),
            allows_share(bounds, ppb),
            look,
        ),
        // Nothing was lost where nothing was.
        None => ExpectationFinding::new("no packets".to_owned(), bounds.min.is_none(), look),
    }
}

fn drops(
    rows: &LinkTableRows<'_>,
    cut: &LinkSampleWindow<'_>,
    reason: Option<DropReason>,
    bounds: &ValueBounds<u64>,
) -> ExpectationFinding {
    let dropped = |sample: &LinkSample| sample.dropped_for(reason);
    let packets = cut.sum(dropped);
    let mut seen = format!("{packets} packets");
    let look = match cut.first(dropped) {
        Some(first) => {
            seen.push_str(&format!(", the first by {}s", end_of(&cut.samples[first])));
            rows.some(cut, first, first)
        }
        None => rows.all(cut),
    };
    ExpectationFinding::new(seen, bounds.allow(&packets), look)
}

fn queue(
    rows: &LinkTableRows<'_>,
    cut: &LinkSampleWindow<'_>,
    level: LevelStatistic,
    bounds: &QueueOccupancyBounds,
) -> ExpectationFinding {
    let peak = matches!(level, LevelStatistic::Peak);
    let packets = |s: &LinkSample| if peak { s.row.queue_max_packets } else { s.row.queue_packets };
    let bytes = |s: &LinkSample| if peak { s.row.queue_max_bytes } else { s.row.queue_bytes };
    let time = |s: &LinkSample| s.time_for(bytes(s)).as_nanos();
    let of: &dyn Fn(&LinkSample) -> u64 = match bounds {
        QueueOccupancyBounds::Packets(_) => &packets,
        QueueOccupancyBounds::Bytes(_) => &bytes,
        QueueOccupancyBounds::Time(_) => &time,
    };
    let (value, at, look) = match level {
        LevelStatistic::Peak => {
            let (value, index) = cut.most(of).unwrap_or_default();
            (value, format!(" by {}s", end_of(&cut.samples[index])), rows.some(cut, index, index))
        }
        LevelStatistic::Percentile(which) => {
            let value = cut.percentile(which, of).unwrap_or_default();
            (value, format!(" of {} samples", cut.samples.len()), rows.all(cut))
        }
    };
    match bounds {
        QueueOccupancyBounds::Packets(bounds) => ExpectationFinding::new(
            format!("{}{at}", Packets(value)),
            bounds.allow(&Packets(value)),
            look,
        ),
        QueueOccupancyBounds::Bytes(bounds) => ExpectationFinding::new(
            format!("{}{at}", Bytes(value)),
            bounds.allow(&Bytes(value)),
            look,
        ),
        QueueOccupancyBounds::Time(bounds) => {
            let span = Span::from_nanos(value);
            ExpectationFinding::new(format!("{}{at}", rounded(span)), bounds.allow(&span), look)
        }
    }
}

/// The greatest is exact; percentiles are of the whole run, to the histogram's 1 %.
fn lateness(
    rows: &LinkTableRows<'_>,
    cut: &LinkSampleWindow<'_>,
    level: LevelStatistic,
    bounds: &ValueBounds<Span>,
) -> ExpectationFinding {
    if let LevelStatistic::Percentile(which) = level
        && which != Percentile::GREATEST
    {
        let result = &rows.evidence.tally.lanes[rows.lane.index()];
        let late = result.lateness.at_quantile(which.quantile());
        let packets = result.lateness.packets();
        let seen = format!("{} of {packets} packets", rounded(late));
        return ExpectationFinding::new(
            seen,
            bounds.allow(&late),
            "run.json: the lateness of the link".to_owned(),
        );
    }
    let (nanos, index) = cut.most(|sample| sample.row.lateness_max_ns).unwrap_or_default();
    let late = Span::from_nanos(nanos);
    let seen = format!("{} by {}s", rounded(late), end_of(&cut.samples[index]));
    ExpectationFinding::new(seen, bounds.allow(&late), rows.some(cut, index, index))
}

fn counted(sample: &LinkSample, which: PacketCount) -> u64 {
    match which {
        PacketCount::Offered => sample.row.offered_packets,
        PacketCount::Delivered => sample.row.delivered_packets,
        PacketCount::Marked => sample.row.marked_packets,
    }
}

fn end_of(sample: &LinkSample) -> String {
    seconds(sample.at.since(windtunnel_model::Time::ZERO))
}

/// As the file has it.
fn time_of(sample: &LinkSample) -> String {
    let micros = sample.at.as_nanos() / 1_000;
    format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000)
}

/// Where the rows of a direction are in `links.csv`.
struct LinkTableRows<'a> {
    evidence: &'a RunEvidence<'a>,
    lane: Lane,
}

impl LinkTableRows<'_> {
    fn all(&self, cut: &LinkSampleWindow<'_>) -> String {
        self.some(cut, 0, cut.samples.len().saturating_sub(1))
    }

    /// The rows of some intervals of `cut`.
    fn some(&self, cut: &LinkSampleWindow<'_>, first: usize, last: usize) -> String {
        let plan = self.evidence.plan;
        let link = &plan.links[self.lane.link.index()].name;
        let rows = format!(",{link},{},", plan.lane_name(self.lane));
        let last = last.min(cut.samples.len().saturating_sub(1));
        let first = first.min(last);
        // Idle intervals have no rows, so lines cannot be counted.
        let [from, to] = [first, last].map(|index| time_of(&cut.samples[index]));
        match first == last {
            true => format!("links.csv, the line that begins with `{from}{rows}`"),
            false => format!("links.csv, lines with `{rows}`, from time_s {from} to {to}"),
        }
    }
}
