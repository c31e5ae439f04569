//! What was recorded, when the run is over.

use windtunnel_model::record::kind::RecordSource;
use windtunnel_record::drain::RecordDrainStatus;
use windtunnel_record::notification::CallRecorder;
use windtunnel_trace::report;

use super::EvidenceRecorder;

impl EvidenceRecorder {
    /// Writes what there is, and says what that was; `None` if nothing was ever recorded.
    pub(crate) fn finish(self) -> Option<report::RecordingReport> {
        // What is in its ring is still read.
        let EvidenceRecorder {
            plan,
            drain,
            kernel: _kernel,
            failure,
            mut unavailable,
            recording,
            overhead_ps,
            ..
        } = self;
        // Its programs have ended with their nodes.
        let shown = self.supervision.map(CallRecorder::finish).unwrap_or_default();
        let mut known = self.unseen;
        known.extend(shown.unseen.iter().map(|(node, program, why)| {
            let node = plan.nodes.get(node.index()).map_or("?", |node| node.name.as_str());
            format!("node {node}: {program}: {why}")
        }));
        if let Some(why) = shown.failure {
            known.push(format!("{} calls of static programs: {why}", shown.failed));
        }
        if shown.unseen_more > 0 {
            known.push(format!("{} more programs", shown.unseen_more));
        }
        let status = match (drain, &failure) {
            (Some(drain), _) => drain.finish(),
            (None, Some(_)) => RecordDrainStatus::default(),
            (None, None) => return None,
        };
        if let Some(why) = self.connections.failure() {
            unavailable.insert(RecordSource::Tcp, why);
        }
        let asked = |layer: &RecordSource| recording.choice.layers.has(*layer);
        let named = unavailable.into_iter().filter(|(layer, _)| recording.choice.has_layer(*layer));
        let (missing, unavailable): (Vec<_>, Vec<_>) = named.partition(|(layer, _)| asked(layer));
        let by_name = |layers: Vec<(RecordSource, String)>| {
            layers.into_iter().map(|(layer, why)| (layer.name().to_owned(), why)).collect()
        };
        let unseen = |(node, what): &(u32, String)| {
            let node = plan.nodes.get(*node as usize).map_or("?", |node| node.name.as_str());
            format!("node {node}: {what}")
        };
        Some(report::RecordingReport {
            layers: status.report_layers(),
            missing: by_name(missing),
            unavailable: by_name(unavailable),
            unseen: known.into_iter().chain(status.unseen.iter().map(unseen)).collect(),
            bytes: status.written_bytes,
            files: status.files,
            removed_events: status.removed_events,
            anonymous: recording.anonymous,
            failure: status.failure.or(failure),
            read: status.seen,
            read_ns: status.took_ns,
            overhead_ps,
        })
    }
}
