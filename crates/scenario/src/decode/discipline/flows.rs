//! Flow queues.

use serde_json::Value as Json;
use windtunnel_model::Bytes;
use windtunnel_model::profile::{FairBy, FlowQueues, HostFairParameters, Wf2qParameters};

use super::{CodelKeys, read_codel, set};
use crate::grammar::{
    BoundedInteger, Decoder, Fields, SchemaDefinitions, ValueForm, YamlMapEntry, form, map, words,
};

map! {
    /// The parameters of FQ-CoDel.
    FqCodelKeys as "FqCodel" {
        /// Number of queues that flows are hashed to, with `fair` also of those for hosts, 1 to
        /// 65536; default 1024.
        "flows" FLOWS: BoundedInteger<1, MOST_FLOWS>,
        /// Bytes with overhead that a flow, with `fair` also a host, sends in its turn, 64B to 1MB;
        /// default 1514B.
        "quantum" QUANTUM: Quantum,
        ..CodelKeys,
    }
}

impl ValueForm for FlowQueues {
    type Value = FlowQueues;

    fn read(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<FlowQueues> {
        let fields = from.table::<FqCodelKeys>(field, "fq-codel")?;
        read_flow_queues(from, field, &fields)
    }

    fn schema(definitions: &mut SchemaDefinitions) -> Json {
        FqCodelKeys::definition(definitions)
    }
}

fn read_flow_queues(
    from: &mut Decoder<'_>,
    field: YamlMapEntry<'_>,
    fields: &Fields<'_>,
) -> Option<FlowQueues> {
    let mut queues = FlowQueues::default();
    if let Some(flows) = from.read(fields, FqCodelKeys::FLOWS)? {
        queues.flows = u32::try_from(flows).ok()?;
    }
    set(from, fields, FqCodelKeys::QUANTUM, &mut queues.quantum)?;
    queues.codel = read_codel(from, field, fields)?;
    Some(queues)
}

map! {
    /// The parameters of fair sharing over hosts.
    FairKeys as "Fair" {
        /// Which address of a packet is its host: `destination` (default) or `source`.
        "by" BY: Address,
        ..FqCodelKeys,
    }
}

words! {
    /// One of the two addresses of a packet.
    Address as "Side"; FairBy {
        /// The sender's address.
        "source" => FairBy::Source,
        /// The receiver's address.
        "destination" => FairBy::Destination,
    }
}

impl ValueForm for HostFairParameters {
    type Value = HostFairParameters;

    fn read(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<HostFairParameters> {
        let fields = from.table::<FairKeys>(field, "fair")?;
        let by = from.read_or(&fields, FairKeys::BY, FairBy::default())?;
        Some(HostFairParameters { by, queues: read_flow_queues(from, field, &fields)? })
    }

    fn schema(definitions: &mut SchemaDefinitions) -> Json {
        FairKeys::definition(definitions)
    }
}

map! {
    /// The parameters of weighted fair queueing.
    Wf2qKeys as "Wf2q" {
        /// Number of queues that flows are hashed to, 1 to 65536; default 1024.
        "flows" FLOWS: BoundedInteger<1, MOST_FLOWS>,
    }
}

impl ValueForm for Wf2qParameters {
    type Value = Wf2qParameters;

    fn read(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<Wf2qParameters> {
        let fields = from.table::<Wf2qKeys>(field, "wf2q")?;
        let mut wf2q = Wf2qParameters::default();
        if let Some(flows) = from.read(&fields, Wf2qKeys::FLOWS)? {
            wf2q.flows = u32::try_from(flows).ok()?;
        }
        Some(wf2q)
    }

    fn schema(definitions: &mut SchemaDefinitions) -> Json {
        Wf2qKeys::definition(definitions)
    }
}

form! {
    /// Bytes of a turn.
    Quantum: u32, by read_quantum, like Bytes::schema
}

fn read_quantum(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<u32> {
    let bytes = Bytes::read(from, field)?;
    let quantum = u32::try_from(bytes.0).ok().filter(|bytes| (64..=1_000_000).contains(bytes));
    if quantum.is_none() {
        let message = format!("quantum: `{bytes}` is not between 64B and 1MB");
        from.mistake(field.wrong(), message);
    }
    quantum
}

/// The most queues that flows are hashed to.
const MOST_FLOWS: u64 = 65_536;
