//! Policies: which replica gets what is new.
//!
//! Every policy is a function of the plan, the lanes, what was applied and the flow (that of the
//! fewest connections also of other flows); ties go to the replica that is named first. Those with a
//! turn or a random draw depend on the flows that began before ([`ReplicaRotation`]), so that asking twice gives
//! the same answer, too.

use alloc::vec::Vec;
use core::cell::RefCell;

use windtunnel_model::plan::{Hash, LoadBalancingPolicy};
use windtunnel_model::{PortId, RouterId, Span};

use super::call::ServicePacketHeader;
use super::hash::{halves, mix};
use super::maglev::MaglevTableCache;
use super::replica::ServiceReplica;

/// The way from a router to a replica, as it is now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReplicaPathMetrics {
    /// The sum of latencies.
    pub(crate) latency: Span,
    /// How many links; a LAN counts as one.
    pub(crate) hops: u32,
    /// The least MTU.
    pub(crate) mtu: u32,
    /// The same of the lanes in the other direction.
    pub(crate) mtu_back: u32,
    /// Whether it leads through a node.
    pub(crate) passes_node: bool,
}

/// Finds ways to interfaces from the router that asks; `None`: there is none, or it is cut.
pub(crate) type FindWay<'a> = dyn FnMut(PortId) -> Option<ReplicaPathMetrics> + 'a;

/// Whose turn it is, of the policies that have one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct ReplicaRotation {
    /// Flows that have begun.
    begun: u64,
    /// The replica of the last one.
    last: Option<u16>,
}

impl ReplicaRotation {
    /// A flow has begun with a replica.
    pub(super) fn took(&mut self, replica: u16) {
        (self.begun, self.last) = (self.begun.wrapping_add(1), Some(replica));
    }
}

/// What is asked for a replica.
pub(super) struct ReplicaSelector<'a> {
    pub(super) policy: LoadBalancingPolicy,
    pub(super) hash: Hash,
    /// The position of the port in the service.
    pub(super) position: u8,
    /// Whether a way may lead through nodes.
    pub(super) passes_nodes: bool,
    /// The service's own number for hashes.
    pub(super) salt: u64,
    /// Of which router; `None`: of all.
    pub(super) turn: (Option<RouterId>, ReplicaRotation),
    pub(super) call: &'a ServicePacketHeader,
}

