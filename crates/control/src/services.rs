//! What services of a live run do.

use serde::{Deserialize, Serialize};
use windtunnel_model::Plan;
use windtunnel_model::plan::{FailOver, LoadBalancingPolicy, Service};
use windtunnel_model::valid::{PlanValidationError, Validate, ensure, ensure_short};
use windtunnel_model::word::{ReplicaAvailability, ServiceFlowState, StateWord};

use crate::valid::{ensure_label, is_word};

/// The services of a live run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ServiceList {
    /// Name of the experiment.
    pub name: String,
    /// Time since the run began, in nanoseconds.
    pub elapsed_ns: u64,
    /// Connections and flows that are known, over all services; of a run over several machines, of
    /// all of them.
    pub pins: u64,
    /// How many there may be, on each machine.
    pub pins_max: u64,
    pub services: Vec<ServiceStatus>,
}

/// A service.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ServiceStatus {
    pub service: String,
    pub addresses: Vec<String>,
    /// As in `80/tcp`.
    pub ports: Vec<String>,
    /// The node whose address it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
    pub policy: StateWord<LoadBalancingPolicy>,
    pub fail_over: StateWord<FailOver>,
    /// Routers that redirect.
    pub at: Vec<String>,
    pub replicas: Vec<ReplicaStatusMessage>,
    /// Packets that no replica got: they went to the origin, or nowhere.
    pub unserved_packets: u64,
    /// Connections that were seen first in their middle.
    pub picked_up: u64,
    /// Connections and flows that a router gave another replica than the router before it.
    #[serde(default)]
    pub moved_flows: u64,
    /// Packets of connections whose replica is lost; they were dropped.
    pub lost_packets: u64,
    /// Resets that clients were sent because of that.
    pub resets: u64,
    /// SYN-ACKs of replicas whose MSS was lowered.
    pub clamped: u64,
    /// Flows that were forgotten because there were too many.
    pub evicted: u64,
    /// Flows that were forgotten after their time.
    pub expired: u64,
    /// Where each router redirects what is new, if that does not depend on the flow; only if one
    /// service is asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub table: Vec<TableRow>,
    /// How many more rows the table has.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub table_left_out: u64,
    /// Connections and flows that live, a thousand at most; likewise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flows: Vec<ServiceFlow>,
}

/// A replica.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ReplicaStatusMessage {
    /// Its node.
    pub replica: String,
    pub state: StateWord<ReplicaAvailability>,
    /// Ports on which it is registered.
    pub ports: Vec<String>,
    pub weight: u32,
    /// When it was last registered, in nanoseconds after the run began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registered_ns: Option<u64>,
    /// When it was last withdrawn or lost, likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub withdrawn_ns: Option<u64>,
    /// TCP connections that were given to it.
    pub connections: u64,
    /// UDP flows that were given to it.
    pub flows: u64,
    /// Of the connections, those that live.
    pub live_connections: u64,
    /// Of the flows, those that live.
    pub live_flows: u64,
    /// Packets (MTU segments) that were redirected to it.
    pub packets: u64,
    /// Bytes of these, as IP packets without the tunnel's header.
    pub bytes: u64,
}

/// Where a router redirects what is new.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TableRow {
    pub router: String,
    pub address: String,
    /// As in `80/tcp`.
    pub port: String,
    /// The replica's node; absent: nowhere, so that it goes to the origin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replica: Option<String>,
}

/// A connection or flow.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ServiceFlow {
    pub client: String,
    /// The service's address and port.
    pub service: String,
    pub replica: String,
    /// `opening`, `open` or `closing`; of UDP, `flow`.
    pub state: StateWord<ServiceFlowState>,
    /// Since its last packet.
    pub silent_ms: u64,
}

/// For serde.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl ServiceList {
    /// Adds what another machine of the same run says: it has redirected the flows of its own nodes,
    /// and knows of its own replicas what they are doing (`is_own`).
    pub fn add(&mut self, other: ServiceList, is_own: impl Fn(&str) -> bool) {
        self.pins = self.pins.saturating_add(other.pins);
        add_all(&mut self.services, other.services, is_own);
    }
}

/// Adds what another machine says of the same services.
pub fn add_all(
    services: &mut [ServiceStatus],
    others: Vec<ServiceStatus>,
    is_own: impl Fn(&str) -> bool,
) {
    for (ours, theirs) in services.iter_mut().zip(others) {
        ours.add(theirs, &is_own);
    }
}

impl ServiceStatus {
    fn add(&mut self, other: ServiceStatus, is_own: &impl Fn(&str) -> bool) {
        let pairs = [
            (&mut self.unserved_packets, other.unserved_packets),
            (&mut self.picked_up, other.picked_up),
            (&mut self.moved_flows, other.moved_flows),
            (&mut self.lost_packets, other.lost_packets),
            (&mut self.resets, other.resets),
            (&mut self.clamped, other.clamped),
            (&mut self.evicted, other.evicted),
            (&mut self.expired, other.expired),
        ];
        pairs.into_iter().for_each(|(sum, more)| *sum = sum.saturating_add(more));
        self.flows.extend(other.flows);
        for theirs in other.replicas {
            match self.replicas.iter_mut().find(|it| it.replica == theirs.replica) {
                Some(ours) => ours.add(theirs, is_own),
                None => self.replicas.push(theirs),
            }
        }
    }
}

