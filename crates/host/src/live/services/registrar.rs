//! What becomes of replicas. What is seen of them goes to the packet loop and to the other members;
//! a node that becomes one gets the addresses of its service.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use windtunnel_model::plan::{EventAction, NodeVerb, Replica, ServiceChange, ServiceUpdate};
use windtunnel_model::{NodeId, Plan, Time};
use windtunnel_node::{ExitStatus, NodeInitReply, NodeInitRequest};
use windtunnel_record::listeners::ListenerThreadEvent;
use windtunnel_sys::process::Signal;
use windtunnel_sys::unix;

use super::health::{HealthProbeAction, HealthProbeOutcome};
use super::{ServiceMonitor, targets};
use crate::live::context::RunContext;
use crate::live::launcher::Launcher;
use crate::live::membership::AgentMembership;
use crate::live::network::{NetworkController, ReplicaObservation};
use crate::live::programs::reason;
use crate::live::punctuality::ScheduledOccurrence;
use crate::part::news::MemberAnnouncement;

/// Registers, loses and probes replicas: the state of services, and what its changes concern.
pub(in crate::live) struct ServiceRegistrar<'a> {
    pub(in crate::live) cx: &'a RunContext,
    pub(in crate::live) monitor: &'a mut ServiceMonitor,
    pub(in crate::live) network: &'a mut NetworkController,
    pub(in crate::live) membership: Option<&'a AgentMembership>,
    /// Commands of probes have what programs without settings of their own have.
    pub(in crate::live) launcher: &'a Launcher,
}

