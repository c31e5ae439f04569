//! What the nodes and reservations of a plan reserve, each within another one or the machine.

use windtunnel_budget::admission::{RESERVABLE, ResourceShortfall};
use windtunnel_budget::reservation::{ReservationNode, ReservationTree};
use windtunnel_limit::ResourceLimitOwner;
use windtunnel_model::demand::Demand;
use windtunnel_model::plan::EventAction;
use windtunnel_model::{NodeId, Plan, ReservationId, Resource, ResourceAmounts};

/// What is reserved by parts of a plan on this machine.
#[derive(Debug, Clone)]
pub(super) struct MachineReservations {
    /// Their names.
    reservations: Vec<String>,
    /// Of reservations, then of nodes, by their positions in the plan.
    all: Vec<DeclaredReservation>,
}

/// What one part reserves by its own words.
#[derive(Debug, Clone, Copy)]
struct DeclaredReservation {
    parent: Option<usize>,
    amounts: ResourceAmounts,
    limits: ResourceAmounts,
}

impl MachineReservations {
    /// Of nodes that are `here`, and of reservations around these.
    pub(super) fn of(plan: &Plan, here: Option<&[bool]>) -> MachineReservations {
        let is_here = |node: usize| here.is_none_or(|here| here.get(node) == Some(&true));
        let mut is_used = vec![false; plan.reservations.len()];
        for (_, node) in plan.nodes.iter().enumerate().filter(|(index, _)| is_here(*index)) {
            plan.reservations_from(node.reservation).for_each(|it| is_used[it.index()] = true);
        }
        let reservations = plan.reservations.iter().zip(&is_used).map(|(it, is_used)| {
            let amounts = amounts(
                it.demand.cpu_reserved_millis.map_or(0, u64::from),
                it.demand.memory_reserved.map_or(0, |memory| memory.0),
                *is_used,
            );
            DeclaredReservation {
                parent: it.parent.map(ReservationId::index),
                amounts,
                limits: it.demand.limits(),
            }
        });
        let nodes = plan.nodes.iter().enumerate().map(|(index, node)| {
            let (cpu, memory) = (node.reserved_cpu_millis(), node.reserved_memory());
            let amounts = amounts(cpu, memory, is_here(index));
            let parent = node.reservation.map(ReservationId::index);
            DeclaredReservation { parent, amounts, limits: node.demand.limits() }
        });
        let all = reservations.chain(nodes).collect();
        let reservations = plan.reservations.iter().map(|it| it.name.clone()).collect();
        let mut parts = MachineReservations { reservations, all };
        for (node, limits) in plan.events.iter().flat_map(|event| set_by(&event.action)) {
            if is_here(node.index()) {
                parts.raise(plan, node, &limits);
            }
        }
        parts
    }

    /// An event may give a node more.
    fn raise(&mut self, plan: &Plan, node: NodeId, limits: &Demand) {
        let position = self.position(ResourceLimitOwner::Node(node.index()));
        let demand = &plan.nodes[node.index()].demand;
        // What only limits stays so.
        let is_reserved = |resource| match resource {
            Resource::Cpu => demand.cpu_millis == demand.cpu_reserved_millis,
            resource => resource == Resource::Memory && demand.memory == demand.memory_reserved,
        };
        let most = &mut self.all[position].amounts;
        for (resource, limit) in limits.limits().of_those(is_reserved).iter() {
            *most = most.with(resource, Some(most.amount(resource).max(limit)));
        }
    }

    fn position(&self, owner: ResourceLimitOwner) -> usize {
        match owner {
            ResourceLimitOwner::Reservation(reservation) => reservation,
            ResourceLimitOwner::Node(node) | ResourceLimitOwner::Program(node, _) => {
                self.reservations.len() + node
            }
        }
    }

    /// What one has reserved by its own words.
    pub(super) fn get(&self, owner: ResourceLimitOwner) -> ResourceAmounts {
        let part = self.all.get(self.position(owner));
        part.map_or_else(ResourceAmounts::default, |part| part.amounts)
    }

    pub(super) fn set(
        &mut self,
        owner: ResourceLimitOwner,
        wanted: ResourceAmounts,
        limit: Option<(Resource, Option<u64>)>,
    ) {
        let position = self.position(owner);
        let Some(part) = self.all.get_mut(position) else { return };
        part.amounts = wanted;
        if let Some((resource, limit)) = limit {
            part.limits = part.limits.with(resource, limit);
        }
    }

    /// What is reserved of the machine.
    pub(super) fn sum(&self) -> ResourceAmounts {
        RESERVABLE.into_iter().fold(ResourceAmounts::default(), |sum, resource| {
            sum.with(resource, Some(self.tree(resource).total()))
        })
    }

