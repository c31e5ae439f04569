//! Modulation with the names of both ends.

use serde::Serialize;

use super::{FlowModulation, modulation};
use crate::RecordedRun;
use crate::history::EndpointRole;

/// A direction of a flow, with names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ModulationReport {
    pub protocol: String,
    /// What sends.
    pub from: String,
    pub to: String,
    #[serde(flatten)]
    pub modulation: FlowModulation,
}

impl ModulationReport {
    /// Of all flows of a run, both directions, where bytes were carried.
    #[must_use]
    pub fn all(evidence: &RecordedRun) -> Vec<ModulationReport> {
        modulation(evidence).into_iter().map(|one| ModulationReport::of(evidence, one)).collect()
    }

    fn of(evidence: &RecordedRun, modulation: FlowModulation) -> ModulationReport {
        let flow = &evidence.flows()[modulation.flow as usize];
        let name = |side: EndpointRole| {
            let end = match side {
                EndpointRole::Client => &flow.from,
                EndpointRole::Server => &flow.to,
            };
            end.as_ref().map_or_else(|| "?".to_owned(), |end| evidence.end_name(end))
        };
        let (from, to) = (name(modulation.sender), name(modulation.sender.peer()));
        ModulationReport { protocol: flow.protocol_name(), from, to, modulation }
    }
}
