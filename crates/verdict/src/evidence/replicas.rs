//! What is known of a service's replicas: a state machine of what was seen and asked.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use windtunnel_model::plan::{Service, ServicePort, ServiceUpdate};
use windtunnel_model::state::ReplicaState;
use windtunnel_model::{NodeId, Span, Time};

/// A service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceState {
    /// In the order in which they became replicas.
    pub replicas: Vec<ReplicaHistory>,
}

/// A replica, and what was seen of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplicaHistory {
    #[serde(flatten)]
    pub state: ReplicaState,
    /// By port on which something listens: of which addresses.
    #[serde(with = "crate::pairs")]
    listening: BTreeMap<ServicePort, BTreeSet<IpAddr>>,
    /// How often it was registered, withdrawn and lost.
    pub registrations: u64,
    pub withdrawals: u64,
    pub losses: u64,
    /// When it was last registered, and withdrawn or lost, as the routers know it.
    pub registered_at: Option<Time>,
    pub withdrawn_at: Option<Time>,
    /// The longest from when a socket was seen, or seen to be gone, to when the routers knew.
    pub registering_max: Span,
    pub withdrawing_max: Span,
}

impl ServiceState {
    /// The service as the plan has it: nothing listens yet.
    pub fn new(service: &Service) -> Self {
        let replicas = service.replicas.iter();
        let replicas = replicas.map(|replica| ReplicaHistory::new(replica.node, replica.weight));
        ServiceState { replicas: replicas.collect() }
    }

    /// The replica on this node.
    pub fn replica(&self, node: NodeId) -> Option<&ReplicaHistory> {
        self.replicas.iter().find(|replica| replica.state.node == node)
    }

    fn replica_mut(&mut self, node: NodeId) -> Option<&mut ReplicaHistory> {
        self.replicas.iter_mut().find(|replica| replica.state.node == node)
    }

    /// Something listens on a port of an address, or no longer. Returns what changes by that. A
    /// socket in the place of another one is news only where the replica was lost meanwhile.
    pub fn saw(
        &mut self,
        node: NodeId,
        address: IpAddr,
        port: ServicePort,
        listens: bool,
    ) -> Option<ServiceUpdate> {
        let replica = self.replica_mut(node)?;
        let addresses = replica.listening.entry(port).or_default();
        if listens {
            addresses.insert(address);
        } else {
            addresses.remove(&address);
        }
        let any = !addresses.is_empty();
        if any == replica.state.registered.contains(&port) {
            return None;
        }
        let update = match any {
            true => ServiceUpdate::Registered { replica: node, port },
            false => ServiceUpdate::Withdrawn { replica: node, port },
        };
        replica.follow(&update);
        Some(update)
    }

    /// The replica's node is lost; whether that changes anything.
    pub fn lose(&mut self, node: NodeId) -> bool {
        let Some(replica) = self.replica_mut(node) else { return false };
        // One that never registered has no connection that could be lost.
        let changes = !replica.state.is_lost && replica.registrations > 0;
        if changes {
            replica.follow(&ServiceUpdate::Lost { replica: node });
        }
        changes
    }

    /// Follows what was seen, here or elsewhere.
    pub fn follow(&mut self, update: &ServiceUpdate) {
        if let Some(replica) = self.replica_mut(update.replica()) {
            replica.follow(update);
        }
    }

    /// A change has taken effect, which was `seen` before.
    pub fn applied(&mut self, update: &ServiceUpdate, at: Time, seen: Option<Time>) {
        let node = update.replica();
        if matches!(update, ServiceUpdate::Add { .. }) && self.replica(node).is_none() {
            self.replicas.push(ReplicaHistory::new(node, 1));
        }
        let Some(replica) = self.replica_mut(node) else { return };
        let since = seen.map(|seen| at.since(seen)).unwrap_or_default();
        match update {
            ServiceUpdate::Registered { .. } => {
                replica.registered_at = Some(at);
                replica.registering_max = replica.registering_max.max(since);
            }
            ServiceUpdate::Withdrawn { .. } | ServiceUpdate::Lost { .. } => {
                replica.withdrawn_at = Some(at);
                replica.withdrawing_max = replica.withdrawing_max.max(since);
            }
            ServiceUpdate::Health { .. } => {}
            _ => replica.state.apply(update),
        }
    }
}

