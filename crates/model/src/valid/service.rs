//! Services and their changes.

use alloc::borrow::ToOwned;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use core::net::IpAddr;

use crate::id::NodeId;
use crate::name;
use crate::plan::{
    FailOver, FlowPinningScope, HealthProbe, HealthProbeDatagram, LoadBalancingPolicy, Plan,
    ReplicaHealthCheck, Service, ServiceChange, ServicePort, ServiceUpdate, TransportProtocol,
    TunnelEncapsulation,
};
use crate::time::Span;

use crate::message::{PlanValidationError, ensure, shown};

pub(super) fn validate(plan: &Plan) -> Result<(), PlanValidationError> {
    let count = plan.services.len();
    ensure(count <= Plan::SERVICES_MAX, || {
        format!("{count} services are more than {}", Plan::SERVICES_MAX)
    })?;
    let mut rows = BTreeSet::new();
    let mut origins: BTreeMap<IpAddr, Option<NodeId>> = BTreeMap::new();
    for service in &plan.services {
        let shown = shown(&service.name);
        name::check_label(&service.name, name::LABEL_LETTERS_MAX).map_err(|error| {
            PlanValidationError::new(format!("`{shown}` cannot name a service: {error}"))
        })?;
        validate_one(plan, service)
            .map_err(|error| PlanValidationError::new(format!("service `{shown}`: {error}")))?;
        for address in service.addresses() {
            let free = service.ports.iter().all(|port| rows.insert((address, *port)));
            let known = origins.insert(address, service.origin);
            ensure(free && known.is_none_or(|origin| origin == service.origin), || {
                format!("service `{shown}` has what another one has")
            })?;
        }
    }
    ensure(rows.len() <= Plan::SERVICE_ROWS_MAX, || {
        format!("{} addresses and ports are more than {}", rows.len(), Plan::SERVICE_ROWS_MAX)
    })
}

fn validate_one(plan: &Plan, service: &Service) -> Result<(), PlanValidationError> {
    ensure(service.addresses().next().is_some(), || "it has no address".to_owned())?;
    let ports = service.ports.len();
    ensure((1..=Service::PORTS_MAX).contains(&ports), || format!("it has {ports} ports"))?;
    ensure(service.origin.is_none_or(|origin| plan.has_node(origin)), || {
        "its origin is not there".to_owned()
    })?;
    addresses_are_free(plan, service)?;
    replicas(plan, service)?;
    let redirects = !service.at.is_empty() && service.at.is_sorted_by(|a, b| a < b);
    ensure(redirects && service.at.iter().all(|it| it.index() < plan.routers.len()), || {
        "its routers are not there, or not in order".to_owned()
    })?;
    let only_v4 = service.encapsulation != TunnelEncapsulation::Fragment || service.v6.is_none();
    ensure(only_v4, || "only IPv4 packets are fragmented by routers".to_owned())?;
    service.health.as_ref().map_or(Ok(()), |health| probe(service, health))?;
    let is_apart = service.pins == FlowPinningScope::PerRouter;
    let has_one_account = service.fail_over == FailOver::Transparent
        || service.policy == LoadBalancingPolicy::LeastConnections;
    ensure(!(is_apart && has_one_account), || "its routers cannot be apart".to_owned())?;
    let idle = [service.tcp_idle, service.udp_idle];
    ensure(
        idle.into_iter().all(|it| (Span::from_millis(1)..=Service::IDLE_MAX).contains(&it)),
        || "its flows are forgotten too soon, or too late".to_owned(),
    )
}

/// An address of an interface is the origin's, and none is a router's.
fn addresses_are_free(plan: &Plan, service: &Service) -> Result<(), PlanValidationError> {
    let of_routers = plan.routers.iter().flat_map(|router| &router.interfaces);
    let mut of_routers =
        of_routers.flat_map(|it| it.v4.map(IpAddr::V4).into_iter().chain(it.v6.map(IpAddr::V6)));
    let others = plan.ports().filter(|(owner, _)| service.origin != Some(*owner));
    let mut of_others = others.flat_map(|(_, interface)| interface.addresses());
    let taken =
        of_routers.any(|it| service.has_address(it)) || of_others.any(|it| service.has_address(it));
    ensure(!taken, || "its address is that of something else".to_owned())
}

