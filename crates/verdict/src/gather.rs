//! A run over several machines, when it is over: what each part has seen becomes one run folder and
//! one verdict, as if it had been one machine.

mod events;
mod files;
mod interval;
mod lines;
pub(crate) mod numbers;
mod parts;
mod samples;
mod sides;
mod tally;
#[cfg(test)]
mod tests;

use std::io;
use std::path::PathBuf;

use windtunnel_folder::{FolderError, RunOutputFolder};
use windtunnel_model::{Plan, Span, Time};
use windtunnel_trace::report::RunReport;

use crate::conclusion::conclude;
use crate::evidence::{
    JudgingTerms, LostMachine, PartEvidence, RunEndReason, RunEvidence, RunRecorderSummary,
    programs_of,
};
use crate::results::PartResults;
pub use events::EventFilter;
pub use parts::RunPartFolders;

/// Why there is no verdict.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GatherError {
    #[error(transparent)]
    Folder(#[from] FolderError),
    #[error("cannot read what host {host} has counted")]
    Results { host: String, source: io::Error },
    /// Nothing is left of the run.
    #[error("all machines of the run are lost")]
    Nothing,
}

/// Puts the parts' files into `folder` and judges the run.
///
/// # Errors
/// If a part cannot be read, or the folder not be written.
pub fn gather(
    plan: &Plan,
    terms: JudgingTerms<'_>,
    folder: &RunOutputFolder,
    parts: &RunPartFolders,
) -> Result<RunReport, GatherError> {
    let mut all = read(parts, plan)?;
    let parts = &sides::only_the_run(parts, &mut all);
    if all.is_empty() {
        return Err(GatherError::Nothing);
    }
    let paths: Vec<&PathBuf> = all.iter().map(|(_, path)| path).collect();
    let peaks = samples::merge(plan, folder, &paths)?;
    events::merge(folder, &paths)?;
    files::adopt(plan, folder, parts)?;
    let results: Vec<PartResults> = all.into_iter().map(|(results, _)| results).collect();
    let whole = MergedRunEvidence::of(plan, parts, &results, peaks);
    Ok(whole.conclude(plan, terms, folder, parts, &results))
}

fn read(parts: &RunPartFolders, plan: &Plan) -> Result<Vec<(PartResults, PathBuf)>, GatherError> {
    let mut all = Vec::new();
    for (member, (host, path)) in (0..).zip(&parts.members) {
        let Ok(path) = path else { continue };
        let failed = |source| GatherError::Results { host: host.clone(), source };
        let mut results = PartResults::read(path, member, plan).map_err(failed)?;
        results.host.clone_from(host);
        all.push((results, path.clone()));
    }
    Ok(all)
}

/// What all parts have seen, together.
struct MergedRunEvidence {
    results: PartResults,
    lost: Vec<LostMachine>,
    cut_off: bool,
}

impl MergedRunEvidence {
    fn of(plan: &Plan, parts: &RunPartFolders, results: &[PartResults], peaks: Vec<u64>) -> Self {
        let longest = |span: fn(&PartResults) -> Span| results.iter().map(span).max();
        let recorded =
            RunRecorderSummary { peak_bytes_per_s: peaks, ..RunRecorderSummary::default() };
        let mut whole = PartResults {
            began_unix_s: results[0].began_unix_s,
            setup: longest(|part| part.setup).unwrap_or_default(),
            elapsed: longest(|part| part.elapsed).unwrap_or_default(),
            ending: ending(results),
            origin: results[0].origin,
            tally: tally::merge(plan, parts, results),
            recorded,
            programs: programs_of(plan),
            ..PartResults::default()
        };
        for part in results {
            whole.add(part);
            let is_own = |node: usize| parts.placement.get(node) == Some(&part.member);
            whole.services.add(&part.services, is_own);
        }
        let mut lost = Vec::new();
        for (member, (host, path)) in (0_u16..).zip(&parts.members) {
            if let Err(why) = path {
                let nodes = (0..).zip(&parts.placement).filter(|(_, place)| **place == member);
                let nodes: Vec<usize> = nodes.map(|(node, _)| node).collect();
                let programs = whole.programs.iter_mut();
                let theirs = programs.filter(|(key, _)| nodes.contains(&key.node));
                theirs.for_each(|(_, program)| program.lose());
                let since = results.iter().filter_map(|part| part.lost.get(&member).copied()).min();
                let stood = parts.silent.contains(&member).then(|| stood(parts, member, plan));
                let (host, why, nodes) = (host.clone(), why.clone(), nodes.len());
                lost.push(LostMachine { host, why, since, nodes, stood });
            }
        }
        let cut_off = results.iter().all(|part| part.apart);
        MergedRunEvidence { results: whole, lost, cut_off }
    }

