//! Services: their names worked out, and what events do with them.

mod check;
mod expect;
mod names;
mod transparent;

use windtunnel_model::plan::{
    EventAction, FailOver, FlowPinningScope, Hash, HealthProbe, LoadBalancingPolicy, NetworkModel,
    Ping, Plan, Replica, ReplicaHealthCheck, Service, ServiceChange, ServiceUpdate,
    TransportProtocol,
};
use windtunnel_model::{NodeId, RouterId};

use super::directory::Directory;
use super::scene::Scene;
use crate::decode::{
    ReplicaWeightDraft, RouterDraft, ScenarioDraft, ServiceDraft, ServiceEventDraft,
};
use crate::error::Diagnostics;
use crate::position::LocatedValue;
use crate::text::shorten;

pub(super) use check::check;
pub(super) use expect::expect;
pub(super) use names::added;
use names::{named, not_a_replica};

/// The services of the file, with all but the addresses that are not given.
pub(super) fn resolve(
    found: &mut Diagnostics,
    draft: &ScenarioDraft,
    directory: &Directory,
    plan: &mut Plan,
) {
    let (services, routers) = (draft.services.iter(), &draft.routers);
    plan.services = services.map(|it| service(found, it, directory, plan, routers)).collect();
    let whole = draft;
    for (draft, service) in whole.services.iter().zip(&mut plan.services) {
        if let Some(policy) = &draft.policy {
            weigh(found, directory, &policy.value.weights, service, &plan.nodes);
            let is_weighted = service.policy == LoadBalancingPolicy::Weighted;
            if is_weighted && service.replicas.iter().all(|replica| replica.weight == 0) {
                let message = format!("policy: all replicas of `{}` weigh 0", service.name);
                let hint = "none would get anything: give one of them a weight of 1 or more";
                found.mistake_with_hint(policy.place, message, hint);
            }
        }
        transparent::check(found, whole, draft, service);
        directors(found, draft, service);
        if let Some(LocatedValue { value: Ping::Router, place }) = draft.ping
            && whole.model.settled != NetworkModel::Hops
        {
            let hint = "use `ping: replica`, or the model of hops on one machine";
            let message = "ping: with this network model no router answers for a service";
            found.mistake_with_hint(place, message, hint);
        }
    }
    if draft.machines.several {
        let policies = draft.services.iter().filter_map(|service| service.policy.as_ref());
        for policy in policies.filter(|it| it.value.policy == LoadBalancingPolicy::LeastConnections)
        {
            let message = "policy: `least-connections` knows the connections of one machine only";
            let hint = "over several machines use another policy, such as `weighted`";
            found.mistake_with_hint(policy.place, message, hint);
        }
    }
}

/// Refuses a hash that nothing uses, and routers that are apart where they cannot be.
fn directors(found: &mut Diagnostics, draft: &ServiceDraft, service: &Service) {
    if let Some(hash) = draft.hash.as_ref().filter(|_| service.policy != LoadBalancingPolicy::Hash)
    {
        let message = format!("hash: the policy `{}` uses none", service.policy.name());
        found.mistake_with_hint(hash.place, message, "write `policy: hash`, or leave `hash` out");
    }
    let Some(LocatedValue { value: FlowPinningScope::PerRouter, place }) = draft.pins else {
        return;
    };
    let reason = match (service.fail_over, service.policy) {
        (FailOver::Transparent, _) => Some((
            "with `fail-over: transparent` one router keeps each connection, whatever routes do",
            "use `fail-over: new`, or leave `pins` out",
        )),
        (_, LoadBalancingPolicy::LeastConnections) => Some((
            "`least-connections` counts the connections of all routers together",
            "use another policy, such as `round-robin`, or leave `pins` out",
        )),
        _ => None,
    };
    if let Some((reason, hint)) = reason {
        found.mistake_with_hint(place, format!("pins: `per-router`: {reason}"), hint);
    }
}

