//! What is recorded now, for commands that ask.

use windtunnel_control::{RecordStatus, RecordedLayer};
use windtunnel_model::record::kind::RecordSource;
use windtunnel_model::word::LayerRecordingState;

use super::EvidenceRecorder;

impl EvidenceRecorder {
    /// As it was when the thread has last looked.
    pub(crate) fn status(&self) -> RecordStatus {
        let drain = self.drain.as_ref().map(windtunnel_record::drain::RecordDrain::status);
        let drain = drain.unwrap_or_default();
        let layer = |layer: RecordSource| {
            let known = drain.layers.get(&layer).copied().unwrap_or_default();
            let why = self.unavailable.get(&layer);
            let wanted = self.is_on && self.recording.choice.has_layer(layer);
            let state = match (why, wanted) {
                (Some(_), _) => LayerRecordingState::Unavailable,
                (None, true) => LayerRecordingState::On,
                (None, false) => LayerRecordingState::Off,
            };
            RecordedLayer {
                layer: layer.into(),
                state: state.into(),
                why: why.cloned(),
                events: known.events,
                records: known.records,
                lost: known.lost,
                fill_permille: known.fill_permille,
                fill_max_permille: known.fill_max_permille,
            }
        };
        RecordStatus {
            on: self.is_on,
            layers: RecordSource::ALL.map(layer).to_vec(),
            bytes: drain.written_bytes,
            kept_bytes: drain.kept_bytes,
            files: drain.files,
            removed_events: drain.removed_events,
            read: drain.seen,
            read_ns: drain.took_ns,
            failure: drain.failure.or_else(|| self.failure.clone()),
        }
    }
}
