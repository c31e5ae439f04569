//! `record`: what is recorded of the run as evidence.

use serde_json::{Value as Json, json};
use windtunnel_model::plan::{
    FlowPattern, OnRecordLoss, RecordChoice, RecordDirection, RecordLayerSet, RecordMode,
    RecordingPolicy,
};
use windtunnel_model::record::kind::RecordSource;
use windtunnel_model::{Bytes, Span};

use super::names::NodeNames;
use crate::grammar::{
    BoundedInteger, Decoder, SchemaAlternative, SchemaDefinitions, ValueForm, YamlMapEntry, form,
    map, text, words,
};
use crate::position::LocatedValue;
use crate::tree::YamlValueKind;

/// `record` in the file's own terms.
#[derive(Debug, Default)]
pub(crate) struct RecordDraft {
    /// With the names in `choice` still missing.
    pub(crate) recording: RecordingPolicy,
    pub(crate) nodes: Vec<LocatedValue<String>>,
    pub(crate) flows: Vec<LocatedValue<FlowPattern>>,
}

map! {
    /// What is recorded, and how much of the disk it may fill.
    RecordForm {
        /// Whether recording waits for `windtunnel record start`, with everything prepared so that
        /// programs need not be restarted; default false.
        "standby" STANDBY: bool,
        /// The layers; default: all that can be recorded on this machine.
        "layers" LAYERS: LayerNames,
        /// Only events of these nodes or groups, and of packets from or to them; default: all.
        "nodes" NODES: NodeNames,
        /// Only flows that one of these patterns fits: a protocol (`tcp`, `udp`, `icmp`), then up
        /// to two ends, each a node, a group or an address, a `:port`, or both; default: all.
        "flows" FLOWS: Flows,
        /// Only one direction of each flow: `forward`, from the side that sent first (of a socket:
        /// what it sends), or `reverse`; default: both.
        "direction" DIRECTION: DirectionForm,
        /// How often the state of TCP connections is looked at, at least 1ms; default 10ms.
        "tcp-interval" TCP_INTERVAL: Span,
        /// The most bytes of records that lie on the disk of each machine; events after that are
        /// lost, and counted. Default 4GB.
        "max" MAX: Bytes,
        /// A new file begins when one has so many bytes, at least 64KB; default 256MB.
        "rotate" ROTATE: Bytes,
        /// How many files are kept: the oldest is removed, and its events counted, when there are
        /// more. Default: all, up to `max`.
        "keep" KEEP: BoundedInteger<1, 1_000_000>,
        /// Whether addresses and ports are left out of the records; flows stay distinct. Default
        /// false.
        "anonymous" ANONYMOUS: bool,
        /// What lost events do to the run; default report.
        "on-loss" ON_LOSS: LossForm,
    }
}

words! {
    /// A layer of events.
    LayerForm as "Layer"; RecordSource {
        /// The emulated network: each packet at each link.
        "engine" => RecordSource::Engine,
        /// What programs call on sockets.
        "calls" => RecordSource::Calls,
        /// The state of TCP connections.
        "tcp" => RecordSource::Tcp,
        /// The kernel's stack; needs CAP_BPF.
        "kernel" => RecordSource::Kernel,
    }
}

words! {
    /// A direction of flows.
    DirectionForm as "RecordDirection"; RecordDirection {
        /// From the side that sent first; what a socket sends.
        "forward" => RecordDirection::Forward,
        /// To it; what a socket receives.
        "reverse" => RecordDirection::Reverse,
    }
}

words! {
    /// What lost events do to the run.
    LossForm as "OnRecordLoss"; OnRecordLoss {
        /// The verdict says that the evidence is incomplete.
        "report" => OnRecordLoss::Report,
        /// The run has failed.
        "fail" => OnRecordLoss::Fail,
    }
}

words! {
    /// Whether the run is recorded.
    Short as "RecordWhether"; RecordMode {
        /// All layers, from the beginning.
        "true" => RecordMode::On,
        /// Nothing.
        "false" => RecordMode::Off,
        /// Nothing.
        "off" => RecordMode::Off,
        /// Everything is prepared for `windtunnel record start`.
        "standby" => RecordMode::Standby,
    }
}

/// `record`.
pub(crate) struct RecordingForm;

impl ValueForm for RecordingForm {
    type Value = RecordDraft;