impl ReplicaSelector<'_> {
    /// The position of the replica that gets a new flow.
    pub(super) fn choose(
        &self,
        replicas: &[ServiceReplica],
        way: &mut FindWay<'_>,
        tables: &RefCell<MaglevTableCache>,
    ) -> Option<u16> {
        let mut ways = |replica: &ServiceReplica| {
            let way = replica.takes(self.position).then(|| way(replica.port))??;
            (self.passes_nodes || !way.passes_node).then_some(way)
        };
        let there = |(number, replica): (u16, _)| ways(replica).map(|way| (number, replica, way));
        let there = (0..).zip(replicas).filter_map(there);
        let chosen = match self.policy {
            // `min_by_key` takes the first of equals.
            LoadBalancingPolicy::Nearest => there.min_by_key(|(_, _, way)| (way.latency, way.hops)),
            LoadBalancingPolicy::Hops => there.min_by_key(|(_, _, way)| (way.hops, way.latency)),
            LoadBalancingPolicy::LeastConnections => there.min_by_key(|(_, replica, _)| {
                replica.counters.live_connections + replica.counters.live_flows
            }),
            LoadBalancingPolicy::Ordered => {
                let mut there = there;
                there.next()
            }
            LoadBalancingPolicy::Hash if self.hash == Hash::Maglev => {
                let there: Vec<_> =
                    there.map(|(number, replica, _)| (number, replica.salt)).collect();
                return tables.borrow_mut().find(self.salt, replicas.len(), &there, self.flow());
            }
            LoadBalancingPolicy::Hash => {
                let client = mix(self.call.client, self.salt);
                // `max_by_key` takes the last of equals, which 64 bits do not have.
                there.max_by_key(|(_, replica, _)| draw(client ^ replica.salt))
            }
            LoadBalancingPolicy::RoundRobin => {
                let last = self.turn.1.last;
                // `false` is before `true`: those after the last one, then from the beginning.
                there.min_by_key(|(number, ..)| (last.is_some_and(|last| *number <= last), *number))
            }
            LoadBalancingPolicy::Random => {
                let there: Vec<_> = there.collect();
                let (router, turn) = self.turn;
                let router = router.map_or(0, |router| draw(u64::from(router.0) + 1));
                let hash = mix(u128::from(turn.begun), self.salt ^ router);
                // The number of them by 2⁶⁴ parts of one.
                let [point, _] = halves(u128::from(hash) * there.len() as u128);
                there.into_iter().nth(usize::try_from(point).unwrap_or(0))
            }
            LoadBalancingPolicy::Weighted => return self.by_weight(replicas, &mut ways),
        };
        chosen.map(|(number, ..)| number)
    }

    /// A hash of the flow.
    fn flow(&self) -> u64 {
        let ports = u64::from(self.call.client_port) << 16 | u64::from(self.call.port);
        mix(self.call.client, ports ^ self.salt)
    }

    /// The flow's hash is a point on a line that the weights divide.
    fn by_weight(
        &self,
        replicas: &[ServiceReplica],
        ways: &mut dyn FnMut(&ServiceReplica) -> Option<ReplicaPathMetrics>,
    ) -> Option<u16> {
        let mut weight =
            |replica: &ServiceReplica| ways(replica).map_or(0, |_| u64::from(replica.state.weight));
        let total: u64 = replicas.iter().map(&mut weight).sum();
        let [point, _] = halves(u128::from(self.flow()) * u128::from(total));
        let mut passed = 0;
        for (number, replica) in (0..).zip(replicas) {
            passed += weight(replica);
            if point < passed {
                return Some(number);
            }
        }
        None
    }
}

/// A well-mixed number of one.
fn draw(number: u64) -> u64 {
    mix(u128::from(number), 0)
}

#[cfg(test)]
mod tests {
    use windtunnel_model::NodeId;
    use windtunnel_model::state::ReplicaState;

    use super::super::call::CallKind;
    use super::*;

    fn replicas(weights: &[u32]) -> Vec<ServiceReplica> {
        let one = |(id, weight): (u32, &u32)| {
            let salt = mix(u128::from(id), 77);
            let state = ReplicaState::new(NodeId(id), *weight);
            let mut replica = ServiceReplica::new(state, PortId(id), salt);
            replica.listens = 1;
            replica
        };
        (0..).zip(weights).map(one).collect()
    }

    fn call(client: u32, client_port: u16) -> ServicePacketHeader {
        let kind = CallKind::Plain;
        ServicePacketHeader {
            address: 9,
            port: 53,
            protocol: 17,
            client: client.into(),
            client_port,
            kind,
        }
    }

    fn choose(
        policy: LoadBalancingPolicy,
        replicas: &[ServiceReplica],
        call: &ServicePacketHeader,
        ways: &[Option<ReplicaPathMetrics>],
    ) -> Option<u16> {
        choose_at(ReplicaRotation::default(), policy, replicas, call, ways)
    }

    fn choose_at(
        turn: ReplicaRotation,
        policy: LoadBalancingPolicy,
        replicas: &[ServiceReplica],
        call: &ServicePacketHeader,
        ways: &[Option<ReplicaPathMetrics>],
    ) -> Option<u16> {
        let hash = Hash::Rendezvous;
        let turn = (None, turn);
        let question =
            ReplicaSelector { policy, hash, position: 0, passes_nodes: false, salt: 5, turn, call };
        question.choose(replicas, &mut |port| ways[port.index()], &RefCell::default())
    }

