//! How the network is emulated, and how its bandwidth is divided.

use windtunnel_model::plan::{BandwidthSharing, NetworkModel};

use crate::error::Diagnostics;
use crate::grammar::{Decoder, Fields, ValueForm, map, words};
use crate::position::LocatedValue;

/// `model` and `sharing`.
#[derive(Debug, Default)]
pub(crate) struct ModelDraft {
    model: Option<LocatedValue<NetworkModelKind>>,
    sharing: Option<LocatedValue<BandwidthSharing>>,
    /// What they come to, once that is [settled](ModelDraft::settle).
    pub(crate) settled: NetworkModel,
    /// Why it is the model of paths.
    pub(crate) why: PathModelReason,
}

/// `model`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NetworkModelKind {
    Hops,
    Paths,
}

/// Why the model of paths is used, if it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum PathModelReason {
    /// The file says so.
    #[default]
    Asked,
    /// There are several machines.
    SeveralMachines,
}

impl ModelDraft {
    /// Chooses the model, now that it is known whether there are several machines.
    pub(crate) fn settle(&mut self, found: &mut Diagnostics, several_machines: bool) {
        let asked = self.model.as_ref().map(|model| model.value);
        let sharing = self.sharing.as_ref().map(|sharing| sharing.value).unwrap_or_default();
        if several_machines {
            self.why = PathModelReason::SeveralMachines;
            self.settled = NetworkModel::Paths(sharing);
            if let Some(LocatedValue { value: NetworkModelKind::Hops, place }) = &self.model {
                let message = "model: over several machines only the model of paths can be used";
                let hint = "leave it out or write `model: paths`, or run it on one machine";
                found.mistake_with_hint(*place, message, hint);
            }
            return;
        }
        if asked == Some(NetworkModelKind::Paths) {
            self.settled = NetworkModel::Paths(sharing);
        } else if let Some(sharing) = &self.sharing {
            let message =
                "sharing: with `model: hops` the queues of the links divide their bandwidth";
            let hint = "add `model: paths`, or leave `sharing` out";
            found.mistake_with_hint(sharing.place, message, hint);
        }
    }
}

map! {
    /// What the file says of the emulation of its network.
    ModelTable {
        /// How the network between nodes is emulated; default hops.
        "model" MODEL: Model,
        /// With `model: paths`: how flows divide the bandwidth of a link that they share; default
        /// rtt-aware.
        "sharing" SHARING: Division,
    }
}

words! {
    /// How the network between nodes is emulated.
    Model as "NetworkModel"; NetworkModelKind {
        /// Each packet passes the queue of every link on its way.
        "hops" => NetworkModelKind::Hops,
        /// Each packet waits at its source only, for the share of its path that its flow has;
        /// delay and loss are those of the path.
        "paths" => NetworkModelKind::Paths,
    }
}

words! {
    /// How flows divide the bandwidth of a link that they share.
    Division as "Sharing"; BandwidthSharing {
        /// In inverse proportion to their round-trip times, as long-lived TCP connections do.
        "rtt-aware" => BandwidthSharing::RttAware,
        /// Equally.
        "equal" => BandwidthSharing::Equal,
    }
}

/// Reads `model` and `sharing` of the file.
pub(super) fn read_model(from: &mut Decoder<'_>, file: &Fields<'_>) -> ModelDraft {
    let mut draft = ModelDraft::default();
    if let Some(field) = file.get(ModelTable::MODEL) {
        let model = Model::read(from, field);
        draft.model = model.map(|value| LocatedValue { value, place: field.wrong() });
        if model.is_none() {
            // Whether `sharing` fits a misspelt model cannot be known.
            return draft;
        }
    }
    draft.sharing = from.read_at_key(file, ModelTable::SHARING);
    draft
}
