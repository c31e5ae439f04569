//! `check --hosts`: whether machines of a cluster carry the plan, and which node goes where.

use windtunnel_host::Concern;
use windtunnel_lead::Site;
use windtunnel_model::Plan;
use windtunnel_placement::{Placement, Refused};

use crate::cluster::machines::Machines;
use crate::cluster::{concerns, progress, report_started};
use crate::failure::Failure;
use crate::render::placement::{self, Placed};

/// Machines, and whether they carry a plan.
#[derive(Debug)]
pub(super) struct MachineCheck {
    site: Site,
    outcome: Result<Placement, Box<Refused>>,
    /// Warnings about a plan that is not refused.
    pub(super) concerns: Vec<Concern>,
}

impl MachineCheck {
    /// Checks the plan on the machines of `--hosts`; `None` without that option.
    pub(super) fn ask(machines: &Machines, plan: &Plan) -> Result<Option<Self>, Failure> {
        if !machines.are_named() {
            return Ok(None);
        }
        let found = machines.find(&machines.key()?, &progress(false))?;
        report_started(&found.started);
        let site = Site::of(&found.cards);
        let outcome = site.place(plan);
        let silent = found.silent.iter().map(|silent| Concern {
            text: format!(
                "{} does not answer, so nothing is put there: {}",
                silent.address, silent.why
            ),
            hint: None,
        });
        let mut all: Vec<Concern> = silent.collect();
        if let Ok(placement) = &outcome {
            all.extend(concerns(&found.cards, &site, placement));
        }
        Ok(Some(MachineCheck { site, outcome, concerns: all }))
    }

    pub(super) fn json(&self, plan: &Plan) -> Placed {
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
        self.outcome.is_err()
    }

    /// Why it is refused, if it is.
    pub(super) fn refused(self) -> Option<Failure> {
        self.outcome.err().map(Failure::Refused)
    }
}
