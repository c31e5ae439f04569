//! What the drain has done.

use std::collections::BTreeMap;

use windtunnel_model::record::kind::RecordSource;
use windtunnel_trace::report::RecordLayer;

/// What was read and written so far. Of each layer, `events` is `records` and `lost` together.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RecordDrainStatus {
    /// What became of the events of each layer.
    pub layers: BTreeMap<RecordSource, LayerStatus>,
    /// Bytes of all files, also of those that were removed.
    pub written_bytes: u64,
    /// Bytes that lie on the disk.
    pub kept_bytes: u64,
    /// Files that were begun.
    pub files: u32,
    /// Files that were removed, because only the newest are kept.
    pub removed_files: u32,
    /// Events in them.
    pub removed_events: u64,
    /// Records that were taken from sources, also those that nothing asked for.
    pub seen: u64,
    /// Processor time for them, in nanoseconds.
    pub took_ns: u64,
    /// By node, at the end: what is not among its calls.
    pub unseen: Vec<(u32, String)>,
    /// Why records could not be written at some time.
    pub failure: Option<String>,
}

impl RecordDrainStatus {
    /// By layer: what became of its events, as reports have it.
    #[must_use]
    pub fn report_layers(&self) -> BTreeMap<String, RecordLayer> {
        let layers = self.layers.iter().map(|(source, layer)| {
            let layer = RecordLayer {
                events: layer.events,
                records: layer.records,
                lost: layer.lost,
                lost_at_source: layer.lost_at_source,
                fill_max_permille: layer.fill_max_permille,
            };
            (source.name().to_owned(), layer)
        });
        layers.collect()
    }
}

/// What became of the events of a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LayerStatus {
    /// Events that happened and were asked for.
    pub events: u64,
    /// Those that are in files, or were.
    pub records: u64,
    /// Those that are not.
    pub lost: u64,
    /// Of these: lost where the source had no room.
    pub lost_at_source: u64,
    /// The most that a source of it had waiting, in thousandths of its room, lately.
    pub fill_permille: u32,
    /// The same since the beginning.
    pub fill_max_permille: u32,
}

impl RecordDrainStatus {
    /// Events of all layers that are in no file.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.layers.values().map(|layer| layer.lost).sum()
    }

    /// Events of all layers.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.layers.values().map(|layer| layer.events).sum()
    }

    /// Records of all layers.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.layers.values().map(|layer| layer.records).sum()
    }
}
