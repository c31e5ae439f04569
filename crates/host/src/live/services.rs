//! The services of a live run: what is seen of their replicas is brought to the packet loop and to
//! the other machines, and what is asked of them is done in their nodes.

mod ended;
mod health;
mod state;
mod status;
mod transparent;

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use windtunnel_engine::ServiceRow;
use windtunnel_model::plan::{EventAction, NodeVerb, Replica, ServiceChange, ServiceUpdate};
use windtunnel_model::{NodeId, Plan, RouterId, Time};
use windtunnel_node::{ExitStatus, FIRST_DEVICE, NodeInitReply, NodeInitRequest};
use windtunnel_record::listeners::{
    Finding, ListenerStats, ListenerTarget, ListenerThread, Sighting,
};
use windtunnel_sys::process::Signal;
use windtunnel_sys::unix;
use windtunnel_trace::event::{EventLogEntryKind, ServiceSetting};
use windtunnel_trace::report::ReplicasWatched;

use super::context::RunContext;
use super::network::ReplicaObservation;
use super::punctuality::ScheduledOccurrence;
use super::state::RunLoop;
use crate::part::news::MemberAnnouncement;
pub(crate) use ended::ServicesEnded;
pub(in crate::live) use health::PROBE_FIRST;
use health::{HealthProbeAction, HealthProbeOutcome, HealthProbeSchedule};
pub(crate) use state::{ReplicaState, ServiceState};
use windtunnel_dataplane::Redirections;

/// The state of all services, and the thread that looks at the nodes of their replicas here.
pub(super) struct ServiceMonitor {
    states: Vec<ServiceState>,
    /// The plan with the replicas that were added since the run began: what the nodes' kernels have.
    plan: Arc<Plan>,
    watch: Option<ReplicaWatcher>,
    probes: HealthProbeSchedule,
    /// How often each node was lost.
    losses: BTreeMap<NodeId, u32>,
    /// Why some replica could not be watched at some time.
    unwatched: Vec<String>,
    /// Events of connections that outlive their server.
    logged: u64,
    /// How replicas were looked at, once that has ended.
    watched: Option<ReplicasWatched>,
    /// What redirectors had done when the run ended.
    redirected: Redirections,
}

/// What looks at nodes, and what it finds.
pub(crate) struct ReplicaWatcher {
    pub(crate) thread: ListenerThread,
    pub(crate) findings: Receiver<Finding>,
    /// Sockets of the replicas that are here at the beginning.
    pub(crate) sockets: Vec<(NodeId, OwnedFd)>,
}

impl ServiceMonitor {
    pub(super) fn new(plan: &Arc<Plan>, watch: Option<ReplicaWatcher>) -> Self {
        let states = plan.services.iter().map(ServiceState::new).collect();
        let (losses, unwatched) = (BTreeMap::new(), Vec::new());
        ServiceMonitor {
            states,
            plan: Arc::clone(plan),
            watch,
            probes: HealthProbeSchedule::new(),
            losses,
            unwatched,
            logged: 0,
            watched: None,
            redirected: Redirections::default(),
        }
    }

    pub(super) fn states(&self) -> &[ServiceState] {
        &self.states
    }

    /// The plan as the nodes' kernels have it.
    pub(super) fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    /// Looks at the replicas that are here from now on.
    pub(super) fn begin(&mut self) {
        let Some(watch) = &mut self.watch else { return };
        for (node, socket) in std::mem::take(&mut watch.sockets) {
            watch.thread.watch(node, || Ok(socket), targets(&self.plan, node));
        }
    }

    /// When probes have something to do next.
    pub(super) fn next_wake(&self) -> Option<Time> {
        self.probes.next()
    }

    /// Whether a node was asked to do a probe of this number.
    pub(super) fn expects_probe(&self, node: usize, token: u64) -> bool {
        self.probes.expects(node, token)
    }

    /// All programs are paused, or go on.
    pub(super) fn freeze(&mut self, frozen: bool, now: Time) {
        self.probes.freeze(frozen, now);
    }