    fn read(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<RecordDraft> {
        let of = |recording| RecordDraft { recording, ..RecordDraft::default() };
        match &field.value.kind {
            YamlValueKind::Text(_) => {
                Short::read(from, field).map(|mode| of(RecordingPolicy::of(mode)))
            }
            YamlValueKind::List(_) => {
                let choice =
                    RecordChoice { layers: LayerNames::read(from, field)?, ..Default::default() };
                Some(of(RecordingPolicy { choice, ..RecordingPolicy::of(RecordMode::On) }))
            }
            YamlValueKind::Map(_) => read_map(from, field),
            YamlValueKind::Null => {
                from.wrong_type(field, "true, standby, off, a list of layers or a map of keys")
            }
        }
    }

    fn schema(definitions: &mut SchemaDefinitions) -> Json {
        definitions.any_of(
            "Record",
            "What is recorded of the run as evidence, into `records` of the run folder.",
            &[
                SchemaAlternative("Whether anything is.", short),
                SchemaAlternative("Layers.", LayerNames::schema),
                SchemaAlternative("All of it.", RecordForm::definition),
            ],
        )
    }
}

fn short(definitions: &mut SchemaDefinitions) -> Json {
    let words = Short::schema(definitions);
    json!({"anyOf": [{"type": "boolean"}, words]})
}

/// A list of layers.
struct LayerNames;

impl ValueForm for LayerNames {
    type Value = RecordLayerSet;

    fn read(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<RecordLayerSet> {
        let items = from.list(field, "a list of layers")?;
        let layers: Vec<RecordSource> =
            items.filter_map(|item| LayerForm::read(from, item)).collect();
        if layers.is_empty() {
            let message = format!("`{}` names no layer: nothing would be recorded", field.key);
            from.mistake(field.wrong(), message);
            return None;
        }
        Some(RecordLayerSet::of(layers))
    }

    fn schema(definitions: &mut SchemaDefinitions) -> Json {
        json!({"type": "array", "items": LayerForm::schema(definitions), "minItems": 1})
    }
}

form! {
    /// One pattern of flows or a list of them.
    Flows: Vec<LocatedValue<FlowPattern>>, by read_flows, like flows_schema
}

fn flows_schema(definitions: &mut SchemaDefinitions) -> Json {
    let _ = text(definitions);
    json!({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]})
}

fn read_flows(
    from: &mut Decoder<'_>,
    field: YamlMapEntry<'_>,
) -> Option<Vec<LocatedValue<FlowPattern>>> {
    let texts = from.names(field, "a pattern of flows or a list of them")?;
    let mut patterns = Vec::new();
    for LocatedValue { value, place } in texts {
        match value.parse() {
            Ok(pattern) => patterns.push(LocatedValue { value: pattern, place }),
            Err(error) => from.mistake(place, format!("{}: {error}", field.key)),
        }
    }
    Some(patterns)
}

fn read_map(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<RecordDraft> {
    let usual = RecordingPolicy::default();
    let fields = from.table::<RecordForm>(field, "record")?;
    let standby = from.read_or(&fields, RecordForm::STANDBY, false)?;
    let layers = from.read_or(&fields, RecordForm::LAYERS, RecordLayerSet::default())?;
    let nodes = from.read_or(&fields, RecordForm::NODES, Vec::new())?;
    let flows = from.read_or(&fields, RecordForm::FLOWS, Vec::new())?;
    let direction = from.read(&fields, RecordForm::DIRECTION)?;
    let recording = RecordingPolicy {
        mode: if standby { RecordMode::Standby } else { RecordMode::On },
        choice: RecordChoice { layers, direction, ..RecordChoice::default() },
        tcp_interval: from.read_or(&fields, RecordForm::TCP_INTERVAL, usual.tcp_interval)?,
        max: from.read_or(&fields, RecordForm::MAX, usual.max)?,
        rotate: from.read_or(&fields, RecordForm::ROTATE, usual.rotate)?,
        keep: from.read(&fields, RecordForm::KEEP)?.and_then(|keep| u32::try_from(keep).ok()),
        anonymous: from.read_or(&fields, RecordForm::ANONYMOUS, false)?,
        on_loss: from.read_or(&fields, RecordForm::ON_LOSS, OnRecordLoss::Report)?,
    };
    if let Err((key, why)) = recording.check_bounds() {
        let place = fields.find(key).map_or(fields.place, YamlMapEntry::wrong);
        from.mistake(place, format!("{key}: {why}"));
        return None;
    }
    Some(RecordDraft { recording, nodes, flows })
}
