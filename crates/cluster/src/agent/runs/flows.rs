//! Flows on their way from a part to the mesh.

use windtunnel_control::part::{FlowAnnouncement, StopWhy, ToPart};
use windtunnel_mesh::{Mesh, RunId};

use super::super::now;
use super::run::AgentRunPart;

/// Announces flows here to the mesh.
pub(super) fn announce(run: &AgentRunPart, changes: &[FlowAnnouncement], mesh: &mut Mesh) {
    let id = RunId(run.setup.run);
    for FlowAnnouncement { change, audience, at_once } in changes {
        let agent = |member: &u16| run.agents.get(usize::from(*member)).copied();
        let audience = match audience {
            Some(members) => {
                let at_once = at_once.as_ref().unwrap_or(members).iter().filter_map(agent);
                mesh.audience_with_others(id, at_once, members.iter().filter_map(agent))
            }
            None => mesh.audience(id, run.agents.iter().copied()),
        };
        // The part may be over for the mesh already.
        let Ok(audience) = audience else { return };
        let done = match change.flow {
            Some(flow) => mesh.set_flow(now(), id, change.key, flow, &audience),
            None => mesh.end_flow(now(), id, change.key).map(|_| ()),
        };
        if let Err(error) = done {
            run.order(ToPart::Stop(StopWhy::Failed(error.to_string())));
        }
    }
}
