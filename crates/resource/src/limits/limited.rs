//! A node with limits, and those of its programs; or a reservation.

use windtunnel_limit::choice::without_group;
use windtunnel_limit::{LimitAccount, LimitHit, LimitSupervisor, ResourceLimitOwner};
use windtunnel_model::Resource;
use windtunnel_model::demand::Demand;
use windtunnel_model::plan::Node;

use super::groups::NodeGroups;

/// A limited node or reservation.
#[derive(Debug)]
pub(super) struct OwnerResourceLimits {
    pub(super) owner: ResourceLimitOwner,
    pub(super) limits: LimitSupervisor<NodeGroups>,
    /// Reservations that a node is in, by position.
    pub(super) within: Vec<usize>,
}

impl OwnerResourceLimits {
    pub(super) fn of_node(
        index: usize,
        node: &Node,
        groups: Option<NodeGroups>,
    ) -> OwnerResourceLimits {
        let programs = node.programs.iter().map(|program| &program.demand);
        OwnerResourceLimits::new(ResourceLimitOwner::Node(index), &node.demand, programs, groups)
    }

    pub(super) fn new<'a>(
        owner: ResourceLimitOwner,
        demand: &Demand,
        programs: impl IntoIterator<Item = &'a Demand>,
        groups: Option<NodeGroups>,
    ) -> OwnerResourceLimits {
        let mut limits = LimitSupervisor::new(groups);
        limits.add(None, demand.limits());
        for (program, demand) in programs.into_iter().enumerate() {
            limits.add(Some(program), demand.limits());
        }
        limits.name_mechanisms(without_group);
        OwnerResourceLimits { owner, limits, within: Vec::new() }
    }

    /// Whether there are limits that are looked at each second.
    pub(super) fn is_looked_at(&self) -> bool {
        let mut resources = self.limits.limits().iter().map(|limit| limit.resource);
        self.limits.groups().is_some()
            || resources.any(|it| !matches!(it, Resource::Cpu | Resource::OpenFiles))
    }

    /// Looks what groups say of everything but processor time. Hits say whose they are.
    pub(super) fn look(&mut self) -> Vec<(ResourceLimitOwner, LimitHit)> {
        let owner = self.owner;
        self.limits.look().into_iter().map(|hit| (owner, hit)).collect()
    }

    /// Looks whether its groups limit what they were asked to. What was changed is set again; until then
    /// nothing held the limit.
    pub(super) fn correct(&mut self) {
        let corrected = self.limits.groups_mut().map(NodeGroups::correct).unwrap_or_default();
        for (program, resource, why) in corrected {
            self.limits.not_held(program, resource, &why);
        }
    }

    /// What all of its limits had: those of processor time, and the others.
    pub(super) fn into_accounts(self, origin_ns: u64) -> Vec<LimitAccount> {
        let owner = self.owner;
        let limits = self.limits.into_limits().into_iter();
        limits.map(|limit| LimitAccount::of_limit(owner, limit, origin_ns)).collect()
    }
}