    fn way(millis: u64, hops: u32) -> Option<ReplicaPathMetrics> {
        Some(ReplicaPathMetrics {
            latency: Span::from_millis(millis),
            hops,
            mtu: 1500,
            mtu_back: 1500,
            passes_node: false,
        })
    }

    #[test]
    fn nearest_is_by_latency_then_by_links_then_by_order() {
        let (all, call) = (replicas(&[1; 4]), call(1, 1));
        let nearest = |ways: &[Option<ReplicaPathMetrics>]| {
            choose(LoadBalancingPolicy::Nearest, &all, &call, ways)
        };
        assert_eq!(nearest(&[way(9, 1), way(3, 9), way(5, 1), way(8, 1)]), Some(1));
        assert_eq!(nearest(&[way(9, 1), way(3, 9), way(3, 2), way(3, 2)]), Some(2));
        assert_eq!(nearest(&[None, None, way(900, 2), None]), Some(2), "others are cut off");
        assert_eq!(nearest(&[None; 4]), None);
    }

    #[test]
    fn hops_is_by_links_then_by_latency_then_by_order() {
        let (all, call) = (replicas(&[1; 3]), call(1, 1));
        let hops = |ways: &[Option<ReplicaPathMetrics>]| {
            choose(LoadBalancingPolicy::Hops, &all, &call, ways)
        };
        assert_eq!(hops(&[way(1, 5), way(30, 2), way(20, 3)]), Some(1));
        assert_eq!(hops(&[way(40, 2), way(30, 2), way(30, 2)]), Some(1));
    }

    #[test]
    fn ordered_is_the_first_that_is_there() {
        let (mut all, call) = (replicas(&[1; 3]), call(1, 1));
        let ways = [way(9, 9), way(1, 1), way(1, 1)];
        let ordered =
            |all: &[ServiceReplica]| choose(LoadBalancingPolicy::Ordered, all, &call, &ways);
        assert_eq!(ordered(&all), Some(0));
        all[0].state.is_draining = true;
        assert_eq!(ordered(&all), Some(1));
        all[1].listens = 0;
        assert_eq!(ordered(&all), Some(2));
        all[2].state.is_healthy = false;
        assert_eq!(ordered(&all), None);
    }

    #[test]
    fn the_fewest_connections_and_flows_count_together() {
        let (mut all, call) = (replicas(&[1; 3]), call(1, 1));
        let ways = [way(1, 1); 3];
        all[0].counters.live_connections = 3;
        all[1].counters.live_flows = 2;
        all[2].counters.live_connections = 1;
        all[2].counters.live_flows = 1;
        assert_eq!(choose(LoadBalancingPolicy::LeastConnections, &all, &call, &ways), Some(1));
    }

    #[test]
    fn a_client_stays_at_its_replica_and_moves_only_if_that_goes() {
        let (mut all, ways) = (replicas(&[1; 4]), [way(1, 1); 4]);
        let of = |all: &[ServiceReplica], client| {
            choose(LoadBalancingPolicy::Hash, all, &call(client, 1), &ways).unwrap()
        };
        let before: Vec<u16> = (0..4000).map(|client| of(&all, client)).collect();
        for number in 0..4 {
            let count = before.iter().filter(|chosen| **chosen == number).count();
            // 1000 expected, standard deviation sqrt(4000·1/4·3/4) = 27.4: within 4 of them.
            assert!((890..=1110).contains(&count), "{number} has {count}");
        }
        let other = choose(LoadBalancingPolicy::Hash, &all, &call(7, 60_000), &ways).unwrap();
        assert_eq!(other, before[7], "the port makes no difference");
        all[2].state.is_lost = true;
        for (client, chosen) in (0..).zip(&before) {
            let now = of(&all, client);
            assert!(if *chosen == 2 { now != 2 } else { now == *chosen });
        }
    }

