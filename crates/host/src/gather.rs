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

pub use events::EventFilter;

use std::io;
use std::path::PathBuf;

use windtunnel_model::{Plan, Span, Time};
use windtunnel_sys::limits::CpuTickCounters;
use windtunnel_trace::report::{RecordingReport, RunReport};

use crate::devices::DeviceDrops;
use crate::echo::{EchoProbe, EchoResults};
use crate::ending::RunEndReason;
use crate::folder::{FolderError, RunOutputFolder};
use crate::freeze::FreezeTotals;
use crate::live::ServicesEnded;
use crate::load::WhenLate;
use crate::options::RunOptions;
use crate::output::OutputCollectionSummary;
use crate::part::results::PartResults;
use crate::planned::PunctualitySummary;
use crate::recorder::RunRecorderSummary;
use crate::run::write_report;
use crate::supervisor::Supervisor;
use crate::tables::{self, RunMeasurements};
use crate::verdict::{self, LostMachine, PartEvidence, RunEvidence};
pub use parts::RunPartFolders;
use windtunnel_limit::LimitAccount;

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
    options: &RunOptions,
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
    let attempts = options.attempts.clone();
    let report = RunReport { attempts, ..whole.judge(plan, options, parts, &results) };
    let tables = tables::tables(
        plan,
        RunMeasurements {
            echoes: &whole.echoes,
            tally: &whole.tally,
            limits: &whole.limits,
            bounds: &whole.bounds,
        },
    );
    Ok(write_report(folder, plan, tables, report))
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
    tally: windtunnel_dataplane::Tally,
    recorded: RunRecorderSummary,
    records: Option<RecordingReport>,
    carried: OutputCollectionSummary,
    supervisor: Supervisor,
    echoes: Vec<(EchoProbe, EchoResults)>,
    freezes: FreezeTotals,
    planned: PunctualitySummary,
    limits: Vec<LimitAccount>,
    bounds: Vec<LimitAccount>,
    services: ServicesEnded,
    ending: RunEndReason,
    lost: Vec<LostMachine>,
    cut_off: bool,
}

impl MergedRunEvidence {
    fn of(plan: &Plan, parts: &RunPartFolders, results: &[PartResults], peaks: Vec<u64>) -> Self {
        let mut whole = MergedRunEvidence {
            tally: tally::merge(plan, parts, results),
            recorded: RunRecorderSummary {
                peak_bytes_per_s: peaks,
                ..RunRecorderSummary::default()
            },
            records: None,
            carried: OutputCollectionSummary::default(),
            supervisor: Supervisor::of_part(plan, vec![false; plan.nodes.len()]),
            echoes: Vec::new(),
            freezes: FreezeTotals::default(),
            planned: PunctualitySummary::default(),
            limits: Vec::new(),
            bounds: Vec::new(),
            services: ServicesEnded::default(),
            ending: ending(results),
            lost: Vec::new(),
            cut_off: results.iter().all(|part| part.apart),
        };
        results.iter().for_each(|part| whole.add(part, results[0].origin));
        for part in results {
            let is_own = |node: usize| parts.placement.get(node) == Some(&part.member);
            whole.services.add(&part.services, is_own);
        }
        for theirs in results.iter().filter_map(|part| part.records.as_ref()) {
            whole.records.get_or_insert_default().add(theirs);
        }
        for (member, (host, path)) in (0_u16..).zip(&parts.members) {
            if let Err(why) = path {
                let nodes = (0..).zip(&parts.placement).filter(|(_, place)| **place == member);
                let nodes: Vec<usize> = nodes.map(|(node, _)| node).collect();
                whole.supervisor.on_lost(&nodes, host);
                let since = results.iter().filter_map(|part| part.lost.get(&member).copied()).min();
                let stood = parts.silent.contains(&member).then(|| stood(parts, member, plan));
                let (host, why, nodes) = (host.clone(), why.clone(), nodes.len());
                whole.lost.push(LostMachine { host, why, since, nodes, stood });
            }
        }
        whole
    }

    /// `origin` is that of all, on the clock of any of them.
    fn add(&mut self, part: &PartResults, origin: Time) {
        for (key, program) in &part.programs {
            self.supervisor.on_news(*key, program.clone());
        }
        self.echoes.extend(part.echoes.iter().cloned());
        self.limits.extend(part.limits.iter().cloned());
        self.bounds.extend(part.bounds.iter().cloned());
        self.planned.add_all(&part.planned);
        self.freezes.times = self.freezes.times.saturating_add(part.freezes.times);
        self.freezes.lasted = self.freezes.lasted + part.freezes.lasted;
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
                let after = Time::from_nanos(line.at_ns).since(part.origin);
                line.at_ns = (origin + after).as_nanos();
            }
            self.carried.logs.push(log);
        }
    }

    fn judge(
        &self,
        plan: &Plan,
        options: &RunOptions,
        parts: &RunPartFolders,
        results: &[PartResults],
    ) -> RunReport {
        let mut device_drops = DeviceDrops::default();
        results.iter().for_each(|part| device_drops.add(part.device_drops));
        let longest = |span: fn(&PartResults) -> Span| results.iter().map(span).max();
        let common = |hosts, lost| RunEvidence {
            plan,
            plan_hash: &options.plan_hash,
            began_unix_s: results[0].began_unix_s,
            setup: longest(|part| part.setup).unwrap_or_default(),
            elapsed: longest(|part| part.elapsed).unwrap_or_default(),
            ending: &self.ending,
            tally: &self.tally,
            recorded: &self.recorded,
            records: self.records.as_ref(),
            captures: &[],
            carried: &self.carried,
            supervisor: &self.supervisor,
            echoes: &self.echoes,
            origin: results[0].origin,
            freezes: self.freezes,
            planned: &self.planned,
            load: WhenLate::default(),
            limits: &self.limits,
            bounds: &self.bounds,
            services: &self.services,
            internet: None,
            late_above: options.max_lateness,
            device_drops,
            processors: processors(results),
            notes: &[],
            hosts,
            lost,
            cut_off: self.cut_off,
        };
        let members: Vec<String> = parts.members.iter().map(|(host, _)| host.clone()).collect();
        let hosts: Vec<PartEvidence<'_>> = results
            .iter()
            .map(|part| PartEvidence {
                members: &members,
                nodes: parts.placement.iter().filter(|place| **place == part.member).count(),
                evidence: RunEvidence {
                    setup: part.setup,
                    elapsed: part.elapsed,
                    ending: &part.ending,
                    tally: &part.tally,
                    recorded: &part.recorded,
                    records: part.records.as_ref(),
                    freezes: part.freezes,
                    planned: &part.planned,
                    load: part.load,
                    limits: &part.limits,
                    bounds: &part.bounds,
                    services: &part.services,
                    device_drops: part.device_drops,
                    processors: part.processors(),
                    ..common(&[], &[])
                },
                results: part,
            })
            .collect();
        verdict::judge(&common(&hosts, &self.lost))
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

fn processors(results: &[PartResults]) -> CpuTickCounters {
    let mut sum = CpuTickCounters::default();
    for part in results.iter().map(PartResults::processors) {
        sum.busy = sum.busy.saturating_add(part.busy);
        sum.idle = sum.idle.saturating_add(part.idle);
        sum.stolen = sum.stolen.saturating_add(part.stolen);
    }
    sum
}
