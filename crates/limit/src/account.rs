//! A limit of a run, and what came of it: the account that the verdict judges.

mod owner;

use serde::{Deserialize, Serialize};
use windtunnel_budget::processor::CpuUsageWindow;
use windtunnel_model::valid::{PlanValidationError, ensure};
use windtunnel_model::{HeldLimit, Plan, Resource};

use crate::supervisor::{LimitSample, SupervisedLimit};

pub use owner::ResourceLimitOwner;

/// The account of one limit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitAccount {
    pub owner: ResourceLimitOwner,
    #[serde(rename = "kind")]
    pub resource: Resource,
    #[serde(flatten)]
    pub held: HeldLimit,
    /// Of processor time, each of about a second, in the order of time; ends are after the beginning
    /// of the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<CpuUsageWindow>,
    /// What was known each second of everything else, in the order of time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub looks: Vec<LimitSample>,
}

impl LimitAccount {
    /// Nothing was seen of it yet.
    #[must_use]
    pub fn new(owner: ResourceLimitOwner, resource: Resource, held: HeldLimit) -> LimitAccount {
        LimitAccount { owner, resource, held, windows: Vec::new(), looks: Vec::new() }
    }

    /// That of a limit of a node or reservation, in a run that began then.
    #[must_use]
    pub fn of_limit(
        owner: ResourceLimitOwner,
        limit: SupervisedLimit,
        origin_ns: u64,
    ) -> LimitAccount {
        let SupervisedLimit { program, resource, held, windows, samples, .. } = limit;
        let windows = windows.into_iter().map(|window| {
            let end_ns = window.end_ns.saturating_sub(origin_ns);
            CpuUsageWindow { end_ns, ..window }
        });
        let (owner, windows) = (owner.of_program(program), windows.collect());
        LimitAccount { owner, resource, held, windows, looks: samples }
    }

    /// Whether it can be that of something in the plan.
    ///
    /// # Errors
    /// If it cannot.
    pub fn validate(&self, plan: &Plan) -> Result<(), PlanValidationError> {
        let is_sane = |window: &CpuUsageWindow| window.length_ns > 0;
        self.owner.validate(plan)?;
        ensure(self.windows.iter().all(is_sane), || "it has limited nodes for no time".to_owned())
    }
}
