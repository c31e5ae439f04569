//! Processors that are divided by minimum and weight.
//!
//! When all nodes want processors, each has its minimum, and of what is not reserved a part by its
//! weight: that sum is its weight in the kernel. So a node has its minimum whatever the others
//! want, and what some leave goes to the others in proportion to these sums.

use windtunnel_model::demand::Demand;
use windtunnel_model::plan::Node;

/// Thousandths of a processor that each node has when all want theirs; `None` where no node asks
/// for a minimum or a weight.
pub(super) fn guarantees<'a>(
    nodes: impl Iterator<Item = &'a Node> + Clone,
    processors: usize,
) -> Option<Vec<u32>> {
    if !nodes.clone().any(|node| node.demand.is_weighted()) {
        return None;
    }
    let min = |node: &Node| u64::from(node.demand.cpu_min_millis.unwrap_or(0));
    let weight = |node: &Node| u64::from(node.demand.cpu_weight.unwrap_or(Demand::WEIGHT_DEFAULT));
    let all = u64::try_from(processors).unwrap_or(u64::MAX).saturating_mul(1000);
    let free = all.saturating_sub(nodes.clone().map(min).sum());
    let weights: u64 = nodes.clone().map(weight).sum();
    let share = |node: &Node| min(node) + free * weight(node) / weights.max(1);
    Some(nodes.map(|node| u32::try_from(share(node)).unwrap_or(u32::MAX).max(1)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(nodes: &str) -> Option<Vec<u32>> {
        let plan = crate::testing::plan(&format!(
            "nodes: {{{nodes}}}\nlinks: [{{between: [a, b]}}, {{between: [b, c]}}]"
        ));
        guarantees(plan.nodes.iter(), 2)
    }

    #[test]
    fn what_is_not_reserved_is_divided_by_weight() {
        assert_eq!(shares("a: {cpu: 25%}, b: {}, c: {}"), None);
        let weighted = shares("a: {cpu: {weight: 2}}, b: {}, c: {}");
        assert_eq!(weighted, Some(vec![1000, 500, 500]));
        let reserved = shares("a: {cpu: {min: 80%, weight: 2}}, b: {cpu: {min: 0.2}}, c: {}");
        assert_eq!(reserved, Some(vec![1300, 450, 250]));
    }

    #[test]
    fn more_than_there_is_leaves_nothing_to_divide() {
        let shares = shares("a: {cpu: {min: 3}}, b: {}, c: {}");
        assert_eq!(shares, Some(vec![3000, 1, 1]));
    }
}
