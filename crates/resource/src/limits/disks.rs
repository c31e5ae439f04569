//! Disks among the limits of a run: who asks for them, and whether this machine can hold that.

use windtunnel_limit::LimitMechanismChoice;
use windtunnel_model::demand::Demand;
use windtunnel_model::plan::{EventAction, Node};
use windtunnel_model::{NodeId, Plan, Resource};

use super::lacking;
use crate::error::ResourceError;

/// What a run needs of disks.
#[derive(Debug, Clone, Default)]
pub(super) struct DiskNeeds {
    /// Whether disks are divided among nodes and reservations.
    divided: bool,
    /// Nodes that an event limits.
    later: Vec<NodeId>,
}

impl DiskNeeds {
    pub(super) fn of(plan: &Plan) -> DiskNeeds {
        let of_nodes = plan.nodes.iter().map(|node| &node.demand);
        let mut all = of_nodes.chain(plan.reservations.iter().map(|it| &it.demand));
        let divided = all.any(|demand| demand.disk_weight.is_some());
        let mut later = Vec::new();
        for event in &plan.events {
            if let EventAction::Limit { nodes, limits } = &event.action
                && limits.disk.is_some()
            {
                later.extend(nodes);
            }
        }
        DiskNeeds { divided, later }
    }

    /// Whether a node needs a group for disks.
    pub(super) fn has(&self, node: usize) -> bool {
        self.divided || self.is_later(node)
    }

    /// Whether an event may limit the disks of a node.
    pub(super) fn is_later(&self, node: usize) -> bool {
        self.later.contains(&NodeId::from_index(node))
    }

    /// The weight of a node or reservation among those beside it: 1 where others ask for one.
    pub(super) fn weight(&self, demand: &Demand) -> Option<u32> {
        self.divided.then(|| weight_of(demand))
    }

    /// Refuses what nothing on this machine can hold for a node and its programs.
    pub(super) fn check(
        &self,
        choice: &LimitMechanismChoice,
        index: usize,
        node: &Node,
    ) -> Result<(), ResourceError> {
        let name = &node.name;
        check(choice, &node.demand, || format!("node {name}"))?;
        if self.is_later(index) && choice.group_of(Resource::Disk).is_none() {
            let who = format!("an event of node {name}");
            return lacking(choice, who, "disk", Resource::Disk);
        }
        for (index, program) in node.programs.iter().enumerate() {
            check(choice, &program.demand, || format!("program {index} of node {name}"))?;
        }
        Ok(())
    }
}

/// Refuses a limit or a weight that nothing on this machine can hold.
pub(super) fn check(
    choice: &LimitMechanismChoice,
    demand: &Demand,
    who: impl Fn() -> String,
) -> Result<(), ResourceError> {
    if demand.disk.is_some() && choice.group_of(Resource::Disk).is_none() {
        return lacking(choice, who(), "disk", Resource::Disk);
    }
    match choice.undivided().filter(|_| demand.disk_weight.is_some()) {
        Some(why) => Err(ResourceError::DiskWeight { who: who(), why }),
        None => Ok(()),
    }
}

/// The weight of each program of a node, where one of them asks for one.
pub(super) fn weight_of_program(node: &Node, demand: &Demand) -> Option<u32> {
    let mut programs = node.programs.iter();
    let divided = programs.any(|program| program.demand.disk_weight.is_some());
    divided.then(|| weight_of(demand))
}

fn weight_of(demand: &Demand) -> u32 {
    demand.disk_weight.unwrap_or(Demand::WEIGHT_DEFAULT)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(text: &str) -> Plan {
        windtunnel_dataplane::testing::plan(&format!("{text}\nlinks: [{{between: [a, b]}}]"))
    }

    #[test]
    fn one_weight_gives_all_others_a_weight_of_one() {
        let plan = plan("nodes: {a: {disk: {weight: 3}}, b: {disk: 1MB/s}}");
        let needs = DiskNeeds::of(&plan);
        let weights = plan.nodes.iter().map(|node| needs.weight(&node.demand));
        assert_eq!(weights.collect::<Vec<_>>(), [Some(3), Some(1)]);
        let limits: Vec<_> = plan.nodes.iter().map(|node| node.demand.limits().disk).collect();
        assert_eq!(limits, [None, Some(1_000_000)]);
        assert!(!needs.is_later(0) && !needs.is_later(1));
    }

    #[test]
    fn a_node_that_an_event_limits_has_a_group_before() {
        let events = "events: [{at: 1s, node: b, limit: {disk: 1MB/s}}]";
        let plan = plan(&format!("nodes: {{a: {{}}, b: {{run: x}}}}\n{events}"));
        let needs = DiskNeeds::of(&plan);
        assert_eq!((needs.has(0), needs.has(1)), (false, true));
        assert_eq!((needs.is_later(0), needs.is_later(1)), (false, true));
        assert_eq!(plan.nodes[1].demand.limits().disk, None);
    }

    #[test]
    fn programs_of_a_node_divide_its_part() {
        let plan = plan("nodes: {a: {run: [{run: x, disk: {weight: 2}}, {run: y}]}, b: {}}");
        let node = &plan.nodes[0];
        let weight = |program: usize| weight_of_program(node, &node.programs[program].demand);
        assert_eq!((weight(0), weight(1)), (Some(2), Some(1)));
        assert!(weight_of_program(&plan.nodes[1], &Demand::default()).is_none());
        assert!(!DiskNeeds::of(&plan).has(0));
    }
}
