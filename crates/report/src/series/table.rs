//! Reading `links.csv`, of this version and of others: columns are found by their names.

use std::collections::HashMap;
use std::io::BufRead;

use windtunnel_model::DropReason;

use super::{LinkTimeSeries, LinkTimeSeriesSet, SAMPLE_NS};
use crate::document::map::MapDirectedLink;
use crate::folder::line::line as read_line;

/// Why a table cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum TableError {
    #[error("it has no column `{0}`")]
    Column(&'static str),
    #[error("line {0}: {1}")]
    Line(u64, &'static str),
    #[error(transparent)]
    Read(#[from] std::io::Error),
}

/// Reads rows into a [`LinkTimeSeriesSet`].
#[derive(Debug)]
pub(crate) struct SampleTableReader {
    /// By "link,direction".
    lanes: HashMap<Vec<u8>, usize>,
    series: LinkTimeSeriesSet,
    cells_max: usize,
}

/// A column that is kept.
#[derive(Debug, Clone, Copy)]
enum SampleColumn {
    Ignored,
    OfferedBytes,
    DeliveredBytes,
    DeliveredWireBytes,
    DeliveredPackets,
    MarkedPackets,
    QueueMaxPackets,
    QueueMaxBytes,
    LatenessMax,
    /// For this reason, or for all together.
    Dropped(Option<DropReason>),
}

impl SampleTableReader {
    /// A table of these lanes. Bins become wider while there are more than `cells_max` values.
    pub(crate) fn new(lanes: &[MapDirectedLink], cells_max: usize) -> SampleTableReader {
        let key = |lane: &MapDirectedLink| format!("{},{}", lane.link, lane.direction).into_bytes();
        SampleTableReader {
            lanes: lanes.iter().map(key).zip(0..).collect(),
            series: LinkTimeSeriesSet::new(lanes.len()),
            cells_max,
        }
    }

    /// Reads a whole table. A last line without an end was cut, and is left out.
    ///
    /// # Errors
    /// If it is no table of links, or cannot be read.
    pub(crate) fn read(mut self, mut input: impl BufRead) -> Result<LinkTimeSeriesSet, TableError> {
        let mut line = Vec::new();
        read_line(&mut input, &mut line)?;
        if line.last() != Some(&b'\n') {
            // A run that has only begun.
            return Ok(self.series);
        }
        let columns = columns(&line)?;
        for number in 2.. {
            read_line(&mut input, &mut line)?;
            let Some((b'\n', row)) = line.split_last() else { break };
            self.row(row, &columns).map_err(|why| TableError::Line(number, why))?;
            if number % ROWS_BETWEEN_CHECKS == 0 {
                while self.series.cells() > self.cells_max {
                    self.series.halve();
                }
            }
        }
        Ok(self.series)
    }

    fn row(&mut self, row: &[u8], columns: &[SampleColumn]) -> Result<(), &'static str> {
        let time_end = position(row, 0).ok_or("it has too few fields")?;
        let link_end = position(row, time_end + 1).ok_or("it has too few fields")?;
        let end = position(row, link_end + 1).ok_or("it has too few fields")?;
        let time_ns = time(&row[..time_end]).ok_or("it does not begin with a time")?;
        // A link that the plan does not have is of no map.
        let lane = self.lanes.get(&row[time_end + 1..end]).ok_or("a link that the plan lacks")?;
        let mut values = row[end + 1..].split(|byte| *byte == b',');
        // A sample ends at its time, a little after a tenth of a second.
        let sample = (time_ns + SAMPLE_NS / 2) / SAMPLE_NS;
        let index = sample.saturating_sub(1);
        if index >= SAMPLES_MAX {
            return Err("a time beyond a year");
        }
        // One row far away makes bins wide, and no large table.
        while index / self.series.samples_per_bin >= as_u64(self.cells_max.max(1)) {
            self.series.halve();
        }
        let bin = index / self.series.samples_per_bin;
        let bin = usize::try_from(bin).map_err(|_| "a time beyond a year")?;
        self.series.bins = self.series.bins.max(bin + 1);
        for column in columns {
            let value = number(values.next().ok_or("it has too few fields")?);
            let value = value.ok_or("a field is no number")?;
            if value > 0 {
                let lane = self.series.lanes[*lane].get_or_insert_with(LinkTimeSeries::default);
                put(lane, *column, bin, value);
            }
        }
        Ok(())
    }
}

/// The kept columns after time, link and direction.
fn columns(heading: &[u8]) -> Result<Vec<SampleColumn>, TableError> {
    let text = String::from_utf8_lossy(heading);
    let mut names = text.trim_end().split(',');
    for wanted in ["time_s", "link", "direction"] {
        if names.next() != Some(wanted) {
            return Err(TableError::Column(wanted));
        }
    }
    let names: Vec<&str> = names.collect();
    for wanted in ["offered_bytes", "delivered_bytes", "dropped_packets"] {
        if !names.contains(&wanted) {
            return Err(TableError::Column(wanted));
        }
    }
    let reasons = names.iter().any(|name| reason_of(name).is_some());
    Ok(names.into_iter().map(|name| column(name, reasons)).collect())
}

fn column(name: &str, reasons: bool) -> SampleColumn {
    match name {
        "offered_bytes" => SampleColumn::OfferedBytes,
        "delivered_bytes" => SampleColumn::DeliveredBytes,
        "delivered_wire_bytes" => SampleColumn::DeliveredWireBytes,
        "delivered_packets" => SampleColumn::DeliveredPackets,
        "marked_packets" => SampleColumn::MarkedPackets,
        "queue_max_packets" => SampleColumn::QueueMaxPackets,
        "queue_max_bytes" => SampleColumn::QueueMaxBytes,
        "lateness_max_ns" => SampleColumn::LatenessMax,
        "dropped_packets" if !reasons => SampleColumn::Dropped(None),
        _ => reason_of(name)
            .map_or(SampleColumn::Ignored, |reason| SampleColumn::Dropped(Some(reason))),
    }
}

/// The reason of which a column has the drops.
fn reason_of(column: &str) -> Option<DropReason> {
    let name = column.strip_prefix("dropped_")?;
    DropReason::ALL.into_iter().find(|reason| reason.name() == name)
}

/// Adds a count, or keeps the greater of two maxima.
fn put(lane: &mut LinkTimeSeries, column: SampleColumn, bin: usize, value: u64) {
    let (values, join): (_, fn(u64, u64) -> u64) = match column {
        SampleColumn::Ignored => return,
        SampleColumn::OfferedBytes => (&mut lane.offered_bytes, u64::saturating_add),
        SampleColumn::DeliveredBytes => (&mut lane.delivered_bytes, u64::saturating_add),
        SampleColumn::DeliveredWireBytes => (&mut lane.delivered_wire_bytes, u64::saturating_add),
        SampleColumn::DeliveredPackets => (&mut lane.delivered_packets, u64::saturating_add),
        SampleColumn::MarkedPackets => (&mut lane.marked_packets, u64::saturating_add),
        SampleColumn::QueueMaxPackets => (&mut lane.queue_max_packets, u64::max),
        SampleColumn::QueueMaxBytes => (&mut lane.queue_max_bytes, u64::max),
        SampleColumn::LatenessMax => (&mut lane.lateness_max_ns, u64::max),
        SampleColumn::Dropped(reason) => {
            let word = reason.map_or("all", DropReason::name);
            (lane.dropped.entry(word.to_owned()).or_default(), u64::saturating_add)
        }
    };
    if values.len() <= bin {
        values.resize(bin + 1, 0);
    }
    values[bin] = join(values[bin], value);
}

fn as_u64(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

/// The next comma.
fn position(row: &[u8], from: usize) -> Option<usize> {
    row.get(from..)?.iter().position(|byte| *byte == b',').map(|at| from + at)
}

fn number(digits: &[u8]) -> Option<u64> {
    let add = |value: u64, byte: &u8| {
        let digit = byte.checked_sub(b'0').filter(|digit| *digit <= 9)?;
        value.checked_mul(10)?.checked_add(u64::from(digit))
    };
    (!digits.is_empty()).then(|| digits.iter().try_fold(0, add))?
}

/// `12.100042` in nanoseconds.
fn time(text: &[u8]) -> Option<u64> {
    let point = text.iter().position(|byte| *byte == b'.')?;
    let micros = number(&text[point + 1..]).filter(|_| text.len() - point == 7)?;
    number(&text[..point])?.checked_mul(1_000_000_000)?.checked_add(micros * 1000)
}

const ROWS_BETWEEN_CHECKS: u64 = 1 << 14;
/// Samples of a year.
const SAMPLES_MAX: u64 = 366 * 86_400 * 10;

#[cfg(test)]
mod tests {
    use windtunnel_trace::sample::{COLUMNS, LinkSampleRow};

    use super::*;

    fn lanes() -> Vec<MapDirectedLink> {
        let lane = |direction: &str| MapDirectedLink {
            link: "ocean".to_owned(),
            direction: direction.to_owned(),
            from: 0,
            to: 1,
        };
        vec![lane("a-b"), lane("b-a")]
    }

    fn read(text: &str, cells_max: usize) -> Result<LinkTimeSeriesSet, String> {
        SampleTableReader::new(&lanes(), cells_max)
            .read(text.as_bytes())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn rows_come_into_the_bin_of_their_interval() {
        let mut text = format!("{COLUMNS}\n").into_bytes();
        let row = |n: u64| LinkSampleRow {
            delivered_bytes: n,
            queue_max_packets: n,
            dropped_loss: 2,
            ..LinkSampleRow::default()
        };
        row(5).write_line(&mut text, 100_042_000, "ocean", "a-b");
        row(7).write_line(&mut text, 399_990_000, "ocean", "a-b");
        text.extend(b"0.500000,ocean,a-b,1");
        let series = read(&String::from_utf8(text).unwrap(), 1000).unwrap();
        let lane = series.lanes[0].as_ref().unwrap();
        assert_eq!(lane.delivered_bytes, [5, 0, 0, 7]);
        assert_eq!(lane.dropped["loss"], [2, 0, 0, 2]);
        assert_eq!((series.bins, series.lanes[1].as_ref()), (4, None));
    }

    #[test]
    fn a_table_without_reasons_has_all_drops_together() {
        let text = "time_s,link,direction,offered_bytes,delivered_bytes,dropped_packets\n\
                    0.100000,ocean,b-a,10,9,1\n";
        let series = read(text, 1000).unwrap();
        assert_eq!(series.lanes[1].as_ref().unwrap().dropped["all"], [1]);
    }

    #[test]
    fn bins_become_wider_where_there_is_no_room() {
        let mut text = format!("{COLUMNS}\n").into_bytes();
        for n in 1..=40_000_u64 {
            let row = LinkSampleRow {
                delivered_bytes: n,
                queue_max_packets: n,
                ..LinkSampleRow::default()
            };
            row.write_line(&mut text, n * 100_000_000, "ocean", "a-b");
        }
        let series = read(&String::from_utf8(text).unwrap(), 10_000).unwrap();
        let lane = series.lanes[0].as_ref().unwrap();
        assert!(series.samples_per_bin >= 4, "{}", series.samples_per_bin);
        assert_eq!(lane.delivered_bytes.iter().sum::<u64>(), 40_000 * 40_001 / 2);
        assert_eq!(lane.queue_max_packets.iter().max(), Some(&40_000));
    }

    #[test]
    fn a_table_that_has_only_begun_has_no_bins() {
        for begun in ["", "time_s,link,dir"] {
            assert_eq!(read(begun, 1000).unwrap(), LinkTimeSeriesSet::new(2));
        }
    }

    #[test]
    fn a_row_far_away_makes_bins_wide_and_no_large_table() {
        let mut text = format!("{COLUMNS}\n").into_bytes();
        let row = LinkSampleRow { delivered_bytes: 5, ..LinkSampleRow::default() };
        row.write_line(&mut text, 100_000_000, "ocean", "a-b");
        row.write_line(&mut text, 30_000_000_000_000_000, "ocean", "a-b");
        let series = read(&String::from_utf8(text).unwrap(), 1000).unwrap();
        let lane = series.lanes[0].as_ref().unwrap();
        assert!(lane.delivered_bytes.len() <= 1000, "{}", lane.delivered_bytes.len());
        assert_eq!(lane.delivered_bytes.iter().sum::<u64>(), 10);
    }

    #[test]
    fn what_is_no_table_of_links_is_refused_with_the_line() {
        assert_eq!(read("a,b\n", 9).unwrap_err(), "it has no column `time_s`");
        assert_eq!(
            read("time_s,link,direction,x\n", 9).unwrap_err(),
            "it has no column `offered_bytes`"
        );
        let row = |line: &str| read(&format!("{COLUMNS}\n{line}\n"), 9).unwrap_err();
        assert_eq!(row("0.100000,ocean,a-b,1"), "line 2: it has too few fields");
        assert_eq!(row("0.100000,lake,a-b,1"), "line 2: a link that the plan lacks");
        assert_eq!(row("now,ocean,a-b,1"), "line 2: it does not begin with a time");
        assert_eq!(row("0.100000,ocean,a-b,x,1"), "line 2: a field is no number");
        assert_eq!(row("40000000.100000,ocean,a-b,1"), "line 2: a time beyond a year");
    }
}
