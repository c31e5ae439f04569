//! Which nodes and flows are recorded.

use windtunnel_model::Plan;
use windtunnel_model::plan::RecordChoice;

use super::directory::Directory;
use crate::decode::ScenarioDraft;
use crate::error::Diagnostics;

pub(super) fn resolve(
    found: &mut Diagnostics,
    draft: &ScenarioDraft,
    directory: &Directory,
    plan: &mut Plan,
) {
    let record = &draft.record;
    let nodes = record.nodes.iter().filter_map(|name| directory.nodes(found, name));
    let mut nodes: Vec<_> = nodes.flatten().collect();
    nodes.sort_unstable();
    nodes.dedup();
    for pattern in &record.flows {
        let stranger = pattern.value.hosts().find(|host| !plan.has_host(host));
        if let Some(host) = stranger {
            let message = format!("flows: `{host}` is neither a node or group nor an IP address");
            found.mistake(pattern.place, message);
        }
    }
    let flows = record.flows.iter().map(|pattern| pattern.value.clone()).collect();
    let choice = record.recording.choice.clone();
    let choice = RecordChoice { nodes, flows, ..choice };
    plan.record = windtunnel_model::plan::RecordingPolicy { choice, ..record.recording.clone() };
}