    /// The run is over: that programs end by that is no change of a service.
    pub(super) fn end(&mut self, now: Time) {
        self.probes.freeze(true, now);
        let Some(ReplicaWatcher { thread, .. }) = self.watch.take() else { return };
        if thread.has_ended() {
            let doubt = "the thread that looks at replicas of services has ended before the run";
            self.unwatched.push(doubt.to_owned());
        }
        let ListenerStats { looks, spent_ns, interval_longest_ns, overruns } = thread.stats();
        let interval_max_ns = interval_longest_ns;
        self.watched = Some(ReplicasWatched { looks, spent_ns, interval_max_ns, overruns });
    }

    pub(super) fn finish(mut self) -> ServicesEnded {
        self.end(crate::clock::now());
        ServicesEnded {
            states: self.states,
            watched: self.watched,
            doubts: self.unwatched,
            redirected: self.redirected,
        }
    }

    /// What a sighting means.
    fn saw(&mut self, sighting: &Sighting) -> Option<ServiceChange> {
        let Sighting { node, target, socket, losses, .. } = *sighting;
        if self.losses.get(&node).copied().unwrap_or(0) != losses {
            // It was made before the node was lost.
            return None;
        }
        let ListenerTarget { address, port, .. } = target;
        let services = self.plan.services.iter().zip(&mut self.states);
        let mut services = services
            .filter(|(service, _)| service.has_address(address) && service.ports.contains(&port));
        let (_, state) = services.next()?;
        let update = state.saw(node, address, port, socket.is_some())?;
        Some(self.change(state_position(&self.plan, address, port)?, update))
    }

    fn change(&self, position: usize, update: ServiceUpdate) -> ServiceChange {
        ServiceChange { service: windtunnel_model::ServiceId::from_index(position), update }
    }

    /// A node is lost. Returns what that means for its services.
    fn lose(&mut self, node: NodeId) -> Vec<ServiceChange> {
        let lost =
            |(position, state): (usize, &mut ServiceState)| state.lose(node).then_some(position);
        let lost: Vec<usize> = self.states.iter_mut().enumerate().filter_map(lost).collect();
        let update = ServiceUpdate::Lost { replica: node };
        let changes = lost.into_iter().map(|position| self.change(position, update));
        let changes: Vec<ServiceChange> = changes.collect();
        if !changes.is_empty() {
            let losses = self.losses.entry(node).or_default();
            *losses += 1;
            if let Some(watch) = &self.watch {
                watch.thread.lose(node, *losses);
            }
        }
        changes
    }

    /// Which of these nodes are replicas of a service.
    fn replicas_among<'a>(
        &self,
        nodes: &'a [NodeId],
    ) -> impl Iterator<Item = NodeId> + use<'_, 'a> {
        let is_replica =
            |node: &&NodeId| self.states.iter().any(|state| state.replica(**node).is_some());
        nodes.iter().filter(is_replica).copied()
    }
}

impl RunLoop {
    /// The run is over: what redirectors have done until now is what they did in it.
    pub(super) fn end_services(&mut self) {
        if !self.cx.plan.services.is_empty() {
            self.services.redirected = self.network.redirections(None).all;
        }
        self.services.end(self.cx.journal.now());
    }

    /// Handles what has been seen of replicas.
    pub(super) fn handle_findings(&mut self) {
        while let Some(finding) =
            self.services.watch.as_ref().and_then(|watch| watch.findings.try_recv().ok())
        {
            match finding {
                Finding::Seen(sighting) => {
                    if let Some(change) = self.services.saw(&sighting) {
                        let at = Time::from_nanos(sighting.seen_ns);
                        self.service_was_seen(change, ReplicaObservation { at, why: None });
                    }
                }
                Finding::Failed { node, error } => self.cannot_watch(node, &error.to_string()),
            }
        }
    }

    /// Before programs are killed: their nodes are lost as replicas, and the routers know that
    /// before the nodes' kernels can send anything for programs that are not there any more.
    pub(super) fn lose_what_dies(&mut self, action: &EventAction) {
        let nodes = match action {
            EventAction::Node { nodes, verb: NodeVerb::Kill | NodeVerb::Restart } => nodes,
            EventAction::Churn { leave, by: NodeVerb::Kill, .. } => leave,
            _ => return,
        };
        let lost: Vec<NodeId> = self.services.replicas_among(nodes).collect();
        let here = lost.into_iter().filter(|node| self.cx.nodes.is_here(*node));
        let changes: Vec<ServiceChange> = here
            .collect::<Vec<_>>()
            .into_iter()
            .flat_map(|node| self.services.lose(node))
            .collect();
        if changes.is_empty() {
            return;
        }
        let at = self.cx.journal.now();
        changes
            .into_iter()
            .for_each(|change| self.service_was_seen(change, ReplicaObservation { at, why: None }));
        if !self.network.await_orders() {
            let late = "the packet loop was too busy to withdraw replicas before their programs were killed: \
                        clients may get resets of nodes that the file says are gone";
            self.cx.journal.warn(late.to_owned());
        }
    }

