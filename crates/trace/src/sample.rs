//! `links.csv`: a row per link direction and interval in which something happened or waited.

use std::io::Write;

use serde::{Deserialize, Serialize};
use windtunnel_model::{DropReason, Lane, Plan, Time};

/// What one link direction did in one interval of 100 ms. Bytes are IP bytes; `wire` bytes include
/// the overhead. The first and the last interval have a row for each direction. In between, a
/// direction without a row in an interval was idle: all its counts were 0, and nothing waited.
/// Where no direction has a row, all were idle. A last line that has no line end was cut when
/// windtunnel was killed, and is to be left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LinkSampleRow {
    /// Packets (MTU segments) offered.
    pub offered_packets: u64,
    /// IP bytes offered.
    pub offered_bytes: u64,
    /// Packets delivered at the other end.
    pub delivered_packets: u64,
    /// IP bytes delivered.
    pub delivered_bytes: u64,
    /// Bytes delivered with framing overhead.
    pub delivered_wire_bytes: u64,
    /// Packets dropped, for any reason.
    pub dropped_packets: u64,
    /// Packets marked with ECN congestion experienced.
    pub marked_packets: u64,
    /// Packets waiting at the end of the interval.
    pub queue_packets: u64,
    /// Bytes waiting at the end of the interval.
    pub queue_bytes: u64,
    /// The largest lateness in the interval, in nanoseconds.
    pub lateness_max_ns: u64,
    /// The most packets that waited at any time of the interval.
    pub queue_max_packets: u64,
    /// The most bytes that waited at any time of the interval.
    pub queue_max_bytes: u64,
    /// Packets dropped because the link direction was down.
    pub dropped_down: u64,
    /// Packets dropped because a partition cut it.
    pub dropped_partition: u64,
    /// Packets dropped because they were too large and not to be fragmented.
    pub dropped_mtu: u64,
    /// Packets dropped by the link's loss.
    pub dropped_loss: u64,
    /// Packets dropped because the queue was full.
    pub dropped_queue_full: u64,
    /// Packets dropped by active queue management.
    pub dropped_aqm: u64,
    /// Packets dropped because the emulation had no memory left for them.
    pub dropped_memory: u64,
}

/// Column names of `links.csv`, in order.
pub const COLUMNS: &str = "time_s,link,direction,offered_packets,offered_bytes,delivered_packets,\
delivered_bytes,delivered_wire_bytes,dropped_packets,marked_packets,queue_packets,queue_bytes,\
lateness_max_ns,queue_max_packets,queue_max_bytes,dropped_down,dropped_partition,dropped_mtu,\
dropped_loss,dropped_queue_full,dropped_aqm,dropped_memory";

/// Columns of counts.
const VALUES: usize = 19;

impl LinkSampleRow {
    /// Whether nothing happened and nothing waited.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        *self == LinkSampleRow::default()
    }

    /// Adds the line of `link` in `direction` for the interval that ended `time_ns` after the run
    /// began.
    pub fn write_line(&self, out: &mut Vec<u8>, time_ns: u64, link: &str, direction: &str) {
        let (secs, micros) = (time_ns / 1_000_000_000, time_ns % 1_000_000_000 / 1_000);
        // Writing to memory cannot fail.
        let _ = write!(out, "{secs}.{micros:06},{link},{direction}");
        for value in self.values() {
            let _ = write!(out, ",{value}");
        }
        out.push(b'\n');
    }
}

impl LinkSampleRow {
    /// Reads what [`LinkSampleRow::write_line`] has written: time, link, direction and row. `None` if it is
    /// something else, or a part of a line.
    #[must_use]
    pub fn read(line: &str) -> Option<(u64, &str, &str, LinkSampleRow)> {
        let mut fields = line.strip_suffix('\n')?.split(',');
        let (secs, micros) = fields.next()?.split_once('.')?;
        let micros = micros.parse::<u64>().ok().filter(|micros| *micros < 1_000_000)?;
        let time_ns = secs.parse::<u64>().ok()?.checked_mul(1_000_000_000)?;
        let time_ns = time_ns.checked_add(micros * 1_000)?;
        let (link, direction) = (fields.next()?, fields.next()?);
        let mut row = LinkSampleRow::default();
        for value in row.values_mut() {
            *value = fields.next()?.parse().ok()?;
        }
        fields.next().is_none().then_some((time_ns, link, direction, row))
    }

    /// Adds the counts of another interval of the same lane, or of another part of the network in
    /// the same interval. Maxima are those of each by itself.
    pub fn add(&mut self, other: &LinkSampleRow) {
        let maxima = [
            self.lateness_max_ns.max(other.lateness_max_ns),
            self.queue_max_packets.max(other.queue_max_packets),
            self.queue_max_bytes.max(other.queue_max_bytes),
        ];
        for (sum, more) in self.values_mut().into_iter().zip(other.values()) {
            *sum = sum.saturating_add(more);
        }
        [self.lateness_max_ns, self.queue_max_packets, self.queue_max_bytes] = maxima;
    }