impl ReplicaStatusMessage {
    fn add(&mut self, other: ReplicaStatusMessage, is_own: &impl Fn(&str) -> bool) {
        let pairs = [
            (&mut self.connections, other.connections),
            (&mut self.flows, other.flows),
            (&mut self.live_connections, other.live_connections),
            (&mut self.live_flows, other.live_flows),
            (&mut self.packets, other.packets),
            (&mut self.bytes, other.bytes),
        ];
        pairs.into_iter().for_each(|(sum, more)| *sum = sum.saturating_add(more));
        if is_own(&other.replica) {
            (self.state, self.ports) = (other.state, other.ports);
            (self.registered_ns, self.withdrawn_ns) = (other.registered_ns, other.withdrawn_ns);
        }
    }
}

impl Validate for ServiceList {
    fn validate(&self) -> Result<(), PlanValidationError> {
        validate_all(&self.services)
    }
}

/// Services of a plan.
pub(crate) fn validate_all(services: &[ServiceStatus]) -> Result<(), PlanValidationError> {
    ensure(services.len() <= Plan::SERVICES_MAX, || format!("{} services", services.len()))?;
    services.iter().try_for_each(ServiceStatus::validate)
}

impl Validate for ServiceStatus {
    fn validate(&self) -> Result<(), PlanValidationError> {
        let names = self.origin.iter().chain(&self.at).chain([&self.service]);
        names
            .chain(self.replicas.iter().map(|it| &it.replica))
            .try_for_each(|it| ensure_label(it))?;
        let rows = self.table.iter();
        let rows = rows.flat_map(|it| [&it.router].into_iter().chain(&it.replica));
        rows.chain(self.flows.iter().map(|it| &it.replica)).try_for_each(|it| ensure_label(it))?;
        let words = [self.policy.as_str(), self.fail_over.as_str()].into_iter();
        let states = self.replicas.iter().map(|it| it.state.as_str());
        let words = words.chain(states).chain(self.flows.iter().map(|it| it.state.as_str()));
        ensure(words.into_iter().all(is_word), || {
            format!("service {} is in no state", self.service)
        })?;
        let texts = self.addresses.iter().chain(&self.ports);
        let texts = texts.chain(self.replicas.iter().flat_map(|it| &it.ports));
        let texts = texts.chain(self.table.iter().flat_map(|it| [&it.address, &it.port]));
        let mut texts = texts.chain(self.flows.iter().flat_map(|it| [&it.client, &it.service]));
        texts.try_for_each(|text| ensure_short("an address or port", text))?;
        // Each node may become a replica while the run lives.
        let replicas = self.replicas.len();
        ensure(replicas <= Service::REPLICAS_MAX + Plan::NODES_MAX, || {
            format!("service {} has {replicas} replicas", self.service)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(state: &str, connections: u64) -> ServiceStatus {
        let replica = |name: &str| ReplicaStatusMessage {
            replica: name.to_owned(),
            state: state.into(),
            connections,
            ..ReplicaStatusMessage::default()
        };
        ServiceStatus {
            service: "www".to_owned(),
            replicas: vec![replica("s1"), replica("s2")],
            lost_packets: connections,
            ..ServiceStatus::default()
        }
    }

    #[test]
    fn of_several_machines_counts_are_added_and_each_knows_its_own_replicas() {
        let mut list =
            ServiceList { services: vec![status("registered", 3)], ..Default::default() };
        let mut theirs = status("waiting", 4);
        theirs
            .replicas
            .push(ReplicaStatusMessage { replica: "s3".to_owned(), ..Default::default() });
        list.add(ServiceList { services: vec![theirs], ..Default::default() }, |it| it == "s2");
        let [www] = &list.services[..] else { panic!("one service") };
        let states: Vec<_> =
            www.replicas.iter().map(|it| (it.state.as_str(), it.connections)).collect();
        assert_eq!(states, [("registered", 7), ("waiting", 7), ("", 0)]);
        assert_eq!(www.lost_packets, 7);
    }

    #[test]
    fn names_and_states_that_are_none_are_refused() {
        let mut service = ServiceStatus {
            policy: "nearest".into(),
            fail_over: "new".into(),
            ..status("lost", 0)
        };
        assert_eq!(service.validate(), Ok(()));
        service.replicas[0].state = "\u{1b}[2J".into();
        assert!(service.validate().is_err());
        service = ServiceStatus { service: "../x".to_owned(), ..status("lost", 0) };
        assert!(service.validate().is_err());
    }
}
