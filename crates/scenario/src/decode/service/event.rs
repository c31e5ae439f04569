//! Changes of a service.

use super::weights::{ReplicaWeightDraft, WeightsForm};
use crate::grammar::{Decoder, Fields, MapSchema, Name, NameListForm, map};
use crate::position::LocatedValue;
use crate::text::list;

/// What an event does with a service.
#[derive(Debug)]
pub(crate) struct ServiceEventDraft {
    pub(crate) service: LocatedValue<String>,
    pub(crate) add: Vec<LocatedValue<String>>,
    pub(crate) remove: Vec<LocatedValue<String>>,
    pub(crate) drain: Vec<LocatedValue<String>>,
    pub(crate) undrain: Vec<LocatedValue<String>>,
    pub(crate) weight: Vec<ReplicaWeightDraft>,
}

map! {
    /// A change of a service.
    OfServices {
        /// The service whose replicas change.
        "service" SERVICE: Name,
        /// Nodes or groups that become replicas.
        "add" ADD: NameListForm,
        /// Replicas that are none any longer; their connections stay.
        "remove" REMOVE: NameListForm,
        /// Replicas that get no new connections; theirs stay.
        "drain" DRAIN: NameListForm,
        /// Replicas that get new connections again.
        "undrain" UNDRAIN: NameListForm,
        /// New weights of replicas, with `policy: {weighted: …}`.
        "weight" WEIGHT: WeightsForm,
    }
}

/// Reads what an event does with a service.
pub(in crate::decode) fn read_service_event(
    from: &mut Decoder<'_>,
    fields: &Fields<'_>,
) -> Option<ServiceEventDraft> {
    let changes: Vec<&str> =
        OfServices::list().into_iter().filter(|key| *key != OfServices::SERVICE.name).collect();
    if !changes.iter().any(|key| fields.has(*key)) && !fields.unknown {
        let hint = format!("it needs {}", list(&changes));
        from.mistake_with_hint(fields.place, "this event changes nothing", hint);
        return None;
    }
    let service = from.read(fields, OfServices::SERVICE).flatten();
    let draft = ServiceEventDraft {
        add: from.read_or(fields, OfServices::ADD, Vec::new())?,
        remove: from.read_or(fields, OfServices::REMOVE, Vec::new())?,
        drain: from.read_or(fields, OfServices::DRAIN, Vec::new())?,
        undrain: from.read_or(fields, OfServices::UNDRAIN, Vec::new())?,
        weight: from.read_or(fields, OfServices::WEIGHT, Vec::new())?,
        service: service?,
    };
    Some(draft)
}