impl ServiceRegistrar<'_> {
    /// Handles what has been seen of replicas.
    pub(in crate::live) fn handle_findings(&mut self) {
        while let Some(finding) =
            self.monitor.watch.as_ref().and_then(|watch| watch.findings.try_recv().ok())
        {
            match finding {
                ListenerThreadEvent::Seen(sighting) => {
                    if let Some(change) = self.monitor.saw(&sighting) {
                        let at = Time::from_nanos(sighting.seen_ns);
                        self.was_seen(change, ReplicaObservation { at, why: None });
                    }
                }
                ListenerThreadEvent::Failed { node, error } => {
                    self.cannot_watch(node, &error.to_string());
                }
            }
        }
    }

    /// Before programs are killed: their nodes are lost as replicas, and the routers know that
    /// before the nodes' kernels can send anything for programs that are not there any more.
    pub(in crate::live) fn lose_what_dies(&mut self, action: &EventAction) {
        let nodes = match action {
            EventAction::Node { nodes, verb: NodeVerb::Kill | NodeVerb::Restart } => nodes,
            EventAction::Churn { leave, by: NodeVerb::Kill, .. } => leave,
            _ => return,
        };
        let lost: Vec<NodeId> = self.monitor.replicas_among(nodes).collect();
        let here = lost.into_iter().filter(|node| self.cx.nodes.is_here(*node));
        let changes: Vec<ServiceChange> =
            here.collect::<Vec<_>>().into_iter().flat_map(|node| self.monitor.lose(node)).collect();
        if changes.is_empty() {
            return;
        }
        let at = self.cx.journal.now();
        changes
            .into_iter()
            .for_each(|change| self.was_seen(change, ReplicaObservation { at, why: None }));
        if !self.network.await_orders() {
            let late = "the packet loop was too busy to withdraw replicas before their programs \
                        were killed: clients may get resets of nodes that the file says are gone";
            self.cx.journal.warn(late.to_owned());
        }
    }

    /// Probes replicas that are due to be.
    pub(in crate::live) fn probe(&mut self) {
        let ServiceMonitor { states, plan, probes, .. } = &mut *self.monitor;
        let is_here =
            |node: NodeId| self.cx.nodes.is_here(node) && !self.cx.nodes.is_dead(node.index());
        for step in probes.tick(self.cx.journal.now(), plan, states, is_here) {
            match step {
                HealthProbeAction::Begin { token, node, request, name, due } => {
                    let what = format!("{name} at {}", self.cx.nodes.name(node.index()));
                    let due = due.since(self.cx.journal.origin());
                    self.cx.happened(
                        ScheduledOccurrence::one(&what),
                        due,
                        self.cx.journal.elapsed(),
                    );
                    if let Err(why) = self.begin_probe(node, &request) {
                        self.probed(token, Some(why));
                    }
                }
                HealthProbeAction::Kill { token, node } => {
                    // One that has just ended needs no signal.
                    let _ = self.cx.nodes.signal_one(node.index(), token, Signal::KILL.as_raw());
                }
                HealthProbeAction::Over(outcome) => self.take_outcome(outcome),
            }
        }
    }

    fn begin_probe(&self, node: NodeId, request: &NodeInitRequest) -> Result<(), String> {
        let NodeInitRequest::Spawn(command) = request else {
            return self.cx.nodes.send(node.index(), request, &[]);
        };
        let mut command = command.clone();
        self.launcher.complete(self.cx, node.index(), &mut command);
        let request = &NodeInitRequest::Spawn(command);
        let null = File::options().read(true).write(true).open("/dev/null");
        let null = null.map_err(|error| format!("cannot open /dev/null: {error}"))?;
        self.cx.nodes.send(node.index(), request, &[null.as_fd(), null.as_fd(), null.as_fd()])
    }

    /// What a node says of a probe.
    pub(in crate::live) fn handle_probe(&mut self, reply: NodeInitReply) {
        match reply {
            NodeInitReply::Probed { token, failure } => self.probed(token, failure),
            NodeInitReply::SpawnFailed { id, message, errno, .. } => {
                self.probed(id, Some(reason(&message, errno)));
            }
            NodeInitReply::Exited { id, status } => {
                let failure = match status {
                    ExitStatus::Code(0) => None,
                    ExitStatus::Code(code) => Some(format!("it exited with {code}")),
                    ExitStatus::Signal(signal) => Some(format!("signal {signal} ended it")),
                };
                self.probed(id, failure);
            }
            _ => {}
        }
    }

    fn probed(&mut self, token: u64, failure: Option<String>) {
        if let Some(outcome) = self.monitor.probes.end(token, failure) {
            self.take_outcome(outcome);
        }
    }

    /// Only a change of health is news.
    fn take_outcome(&mut self, outcome: HealthProbeOutcome) {
        let health = self.cx.plan.services.get(outcome.service.index());
        let Some(health) = health.and_then(|service| service.health.as_ref()) else { return };
        if !self.monitor.probes.is_enough(&outcome, health) {
            return;
        }
        let HealthProbeOutcome { service, node, failure } = outcome;
        let Some(state) = self.monitor.states.get_mut(service.index()) else { return };
        let healthy = failure.is_none();
        if state.replica(node).is_none_or(|replica| replica.state.is_healthy == healthy) {
            return;
        }
        let update = ServiceUpdate::Health { replica: node, healthy };
        state.follow(&update);
        let at = self.cx.journal.now();
        self.was_seen(ServiceChange { service, update }, ReplicaObservation { at, why: failure });
    }

    /// Nodes of another machine are gone with it: every machine learns that by itself.
    pub(in crate::live) fn lose_elsewhere(&mut self, nodes: &[usize]) {
        for node in nodes {
            for change in self.monitor.lose(NodeId::from_index(*node)) {
                self.network.change_service(change, None);
            }
        }
    }

    /// Something was seen here of a replica.
    fn was_seen(&mut self, change: ServiceChange, seen: ReplicaObservation) {
        self.network.change_service(change, Some(seen));
        if let Some(membership) = self.membership {
            membership.send_to_members(&MemberAnnouncement::Service { change });
        }
    }

    /// Something was seen of a replica on another machine.
    pub(in crate::live) fn was_seen_elsewhere(&mut self, change: ServiceChange) {
        if change.update.is_asked_for() || self.cx.plan.validate_service_change(&change).is_err() {
            self.cx
                .journal
                .warn("another machine says what it cannot know of a service".to_owned());
            return;
        }
        if let Some(state) = self.monitor.states.get_mut(change.service.index()) {
            state.follow(&change.update);
        }
        self.network.change_service(change, None);
    }

    /// Changes of services have taken effect.
    pub(in crate::live) fn changed(
        &mut self,
        changes: &[ServiceChange],
        at: Time,
        seen: Option<Time>,
    ) {
        for change in changes {
            let Some(state) = self.monitor.states.get_mut(change.service.index()) else {
                continue;
            };
            state.applied(&change.update, at, seen);
            if let ServiceUpdate::Add { replica } = change.update {
                self.host_replica(change.service.index(), replica);
            }
        }
    }

    /// A node has become a replica: it answers for the service from now on, and is looked at.
    fn host_replica(&mut self, service: usize, node: NodeId) {
        let before = Arc::clone(&self.monitor.plan);
        if before.services[service].replica(node).is_none() {
            let mut plan = Plan::clone(&before);
            plan.services[service].replicas.push(Replica { node, weight: 1 });
            self.monitor.plan = Arc::new(plan);
        }
        if !self.cx.nodes.is_here(node) || self.cx.nodes.is_dead(node.index()) {
            return;
        }
        let after = Arc::clone(&self.monitor.plan);
        let routes = self.network.routes();
        let sent = self.cx.nodes.inits().change_services(&before, &after, routes, node);
        // It is asked after it has got the address.
        let opened = sent.and_then(|()| self.open_diagnosis(node));
        match (opened, &self.monitor.watch) {
            (Ok(end), Some(watch)) => {
                let open = move || windtunnel_node::sent_to(&end, PATIENCE);
                watch.thread.watch(node, open, targets(&after, node));
            }
            (Err(error), _) => self.cannot_watch(node, &error),
            (Ok(_), None) => self.cannot_watch(node, "no thread looks at nodes"),
        }
    }

    /// Has a node send a socket, by which the kernel can be asked about the node's sockets.
    fn open_diagnosis(&self, node: NodeId) -> Result<OwnedFd, String> {
        let pair = unix::seqpacket_pair();
        let (own, theirs) = pair.map_err(|error: io::Error| error.to_string())?;
        self.cx.nodes.send(node.index(), &NodeInitRequest::Diagnose, &[theirs.as_fd()])?;
        Ok(own)
    }

    fn cannot_watch(&mut self, node: NodeId, why: &str) {
        let name = self.cx.nodes.name(node.index());
        let doubt = format!(
            "it was not seen whether programs of {name} listen for services, since {}: {why}",
            self.cx.journal.elapsed()
        );
        self.cx.journal.warn(doubt.clone());
        self.monitor.unwatched.push(doubt);
    }
}

/// A node's init answers at once, but for a machine that is very busy.
const PATIENCE: Duration = Duration::from_secs(10);
