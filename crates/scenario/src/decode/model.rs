//! How the network is emulated, and how its bandwidth is divided.

use windtunnel_model::plan::{NetworkModel, Sharing};

use super::{At, Fields};
use crate::error::Findings;

/// `model` and `sharing`.
#[derive(Debug, Default)]
pub(crate) struct ModelDraft {
    model: Option<At<Kind>>,
    sharing: Option<At<Sharing>>,
    /// What they come to, once that is [settled](ModelDraft::settle).
    pub(crate) settled: NetworkModel,
    /// Why it is the model of paths.
    pub(crate) why: Paths,
}

/// `model`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Hops,
    Paths,
}

/// Why the model of paths is used, if it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Paths {
    /// The file says so.
    #[default]
    Asked,
    /// There are several machines.
    SeveralMachines,
}

impl ModelDraft {
    /// Chooses the model, now that it is known whether there are several machines.
    pub(crate) fn settle(&mut self, found: &mut Findings, several_machines: bool) {
        let asked = self.model.as_ref().map(|model| model.value);
        let sharing = self.sharing.as_ref().map(|sharing| sharing.value).unwrap_or_default();
        if several_machines {
            self.why = Paths::SeveralMachines;
            self.settled = NetworkModel::Paths(sharing);
            if let Some(At { value: Kind::Hops, place }) = &self.model {
                let message = "model: over several machines only the model of paths can be used";
                let hint = "leave it out or write `model: paths`, or run it on one machine";
                found.mistake_with_hint(*place, message, hint);
            }
            return;
        }
        if asked == Some(Kind::Paths) {
            self.settled = NetworkModel::Paths(sharing);
        } else if let Some(sharing) = &self.sharing {
            let message =
                "sharing: with `model: hops` the queues of the links divide their bandwidth";
            let hint = "add `model: paths`, or leave `sharing` out";
            found.mistake_with_hint(sharing.place, message, hint);
        }
    }
}

impl Findings {
    pub(super) fn model(&mut self, file: &Fields<'_>) -> ModelDraft {
        let mut draft = ModelDraft::default();
        if let Some(field) = file.find("model") {
            let model = self.choice(field, &[("hops", Kind::Hops), ("paths", Kind::Paths)]);
            draft.model = model.map(|value| At { value, place: field.wrong() });
            if model.is_none() {
                // Nobody knows whether `sharing` fits a model that was misspelt.
                return draft;
            }
        }
        if let Some(field) = file.find("sharing") {
            let choices = [("rtt-aware", Sharing::RttAware), ("equal", Sharing::Equal)];
            let sharing = self.choice(field, &choices);
            draft.sharing = sharing.map(|value| At { value, place: field.place });
        }
        draft
    }
}