impl ReplicaHistory {
    fn new(node: NodeId, weight: u32) -> Self {
        ReplicaHistory {
            state: ReplicaState::new(node, weight),
            listening: BTreeMap::new(),
            registrations: 0,
            withdrawals: 0,
            losses: 0,
            registered_at: None,
            withdrawn_at: None,
            registering_max: Span::ZERO,
            withdrawing_max: Span::ZERO,
        }
    }

    fn follow(&mut self, update: &ServiceUpdate) {
        self.state.apply(update);
        match update {
            ServiceUpdate::Registered { .. } => self.registrations += 1,
            ServiceUpdate::Withdrawn { .. } => self.withdrawals += 1,
            ServiceUpdate::Lost { .. } => {
                self.listening.clear();
                self.losses += 1;
            }
            _ => {}
        }
    }

    /// Ports on which something listens for one IP version only, of the service's `addresses`.
    pub fn one_sided(&self, addresses: usize) -> impl Iterator<Item = (ServicePort, IpAddr)> {
        let listening = self.listening.iter();
        listening.filter_map(move |(port, known)| {
            let first = known.first()?;
            (known.len() < addresses).then_some((*port, *first))
        })
    }
}

#[cfg(test)]
mod tests {
    use windtunnel_model::word::StateWord;

    use super::*;

    const NODE: NodeId = NodeId(3);

    fn state() -> ServiceState {
        ServiceState { replicas: vec![ReplicaHistory::new(NODE, 1)] }
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    /// The first replica's state, as files have it.
    fn word(state: &ServiceState) -> String {
        StateWord::from(state.replicas[0].state.availability()).to_string()
    }

    fn web() -> ServicePort {
        "80/tcp".parse().unwrap()
    }

    #[test]
    fn a_replica_is_registered_with_its_first_socket_and_withdrawn_with_its_last() {
        let mut state = state();
        let port = web();
        let registered = ServiceUpdate::Registered { replica: NODE, port };
        let withdrawn = ServiceUpdate::Withdrawn { replica: NODE, port };
        assert_eq!(state.saw(NODE, ip("10.1.0.80"), port, true), Some(registered));
        assert_eq!(state.saw(NODE, ip("fd01::80"), port, true), None);
        assert_eq!(state.saw(NODE, ip("10.1.0.80"), port, false), None);
        let of_one: Vec<_> = state.replicas[0].one_sided(2).collect();
        assert_eq!(of_one, [(port, ip("fd01::80"))]);
        assert_eq!(state.saw(NODE, ip("fd01::80"), port, false), Some(withdrawn));
        assert_eq!(word(&state), "waiting");
        assert_eq!(state.saw(NodeId(9), ip("fd01::80"), port, true), None, "it is no replica");
    }

    #[test]
    fn a_lost_replica_is_registered_again_by_its_next_socket() {
        let mut state = state();
        assert!(!state.lose(NODE), "it had nothing to lose");
        state.saw(NODE, ip("10.1.0.80"), web(), true);
        assert!(state.lose(NODE) && !state.lose(NODE));
        assert_eq!(word(&state), "lost");
        assert!(state.saw(NODE, ip("10.1.0.80"), web(), true).is_some());
        assert_eq!(word(&state), "registered");
        assert_eq!((state.replicas[0].registrations, state.replicas[0].losses), (2, 1));
    }

    #[test]
    fn what_is_asked_for_holds_once_it_has_taken_effect() {
        let mut state = state();
        let new = NodeId(7);
        let mut apply = |update| state.applied(&update, Time::from_nanos(5), None);
        apply(ServiceUpdate::Add { replica: new });
        apply(ServiceUpdate::Weight { replica: new, weight: 4 });
        apply(ServiceUpdate::Drain { replica: NODE, drain: true });
        assert_eq!((state.replicas[1].state.node, state.replicas[1].state.weight), (new, 4));
        state.saw(NODE, ip("10.1.0.80"), web(), true);
        assert_eq!(word(&state), "draining");
        state.applied(&ServiceUpdate::Remove { replica: NODE }, Time::from_nanos(6), None);
        assert_eq!(word(&state), "removed");
        state.applied(&ServiceUpdate::Add { replica: NODE }, Time::from_nanos(7), None);
        assert_eq!((word(&state).as_str(), state.replicas.len()), ("draining", 2));
    }
}