    /// Probes replicas that are due to be.
    pub(super) fn probe_services(&mut self) {
        let ServiceMonitor { states, plan, probes, .. } = &mut self.services;
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
        self.programs.launcher.complete(&self.cx, node.index(), &mut command);
        let request = &NodeInitRequest::Spawn(command);
        let null = File::options().read(true).write(true).open("/dev/null");
        let null = null.map_err(|error| format!("cannot open /dev/null: {error}"))?;
        self.cx.nodes.send(node.index(), request, &[null.as_fd(), null.as_fd(), null.as_fd()])
    }

    /// What a node says of a probe.
    pub(super) fn handle_probe(&mut self, reply: NodeInitReply) {
        match reply {
            NodeInitReply::Probed { token, failure } => self.probed(token, failure),
            NodeInitReply::SpawnFailed { id, message, errno, .. } => {
                self.probed(id, Some(super::programs::reason(&message, errno)));
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
        if let Some(outcome) = self.services.probes.end(token, failure) {
            self.take_outcome(outcome);
        }
    }

    /// Only a change of health is news.
    fn take_outcome(&mut self, outcome: HealthProbeOutcome) {
        let health = self.cx.plan.services.get(outcome.service.index());
        let Some(health) = health.and_then(|service| service.health.as_ref()) else { return };
        if !self.services.probes.is_enough(&outcome, health) {
            return;
        }
        let HealthProbeOutcome { service, node, failure } = outcome;
        let Some(state) = self.services.states.get_mut(service.index()) else { return };
        let healthy = failure.is_none();
        if state.replica(node).is_none_or(|replica| replica.is_healthy == healthy) {
            return;
        }
        let update = ServiceUpdate::Health { replica: node, healthy };
        state.follow(&update);
        let at = self.cx.journal.now();
        self.service_was_seen(
            ServiceChange { service, update },
            ReplicaObservation { at, why: failure },
        );
    }

    /// Nodes of another machine are gone with it: every machine learns that by itself.
    pub(super) fn lose_elsewhere(&mut self, nodes: &[usize]) {
        for node in nodes {
            for change in self.services.lose(NodeId::from_index(*node)) {
                self.network.change_service(change, None);
            }
        }
    }

    /// Something was seen here of a replica.
    fn service_was_seen(&mut self, change: ServiceChange, seen: ReplicaObservation) {
        self.network.change_service(change, Some(seen));
        if let Some(membership) = &self.membership {
            membership.send_to_members(&MemberAnnouncement::Service { change });
        }
    }

    /// Something was seen of a replica on another machine.
    pub(super) fn service_was_seen_by(&mut self, change: ServiceChange) {
        if change.update.is_asked_for() || self.cx.plan.validate_service_change(&change).is_err() {
            self.cx
                .journal
                .warn("another machine says what it cannot know of a service".to_owned());
            return;
        }
        if let Some(state) = self.services.states.get_mut(change.service.index()) {
            state.follow(&change.update);
        }
        self.network.change_service(change, None);
    }

    /// Changes of services have taken effect.
    pub(super) fn services_changed(
        &mut self,
        changes: &[ServiceChange],
        at: Time,
        seen: Option<Time>,
    ) {
        for change in changes {
            let Some(state) = self.services.states.get_mut(change.service.index()) else {
                continue;
            };
            state.applied(&change.update, at, seen);
            if let ServiceUpdate::Add { replica } = change.update {
                self.host_replica(change.service.index(), replica);
            }
        }
    }

    /// A router redirects new flows elsewhere than before.
    pub(super) fn log_redirected(
        &self,
        at: Time,
        row: ServiceRow,
        router: RouterId,
        replica: NodeId,
    ) {
        let Some(service) = self.cx.plan.services.get(row.service.index()) else { return };
        let what = EventLogEntryKind::Redirected {
            service: service.name.clone(),
            address: row.address.to_string(),
            port: row.port.to_string(),
            router: self.cx.plan.routers[router.index()].name.clone(),
            replica: self.cx.nodes.name(replica.index()).to_owned(),
        };
        self.cx.journal.log_at(at.since(self.cx.journal.origin()), None, what);
    }

    /// A node has become a replica: it answers for the service from now on, and is looked at.
    fn host_replica(&mut self, service: usize, node: NodeId) {
        let before = Arc::clone(&self.services.plan);
        if before.services[service].replica(node).is_none() {
            let mut plan = Plan::clone(&before);
            plan.services[service].replicas.push(Replica { node, weight: 1 });
            self.services.plan = Arc::new(plan);
        }
        if !self.cx.nodes.is_here(node) || self.cx.nodes.is_dead(node.index()) {
            return;
        }
        let after = Arc::clone(&self.services.plan);
        let routes = self.network.routes();
        let sent = self.cx.nodes.inits().change_services(&before, &after, routes, node);
        // It is asked after it has got the address.
        let opened = sent.and_then(|()| self.open_diagnosis(node));
        match (opened, &self.services.watch) {
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
            self.elapsed()
        );
        self.cx.journal.warn(doubt.clone());
        self.services.unwatched.push(doubt);
    }
}

/// The events that changes of services are. What was seen on another machine, that one logs.
pub(super) fn service_events(
    cx: &RunContext,
    changes: &[ServiceChange],
    seen: Option<&ReplicaObservation>,
) -> Vec<EventLogEntryKind> {
    changes.iter().filter_map(|change| service_event(cx, change, seen)).collect()
}

fn service_event(
    cx: &RunContext,
    change: &ServiceChange,
    seen: Option<&ReplicaObservation>,
) -> Option<EventLogEntryKind> {
    let service = cx.plan.services.get(change.service.index())?.name.clone();
    let replica = cx.nodes.name(change.update.replica().index()).to_owned();
    let since = |seen: &ReplicaObservation| seen.at.since(cx.journal.origin()).as_nanos();
    let set = |set| {
        Some(EventLogEntryKind::ServiceSet {
            service: service.clone(),
            replica: replica.clone(),
            set,
        })
    };
    match change.update {
        ServiceUpdate::Registered { port, .. } => {
            let (port, seen_ns) = (port.to_string(), since(seen?));
            Some(EventLogEntryKind::ServiceRegistered { service, replica, port, seen_ns })
        }
        ServiceUpdate::Withdrawn { port, .. } => {
            let (port, seen_ns) = (port.to_string(), since(seen?));
            Some(EventLogEntryKind::ServiceWithdrawn { service, replica, port, seen_ns })
        }
        ServiceUpdate::Lost { .. } => {
            Some(EventLogEntryKind::ServiceLost { service, replica, seen_ns: since(seen?) })
        }
        ServiceUpdate::Health { healthy, .. } => {
            let (why, seen_ns) = (seen?.why.clone(), since(seen?));
            Some(EventLogEntryKind::ServiceHealth { service, replica, healthy, why, seen_ns })
        }
        ServiceUpdate::Add { .. } => set(ServiceSetting::Add),
        ServiceUpdate::Remove { .. } => set(ServiceSetting::Remove),
        ServiceUpdate::Drain { drain: true, .. } => set(ServiceSetting::Drain),
        ServiceUpdate::Drain { drain: false, .. } => set(ServiceSetting::Undrain),
        ServiceUpdate::Weight { weight, .. } => set(ServiceSetting::Weight(weight)),
    }
}

/// What programs of a node are to listen on.
pub(crate) fn targets(plan: &Plan, node: NodeId) -> Vec<ListenerTarget> {
    let services = plan.services.iter().filter(|service| service.replica(node).is_some());
    let targets = services.flat_map(|service| {
        service.addresses().flat_map(|address| {
            service.ports.iter().map(move |&port| ListenerTarget {
                address,
                port,
                device: FIRST_DEVICE,
            })
        })
    });
    targets.collect()
}

/// The service of an address and port.
fn state_position(
    plan: &Plan,
    address: std::net::IpAddr,
    port: windtunnel_model::plan::ServicePort,
) -> Option<usize> {
    plan.services.iter().position(|it| it.has_address(address) && it.ports.contains(&port))
}

/// A node's init answers at once, but for a machine that is very busy.
const PATIENCE: Duration = Duration::from_secs(10);
