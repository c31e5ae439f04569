//! `run --hosts`: a run over machines of a cluster, from the file to the verdict.

use std::path::PathBuf;
use std::sync::Arc;

use windtunnel_cluster::protocol::run::text_of;
use windtunnel_host::{Observer, RunOptions};
use windtunnel_lead::{ClusterRunRequest, LiveClusterRun, PlacementHostSet};
use windtunnel_model::Plan;
use windtunnel_model::plan::OnOverload;
use windtunnel_scenario::LoadedScenario;

use super::attempts::RunAttemptFolders;
use super::{ExecutedRun, RunArguments, places, plan_of};
use crate::cluster::{progress, refuse_silent, refuse_spread, refuse_to_detach, report_started};
use crate::exit::ExitCategory;
use crate::failure::VerbFailure;
use crate::output;
use crate::render::face::Face;

/// Finds the machines, and does a whole run over them, with attempts.
pub(super) fn carry_out(
    loaded: LoadedScenario,
    base_dir: PathBuf,
    arguments: &RunArguments,
) -> Result<(Plan, ExecutedRun), VerbFailure> {
    let manner = &arguments.manner;
    if !manner.captures.is_empty() {
        let text = "--pcap is for runs on one machine";
        let hint = "--record, then `records export --format pcapng` has the packets' headers";
        return Err(VerbFailure::new(ExitCategory::Usage, text).hint(hint));
    }
    let (plain, quiet) = (arguments.plain, manner.is_quiet());
    let key = arguments.machines.key()?;
    let progress = progress(quiet);
    let found = arguments.machines.find(&key, &progress)?;
    refuse_silent(&found.silent)?;
    if arguments.detach {
        refuse_to_detach(&found.started)?;
        if let Some(folder) = &manner.out {
            output::talk(&format!(
                "notice: --detach: nothing is written to {}; `windtunnel attach --out` fetches the results",
                folder.display()
            ));
        }
    }
    if !quiet {
        report_started(&found.started);
    }
    if manner.on_overload == Some(OnOverload::Freeze) && !quiet {
        output::talk(
            "notice: --on-overload freeze: over several machines it pauses the programs of the \
             machine that is behind, and no other",
        );
    }
    let reservations = loaded.reservations.clone();
    let plan = plan_of(loaded, manner)?;
    if !reservations.is_empty() {
        let site = PlacementHostSet::of(&found.cards);
        let file = arguments.scenario.path()?.display().to_string();
        // What does not fit at all is refused when the run begins.
        if let Ok(placement) = site.place(&plan) {
            refuse_spread(&plan, &site, &placement, &file, &reservations)?;
        }
    }
    let (folder, options, results) = places(manner, &plan, base_dir)?;
    let attempts = RunAttemptFolders::new(arguments.attempts, &folder)?;
    let result = attempts.carry_out(|former| {
        let options = RunOptions { attempts: former.to_vec(), ..options.clone() };
        let face = Arc::new(Face::new(&plan, manner.showing.manner()));
        let observer: Arc<dyn Observer> = Arc::<Face>::clone(&face);
        let run =
            ClusterRunRequest { plan: &plan, options: &options, found: &found, key: &key, plain };
        let begun = run.begin(&observer, &progress).map_err(VerbFailure::from);
        let result = begun.and_then(|run| match arguments.detach {
            true => detach(run, quiet).map(|()| None),
            false => Ok(Some(run.finish()?)),
        });
        face.finish();
        result
    });
    Ok((plan, ExecutedRun { folder, results, result }))
}

/// Leaves a run to its machines, and prints its number.
fn detach(mut run: LiveClusterRun, quiet: bool) -> Result<(), VerbFailure> {
    run.detach()?;
    let (number, first) = (text_of(run.setup().run), run.setup().members.first());
    if !quiet {
        let host = first.map_or_else(String::new, |member| member.address.to_string());
        output::talk(&format!(
            "the run goes on; `windtunnel attach {number} --host {host}` follows it and fetches its results"
        ));
    }
    output::data(&format!("{number}\n"))
}
