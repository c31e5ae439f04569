//! What can be expected of services.

use serde_json::{Value as Json, json};
use windtunnel_model::Probability;
use windtunnel_model::expect::{ServiceFact, ValueBounds};

use super::bounds::{CountBoundsForm, ShareBounds, TimeBounds};
use crate::grammar::{Decoder, Fields, SchemaDefinitions, ValueForm, YamlMapEntry, map};
use crate::position::LocatedValue;

/// What is expected of a service, names not worked out.
#[derive(Debug)]
pub(crate) struct ServiceExpected {
    /// All but shares, with the places of their keys.
    pub(crate) facts: Vec<LocatedValue<ServiceFact>>,
    /// Of replicas or groups of them.
    pub(crate) shares: Vec<(LocatedValue<String>, ValueBounds<Probability>)>,
}

map! {
    /// What can be expected of a service.
    ServiceFacts {
        /// Bounds of how often a replica was expelled from a connection that others go on with
        /// (`fail-over: transparent`); a number alone is exact.
        "expelled" EXPELLED: CountBoundsForm,
        /// Bounds of the number of connections that ended with their replica's node.
        "lost" LOST: CountBoundsForm,
        /// Bounds of the number of packets that no replica got.
        "unserved" UNSERVED: CountBoundsForm,
        /// By replica or group of them: bounds of its share of all connections and flows that
        /// began.
        "share" SHARE: ReplicaSharesForm,
        /// Bounds of the longest time that the client of an expelled replica was sent nothing
        /// (`fail-over: transparent`).
        "gap" GAP: TimeBounds,
    }
}

/// Replicas and bounds of their shares.
pub(super) struct ReplicaSharesForm;

impl ValueForm for ReplicaSharesForm {
    type Value = Vec<(LocatedValue<String>, ValueBounds<Probability>)>;

    fn read(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<Self::Value> {
        let entries = from.map(field, "a map of replicas and bounds of their shares")?;
        if entries.all().next().is_none() {
            from.mistake(field.wrong(), format!("{}: no replica is named", field.key));
            return None;
        }
        let share = |from: &mut Decoder<'_>, entry: YamlMapEntry<'_>| {
            let name = LocatedValue { value: entry.key.to_owned(), place: entry.place };
            Some((name, ShareBounds::read(from, entry)?))
        };
        entries.all().map(|entry| share(from, entry)).collect()
    }

    fn schema(definitions: &mut SchemaDefinitions) -> Json {
        let bounds = ShareBounds::schema(definitions);
        json!({"type": "object", "additionalProperties": bounds, "minProperties": 1})
    }
}

/// Reads what is expected of a service.
pub(super) fn read_service_expected(
    from: &mut Decoder<'_>,
    fields: &Fields<'_>,
) -> Option<ServiceExpected> {
    let shares = from.read_or(fields, ServiceFacts::SHARE, Vec::new());
    let mut facts = Vec::new();
    let mut count = |key, fact: fn(ValueBounds<u64>) -> ServiceFact| {
        let Some(field) = fields.get(key) else { return Some(()) };
        facts.push(LocatedValue {
            value: fact(CountBoundsForm::read(from, field)?),
            place: field.place,
        });
        Some(())
    };
    count(ServiceFacts::EXPELLED, ServiceFact::Expelled)?;
    count(ServiceFacts::LOST, ServiceFact::Lost)?;
    count(ServiceFacts::UNSERVED, ServiceFact::Unserved)?;
    if let Some(field) = fields.get(ServiceFacts::GAP) {
        let bounds = TimeBounds::read(from, field)?;
        facts.push(LocatedValue { value: ServiceFact::Gap(bounds), place: field.place });
    }
    Some(ServiceExpected { facts, shares: shares? })
}
