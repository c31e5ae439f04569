//! What was recorded of a run as evidence.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The records of a run, in its folder `records`. Of each layer, events are records and lost
/// together.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RecordingReport {
    /// By the layer's name.
    pub layers: BTreeMap<String, RecordLayer>,
    /// Layers that were asked for and are missing, with the reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub missing: BTreeMap<String, String>,
    /// Layers that would have been recorded if this machine could, with the reason why not.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unavailable: BTreeMap<String, String>,
    /// Programs and connections of which the records of calls know nothing, although they were
    /// asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unseen: Vec<String>,
    /// Bytes that were written.
    pub bytes: u64,
    /// Files that were begun.
    pub files: u32,
    /// Events in files that were removed, because only the newest are kept.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub removed_events: u64,
    /// Whether addresses and ports are left out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub anonymous: bool,
    /// Why records could not be written at some time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Records that were read from their sources.
    pub read: u64,
    /// Processor time for reading and writing them, in nanoseconds.
    pub read_ns: u64,
    /// What `--measure-overhead` has measured: by source, picoseconds that a record costs where it
    /// happens.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub overhead_ps: BTreeMap<String, u64>,
}

/// What became of the events of a layer.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RecordLayer {
    pub events: u64,
    pub records: u64,
    pub lost: u64,
    /// Of these: lost where the source had no room.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub lost_at_source: u64,
    /// The most that a source had waiting, in thousandths of its room.
    pub fill_max_permille: u32,
}

impl RecordingReport {
    /// Adds the records of another machine of the same run.
    pub fn add(&mut self, other: &RecordingReport) {
        for (name, theirs) in &other.layers {
            let layer = self.layers.entry(name.clone()).or_default();
            layer.events += theirs.events;
            layer.records += theirs.records;
            layer.lost += theirs.lost;
            layer.lost_at_source += theirs.lost_at_source;
            layer.fill_max_permille = layer.fill_max_permille.max(theirs.fill_max_permille);
        }
        self.missing.extend(other.missing.clone());
        self.unavailable.extend(other.unavailable.clone());
        self.unseen.extend(other.unseen.iter().cloned());
        self.bytes += other.bytes;
        self.files += other.files;
        self.removed_events += other.removed_events;
        self.anonymous |= other.anonymous;
        self.failure = self.failure.take().or_else(|| other.failure.clone());
        self.read += other.read;
        self.read_ns += other.read_ns;
        for (source, ps) in &other.overhead_ps {
            let most = self.overhead_ps.entry(source.clone()).or_default();
            *most = (*most).max(*ps);
        }
    }

    /// Events of all layers.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.layers.values().map(|layer| layer.events).sum()
    }

    /// Events that are not in the files.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.layers.values().map(|layer| layer.lost).sum()
    }

    /// Why the evidence is incomplete, a sentence each.
    #[must_use]
    pub fn incomplete(&self) -> Vec<String> {
        let lost = self.layers.iter().filter(|(_, layer)| layer.lost > 0);
        let lost = lost.map(|(name, layer)| {
            let (lost, events) = (layer.lost, layer.events);
            let why = match (layer.lost_at_source == lost, &self.failure) {
                (false, Some(failure)) => failure.clone(),
                _ => "they came faster than they were read".to_owned(),
            };
            format!("{lost} of {events} events of layer {name} are lost: {why}")
        });
        let missing = self.missing.iter();
        let missing = missing.map(|(layer, why)| format!("layer {layer} is missing: {why}"));
        let nothing = self.failure.iter().filter(|_| self.files == 0);
        let nothing = nothing.map(|why| format!("nothing was recorded: {why}"));
        lost.chain(missing).chain(nothing).collect()
    }

    /// What was recorded, in one line.
    #[must_use]
    pub fn summary(&self) -> String {
        let layers = self.layers.iter().filter(|(_, layer)| layer.events > 0);
        let layers: Vec<String> =
            layers.map(|(name, layer)| format!("{name} {}", layer.records)).collect();
        let layers = if layers.is_empty() { "none".to_owned() } else { layers.join(", ") };
        let cost = self.read_ns.checked_div(self.read).unwrap_or(0);
        format!(
            "{layers}; {} lost, {} bytes in {} files, {cost}ns a record to read and write",
            self.lost(),
            self.bytes,
            self.files
        )
    }

    /// What records were measured to cost, in one line; empty if that was not wanted.
    #[must_use]
    pub fn overhead(&self) -> String {
        let cost =
            |(what, ps): (&String, &u64)| format!("{what} {}.{}ns", ps / 1000, ps / 100 % 10);
        self.overhead_ps.iter().map(cost).collect::<Vec<_>>().join(", ")
    }
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}
