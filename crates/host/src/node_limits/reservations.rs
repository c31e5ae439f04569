//! Reservations: groups around the groups of nodes.

use windtunnel_control as control;
use windtunnel_limit::{CgroupResource, LimitMechanismChoice};
use windtunnel_model::demand::Demand;
use windtunnel_model::plan::{Node, ResourceReservation};
use windtunnel_model::{Plan, ReservationId};
use windtunnel_verdict::evidence::ResourceLimitOwner;

use super::groups::NodeGroups;
use super::limited::OwnerResourceLimits;
use super::{MachineResourceLimits, disks, lacking};
use crate::error::RunError;

impl MachineResourceLimits {
    /// Makes the groups of reservations that nodes of this machine are in, the outermost first.
    pub(super) fn add_reservations(
        &mut self,
        choice: &mut LimitMechanismChoice,
        plan: &Plan,
        nodes: &[(usize, &Node)],
    ) -> Result<(), RunError> {
        for index in outermost_first(plan, nodes) {
            let reservation = &plan.reservations[index];
            let parent = reservation.parent.and_then(|it| self.reservation(it.index()));
            let within = parent.and_then(|it| it.groups.as_ref()?.around());
            let within = within.or(self.around.as_ref());
            let guarantee = self.share_of(ResourceLimitOwner::Reservation(index));
            let demand = &reservation.demand;
            let disk = self.disks.of_reservation(demand);
            let groups = NodeGroups::of_reservation(choice, demand, within, guarantee, disk);
            let groups = groups.map_err(|error| RunError::Limit {
                who: format!("reservation {}", reservation.name),
                key: "of",
                why: error.to_string(),
            })?;
            let mut limited = OwnerResourceLimits::new(
                ResourceLimitOwner::Reservation(index),
                demand,
                Some(groups),
            );
            limited.name_mechanisms(choice);
            self.reservations.insert(0, limited);
        }
        Ok(())
    }

    pub(super) fn reservation(&self, index: usize) -> Option<&OwnerResourceLimits> {
        self.reservations.iter().find(|it| it.owner == ResourceLimitOwner::Reservation(index))
    }

    /// Whether a reservation has nodes on this machine.
    pub(crate) fn is_here(&self, reservation: usize) -> bool {
        self.reservation(reservation).is_some()
    }

    /// What nodes and reservations that are here have, each after the one around it.
    pub(crate) fn reservations(&self, plan: &Plan) -> Vec<control::ReservationStatus> {
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
        let most = limited.status().cpu_millis.unwrap_or(u32::MAX);
        let weight = demand.cpu_weight.unwrap_or(Demand::WEIGHT_DEFAULT);
        control::ReservationStatus {
            name: limited.owner.name(plan).to_owned(),
            node: matches!(limited.owner, ResourceLimitOwner::Node(_)),
            parent: parent.map(|it| plan.reservations[it.index()].name.clone()),
            cpu_min_millis: own.cpu_millis,
            cpu_weight: part.map_or(weight, |part| part.weight),
            cpu_share_millis: share.map(|share| share.min(most)),
            memory_min: own.memory_bytes,
            limits: limited.status(),
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
) -> Result<(), RunError> {
    for (index, reservation) in plan.reservations.iter().enumerate() {
        let is_within = |node: usize| {
            plan.reservations_from(plan.nodes[node].reservation).any(|it| it.index() == index)
        };
        let mut nodes = (0..plan.nodes.len()).filter(|node| is_within(*node));
        let Some(first) = nodes.next() else { continue };
        if nodes.any(|node| is_here(node) != is_here(first)) {
            return Err(RunError::Spread { reservation: reservation.name.clone() });
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
) -> Result<(), RunError> {
    let demand = &reservation.demand;
    let processor = demand.cpu_millis.is_some() || demand.is_weighted();
    let asked = [
        (processor, "cpu", CgroupResource::Processor),
        (demand.memory.is_some(), "memory", CgroupResource::Memory),
        (demand.pids.is_some(), "pids", CgroupResource::Processes),
    ];
    let lacking_one = asked
        .into_iter()
        .find(|(is_asked, _, resource)| *is_asked && choice.group_of(*resource).is_none());
    match lacking_one {
        Some((_, key, resource)) => {
            lacking(choice, format!("reservation {}", reservation.name), key, resource)
        }
        None => disks::check(choice, demand, || format!("reservation {}", reservation.name)),
    }
}
