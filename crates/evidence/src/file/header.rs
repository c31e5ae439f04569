//! What a file says of itself.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use windtunnel_model::record::Kind;
use windtunnel_model::record::kind::RecordSource;

use super::{BYTE_ORDER, FIXED_BYTES, MAGIC, VERSION};
use windtunnel_model::record::BYTES;

/// What records refer to. Keys that this version does not know are ignored.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RecordFileHeader {
    /// What wrote it, and its version.
    pub program: String,
    /// Name of the run; empty outside any.
    pub run: String,
    /// SHA-256 of the plan, in hexadecimal digits; empty outside any run.
    pub plan: String,
    /// The machine whose clock it is, where a run has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub member: Option<String>,
    /// The clock of all times.
    pub clock: String,
    /// When the run began, on that clock.
    pub origin_ns: u64,
    /// The same moment in nanoseconds since 1970 (CLOCK_REALTIME).
    pub origin_unix_ns: u64,
    /// What is to be added to times to compare them with those of the run's first member.
    #[serde(default)]
    pub clock_offset_ns: i64,
    /// The number of this file among those of its member, from 1.
    pub part: u32,
    /// Whether addresses and ports are left out.
    #[serde(default)]
    pub anonymous: bool,
    /// Layers that are recorded.
    pub layers: Vec<String>,
    /// By node number: the name.
    pub nodes: Vec<String>,
    /// By node number: its addresses. Empty where they are left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<Vec<IpAddr>>,
    /// By lane number.
    pub lanes: Vec<LaneName>,
    /// By number: why a packet was dropped.
    pub drop_reasons: Vec<String>,
    /// Every kind that may occur, for readers that do not know it.
    pub kinds: Vec<KindName>,
}

/// A direction of a link.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub struct LaneName {
    pub link: String,
    /// Where it starts: a node, router or LAN.
    pub from: String,
    /// Where it ends.
    pub to: String,
}

/// A kind of records, for readers that do not know it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KindName {
    pub number: u8,
    pub name: String,
    /// What its four arguments are; empty where one has no meaning of its own.
    pub arguments: Vec<String>,
}

/// From → to of a flow's definition, or the reverse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FlowDirection {
    Forward,
    Reverse,
}

impl RecordFileHeader {
    /// A header with all kinds and layers of this version, and nothing else.
    #[must_use]
    pub fn new(program: &str) -> RecordFileHeader {
        let kinds = Kind::ALL.iter().map(|kind| KindName {
            number: *kind as u8,
            name: kind.name().to_owned(),
            arguments: kind.arguments().map(str::to_owned).to_vec(),
        });
        RecordFileHeader {
            program: program.to_owned(),
            clock: "CLOCK_MONOTONIC".to_owned(),
            layers: RecordSource::ALL.map(|layer| layer.name().to_owned()).to_vec(),
            kinds: kinds.collect(),
            part: 1,
            ..RecordFileHeader::default()
        }
    }

    /// As at the begin of a file that is begun at `created_ns`.
    #[must_use]
    pub fn to_bytes(&self, created_ns: u64) -> Vec<u8> {
        let json = serde_json::to_vec(self).unwrap_or_default();
        let bytes = (FIXED_BYTES + json.len()).next_multiple_of(BYTES);
        let mut out = Vec::with_capacity(bytes);
        out.extend(MAGIC);
        let words = [VERSION, BYTE_ORDER, 32, u32::try_from(bytes).unwrap_or(u32::MAX)];
        out.extend(words.into_iter().flat_map(u32::to_le_bytes));
        out.extend(created_ns.to_le_bytes());
        out.extend(json);
        out.resize(bytes, b' ');
        out
    }
}
