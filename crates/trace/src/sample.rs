//! `links.csv`: one row per link direction and interval.

use std::io::{self, Write};

use serde::{Deserialize, Serialize};

/// What one link direction did in one interval. Bytes are IP bytes; `wire` bytes include the overhead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Row {
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
}

/// Column names of `links.csv`, in order.
pub const COLUMNS: &str = "time_s,link,direction,offered_packets,offered_bytes,delivered_packets,\
delivered_bytes,delivered_wire_bytes,dropped_packets,marked_packets,queue_packets,queue_bytes,\
lateness_max_ns,queue_max_packets,queue_max_bytes";

/// Writes the heading of `links.csv`.
///
/// # Errors
/// What the writer says.
pub fn write_heading(out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "{COLUMNS}")
}

impl Row {
    /// Writes the row of `link` in `direction` for the interval that ended `time_ns` after the run began.
    ///
    /// # Errors
    /// What the writer says.
    pub fn write(
        &self,
        out: &mut impl Write,
        time_ns: u64,
        link: &str,
        direction: &str,
    ) -> io::Result<()> {
        let (secs, micros) = (time_ns / 1_000_000_000, time_ns % 1_000_000_000 / 1_000);
        write!(out, "{secs}.{micros:06},{link},{direction}")?;
        for value in [
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
        ] {
            write!(out, ",{value}")?;
        }
        writeln!(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_as_many_fields_as_the_heading() {
        let (mut heading, mut row) = (Vec::new(), Vec::new());
        write_heading(&mut heading).unwrap();
        Row { delivered_bytes: 7, ..Row::default() }
            .write(&mut row, 1_200_000_000, "ocean", "tokyo-paris")
            .unwrap();
        let fields = |text: &[u8]| text.iter().filter(|&&b| b == b',').count();
        assert_eq!(fields(&heading), fields(&row));
        assert!(row.starts_with(b"1.200000,ocean,tokyo-paris,0,0,0,7,"));
    }
}
