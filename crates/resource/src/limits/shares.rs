//! Processors that are divided by minimum and weight, among nodes and reservations.

use windtunnel_budget::reservation::{ReservationNode, ReservationTree};
use windtunnel_limit::ResourceLimitOwner;
use windtunnel_model::demand::Demand;
use windtunnel_model::plan::Node;
use windtunnel_model::{Plan, ReservationId};

/// How processors are divided now.
#[derive(Debug)]
pub(super) struct CpuShareAllocation {
    processors: usize,
    owners: Vec<ResourceLimitOwner>,
    /// One for each owner.
    parts: Vec<ReservationNode>,
}

impl CpuShareAllocation {
    /// `None` where neither a node nor a reservation asks for a minimum or a weight.
    pub(super) fn of(
        plan: &Plan,
        nodes: &[(usize, &Node)],
        processors: usize,
    ) -> Option<CpuShareAllocation> {
        let of_nodes = nodes.iter().map(|(_, node)| &node.demand);
        let mut demands = of_nodes.chain(plan.reservations.iter().map(|it| &it.demand));
        if !demands.any(Demand::is_weighted) {
            return None;
        }
        let reservations = plan.reservations.iter().map(|it| {
            let parent = it.parent.map(ReservationId::index);
            part(&it.demand, parent, u64::from(it.demand.cpu_reserved_millis.unwrap_or(0)))
        });
        let of_nodes = nodes.iter().map(|(_, node)| {
            let parent = node.reservation.map(ReservationId::index);
            part(&node.demand, parent, node.reserved_cpu_millis())
        });
        let parts = reservations.chain(of_nodes).collect();
        let owners = (0..plan.reservations.len()).map(ResourceLimitOwner::Reservation);
        let owners =
            owners.chain(nodes.iter().map(|(node, _)| ResourceLimitOwner::Node(*node))).collect();
        Some(CpuShareAllocation { processors, owners, parts })
    }

    /// Thousandths of a processor that each has when all want as much as they can get.
    pub(super) fn all(&self) -> Vec<(ResourceLimitOwner, u32)> {
        // The plan is valid: its reservations are a tree.
        let tree = ReservationTree::new(self.parts.clone()).unwrap_or_default();
        let all = u64::try_from(self.processors).unwrap_or(u64::MAX).saturating_mul(1000);
        let shares = tree.shares(all).into_iter();
        let shares = shares.map(|share| u32::try_from(share).unwrap_or(u32::MAX).max(1));
        self.owners.iter().copied().zip(shares).collect()
    }

    /// That of one.
    pub(super) fn of_owner(&self, owner: ResourceLimitOwner) -> Option<u32> {
        self.all().into_iter().find(|(other, _)| *other == owner).map(|(_, share)| share)
    }

    pub(super) fn part(&self, owner: ResourceLimitOwner) -> Option<&ReservationNode> {
        let position = self.owners.iter().position(|other| *other == owner)?;
        self.parts.get(position)
    }

    pub(super) fn change(
        &mut self,
        owner: ResourceLimitOwner,
        change: impl FnOnce(&mut ReservationNode),
    ) {
        let position = self.owners.iter().position(|other| *other == owner);
        position.and_then(|position| self.parts.get_mut(position)).map(change);
    }
}

fn part(demand: &Demand, parent: Option<usize>, min: u64) -> ReservationNode {
    ReservationNode {
        parent,
        min,
        weight: demand.cpu_weight.unwrap_or(Demand::WEIGHT_DEFAULT),
        limit: demand.cpu_millis.map(u64::from),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(text: &str) -> Option<(Vec<u32>, Vec<u32>)> {
        let links = "links: [{between: [a, b]}, {between: [b, c]}]";
        let plan = windtunnel_dataplane::testing::plan(&format!("{text}\n{links}"));
        let nodes: Vec<(usize, &Node)> = plan.nodes.iter().enumerate().collect();
        let mut all: Vec<u32> =
            CpuShareAllocation::of(&plan, &nodes, 2)?.all().iter().map(|it| it.1).collect();
        let nodes = all.split_off(plan.reservations.len());
        Some((all, nodes))
    }

    fn of_nodes(nodes: &str) -> Option<Vec<u32>> {
        shares(&format!("nodes: {{{nodes}}}")).map(|(_, nodes)| nodes)
    }

    #[test]
    fn what_is_not_reserved_is_divided_by_weight() {
        assert_eq!(of_nodes("a: {cpu: 25%}, b: {}, c: {}"), None);
        let weighted = of_nodes("a: {cpu: {weight: 2}}, b: {}, c: {}");
        assert_eq!(weighted, Some(vec![1000, 500, 500]));
        let reserved = of_nodes("a: {cpu: {min: 80%, weight: 2}}, b: {cpu: {min: 0.2}}, c: {}");
        assert_eq!(reserved, Some(vec![1300, 450, 250]));
    }

    #[test]
    fn a_limit_that_is_reserved_is_a_minimum_beside_weights() {
        let shares = of_nodes("a: {cpu: 40%}, b: {cpu: {weight: 3}}, c: {cpu: {limit: 10%}}");
        assert_eq!(shares, Some(vec![720, 960, 320]));
    }

    #[test]
    fn more_than_there_is_leaves_nothing_to_divide() {
        let shares = of_nodes("a: {cpu: {min: 3}}, b: {}, c: {}");
        assert_eq!(shares, Some(vec![3000, 1, 1]));
    }

    #[test]
    fn what_a_reservation_has_is_divided_within_it() {
        let shares = shares(
            "nodes: {a: {cpu: {min: 60%}}, b: {}, c: {}}\n\
             reserve: {site: {of: [a, b], cpu: {min: 80%, weight: 3}}}",
        );
        assert_eq!(shares, Some((vec![1700], vec![1150, 550, 300])));
    }
}
