//! What link directions did over time, in bins that are as fine as there is room for.

mod table;

use std::collections::BTreeMap;

use serde::Serialize;

use crate::document::map::MapDirectedLink;
use crate::text::quantity::to_digits;
pub(crate) use table::SampleTableReader;

/// The interval of `links.csv`, in nanoseconds.
pub(crate) const SAMPLE_NS: u64 = 100_000_000;

/// All link directions, in bins of one width. Bytes and packets of a bin are sums; queue and
/// lateness are maxima of what was sampled in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LinkTimeSeriesSet {
    /// Width of a bin: bin `k` is from `k * step_ns` to `(k + 1) * step_ns`.
    pub step_ns: u64,
    pub bins: usize,
    /// Samples of 100 ms that a bin has, a power of two. Values of bins with several are rounded to
    /// four digits.
    pub samples_per_bin: u64,
    /// By lane index; `None`: idle during the whole run.
    pub lanes: Vec<Option<LinkTimeSeries>>,
}

/// A link direction. A column without a value other than 0 is empty.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct LinkTimeSeries {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub offered_bytes: Vec<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub delivered_bytes: Vec<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub delivered_wire_bytes: Vec<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub delivered_packets: Vec<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub marked_packets: Vec<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub queue_max_packets: Vec<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub queue_max_bytes: Vec<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lateness_max_ns: Vec<u64>,
    /// Packets by reason; `all` where the run folder has no reasons.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub dropped: BTreeMap<String, Vec<u64>>,
}

impl LinkTimeSeriesSet {
    /// No bin yet, of so many lanes.
    #[must_use]
    pub fn new(lanes: usize) -> LinkTimeSeriesSet {
        LinkTimeSeriesSet {
            step_ns: SAMPLE_NS,
            bins: 0,
            samples_per_bin: 1,
            lanes: vec![None; lanes],
        }
    }

    /// Values in all columns.
    #[must_use]
    pub fn cells(&self) -> usize {
        self.lanes.iter().flatten().flat_map(LinkTimeSeries::columns).map(Vec::len).sum()
    }

    /// Makes bins twice as wide.
    pub(crate) fn halve(&mut self) {
        for lane in self.lanes.iter_mut().flatten() {
            for column in lane.sums() {
                fold(column, u64::saturating_add);
            }
            for column in lane.maxima() {
                fold(column, u64::max);
            }
        }
        self.bins = self.bins.div_ceil(2);
        self.samples_per_bin *= 2;
        self.step_ns *= 2;
    }

    /// Leaves out what a reader needs least, and digits that no picture shows.
    pub(crate) fn shorten(&mut self) {
        for lane in self.lanes.iter_mut().flatten() {
            lane.delivered_packets.clear();
            lane.marked_packets.clear();
            for value in lane.sums().into_iter().flatten() {
                *value = to_digits(*value, DIGITS);
            }
            for value in lane.maxima().into_iter().flatten() {
                *value = to_digits(*value, DIGITS);
            }
        }
    }

    /// Gives each column that has a value as many as there are bins.
    pub(crate) fn pad(&mut self) {
        let bins = self.bins;
        for lane in self.lanes.iter_mut().flatten() {
            for column in lane.sums().into_iter().filter(|column| !column.is_empty()) {
                column.resize(bins, 0);
            }
            for column in lane.maxima().into_iter().filter(|column| !column.is_empty()) {
                column.resize(bins, 0);
            }
        }
    }

    /// A sentence about the bins, where they are not the samples themselves.
    #[must_use]
    pub fn note(&self, lanes: &[MapDirectedLink]) -> Option<String> {
        let step_ms = self.step_ns / 1_000_000;
        (self.samples_per_bin > 1).then(|| {
            format!(
                "time lines of {} link directions: each point is of {} samples of 100 ms ({}.{} s): \
                 bytes and packets are sums, queues and lateness maxima, to four digits; links.csv \
                 has every sample",
                lanes.len(),
                self.samples_per_bin,
                step_ms / 1000,
                step_ms % 1000 / 100
            )
        })
    }
}

impl LinkTimeSeries {
    fn columns(&self) -> impl Iterator<Item = &Vec<u64>> {
        [
            &self.offered_bytes,
            &self.delivered_bytes,
            &self.delivered_wire_bytes,
            &self.delivered_packets,
            &self.marked_packets,
            &self.queue_max_packets,
            &self.queue_max_bytes,
            &self.lateness_max_ns,
        ]
        .into_iter()
        .chain(self.dropped.values())
    }

    fn sums(&mut self) -> Vec<&mut Vec<u64>> {
        let counts = [
            &mut self.offered_bytes,
            &mut self.delivered_bytes,
            &mut self.delivered_wire_bytes,
            &mut self.delivered_packets,
            &mut self.marked_packets,
        ];
        counts.into_iter().chain(self.dropped.values_mut()).collect()
    }

    fn maxima(&mut self) -> [&mut Vec<u64>; 3] {
        [&mut self.queue_max_packets, &mut self.queue_max_bytes, &mut self.lateness_max_ns]
    }
}

/// Joins each two values.
fn fold(column: &mut Vec<u64>, join: fn(u64, u64) -> u64) {
    for index in 0..column.len().div_ceil(2) {
        let second = column.get(index * 2 + 1).copied().unwrap_or(0);
        column[index] = join(column[index * 2], second);
    }
    column.truncate(column.len().div_ceil(2));
}

const DIGITS: u32 = 4;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn series(bytes: Vec<u64>, queue: Vec<u64>) -> LinkTimeSeriesSet {
        let bins = bytes.len().max(queue.len());
        let lane = LinkTimeSeries {
            delivered_bytes: bytes,
            queue_max_packets: queue,
            ..LinkTimeSeries::default()
        };
        LinkTimeSeriesSet { bins, lanes: vec![Some(lane), None], ..LinkTimeSeriesSet::new(2) }
    }

    proptest! {
        #[test]
        fn wider_bins_lose_no_byte_and_no_peak(
            bytes in prop::collection::vec(0_u64..1 << 40, 0..50),
            queue in prop::collection::vec(0_u64..1 << 20, 0..50),
            times in 0..7_u32,
        ) {
            let mut wide = series(bytes.clone(), queue.clone());
            (0..times).for_each(|_| wide.halve());
            let lane = wide.lanes[0].as_ref().unwrap();
            prop_assert_eq!(lane.delivered_bytes.iter().sum::<u64>(), bytes.iter().sum::<u64>());
            prop_assert_eq!(lane.queue_max_packets.iter().max(), queue.iter().max());
            prop_assert_eq!(wide.samples_per_bin, 1 << times);
            prop_assert!(lane.delivered_bytes.len() <= wide.bins);
            let many = bytes.len().max(queue.len());
            prop_assert_eq!(wide.bins, many.div_ceil(1 << times));
        }
    }

    #[test]
    fn columns_are_as_long_as_there_are_bins_or_empty() {
        let mut short = series(vec![1, 2], vec![]);
        short.bins = 4;
        short.pad();
        let lane = short.lanes[0].as_ref().unwrap();
        assert_eq!(
            (lane.delivered_bytes.as_slice(), lane.queue_max_packets.len()),
            (&[1, 2, 0, 0][..], 0)
        );
        assert_eq!(short.cells(), 4);
    }

    #[test]
    fn a_reader_learns_what_a_point_is() {
        let mut wide = series(vec![1; 8], vec![]);
        assert_eq!(wide.note(&[]), None);
        (0..3).for_each(|_| wide.halve());
        assert!(wide.note(&[]).unwrap().contains("8 samples of 100 ms (0.8 s)"));
    }
}
