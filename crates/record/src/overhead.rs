//! What a record costs on this machine, measured where it will be paid.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

use windtunnel_evidence::file::{EventSource, RecordFileHeader};
use windtunnel_model::record::kind::RecordSource;
use windtunnel_model::record::region::RecordRegionLayout;
use windtunnel_model::record::{EventRecord, Kind};
use windtunnel_sys::clock;
use windtunnel_sys::region::MappedRecordRegion;

use crate::drain::{RecordFeed, ScratchRecordFile};
use crate::feed::RegionFeed;

/// Picoseconds that a record costs: `leave`, where it happens, with the clock that it needs; and
/// `read`, until it is in a file in `folder`, which is removed again. Medians of several rounds.
///
/// # Errors
/// If no memory can be shared, or the file not be written.
pub fn measure(folder: &Path) -> io::Result<BTreeMap<String, u64>> {
    let region = Arc::new(
        MappedRecordRegion::create(RecordRegionLayout {
            rings: 1,
            slots: RECORDS * 2,
            sockets: 0,
        })?
        .0,
    );
    let source = EventSource::of_node(RecordSource::Calls, 0, 0);
    let mut feed = RegionFeed::new(Arc::clone(&region), source);
    let mut scratch = ScratchRecordFile::create(folder, RecordFileHeader::new("windtunnel"))?;
    let (mut leave, mut read, mut records) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let began = clock::thread_cpu_ns();
        for flow in 0..RECORDS {
            let time = clock::monotonic_ns();
            region.push(
                0,
                &EventRecord { time, kind: Kind::Call as u8, flow, ..EventRecord::default() },
            );
        }
        let left = clock::thread_cpu_ns();
        records.clear();
        feed.take(usize::MAX, &mut records);
        scratch.write(source, &records)?;
        let done = clock::thread_cpu_ns();
        let each = |ns: u64| ns.saturating_mul(1000) / u64::from(RECORDS);
        leave.push(each(left.saturating_sub(began)));
        read.push(each(done.saturating_sub(left)));
    }
    scratch.remove()?;
    Ok([("leave", leave), ("read", read)]
        .map(|(name, times)| (name.to_owned(), median(times)))
        .into())
}

fn median(mut times: Vec<u64>) -> u64 {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or(0)
}

const ROUNDS: usize = 15;
/// A power of two.
const RECORDS: u32 = 1 << 13;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_of_a_record_cost_something_and_nothing_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let costs = measure(folder.path()).unwrap();
        assert!(costs["leave"] > 0 && costs["read"] > 0, "{costs:?}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