    fn conclude(
        &self,
        plan: &Plan,
        terms: JudgingTerms<'_>,
        folder: &RunOutputFolder,
        parts: &RunPartFolders,
        results: &[PartResults],
    ) -> RunReport {
        let members: Vec<String> = parts.members.iter().map(|(host, _)| host.clone()).collect();
        let hosts: Vec<PartEvidence<'_>> = results
            .iter()
            .map(|part| PartEvidence {
                members: &members,
                nodes: parts.placement.iter().filter(|place| **place == part.member).count(),
                evidence: RunEvidence {
                    cut_off: self.cut_off,
                    ..RunEvidence::of(plan, terms, part)
                },
                results: part,
            })
            .collect();
        let whole = RunEvidence {
            hosts: &hosts,
            lost: &self.lost,
            cut_off: self.cut_off,
            ..RunEvidence::of(plan, terms, &self.results)
        };
        conclude(&whole, folder)
    }
}

impl PartResults {
    /// Adds what another part has seen, as far as it adds up whatever the part is.
    fn add(&mut self, part: &PartResults) {
        for (key, theirs) in &part.programs {
            if let Some(program) = self.programs.get_mut(key) {
                program.follow(theirs.clone());
            }
        }
        self.echoes.extend(part.echoes.iter().cloned());
        self.limits.extend(part.limits.iter().cloned());
        self.bounds.extend(part.bounds.iter().cloned());
        self.planned.add_all(&part.planned);
        self.freezes.times = self.freezes.times.saturating_add(part.freezes.times);
        self.freezes.lasted = self.freezes.lasted + part.freezes.lasted;
        self.device_drops.add(part.device_drops);
        self.busy = self.busy.saturating_add(part.busy);
        self.idle = self.idle.saturating_add(part.idle);
        self.stolen = self.stolen.saturating_add(part.stolen);
        if let Some(theirs) = &part.records {
            self.records.get_or_insert_default().add(theirs);
        }
        self.recorded.lost = self.recorded.lost.saturating_add(part.recorded.lost);
        let failures = [
            (&mut self.recorded.failure, &part.recorded.failure),
            (&mut self.carried.failure, &part.carried.failure),
        ];
        for (all, one) in failures {
            if let Some(failure) = one {
                all.get_or_insert(format!("host {}: {failure}", part.host));
            }
        }
        self.carried.volumes.extend(part.carried.volumes.iter());
        for log in &part.carried.logs {
            let mut log = log.clone();
            if let Some(line) = &mut log.first {
                // The origin is that of all, on the clock of any of them.
                let after = Time::from_nanos(line.at_ns).since(part.origin);
                line.at_ns = (self.origin + after).as_nanos();
            }
            self.carried.logs.push(log);
        }
    }
}

/// The longest time for which the packet loop of a member that was silent stood still, as far as it
/// has said so since.
fn stood(parts: &RunPartFolders, member: u16, plan: &Plan) -> Span {
    let results =
        parts.aside.get(&member).and_then(|path| PartResults::read(path, member, plan).ok());
    results.map_or(Span::ZERO, |results| results.tally.stalls.longest)
}

/// All parts end for the same reason, which the first sends to the others; if they differ, the
/// worst counts.
fn ending(results: &[PartResults]) -> RunEndReason {
    let weight = |ending: &RunEndReason| match ending {
        RunEndReason::Interrupted(_) => 5,
        RunEndReason::Fatal(_) => 4,
        RunEndReason::Overloaded(_) => 3,
        RunEndReason::Stopped => 2,
        RunEndReason::Duration => 1,
        RunEndReason::Finished => 0,
    };
    let all = results.iter().map(|part| &part.ending);
    all.max_by_key(|ending| weight(ending)).cloned().unwrap_or(RunEndReason::Finished)
}
