//! Flows on their way between a part and the mesh.

use windtunnel_control::part::{FlowChange, FlowTerms, StopWhy, ToPart};
use windtunnel_mesh::{Flow, FlowKey, Mesh, RunId};
use windtunnel_model::{NodeId, Span, Time};

use super::super::now;
use super::run::Run;

/// Tells the mesh of flows here.
pub(super) fn announce(run: &Run, changes: &[FlowChange], mesh: &mut Mesh) {
    let id = RunId(run.setup.run);
    for change in changes {
        let agent = |member: &u16| run.agents.get(usize::from(*member)).copied();
        let audience = match &change.audience {
            Some(members) => {
                let at_once = change.at_once.as_ref().unwrap_or(members).iter().filter_map(agent);
                mesh.audience_with_others(id, at_once, members.iter().filter_map(agent))
            }
            None => mesh.audience(id, run.agents.iter().copied()),
        };
        // The part may be over for the mesh already.
        let Ok(audience) = audience else { return };
        let key = FlowKey {
            source: NodeId(change.source),
            destination: NodeId(change.destination),
            number: change.number,
        };
        let done = match change.terms {
            Some(FlowTerms { rtt_ns, demand, window, since_ns }) => {
                let (rtt, since) = (Span::from_nanos(rtt_ns), Time::from_nanos(since_ns));
                let flow = Flow { rtt, demand, window, since };
                mesh.set_flow(now(), id, key, flow, &audience)
            }
            None => mesh.end_flow(now(), id, key).map(|_| ()),
        };
        if let Err(error) = done {
            run.order(ToPart::Stop(StopWhy::Failed(error.to_string())));
        }
    }
}

/// What the mesh tells of a flow elsewhere.
pub(super) fn change_of(change: &windtunnel_mesh::FlowChange) -> FlowChange {
    let terms = |flow: Flow| FlowTerms {
        rtt_ns: flow.rtt.as_nanos(),
        demand: flow.demand,
        window: flow.window,
        since_ns: flow.since.as_nanos(),
    };
    FlowChange {
        source: change.key.source.0,
        destination: change.key.destination.0,
        number: change.key.number,
        terms: change.flow.map(terms),
        audience: None,
        at_once: None,
    }
}
