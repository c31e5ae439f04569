//! What routers chose last, to notice when they choose anew.

use alloc::collections::BTreeMap;

use windtunnel_model::plan::LoadBalancingPolicy;
use windtunnel_model::{NodeId, RouterId};

use super::directory::{RedirectionRequest, ServiceDirectory};

/// A router chooses another replica than before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReplicaChoiceChange {
    pub(crate) row: u16,
    pub(crate) replica: NodeId,
}

/// The last choice of each router for each row, where that does not depend on the flow.
#[derive(Debug, Default)]
pub(super) struct LastReplicaChoices {
    choices: BTreeMap<(u16, RouterId), u16>,
    /// A choice that is another one than before, to be reported.
    moved: Option<ReplicaChoiceChange>,
}

impl LastReplicaChoices {
    /// Notes what a router chose, where that is the same for every flow.
    pub(super) fn note(
        &mut self,
        services: &ServiceDirectory,
        request: &RedirectionRequest,
        replica: u16,
    ) {
        let service = services.of(&request.row);
        let same_for_all = matches!(
            service.planned.policy,
            LoadBalancingPolicy::Nearest | LoadBalancingPolicy::Hops | LoadBalancingPolicy::Ordered
        );
        let row = request.key.row;
        let key = (row, request.router);
        if !same_for_all || self.choices.len() >= CHOICES_MAX && !self.choices.contains_key(&key) {
            return;
        }
        let before = self.choices.insert(key, replica);
        if before.is_some_and(|before| before != replica) {
            let replica = service.replicas[usize::from(replica)].state.node;
            self.moved = Some(ReplicaChoiceChange { row, replica });
        }
    }

    /// A choice that changed since the last call.
    pub(super) fn take_moved(&mut self) -> Option<ReplicaChoiceChange> {
        self.moved.take()
    }
}

/// Choices that are remembered to notice when they change.
const CHOICES_MAX: usize = 1 << 16;
