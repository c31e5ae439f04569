//! What is to be recorded.

use alloc::borrow::ToOwned;
use alloc::format;

use crate::message::{PlanValidationError, ensure};
use crate::plan::{FlowPattern, Plan, RecordChoice, RecordingPolicy};

impl RecordingPolicy {
    /// Whether it can be done with a plan.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub(crate) fn validate(&self, plan: &Plan) -> Result<(), PlanValidationError> {
        self.choice.validate(plan)?;
        self.check_bounds().map_err(|(key, why)| PlanValidationError::new(format!("{key}: {why}")))
    }
}

impl RecordChoice {
    /// Whether every node, group and address that it names is there.
    ///
    /// # Errors
    /// The first that is not.
    pub fn validate(&self, plan: &Plan) -> Result<(), PlanValidationError> {
        let known = self.nodes.iter().all(|node| plan.has_node(*node));
        ensure(known, || "a node that is to be recorded does not exist".to_owned())?;
        for host in self.flows.iter().flat_map(FlowPattern::hosts) {
            ensure(plan.has_host(host), || {
                format!("`{host}` is neither a node or group nor an IP address")
            })?;
        }
        Ok(())
    }
}
