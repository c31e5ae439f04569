//! `links.csv` of all parts, together.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use windtunnel_folder::{FolderError, LineFileWriter, RunOutputFolder, failed};
use windtunnel_model::{Plan, Span, Time};
use windtunnel_trace::peaks::LanePeakRates;
use windtunnel_trace::sample::{self, LinkSampleRow};
use windtunnel_trace::sample::{lane_names, write_rows};

use super::interval::{ByInterval, INTERVAL_NS, interval_of};
use super::lines::BoundedLines;

/// Writes the sums and returns the peaks by lane index. A part whose file was cut short (its disk
/// was full) says so itself.
pub(super) fn merge(
    plan: &Plan,
    folder: &RunOutputFolder,
    parts: &[&PathBuf],
) -> Result<Vec<u64>, FolderError> {
    let names = lane_names(plan);
    let lanes = names.iter().enumerate().map(|(lane, name)| (name.clone(), lane)).collect();
    let mut samples = ByInterval::new();
    for part in parts {
        read(&part.join("links.csv"), &lanes, &mut samples)?;
    }
    let path = folder.file("links.csv");
    let mut lines =
        LineFileWriter::create(folder, "links.csv", 0).map_err(failed("write", &path))?;
    lines.waiting().extend(format!("{}\n", sample::COLUMNS).into_bytes());
    let (mut peaks, mut latest) = (LanePeakRates::new(names.len()), Time::ZERO);
    let idle = vec![LinkSampleRow::default(); names.len()];
    for (index, (at, counted)) in samples.values().enumerate() {
        let whole = index == 0 || index + 1 == samples.len();
        let mut rows = idle.clone();
        counted.iter().for_each(|(lane, row)| rows[*lane] = *row);
        write_rows(lines.waiting(), *at, &rows, &names, whole);
        lines.commit();
        // Before it all may have been idle.
        if at.since(latest) > INTERVAL + INTERVAL {
            let idle_until = Time::from_nanos(at.as_nanos() - INTERVAL.as_nanos());
            peaks.add(idle_until, &idle);
        }
        peaks.add(*at, &rows);
        latest = *at;
    }
    lines.finish().map_err(failed("write", &path))?;
    Ok(peaks.finish())
}

/// Adds the rows of a file, by interval and lane index: only those that exist, since the number of
/// intervals comes from a file of another machine.
fn read(
    path: &Path,
    lanes: &BTreeMap<(String, String), usize>,
    samples: &mut ByInterval<BTreeMap<usize, LinkSampleRow>>,
) -> Result<(), FolderError> {
    let mut lines = BoundedLines::open(path)?;
    while let Some(line) = lines.next()? {
        let Ok(line) = std::str::from_utf8(line) else { continue };
        let Some((at_ns, link, direction, row)) = LinkSampleRow::read(line) else { continue };
        let Some(&lane) = lanes.get(&(link.to_owned(), direction.to_owned())) else { continue };
        let at = Time::from_nanos(at_ns);
        let (latest, rows) =
            samples.entry(interval_of(at)).or_insert_with(|| (at, BTreeMap::new()));
        *latest = at.max(*latest);
        rows.entry(lane).or_default().add(&row);
    }
    Ok(())
}

const INTERVAL: Span = Span::from_nanos(INTERVAL_NS);
