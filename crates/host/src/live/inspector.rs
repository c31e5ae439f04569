//! What clients of the control socket can ask of a run without changing it.

use windtunnel_control::{LinkList, NodeEgressStatus, ReservationStatus, RunStatus, Snapshot};
use windtunnel_model::{Lane, NetworkVertex};
use windtunnel_resource::MachineResourceLimits;

use super::context::RunContext;
use super::network::NetworkController;
use super::programs::ProgramExecution;
use super::services::{ServiceInspector, ServiceMonitor};

/// Describes a run: what its parts are like now.
pub(super) struct RunInspector<'a> {
    pub(super) cx: &'a RunContext,
    pub(super) programs: &'a ProgramExecution,
    pub(super) network: &'a NetworkController,
    pub(super) limits: &'a MachineResourceLimits,
    pub(super) services: &'a ServiceMonitor,
}

impl<'a> RunInspector<'a> {
    /// Nodes and their programs, services and NATs.
    pub(super) fn status(&self) -> RunStatus {
        let mut nodes = self.programs.statuses(self.cx);
        for (node, limits) in self.limits.statuses() {
            nodes[node].limits = limits;
        }
        let name = self.cx.plan.name.clone();
        let services = self.services().statuses();
        let nats = self.nat_statuses();
        RunStatus { name, elapsed_ns: self.elapsed_ns(), nodes, services, nats }
    }

    /// The same with what links are like and do.
    pub(super) fn snapshot(&self) -> Snapshot {
        let (at, window, did) = self.cx.journal.recent().lanes();
        Snapshot {
            links: self.network.links.statuses(&self.cx.plan, did),
            sampled_ns: at.as_nanos(),
            window_ns: window.as_nanos(),
            status: self.status(),
        }
    }

    /// What is reserved, and what nodes send of what their links carry.
    pub(super) fn reservations(&self) -> Vec<ReservationStatus> {
        let plan = &self.cx.plan;
        let (_, _, did) = self.cx.journal.recent().lanes();
        let lanes = self.network.links.statuses(plan, did);
        let mut parts = self.limits.reservations(plan);
        for part in parts.iter_mut().filter(|part| part.node) {
            let node = plan.nodes.iter().position(|node| node.name == part.name);
            let is_own = |lane: usize| match plan.lane_start(Lane::from_index(lane)) {
                NetworkVertex::Node(start) => Some(start.index()) == node,
                NetworkVertex::Router(_) | NetworkVertex::Lan(_) => false,
            };
            let own = lanes.iter().enumerate().filter(|(lane, _)| is_own(*lane));
            part.sending = Some(NodeEgressStatus::of(own.map(|(_, lane)| lane)));
        }
        parts
    }

    /// What links are like, and what they were in the plan.
    pub(super) fn links(&self) -> LinkList {
        LinkList {
            name: self.cx.plan.name.clone(),
            elapsed_ns: self.elapsed_ns(),
            links: self.network.links.properties(&self.cx.plan),
        }
    }

    /// The services alone.
    pub(super) fn services(&self) -> ServiceInspector<'a> {
        ServiceInspector { cx: self.cx, monitor: self.services, network: self.network }
    }

    fn elapsed_ns(&self) -> u64 {
        self.cx.journal.elapsed().as_nanos()
    }
}