fn service(
    found: &mut Diagnostics,
    draft: &ServiceDraft,
    directory: &Directory,
    plan: &Plan,
    routers_of: &[RouterDraft],
) -> Service {
    let given = |v4: bool| {
        let mut addresses = draft.addresses.iter().map(|address| address.value);
        addresses.find(|address| address.is_ipv4() == v4)
    };
    let (mut v4, mut v6) = (None, None);
    if let Some(std::net::IpAddr::V4(address)) = given(true) {
        v4 = Some(address);
    }
    if let Some(std::net::IpAddr::V6(address)) = given(false) {
        v6 = Some(address);
    }
    if let Some(LocatedValue { value: health, place }) = &draft.health
        && let Some(needed) = needed(health)
        && draft.ports.iter().all(|port| port.value.transport != needed)
    {
        let name = needed.name().to_ascii_uppercase();
        found.mistake(*place, format!("health: this service has no {name} port to probe"));
    }
    Service {
        name: draft.name.value.clone(),
        v4,
        v6,
        ports: draft.ports.iter().map(|port| port.value).collect(),
        origin: draft.origin.as_ref().and_then(|origin| directory.node(found, origin)),
        replicas: replicas(found, draft, directory),
        at: routers(found, draft, directory, plan, routers_of),
        policy: match (&draft.policy, &draft.hash) {
            (Some(policy), _) => policy.value.policy,
            (None, Some(_)) => LoadBalancingPolicy::Hash,
            (None, None) => LoadBalancingPolicy::default(),
        },
        hash: draft.hash.as_ref().map_or(Hash::default(), |hash| hash.value),
        pins: draft.pins.as_ref().map_or(FlowPinningScope::default(), |pins| pins.value),
        health: draft.health.as_ref().map(|health| health.value.clone()),
        fail_over: draft.fail_over.as_ref().map_or(FailOver::New, |it| it.value),
        on_loss: draft.on_loss.unwrap_or_default(),
        encapsulation: draft.encapsulation,
        ping: draft.ping.as_ref().map(|ping| ping.value),
        tcp_idle: draft.tcp_idle,
        udp_idle: draft.udp_idle,
    }
}

/// Of which protocol a port is probed.
fn needed(health: &ReplicaHealthCheck) -> Option<TransportProtocol> {
    match health.probe {
        HealthProbe::Tcp | HealthProbe::Http(_) => Some(TransportProtocol::Tcp),
        HealthProbe::Udp(_) => Some(TransportProtocol::Udp),
        HealthProbe::Command(_) => None,
    }
}

fn replicas(found: &mut Diagnostics, draft: &ServiceDraft, directory: &Directory) -> Vec<Replica> {
    let mut replicas: Vec<Replica> = Vec::new();
    for name in &draft.replicas {
        for node in directory.nodes(found, name).unwrap_or_default() {
            if replicas.iter().any(|replica| replica.node == node) {
                let message = format!("`{}` is a replica twice", shorten(&name.value));
                found.mistake(name.place, message);
                break;
            }
            replicas.push(Replica { node, weight: 1 });
        }
    }
    let (count, most) = (replicas.len(), Service::REPLICAS_MAX);
    if draft.replicas.is_empty() || count > most {
        let message = match count {
            0 => format!("`{}` has no replicas", draft.name.value),
            _ => format!("`{}` has {count} replicas, more than {most}", draft.name.value),
        };
        found.mistake(draft.name.place, message);
    }
    replicas
}

