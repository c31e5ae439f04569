//! What `fail-over: transparent` needs of a service.

use windtunnel_model::plan::{
    FailOver, LoadBalancingPolicy, NetworkModel, Service, TransportProtocol, TunnelEncapsulation,
};

use crate::decode::{ScenarioDraft, ServiceDraft};
use crate::error::Diagnostics;
use crate::position::LocatedValue;

/// Refuses what connections that outlive their server cannot have.
pub(super) fn check(
    found: &mut Diagnostics,
    draft: &ScenarioDraft,
    service: &ServiceDraft,
    settled: &Service,
) {
    let Some(LocatedValue { value: FailOver::Transparent, place }) = &service.fail_over else {
        return;
    };
    let reason = if draft.model.settled != NetworkModel::Hops {
        Some(("needs the model of hops, on one machine", "use `fail-over: new`"))
    } else if settled.replicas.len() == 1 {
        Some(("needs two replicas or more", "name another one, or use `fail-over: new`"))
    } else if settled.ports.iter().all(|port| port.transport != TransportProtocol::Tcp) {
        Some(("is for TCP, and this service has no TCP port", "use `fail-over: new`"))
    } else if settled.policy == LoadBalancingPolicy::LeastConnections {
        Some((
            "gives each connection to all replicas, so that none has fewer (`least-connections`)",
            "use another policy, such as `nearest`: it says whose output the client gets",
        ))
    } else if matches!(
        settled.policy,
        LoadBalancingPolicy::RoundRobin | LoadBalancingPolicy::Random
    ) {
        Some((
            "gives each connection to all replicas, so that there are no turns and no draws",
            "use another policy, such as `hash`: it says whose output the client gets",
        ))
    } else if settled.encapsulation == TunnelEncapsulation::Fragment {
        Some(("takes no fragments (`encapsulation: fragment`)", "leave `encapsulation` out"))
    } else {
        None
    };
    if let Some((reason, hint)) = reason {
        found.mistake_with_hint(*place, format!("fail-over: `transparent` {reason}"), hint);
    }
}
