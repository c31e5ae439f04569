//! Making a document as small as its page may be: time lines get coarser, and say so.

use crate::document::ReportDocument;
use crate::document::run::RunSection;
use crate::page::ReportPage;
use crate::series::{LinkTimeSeries, LinkTimeSeriesSet};

/// The page of a document, no larger than so many bytes unless all time lines are of one point.
///
/// Bins of all runs are widened together, as runs with bins of one width can be compared.
pub(crate) fn page(document: &mut ReportDocument, bytes_max: usize) -> ReportPage {
    let plain: Vec<usize> = document.runs.iter().map(|run| run.notes.len()).collect();
    loop {
        let bins = document.runs.iter().map(|run| run.series.bins).max().unwrap_or(0);
        // To deflate all of it takes most of the time of a report: a sample is enough to see that
        // it is far too large.
        if bins > 1 && series_bytes(&document.runs) > bytes_max / 4 * 5 {
            document.runs.iter_mut().for_each(|run| run.series.halve());
            continue;
        }
        for (run, plain) in document.runs.iter_mut().zip(&plain) {
            finish(run, *plain);
        }
        let page = ReportPage::of(document);
        if page.len() <= bytes_max || bins <= 1 {
            return page;
        }
        document.runs.iter_mut().for_each(|run| run.series.halve());
    }
}

/// Leaves the time lines as a reader gets them, with a note after the first `plain` ones.
fn finish(run: &mut RunSection, plain: usize) {
    if run.series.samples_per_bin > 1 {
        run.series.shorten();
    }
    run.series.pad();
    run.notes.truncate(plain);
    run.notes.extend(run.series.note(&run.lanes));
}

/// About the bytes that time lines have in the page: those of a few link directions, for all.
fn series_bytes(runs: &[RunSection]) -> usize {
    runs.iter()
        .map(|run| {
            let busy: Vec<&LinkTimeSeries> = run.series.lanes.iter().flatten().collect();
            let lanes = busy.iter().step_by(SAMPLED).map(|lane| Some((*lane).clone())).collect();
            let mut sample = LinkTimeSeriesSet { lanes, ..LinkTimeSeriesSet::new(0) };
            sample.bins = run.series.bins;
            if run.series.samples_per_bin > 1 {
                sample.shorten();
            }
            sample.pad();
            let taken = sample.lanes.len().max(1);
            ReportPage::encoded_len(&sample).saturating_mul(busy.len()) / taken
        })
        .sum()
}

/// One of so many link directions is a sample.
const SAMPLED: usize = 16;
