//! Modulation with the names of both ends.

use serde::Serialize;

use super::{Modulation, modulation};
use crate::Evidence;
use crate::history::Side;

/// A direction of a flow, with names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Named {
    pub protocol: String,
    /// What sends.
    pub from: String,
    pub to: String,
    #[serde(flatten)]
    pub modulation: Modulation,
}

impl Named {
    /// Of all flows of a run, both directions, where bytes were carried.
    #[must_use]
    pub fn all(evidence: &Evidence) -> Vec<Named> {
        modulation(evidence).into_iter().map(|one| Named::of(evidence, one)).collect()
    }

    fn of(evidence: &Evidence, modulation: Modulation) -> Named {
        let flow = &evidence.flows()[modulation.flow as usize];
        let name = |side: Side| {
            let end = match side {
                Side::Client => &flow.from,
                Side::Server => &flow.to,
            };
            end.as_ref().map_or_else(|| "?".to_owned(), |end| evidence.end_name(end))
        };
        let (from, to) = (name(modulation.sender), name(modulation.sender.peer()));
        Named { protocol: flow.protocol_name(), from, to, modulation }
    }
}
