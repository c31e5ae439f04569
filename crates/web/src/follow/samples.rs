//! Rows of `links.csv` as samples: all directions of links that did something in one interval.

use std::collections::BTreeMap;

use serde::Serialize;
use windtunnel_control::Snapshot;
use windtunnel_model::DropReason;
use windtunnel_report::document::MapDirectedLink;
use windtunnel_trace::sample::LinkSampleRow;

use crate::hub::ServerSentEvent;

/// What links did since the sample before.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
struct LinkActivitySample {
    at_ns: u64,
    window_ns: u64,
    /// The lane's index, then: offered, delivered and delivered wire bytes, delivered and dropped
    /// packets, waiting packets, the most of these, the most waiting bytes, the largest lateness.
    lanes: Vec<[u64; 10]>,
    /// Drops by reason: the lane's index, the reason, packets.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    dropped: Vec<(u64, DropReason, u64)>,
}

/// Rows that are put together.
#[derive(Debug)]
pub(super) struct Samples {
    lanes: BTreeMap<(String, String), u64>,
    current: LinkActivitySample,
    before_ns: Option<u64>,
}

impl Samples {
    pub(super) fn new(lanes: &[MapDirectedLink]) -> Self {
        let lanes = lanes.iter().map(|lane| (lane.link.clone(), lane.direction.clone()));
        Samples {
            lanes: lanes.zip(0..).collect(),
            current: LinkActivitySample::default(),
            before_ns: None,
        }
    }

    /// Takes a line; the sample that is whole, if the line begins another.
    pub(super) fn take(&mut self, line: &str) -> Option<ServerSentEvent> {
        let (at_ns, link, direction, row) = LinkSampleRow::read(line)?;
        let whole = if at_ns == self.current.at_ns { None } else { self.whole() };
        self.current.at_ns = at_ns;
        let lane = self.lanes.get(&(link.to_owned(), direction.to_owned()));
        if let Some(&lane) = lane.filter(|_| !row.is_idle()) {
            self.current.lanes.push([
                lane,
                row.offered_bytes,
                row.delivered_bytes,
                row.delivered_wire_bytes,
                row.delivered_packets,
                row.dropped_packets,
                row.queue_packets,
                row.queue_max_packets,
                row.queue_max_bytes,
                row.lateness_max_ns,
            ]);
            let reasons = row.dropped().into_iter().filter(|(_, packets)| *packets > 0);
            self.current.dropped.extend(reasons.map(|(reason, packets)| (lane, reason, packets)));
        }
        whole
    }

    /// The sample whose rows have all been taken.
    pub(super) fn whole(&mut self) -> Option<ServerSentEvent> {
        let mut sample = std::mem::take(&mut self.current);
        if sample.at_ns == 0 {
            return None;
        }
        let before = self.before_ns.replace(sample.at_ns);
        let window = before.map(|before| sample.at_ns.saturating_sub(before));
        // Of the first one, when nothing is known of that before; or after times in which no link
        // did anything.
        sample.window_ns = window.filter(|window| *window < 2 * INTERVAL_NS).unwrap_or(INTERVAL_NS);
        Some(ServerSentEvent::new("sample", &sample).at(sample.at_ns))
    }
}

/// Packets that directions had delivered and dropped.
#[derive(Debug, Default)]
pub(super) struct DirectionPacketCounts(Vec<(u64, u64)>);

impl DirectionPacketCounts {
    /// A sample from what a run answers, where its files are on other machines: of the last second.
    pub(super) fn sample(&mut self, snapshot: &Snapshot) -> ServerSentEvent {
        let window_ns = snapshot.window_ns;
        let bytes = |bit_per_s: u64| {
            let bits = u128::from(bit_per_s) * u128::from(window_ns) / 1_000_000_000;
            u64::try_from(bits / 8).unwrap_or(u64::MAX)
        };
        let first = self.0.is_empty();
        self.0.resize(snapshot.links.len(), (0, 0));
        let mut lanes = Vec::new();
        for ((index, lane), before) in (0..).zip(&snapshot.links).zip(&mut self.0) {
            let now = (lane.delivered_packets, lane.dropped_packets);
            let before = std::mem::replace(before, now);
            let before = if first { now } else { before };
            let row = [
                index,
                bytes(lane.offered_bit_per_s),
                bytes(lane.delivered_bit_per_s),
                bytes(lane.delivered_wire_bit_per_s),
                now.0.saturating_sub(before.0),
                now.1.saturating_sub(before.1),
                lane.queue_packets,
                lane.recent_queue_max_packets,
                lane.queue_bytes,
                lane.recent_lateness_max_ns,
            ];
            if row[1..].iter().any(|value| *value > 0) {
                lanes.push(row);
            }
        }
        let sample = LinkActivitySample {
            at_ns: snapshot.sampled_ns,
            window_ns,
            lanes,
            ..LinkActivitySample::default()
        };
        ServerSentEvent::new("sample", &sample).at(snapshot.sampled_ns)
    }
}

const INTERVAL_NS: u64 = 100_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn lane(link: &str, direction: &str) -> MapDirectedLink {
        MapDirectedLink { link: link.to_owned(), direction: direction.to_owned(), from: 0, to: 1 }
    }

    fn line(at_ns: u64, direction: &str, row: LinkSampleRow) -> String {
        let mut line = Vec::new();
        row.write_line(&mut line, at_ns, "ocean", direction);
        String::from_utf8(line).unwrap()
    }

    #[test]
    fn rows_of_one_interval_are_a_sample_without_idle_lanes() {
        let mut samples = Samples::new(&[lane("ocean", "a-b"), lane("ocean", "b-a")]);
        let busy =
            LinkSampleRow { delivered_bytes: 7, queue_max_packets: 3, ..LinkSampleRow::default() };
        assert_eq!(samples.take("time_s,link,direction\n"), None);
        assert_eq!(samples.take(&line(100_000_000, "a-b", LinkSampleRow::default())), None);
        assert_eq!(samples.take(&line(100_000_000, "b-a", busy)), None);
        let first = samples.take(&line(200_050_000, "a-b", busy)).unwrap();
        assert_eq!(
            first.data,
            r#"{"at_ns":100000000,"window_ns":100000000,"lanes":[[1,0,7,0,0,0,0,3,0,0]]}"#
        );
        let drop = LinkSampleRow {
            dropped_packets: 5,
            dropped_loss: 2,
            dropped_aqm: 3,
            ..LinkSampleRow::default()
        };
        assert_eq!(samples.take(&line(200_050_000, "b-a", drop)), None);
        let second = samples.whole().unwrap();
        let dropped = r#""dropped":[[1,"loss",2],[1,"aqm",3]]"#;
        assert!(second.data.contains(dropped), "{}", second.data);
        assert!(second.data.contains(r#""window_ns":100050000,"lanes":[[0,"#), "{}", second.data);
        assert_eq!((second.at_ns, samples.whole()), (Some(200_050_000), None));
    }
}
