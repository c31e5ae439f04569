//! What is recorded of a run as evidence.

mod pattern;

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::id::NodeId;
use crate::message::PlanValidationError;
use crate::quantity::Bytes;
use crate::record::kind::RecordSource;
use crate::time::Span;

pub use pattern::{FlowEnd, FlowPattern, PatternError, PatternProtocol};

/// What is recorded of a run, and how much of the disk it may fill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordingPolicy {
    /// Whether anything is.
    pub mode: RecordMode,
    /// Which events are; changes while the run lives.
    #[serde(default)]
    pub choice: RecordChoice,
    /// From one look at the state of a TCP connection to the next.
    pub tcp_interval: Span,
    /// The most bytes of records on the disk of each machine; events after that are lost.
    pub max: Bytes,
    /// A new file begins when one has so many bytes.
    pub rotate: Bytes,
    /// How many files are kept, the newest; `None`: all, up to `max`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep: Option<u32>,
    /// Whether addresses and ports are left out.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub anonymous: bool,
    /// What lost events do to the run.
    #[serde(default, skip_serializing_if = "OnRecordLoss::is_report")]
    pub on_loss: OnRecordLoss,
}

/// Whether a run is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
pub enum RecordMode {
    /// Nothing is. Calls cannot be recorded later either.
    #[default]
    Off,
    /// Everything is prepared, so that recording can begin at any moment.
    Standby,
    /// From the beginning.
    On,
}

/// Which events are recorded. What is empty excludes nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct RecordChoice {
    #[serde(default, skip_serializing_if = "RecordLayerSet::is_empty")]
    pub layers: RecordLayerSet,
    /// Events of these nodes, and of packets from or to them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<NodeId>,
    /// Events of flows that one of these fits.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flows: Vec<FlowPattern>,
    /// `None`: both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub direction: Option<RecordDirection>,
}

/// A direction of flows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RecordDirection {
    /// From the side that sent first; what a socket sends.
    Forward,
    /// To it; what a socket receives.
    Reverse,
}

/// What is done when events were lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
pub enum OnRecordLoss {
    /// The verdict says so.
    #[default]
    Report,
    /// The run has failed.
    Fail,
}

/// A set of layers, in the order of their numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(try_from = "Vec<String>", into = "Vec<String>")]
pub struct RecordLayerSet(Vec<RecordSource>);

impl Default for RecordingPolicy {
    fn default() -> Self {
        RecordingPolicy {
            mode: RecordMode::Off,
            choice: RecordChoice::default(),
            tcp_interval: Span::from_millis(10),
            max: Bytes(4_000_000_000),
            rotate: Bytes(256_000_000),
            keep: None,
            anonymous: false,
            on_loss: OnRecordLoss::Report,
        }
    }
}

impl RecordingPolicy {
    pub(crate) fn is_default(&self) -> bool {
        *self == RecordingPolicy::default()
    }

    /// Of a mode, and otherwise as usual.
    #[must_use]
    pub fn of(mode: RecordMode) -> Self {
        RecordingPolicy { mode, ..RecordingPolicy::default() }
    }

    /// Whether its numbers make sense.
    ///
    /// # Errors
    /// The key of the file whose number does not, and why.
    pub fn check_bounds(&self) -> Result<(), (&'static str, String)> {
        if self.tcp_interval < TCP_INTERVAL_LEAST {
            return Err(("tcp-interval", format!("must be at least {TCP_INTERVAL_LEAST}")));
        }
        if self.rotate < ROTATE_LEAST {
            return Err(("rotate", format!("must be at least {ROTATE_LEAST}")));
        }
        if self.max < self.rotate.min(ROTATE_LEAST) {
            return Err(("max", format!("must be at least {ROTATE_LEAST}")));
        }
        if self.keep == Some(0) {
            return Err(("keep", "must be at least 1".to_owned()));
        }
        Ok(())
    }
}

impl RecordChoice {
    /// Whether events of a layer are wanted.
    #[must_use]
    pub fn has_layer(&self, layer: RecordSource) -> bool {
        self.layers.is_empty() || self.layers.has(layer)
    }

    /// Whether events of a node are wanted.
    #[must_use]
    pub fn has_node(&self, node: NodeId) -> bool {
        self.nodes.is_empty() || self.nodes.contains(&node)
    }
}

impl OnRecordLoss {
    fn is_report(&self) -> bool {
        *self == OnRecordLoss::Report
    }
}

impl RecordLayerSet {
    /// A set.
    #[must_use]
    pub fn of(mut layers: Vec<RecordSource>) -> Self {
        layers.sort_unstable();
        layers.dedup();
        RecordLayerSet(layers)
    }

    /// Whether none is in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether one is in it.
    #[must_use]
    pub fn has(&self, layer: RecordSource) -> bool {
        self.0.contains(&layer)
    }

    /// Those in it.
    pub fn iter(&self) -> impl Iterator<Item = RecordSource> + '_ {
        self.0.iter().copied()
    }
}

impl TryFrom<Vec<String>> for RecordLayerSet {
    type Error = PlanValidationError;

    fn try_from(names: Vec<String>) -> Result<Self, PlanValidationError> {
        let layer = |name: &String| {
            RecordSource::from_name(name)
                .ok_or_else(|| PlanValidationError::new(format!("`{name}` is not a layer")))
        };
        names.iter().map(layer).collect::<Result<Vec<_>, _>>().map(RecordLayerSet::of)
    }
}

impl From<RecordLayerSet> for Vec<String> {
    fn from(layers: RecordLayerSet) -> Self {
        layers.iter().map(|layer| layer.name().to_owned()).collect()
    }
}

/// A look at the sockets of a node takes about a tenth of it.
const TCP_INTERVAL_LEAST: Span = Span::from_millis(1);
/// A file of records has a header and repeats the definitions of flows.
const ROTATE_LEAST: Bytes = Bytes(64_000);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_recorded_is_the_same_after_it_was_a_text() {
        let recording = RecordingPolicy {
            mode: RecordMode::On,
            choice: RecordChoice {
                layers: RecordLayerSet::of(
                    [RecordSource::Tcp, RecordSource::Engine, RecordSource::Tcp].into(),
                ),
                nodes: [NodeId(3)].into(),
                flows: ["tcp web:80".parse().unwrap()].into(),
                direction: Some(RecordDirection::Reverse),
            },
            keep: Some(3),
            anonymous: true,
            ..RecordingPolicy::default()
        };
        let text = serde_json::to_string(&recording).unwrap();
        assert!(text.contains(r#""layers":["engine","tcp"]"#), "{text}");
        assert_eq!(serde_json::from_str::<RecordingPolicy>(&text).unwrap(), recording);
    }

    #[test]
    fn an_empty_choice_excludes_nothing() {
        let choice = RecordChoice::default();
        assert!(RecordSource::ALL.iter().all(|layer| choice.has_layer(*layer)));
        assert!(choice.has_node(NodeId(7)));
        let calls =
            RecordChoice { layers: RecordLayerSet::of([RecordSource::Calls].into()), ..choice };
        assert!(calls.has_layer(RecordSource::Calls) && !calls.has_layer(RecordSource::Engine));
    }
}
