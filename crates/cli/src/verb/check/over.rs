//! `check --hosts`: whether machines of a cluster carry the plan, and which node goes where.

use std::path::Path;

use windtunnel_host::PlanFitConcern;
use windtunnel_lead::{PlacementHostSet, look};
use windtunnel_model::Plan;
use windtunnel_placement::{NodePlacement, PlacementRefusal};
use windtunnel_scenario::LoadedScenario;

use crate::cluster::machines::ClusterHostOptions;
use crate::cluster::{concerns, progress, refuse_silent, refuse_spread, report_started};
use crate::exit::ExitCategory;
use crate::failure::VerbFailure;
use crate::load;
use crate::render::placement::{self, PlacementOutput};

/// Machines, and whether they carry a plan.
#[derive(Debug)]
pub(super) struct MachineCheck {
    site: PlacementHostSet,
    outcome: Result<NodePlacement, Box<PlacementRefusal>>,
    /// What placement does not know of, and a run would be refused for.
    refused: Option<VerbFailure>,
    /// Warnings about a plan that is not refused.
    pub(super) concerns: Vec<PlanFitConcern>,
}

impl MachineCheck {
    /// Checks the plan on the machines of `--hosts`; `None` without that option.
    pub(super) fn ask(
        machines: &ClusterHostOptions,
        loaded: &LoadedScenario,
        path: &Path,
    ) -> Result<Option<Self>, VerbFailure> {
        let plan = &loaded.plan;
        if !machines.are_named() {
            return Ok(None);
        }
        let key = machines.key()?;
        let found = machines.find(&key, &progress(false))?;
        report_started(&found.started);
        let site = PlacementHostSet::of(&found.cards);
        let outcome = site.place(plan);
        let mut all: Vec<PlanFitConcern> = Vec::new();
        let mut refused = refuse_silent(&found.silent).err();
        if let Ok(placement) = &outcome {
            all.extend(concerns(&found.cards, &site, placement));
            let file = path.display().to_string();
            let spread = refuse_spread(plan, &site, placement, &file, &loaded.reservations);
            refused = refused.or(spread.err());
        }
        if let (Ok(placement), None) = (&outcome, &refused) {
            let base_dir = load::folder_of(path);
            let missing = look(plan, &found, &site, placement, &base_dir, &key)?;
            refused = absent(&missing);
        }
        Ok(Some(MachineCheck { site, outcome, refused, concerns: all }))
    }

    pub(super) fn json(&self, plan: &Plan) -> PlacementOutput {
        let outcome = self.outcome.as_ref().map_err(|refused| &**refused);
        placement::json(outcome, plan, &self.site.hosts)
    }

    /// The placement, or the best that was found if it is refused.
    pub(super) fn text(&self, plan: &Plan) -> String {
        let text = |placement| placement::text(placement, plan, &self.site.hosts);
        match &self.outcome {
            Ok(placement) => text(placement),
            Err(refused) => match &refused.attempt {
                Some(attempt) => format!("the best that was found:\n{}", text(attempt)),
                None => String::new(),
            },
        }
    }

    /// Whether the placement itself has warnings.
    pub(super) fn warns(&self) -> bool {
        self.outcome.as_ref().is_ok_and(|placement| !placement.warnings.is_empty())
    }

    /// How many machines there are.
    pub(super) fn machines(&self) -> usize {
        self.site.hosts.len()
    }

    pub(super) fn is_refused(&self) -> bool {
        self.outcome.is_err() || self.refused.is_some()
    }

    /// Why it is refused for what is not about placement, if it is.
    pub(super) fn beside_placement(self) -> Option<VerbFailure> {
        self.refused
    }

    /// Why it is refused, if it is.
    pub(super) fn refused(self) -> Option<VerbFailure> {
        self.outcome.err().map(VerbFailure::Refused).or(self.refused)
    }
}

/// What machines do not have of what their nodes need; a run would end before it begins.
fn absent(missing: &[(String, String)]) -> Option<VerbFailure> {
    let lines: Vec<String> =
        missing.iter().take(LINES_MAX).map(|(host, line)| format!("host {host}: {line}")).collect();
    let more = missing.len().saturating_sub(LINES_MAX);
    let more = if more > 0 { format!("\nand {more} more") } else { String::new() };
    let hint = "programs and files are not copied: each has to be on the machine of its node";
    (!lines.is_empty()).then(|| {
        VerbFailure::new(ExitCategory::Machine, format!("{}{more}", lines.join("\n"))).hint(hint)
    })
}

const LINES_MAX: usize = 20;
