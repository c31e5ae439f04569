//! Which node of a plan goes on which machine of a cluster.

use std::collections::BTreeMap;

use windtunnel_cluster::protocol::AgentDescription;
use windtunnel_model::{Plan, Span};
use windtunnel_placement::{
    NodePlacement, PlacementHost, PlacementRefusal, ReservedCapacity, Rtts, place,
};

/// Machines as placement sees them: one for each card that it was made of, in the same order.
#[derive(Debug, PartialEq, Eq)]
pub struct PlacementHostSet {
    pub hosts: Vec<PlacementHost>,
    pub rtts: Rtts,
}

impl PlacementHostSet {
    /// From what agents report of their machines and of the round trips between them.
    #[must_use]
    pub fn of(cards: &[AgentDescription]) -> Self {
        let mut known = BTreeMap::new();
        cards.iter().for_each(|card| *known.entry(card.host.as_str()).or_insert(0) += 1);
        let hosts = cards.iter().map(|card| host(card, known[card.host.as_str()] == 1)).collect();
        let mut rtts = Rtts::default();
        for (at, a) in cards.iter().enumerate() {
            for (to, b) in cards.iter().enumerate().skip(at + 1) {
                // Each measures for itself; what one sees beyond the other is waiting, not
                // distance.
                if let Some(rtt) = [rtt(a, b), rtt(b, a)].into_iter().flatten().min() {
                    rtts.set(at, to, Span::from_nanos(rtt));
                }
            }
        }
        PlacementHostSet { hosts, rtts }
    }

    /// Puts every node of `plan` on one of the machines.
    ///
    /// # Errors
    /// Every reason why they cannot carry it.
    pub fn place(&self, plan: &Plan) -> Result<NodePlacement, Box<PlacementRefusal>> {
        place(plan, &self.hosts, &self.rtts).map_err(Box::new)
    }
}

/// Machines of the same name are distinguished by their addresses; the name means any of them
/// then, as a label.
fn host(card: &AgentDescription, is_only: bool) -> PlacementHost {
    let mut labels = card.labels.clone();
    let name = if is_only {
        card.host.clone()
    } else {
        labels.insert(card.host.clone());
        format!("{}@{}", card.host, card.address)
    };
    PlacementHost {
        labels,
        cpu_millis: card.cpu_millis_max.unwrap_or(u64::MAX).min(u64::from(card.cpus) * 1000),
        memory: card.memory,
        uplink: card.uplink,
        nodes_max: card.nodes_max,
        reserved: ReservedCapacity {
            cpu_millis: card.reserved.cpu_millis,
            memory: card.reserved.memory,
            uplink_up: card.reserved.up_bit_per_s,
            uplink_down: card.reserved.down_bit_per_s,
            nodes: card.reserved.nodes,
        },
        ..PlacementHost::new(name)
    }
}

fn rtt(from: &AgentDescription, to: &AgentDescription) -> Option<u64> {
    let peer = from.peers.iter().find(|peer| peer.agent == to.agent)?;
    Some(peer.clock?.rtt_ns)
}

#[cfg(test)]
mod tests {
    use windtunnel_model::Bytes;
    use windtunnel_placement::PlacementRefusalReason;

    use super::*;
    use crate::error::LeadError;
    use crate::sample::{card, knows, plan};

    #[test]
    fn a_card_becomes_a_machine_with_what_its_owner_gives() {
        let mut it = card("a", 1);
        (it.uplink, it.cpus) = ("10gbit".parse().ok(), 6);
        let site = PlacementHostSet::of(&[it]);
        let host = &site.hosts[0];
        assert_eq!((host.name.as_str(), host.cpu_millis), ("a", 6000));
        assert_eq!((host.memory, host.uplink), (Bytes(16_000_000_000), "10gbit".parse().ok()));
        assert!(host.answers_to("ssd"));
    }

    #[test]
    fn the_distance_of_two_machines_is_the_lesser_of_what_both_measured() {
        let mut cards = [card("a", 1), card("b", 2), card("c", 3)];
        knows(&mut cards, 0, 1, 900_000);
        knows(&mut cards, 1, 0, 700_000);
        knows(&mut cards, 2, 0, 5_000_000);
        let rtts = PlacementHostSet::of(&cards).rtts;
        assert_eq!(rtts.between(0, 1), Some(Span::from_micros(700)));
        assert_eq!(rtts.between(0, 2), Some(Span::from_millis(5)));
        assert_eq!(rtts.between(1, 2), None);
    }

    #[test]
    fn machines_of_one_name_are_distinguished_and_a_pin_to_it_means_either() {
        let site = PlacementHostSet::of(&[card("box", 1), card("box", 2), card("c", 3)]);
        let names: Vec<&str> = site.hosts.iter().map(|host| host.name.as_str()).collect();
        assert_eq!(names, ["box@10.0.0.1:7447", "box@10.0.0.2:7447", "c"]);
        let placed = site.place(&plan("nodes: {a: {pin: box, count: 2}}\n")).unwrap();
        assert_eq!(placed.loads[2].nodes, 0);
    }

    #[test]
    fn a_plan_that_the_machines_cannot_carry_is_a_failure_of_the_scenario() {
        let plan = plan("nodes: {a: {pin: z}}\n");
        let refused = PlacementHostSet::of(&[card("a", 1)]).place(&plan).unwrap_err();
        let hints: Vec<String> = refused.reasons.iter().map(PlacementRefusalReason::hint).collect();
        assert_eq!(hints, ["the machines are a"]);
        let error = LeadError::from(refused);
        assert_eq!(error.exit_code(), 3);
        assert_eq!(
            error.to_string(),
            "node a is pinned to `z`, which is not a name or label of a machine"
        );
    }

    #[test]
    fn a_machine_offers_what_its_owner_allows_less_what_other_runs_have() {
        let mut it = card("a", 1);
        (it.cpu_millis_max, it.nodes_max) = (Some(1500), Some(7));
        it.reserved.cpu_millis = 500;
        it.reserved.nodes = 3;
        it.reserved.up_bit_per_s = 11;
        it.reserved.down_bit_per_s = 12;
        let host = PlacementHostSet::of(&[it]).hosts.remove(0);
        assert_eq!((host.cpu_millis, host.nodes_max), (1500, Some(7)));
        assert_eq!((host.reserved.cpu_millis, host.reserved.nodes), (500, 3));
        assert_eq!((host.reserved.uplink_up, host.reserved.uplink_down), (11, 12));
        let mut more = card("b", 2);
        more.cpu_millis_max = Some(1_000_000);
        assert_eq!(PlacementHostSet::of(&[more]).hosts[0].cpu_millis, 8000);
    }
}
