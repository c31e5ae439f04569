//! `links.csv` of all parts, together.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use windtunnel_model::{Plan, Time};
use windtunnel_trace::sample::{self, Row};

use super::{ByInterval, interval_of};
use crate::folder::{Folder, FolderError, failed};
use crate::recorder::{Peaks, lane_names};

/// Writes the sums and returns the peaks by lane index. A part whose file was cut short (its disk was full)
/// says so itself.
pub(super) fn merge(
    plan: &Plan,
    folder: &Folder,
    parts: &[&PathBuf],
) -> Result<Vec<u64>, FolderError> {
    let names = lane_names(plan);
    let lanes = names.iter().enumerate().map(|(lane, name)| (name.clone(), lane)).collect();
    let mut samples = ByInterval::new();
    for part in parts {
        read(&part.join("links.csv"), &lanes, &mut samples)?;
    }
    let path = folder.file("links.csv");
    let mut file = File::create(&path).map(BufWriter::new).map_err(failed("write", &path))?;
    sample::write_heading(&mut file).map_err(failed("write", &path))?;
    let mut peaks = Peaks::new(names.len());
    for (at, rows) in samples.values() {
        for (row, (link, direction)) in rows.iter().zip(&names) {
            let written = row.write(&mut file, at.as_nanos(), link, direction);
            written.map_err(failed("write", &path))?;
        }
        peaks.add(*at, rows);
    }
    file.flush().map_err(failed("write", &path))?;
    Ok(peaks.finish())
}

fn read(
    path: &Path,
    lanes: &BTreeMap<(String, String), usize>,
    samples: &mut ByInterval<Vec<Row>>,
) -> Result<(), FolderError> {
    let file = File::open(path).map_err(failed("read", path))?;
    for line in BufReader::new(file).lines() {
        let line = line.map_err(failed("read", path))?;
        let Some((at_ns, link, direction, row)) = Row::read(&line) else { continue };
        let Some(&lane) = lanes.get(&(link.to_owned(), direction.to_owned())) else { continue };
        let at = Time::from_nanos(at_ns);
        let (latest, rows) = samples
            .entry(interval_of(at))
            .or_insert_with(|| (at, vec![Row::default(); lanes.len()]));
        *latest = at.max(*latest);
        rows[lane].add(&row);
    }
    Ok(())
}
