//! Weights of replicas.

use serde_json::{Value as Json, json};
use windtunnel_model::plan::Service;

use crate::grammar::{BoundedInteger, Decoder, SchemaDefinitions, ValueForm, YamlMapEntry};
use crate::position::LocatedValue;

/// The weight of a replica.
#[derive(Debug, Clone)]
pub(crate) struct ReplicaWeightDraft {
    pub(crate) replica: LocatedValue<String>,
    pub(crate) weight: u32,
}

/// Replicas and their weights.
pub(super) struct WeightsForm;

impl ValueForm for WeightsForm {
    type Value = Vec<ReplicaWeightDraft>;

    fn read(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<Vec<ReplicaWeightDraft>> {
        let entries = from.map(field, "a map of replicas and weights")?;
        if entries.all().next().is_none() {
            from.mistake(field.wrong(), format!("{}: no replica is named", field.key));
            return None;
        }
        let weight = |from: &mut Decoder<'_>, entry: YamlMapEntry<'_>| {
            let weight = BoundedInteger::<0, { Service::WEIGHT_MAX as u64 }>::read(from, entry)?;
            let replica = LocatedValue { value: entry.key.to_owned(), place: entry.place };
            Some(ReplicaWeightDraft { replica, weight: u32::try_from(weight).ok()? })
        };
        entries.all().map(|entry| weight(from, entry)).collect()
    }

    fn schema(_: &mut SchemaDefinitions) -> Json {
        let most = Service::WEIGHT_MAX;
        let weight = json!({"type": "integer", "minimum": 0, "maximum": most});
        json!({"type": "object", "additionalProperties": weight, "minProperties": 1})
    }
}