fn replicas(plan: &Plan, service: &Service) -> Result<(), PlanValidationError> {
    let count = service.replicas.len();
    ensure((1..=Service::REPLICAS_MAX).contains(&count), || format!("it has {count} replicas"))?;
    let nodes: BTreeSet<NodeId> = service.replicas.iter().map(|it| it.node).collect();
    ensure(nodes.len() == count, || "a node is a replica twice".to_owned())?;
    for replica in &service.replicas {
        can_be_replica(plan, service, replica.node)?;
        weight(replica.weight)?;
    }
    Ok(())
}

/// A replica is a node with an address of each family that the service has.
fn can_be_replica(plan: &Plan, service: &Service, node: NodeId) -> Result<(), PlanValidationError> {
    let first = plan.nodes.get(node.index()).and_then(|node| node.interfaces.first());
    let fits = first.is_some_and(|first| {
        (service.v4.is_none() || first.v4.is_some()) && (service.v6.is_none() || first.v6.is_some())
    });
    ensure(fits, || "a replica has no address of its family".to_owned())
}

fn weight(weight: u32) -> Result<(), PlanValidationError> {
    ensure(weight <= Service::WEIGHT_MAX, || format!("a replica weighs {weight}"))
}

fn probe(service: &Service, health: &ReplicaHealthCheck) -> Result<(), PlanValidationError> {
    let in_time = !health.every.is_zero() && !health.timeout.is_zero();
    ensure(in_time, || "its replicas are probed in no time".to_owned())?;
    let counts = [health.rise, health.fall];
    ensure(
        counts.iter().all(|count| (1..=ReplicaHealthCheck::STREAK_MAX).contains(count)),
        || "its replicas change after no probe, or after too many".to_owned(),
    )?;
    let has_tcp = service.ports.iter().any(|port| port.transport == TransportProtocol::Tcp);
    let is_text = |text: &str| !text.contains(char::is_control);
    let fits = match &health.probe {
        HealthProbe::Tcp => has_tcp,
        HealthProbe::Http(path) => has_tcp && path.starts_with('/') && is_text(path),
        HealthProbe::Udp(HealthProbeDatagram { send, expect }) => {
            let has_udp = service.ports.iter().any(|port| port.transport == TransportProtocol::Udp);
            has_udp
                && [send, expect].iter().all(|bytes| bytes.len() <= HealthProbeDatagram::BYTES_MAX)
        }
        HealthProbe::Command(words) => {
            words.first().is_some_and(|word| !word.is_empty())
                && words.iter().all(|word| !word.contains('\0'))
        }
    };
    ensure(fits, || "its replicas cannot be probed so".to_owned())
}

impl Plan {
    /// Whether a change fits the plan: the service has what it names.
    ///
    /// # Errors
    /// What does not fit.
    pub fn validate_service_change(
        &self,
        change: &ServiceChange,
    ) -> Result<(), PlanValidationError> {
        let service = self.services.get(change.service.index());
        let Some(service) = service else {
            return Err(PlanValidationError::new("a service changes that is not there"));
        };
        let node = change.update.replica();
        ensure(self.has_node(node), || "a replica changes that is not there".to_owned())?;
        let has = |port: ServicePort| {
            ensure(service.ports.contains(&port), || {
                format!("service `{}` has no port {port}", service.name)
            })
        };
        match change.update {
            ServiceUpdate::Registered { port, .. } | ServiceUpdate::Withdrawn { port, .. } => {
                has(port)
            }
            ServiceUpdate::Weight { weight: share, .. } => weight(share),
            ServiceUpdate::Add { .. } => can_be_replica(self, service, node),
            ServiceUpdate::Lost { .. }
            | ServiceUpdate::Health { .. }
            | ServiceUpdate::Drain { .. }
            | ServiceUpdate::Remove { .. } => Ok(()),
        }
    }
}