    /// Whether each reservation has what is reserved within it.
    pub(super) fn fit(&self) -> Result<(), Vec<ResourceShortfall>> {
        let lacking = RESERVABLE.into_iter().filter_map(|resource| {
            let overbooked = self.tree(resource).overbooked()?;
            let of = self.reservations.get(overbooked.part?).cloned();
            // A node does not bound its programs here: the file's check did.
            of.is_some().then_some(ResourceShortfall {
                resource,
                asked: overbooked.asked,
                capacity: overbooked.has,
                of,
                held: Vec::new(),
            })
        });
        let lacking: Vec<ResourceShortfall> = lacking.collect();
        if lacking.is_empty() { Ok(()) } else { Err(lacking) }
    }

    fn tree(&self, resource: Resource) -> ReservationTree {
        let part = |part: &DeclaredReservation| ReservationNode {
            parent: part.parent,
            min: part.amounts.amount(resource),
            limit: part.limits.of(resource),
            weight: 1,
        };
        // The plan is valid: its reservations are a tree.
        ReservationTree::new(self.all.iter().map(part).collect()).unwrap_or_default()
    }
}

fn amounts(cpu_millis: u64, memory: u64, counts: bool) -> ResourceAmounts {
    let (cpu_millis, memory) = (Some(cpu_millis), Some(memory));
    if counts {
        ResourceAmounts { cpu_millis, memory, ..ResourceAmounts::default() }
    } else {
        ResourceAmounts::default()
    }
}

/// The nodes that an event limits.
fn set_by(action: &EventAction) -> impl Iterator<Item = (NodeId, Demand)> + '_ {
    let found = match action {
        EventAction::Limit { nodes, limits } => Some((nodes, *limits)),
        _ => None,
    };
    found.into_iter().flat_map(|(nodes, limits)| nodes.iter().map(move |node| (*node, limits)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> MachineReservations {
        MachineReservations::of(&windtunnel_dataplane::testing::plan(text), None)
    }

    fn reserved(nodes: &str) -> Vec<(u64, u64)> {
        let parts = parts(&format!("nodes: {{{nodes}}}\nlinks: [{{between: [a, b]}}]"));
        let [cpu, memory] = RESERVABLE;
        parts.all.iter().map(|it| (it.amounts.amount(cpu), it.amounts.amount(memory))).collect()
    }

    #[test]
    fn a_limit_is_reserved_unless_it_is_only_a_limit() {
        assert_eq!(reserved("a: {cpu: 25%, memory: 64MB}, b: {}"), [(250, 64_000_000), (0, 0)]);
        let only = reserved("a: {cpu: {limit: 25%}, memory: {limit: 64MB}}, b: {}");
        assert_eq!(only, [(0, 0), (0, 0)]);
        let less = "a: {cpu: {limit: 2, min: 0.5}, memory: {limit: 2GB, min: 1MB}}, b: {}";
        assert_eq!(reserved(less), [(500, 1_000_000), (0, 0)]);
    }

    #[test]
    fn the_most_that_an_event_gives_a_node_is_reserved_from_the_beginning() {
        let parts = parts(
            "nodes:\n\
             \x20 a: {cpu: 25%, run: x}\n\
             \x20 b: {run: x}\n\
             \x20 c: {cpu: {limit: 25%}, run: x}\n\
             links: [{between: [a, b]}, {between: [b, c]}]\n\
             events:\n\
             - {at: 1s, node: [a, b, c], limit: {cpu: 50%, memory: 2MB}}\n\
             - {at: 2s, node: a, limit: {cpu: 10%}}\n",
        );
        let cpu: Vec<u64> = parts.all.iter().map(|it| it.amounts.amount(Resource::Cpu)).collect();
        assert_eq!(cpu, [500, 500, 0]);
        assert!(parts.all.iter().all(|it| it.amounts.memory == Some(2_000_000)));
    }

    #[test]
    fn programs_reserve_what_their_node_does_not() {
        let programs = "run: [{run: x, cpu: 10%, memory: 2MB}, {run: y, cpu: 20%}]";
        assert_eq!(reserved(&format!("a: {{{programs}}}, b: {{}}"))[0], (300, 2_000_000));
        assert_eq!(reserved(&format!("a: {{cpu: 50%, {programs}}}, b: {{}}"))[0], (500, 2_000_000));
    }

    #[test]
    fn a_reservation_counts_once_and_bounds_what_is_within_it() {
        let mut parts = parts(
            "nodes: {a: {cpu: 25%}, b: {cpu: 10%}, c: {cpu: 5%}}\n\
             links: [{between: [a, b]}, {between: [b, c]}]\n\
             reserve: {site: {of: [a, b], cpu: {min: 50%}}}",
        );
        assert_eq!(parts.sum().cpu_millis, Some(550));
        assert_eq!(parts.fit(), Ok(()));
        parts.set(ResourceLimitOwner::Node(1), ResourceAmounts::only(Resource::Cpu, 300), None);
        let lacking = parts.fit().unwrap_err();
        assert_eq!(
            lacking[0].to_string(),
            "cpu: 0.55 of 0.5 cores of reservation 'site' asked: 0.05 missing"
        );
        assert_eq!(
            parts.sum().cpu_millis,
            Some(550),
            "the machine's part is what the reservation says"
        );
    }
}
