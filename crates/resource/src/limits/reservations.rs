//! Reservations: groups around the groups of nodes.

use windtunnel_control as control;
use windtunnel_limit::{LimitMechanismChoice, ResourceLimitOwner};
use windtunnel_model::demand::Demand;
use windtunnel_model::plan::{Node, ResourceReservation};
use windtunnel_model::{Plan, ReservationId, Resource};

use super::groups::NodeGroups;
use super::limited::OwnerResourceLimits;
use super::{MachineResourceLimits, disks, lacking, ungrouped};
use crate::error::ResourceError;

impl MachineResourceLimits {
    /// Makes the groups of reservations that nodes of this machine are in, the outermost first.
    pub(super) fn add_reservations(
        &mut self,
        choice: &mut LimitMechanismChoice,
        plan: &Plan,
        nodes: &[(usize, &Node)],
    ) -> Result<(), ResourceError> {
        for index in outermost_first(plan, nodes) {
            let reservation = &plan.reservations[index];
            let parent = reservation.parent.and_then(|it| self.reservation(it.index()));
            let within = parent.and_then(|it| it.limits.groups()?.around());
            let within = within.or(self.around.as_ref());
            let guarantee = self.share_of(ResourceLimitOwner::Reservation(index));
            let demand = &reservation.demand;
            let disks = &self.disks;
            let groups = NodeGroups::of_reservation(choice, demand, within, guarantee, disks);
            let groups = groups.map_err(|error| ResourceError::Limit {
                who: format!("reservation {}", reservation.name),
                key: "of",
                why: error.to_string(),
            })?;
            let owner = ResourceLimitOwner::Reservation(index);
            let limited = OwnerResourceLimits::new(owner, demand, [], Some(groups));
            self.reservations.insert(0, limited);
        }
        Ok(())
    }

    pub(super) fn reservation(&self, index: usize) -> Option<&OwnerResourceLimits> {
        self.reservations.iter().find(|it| it.owner == ResourceLimitOwner::Reservation(index))
    }

    /// Whether a reservation has nodes on this machine.
    pub fn is_here(&self, reservation: usize) -> bool {
        self.reservation(reservation).is_some()
    }

    /// What nodes and reservations that are here have, each after the one around it.
    pub fn reservations(&self, plan: &Plan) -> Vec<control::ReservationStatus> {
        let reservations = self.reservations.iter().rev();
        let all = reservations.chain(&self.nodes).map(|limited| self.describe(plan, limited));
        all.collect()
    }

    fn describe(&self, plan: &Plan, limited: &OwnerResourceLimits) -> control::ReservationStatus {
        let (parent, demand) = match limited.owner {
            ResourceLimitOwner::Reservation(index) => {
                (plan.reservations[index].parent, &plan.reservations[index].demand)
            }
            ResourceLimitOwner::Node(node) | ResourceLimitOwner::Program(node, _) => {
                (plan.nodes[node].reservation, &plan.nodes[node].demand)
            }
        };
        let own = self.admitted.as_ref().map(|it| it.of(limited.owner)).unwrap_or_default();
        let part = self.shares.as_ref().and_then(|shares| shares.part(limited.owner));
        let share = self.share_of(limited.owner);
        let limits = limited.limits.usage();
        let most = limits
            .asked
            .cpu_millis
            .map_or(u32::MAX, |most| u32::try_from(most).unwrap_or(u32::MAX));
        let weight = demand.cpu_weight.unwrap_or(Demand::WEIGHT_DEFAULT);
        control::ReservationStatus {
            name: limited.owner.name(plan).to_owned(),
            node: matches!(limited.owner, ResourceLimitOwner::Node(_)),
            parent: parent.map(|it| plan.reservations[it.index()].name.clone()),
            cpu_min_millis: own.amount(Resource::Cpu),
            cpu_weight: part.map_or(weight, |part| part.weight),
            cpu_share_millis: share.map(|share| share.min(most)),
            memory_min: own.amount(Resource::Memory),
            limits,
            sending: None,
        }
    }
}

/// Reservations around any of these nodes, each after the one around it.
fn outermost_first(plan: &Plan, nodes: &[(usize, &Node)]) -> Vec<usize> {
    let mut depths = vec![None; plan.reservations.len()];
    for (_, node) in nodes {
        let around: Vec<ReservationId> = plan.reservations_from(node.reservation).collect();
        for (depth, reservation) in around.iter().rev().enumerate() {
            depths[reservation.index()] = Some(depth);
        }
    }
    let mut found: Vec<usize> = (0..depths.len()).filter(|it| depths[*it].is_some()).collect();
    found.sort_by_key(|reservation| depths[*reservation]);
    found
}

/// Refuses what no mechanism of this machine can hold: without groups no reservation can be held, and
/// none over several machines.
pub(super) fn check(
    choice: &LimitMechanismChoice,
    plan: &Plan,
    is_here: &impl Fn(usize) -> bool,
) -> Result<(), ResourceError> {
    for (index, reservation) in plan.reservations.iter().enumerate() {
        let is_within = |node: usize| {
            plan.reservations_from(plan.nodes[node].reservation).any(|it| it.index() == index)
        };
        let mut nodes = (0..plan.nodes.len()).filter(|node| is_within(*node));
        let Some(first) = nodes.next() else { continue };
        if nodes.any(|node| is_here(node) != is_here(first)) {
            return Err(ResourceError::Spread { reservation: reservation.name.clone() });
        }
        if is_here(first) {
            can_be_held(choice, reservation)?;
        }
    }
    Ok(())
}

fn can_be_held(
    choice: &LimitMechanismChoice,
    reservation: &ResourceReservation,
) -> Result<(), ResourceError> {
    let demand = &reservation.demand;
    match ungrouped(choice, demand) {
        Some(resource) => {
            lacking(choice, format!("reservation {}", reservation.name), resource.key(), resource)
        }
        None => disks::check(choice, demand, || format!("reservation {}", reservation.name)),
    }
}