fn routers(
    found: &mut Diagnostics,
    draft: &ServiceDraft,
    directory: &Directory,
    plan: &Plan,
    routers: &[RouterDraft],
) -> Vec<RouterId> {
    let name = &draft.name;
    let Some(at) = &draft.at else {
        if plan.routers.is_empty() {
            let message = format!("there is no router that redirects packets for `{}`", name.value);
            found.mistake_with_hint(name.place, message, "write `routers: [r]`, and links to it");
        }
        let plain = |(_, router): &(usize, &RouterDraft)| !router.is_middlebox();
        let plain = routers.iter().enumerate().filter(plain);
        let plain: Vec<RouterId> = plain.map(|(id, _)| RouterId::from_index(id)).collect();
        if plain.is_empty() && !routers.is_empty() {
            let message = format!("no router redirects packets for `{}`", name.value);
            let hint = "those with `nat` or `firewall` do not: add another router";
            found.mistake_with_hint(name.place, message, hint);
        }
        return plain;
    };
    if at.is_empty() {
        let message = format!("at: no router redirects packets for `{}`", name.value);
        found.mistake(name.place, message);
    }
    let mut at_routers = Vec::new();
    for name in at {
        let Some(id) = directory.router(found, name) else { continue };
        if routers.get(id.index()).is_some_and(RouterDraft::is_middlebox) {
            let message = format!("at: `{}` has a NAT or a firewall", name.value);
            let hint = "such a router does not redirect: name another one";
            found.mistake_with_hint(name.place, message, hint);
            continue;
        }
        at_routers.push(id);
    }
    at_routers.sort_unstable();
    at_routers.dedup();
    at_routers
}

/// Gives replicas their weights.
fn weigh(
    found: &mut Diagnostics,
    directory: &Directory,
    weights: &[ReplicaWeightDraft],
    service: &mut Service,
    nodes: &[windtunnel_model::plan::Node],
) {
    for ReplicaWeightDraft { replica: name, weight } in weights {
        let named = directory.nodes(found, name).unwrap_or_default();
        for node in named {
            match service.replicas.iter_mut().find(|replica| replica.node == node) {
                Some(replica) => replica.weight = *weight,
                None => {
                    not_a_replica(found, name, service, nodes);
                    break;
                }
            }
        }
    }
}

/// What an event does with a service.
pub(super) fn change(
    found: &mut Diagnostics,
    event: &ServiceEventDraft,
    scene: &Scene<'_>,
) -> Option<EventAction> {
    let plan = scene.plan;
    let id = named(found, &event.service, plan)?;
    let service = &plan.services[id.index()];
    let mut changes = Vec::new();
    let mut note = |update| changes.push(ServiceChange { service: id, update });
    let ways = (!event.add.is_empty()).then(|| check::RouterReachability::of(plan));
    for (name, ways) in event.add.iter().zip(ways.iter().cycle()) {
        for replica in scene.directory.nodes(found, name)? {
            check::can_be_replica(found, plan, ways, service, name, replica)?;
            note(ServiceUpdate::Add { replica });
        }
    }
    for name in &event.remove {
        for replica in replicas_named(found, scene, service, name)? {
            note(ServiceUpdate::Remove { replica });
        }
    }
    for (names, drain) in [(&event.drain, true), (&event.undrain, false)] {
        for name in names {
            for replica in replicas_named(found, scene, service, name)? {
                note(ServiceUpdate::Drain { replica, drain });
            }
        }
    }
    for ReplicaWeightDraft { replica: name, weight } in &event.weight {
        if service.policy != LoadBalancingPolicy::Weighted {
            let message = format!("`{}` has no weights: its policy is another one", service.name);
            found.mistake(name.place, message);
            return None;
        }
        for replica in replicas_named(found, scene, service, name)? {
            note(ServiceUpdate::Weight { replica, weight: *weight });
        }
    }
    Some(EventAction::Service(changes))
}

/// The replicas of a name; those that events add are some, too.
fn replicas_named(
    found: &mut Diagnostics,
    scene: &Scene<'_>,
    service: &Service,
    name: &LocatedValue<String>,
) -> Option<Vec<NodeId>> {
    let nodes = scene.directory.nodes(found, name)?;
    let known = |node: &NodeId| {
        service.replica(*node).is_some() || scene.added.contains(&(service.name.clone(), *node))
    };
    // In a live run others may have been added.
    if scene.absent.is_some() || nodes.iter().all(known) {
        return Some(nodes);
    }
    not_a_replica(found, name, service, &scene.plan.nodes);
    None
}