    #[test]
    fn weights_are_shares() {
        let (all, ways) = (replicas(&[3, 0, 1]), [way(1, 1); 3]);
        let mut counts = [0; 3];
        for port in 0..8000 {
            let chosen =
                choose(LoadBalancingPolicy::Weighted, &all, &call(1, port), &ways).unwrap();
            counts[usize::from(chosen)] += 1;
        }
        // 6000 expected, standard deviation sqrt(8000·3/4·1/4) = 38.7: within 4 of them.
        assert!((5845..=6155).contains(&counts[0]), "{counts:?}");
        assert_eq!((counts[1], counts[0] + counts[2]), (0, 8000));
        let none = replicas(&[0, 0]);
        assert_eq!(choose(LoadBalancingPolicy::Weighted, &none, &call(1, 1), &ways), None);
    }

    /// IPVS' `rr`: the next in order after the last, and who is away has no turn.
    #[test]
    fn round_robin_goes_on_after_the_last_and_leaves_out_what_is_away() {
        let (mut all, ways) = (replicas(&[1; 3]), [way(1, 1); 3]);
        let mut turn = ReplicaRotation::default();
        let mut next = |all: &[ServiceReplica]| {
            let chosen =
                choose_at(turn, LoadBalancingPolicy::RoundRobin, all, &call(1, 1), &ways).unwrap();
            let again =
                choose_at(turn, LoadBalancingPolicy::RoundRobin, all, &call(2, 9), &ways).unwrap();
            assert_eq!(chosen, again, "asking alone takes no turn");
            turn.took(chosen);
            chosen
        };
        let five: Vec<u16> = (0..5).map(|_| next(&all)).collect();
        assert_eq!(five, [0, 1, 2, 0, 1]);
        all[2].state.is_healthy = false;
        let three: Vec<u16> = (0..3).map(|_| next(&all)).collect();
        assert_eq!(three, [0, 1, 0]);
        all[2].state.is_healthy = true;
        assert_eq!([next(&all), next(&all), next(&all)], [1, 2, 0]);
    }

    #[test]
    fn random_draws_are_alike_for_all_and_independent_of_the_draw_before() {
        let (all, ways) = (replicas(&[1; 4]), [way(1, 1); 4]);
        let mut turn = ReplicaRotation::default();
        let mut drawn = Vec::new();
        for _ in 0..8000 {
            // One client with one port: it is not a hash of the flow.
            let chosen =
                choose_at(turn, LoadBalancingPolicy::Random, &all, &call(1, 1), &ways).unwrap();
            turn.took(chosen);
            drawn.push(usize::from(chosen));
        }
        let mut pairs = [[0u32; 4]; 4];
        drawn.windows(2).for_each(|pair| pairs[pair[0]][pair[1]] += 1);
        // Of 7999 pairs 500 are expected of each; chi-square with 15 degrees of freedom is below
        // 37.7 in 999 of 1000 cases (and depends on the seed only).
        let chi: f64 =
            pairs.iter().flatten().map(|n| (f64::from(*n) - 500.0).powi(2) / 500.0).sum();
        assert!(chi < 37.7, "{chi}: {pairs:?}");
    }

    #[test]
    fn a_way_through_a_node_is_none_without_a_header() {
        let (all, call) = (replicas(&[1]), call(1, 1));
        let through = Some(ReplicaPathMetrics { passes_node: true, ..way(1, 1).unwrap() });
        assert_eq!(choose(LoadBalancingPolicy::Nearest, &all, &call, &[through]), None);
        let question = ReplicaSelector {
            policy: LoadBalancingPolicy::Nearest,
            position: 0,
            passes_nodes: true,
            salt: 5,
            turn: (None, ReplicaRotation::default()),
            hash: Hash::Rendezvous,
            call: &call,
        };
        assert_eq!(question.choose(&all, &mut |_| through, &RefCell::default()), Some(0));
    }
}