    /// Packets dropped, by reason, in the order of the columns.
    #[must_use]
    pub fn dropped(&self) -> [(DropReason, u64); 7] {
        [
            (DropReason::Down, self.dropped_down),
            (DropReason::Partition, self.dropped_partition),
            (DropReason::Mtu, self.dropped_mtu),
            (DropReason::Loss, self.dropped_loss),
            (DropReason::QueueFull, self.dropped_queue_full),
            (DropReason::Aqm, self.dropped_aqm),
            (DropReason::Memory, self.dropped_memory),
        ]
    }

    /// The counts, in the order of the columns.
    #[must_use]
    pub fn values(&self) -> [u64; VALUES] {
        [
            self.offered_packets,
            self.offered_bytes,
            self.delivered_packets,
            self.delivered_bytes,
            self.delivered_wire_bytes,
            self.dropped_packets,
            self.marked_packets,
            self.queue_packets,
            self.queue_bytes,
            self.lateness_max_ns,
            self.queue_max_packets,
            self.queue_max_bytes,
            self.dropped_down,
            self.dropped_partition,
            self.dropped_mtu,
            self.dropped_loss,
            self.dropped_queue_full,
            self.dropped_aqm,
            self.dropped_memory,
        ]
    }

    /// The same, to be written.
    pub fn values_mut(&mut self) -> [&mut u64; VALUES] {
        [
            &mut self.offered_packets,
            &mut self.offered_bytes,
            &mut self.delivered_packets,
            &mut self.delivered_bytes,
            &mut self.delivered_wire_bytes,
            &mut self.dropped_packets,
            &mut self.marked_packets,
            &mut self.queue_packets,
            &mut self.queue_bytes,
            &mut self.lateness_max_ns,
            &mut self.queue_max_packets,
            &mut self.queue_max_bytes,
            &mut self.dropped_down,
            &mut self.dropped_partition,
            &mut self.dropped_mtu,
            &mut self.dropped_loss,
            &mut self.dropped_queue_full,
            &mut self.dropped_aqm,
            &mut self.dropped_memory,
        ]
    }
}

/// Link name and direction (`from-to`) by lane index.
#[must_use]
pub fn lane_names(plan: &Plan) -> Vec<(String, String)> {
    (0..plan.links.len() * 2)
        .map(Lane::from_index)
        .map(|lane| (plan.links[lane.link.index()].name.clone(), plan.lane_name(lane)))
        .collect()
}

/// Writes the rows of the directions that did something in the interval that ended at `at`; of all
/// directions for a `whole` one, which the first and the last are.
pub fn write_rows(
    out: &mut Vec<u8>,
    at: Time,
    rows: &[LinkSampleRow],
    names: &[(String, String)],
    whole: bool,
) {
    for (row, (link, direction)) in rows.iter().zip(names) {
        if whole || !row.is_idle() {
            row.write_line(out, at.as_nanos(), link, direction);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_written_row_is_read_back() {
        let row =
            LinkSampleRow { offered_packets: 7, queue_max_bytes: 9, ..LinkSampleRow::default() };
        let mut text = Vec::new();
        row.write_line(&mut text, 1_200_000_000, "ocean", "tokyo-paris");
        let text = String::from_utf8(text).unwrap();
        assert_eq!(LinkSampleRow::read(&text), Some((1_200_000_000, "ocean", "tokyo-paris", row)));
        assert_eq!(LinkSampleRow::read(COLUMNS), None);
        assert_eq!(LinkSampleRow::read(&text.replace('7', "")), None);
        // A number that was cut is another number.
        assert_eq!(LinkSampleRow::read(text.trim_end()), None);
    }

    #[test]
    fn a_row_has_as_many_fields_as_the_heading() {
        let mut line = Vec::new();
        let row = LinkSampleRow { delivered_bytes: 7, ..LinkSampleRow::default() };
        row.write_line(&mut line, 1_200_000_000, "ocean", "tokyo-paris");
        let fields = |text: &[u8]| text.iter().filter(|&&b| b == b',').count();
        assert_eq!(fields(COLUMNS.as_bytes()), fields(&line));
        assert!(!row.is_idle() && LinkSampleRow::default().is_idle());
        assert!(line.starts_with(b"1.200000,ocean,tokyo-paris,0,0,0,7,"));
    }

    #[test]
    fn a_direction_that_did_nothing_has_a_row_in_a_whole_interval_only() {
        let names = ["busy", "idle"].map(|link| (link.to_owned(), "a-b".to_owned()));
        let rows = [
            LinkSampleRow { delivered_packets: 3, ..LinkSampleRow::default() },
            LinkSampleRow::default(),
        ];
        let links = |whole| {
            let mut text = Vec::new();
            write_rows(&mut text, Time::from_nanos(100_000_000), &rows, &names, whole);
            let text = String::from_utf8(text).unwrap();
            let link = |row: &str| row.split(',').nth(1).unwrap().to_owned();
            text.lines().map(link).collect::<Vec<_>>()
        };
        assert_eq!(links(false), ["busy"]);
        assert_eq!(links(true), ["busy", "idle"]);
    }
}
