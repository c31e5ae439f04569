//! The services of a live run: what is seen of their replicas is brought to the packet loop and to
//! the other machines, and what is asked of them is done in their nodes.

mod ended;
mod health;
mod redirection_log;
mod registrar;
mod state;
mod status;

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::Receiver;

use windtunnel_model::plan::{ServiceChange, ServiceUpdate};
use windtunnel_model::{NodeId, Plan, Time};
use windtunnel_node::FIRST_DEVICE;
use windtunnel_record::listeners::{
    ListenerChange, ListenerStats, ListenerTarget, ListenerThread, ListenerThreadEvent,
};
use windtunnel_trace::event::{EventLogEntryKind, ServiceSetting};
use windtunnel_trace::report::ReplicasWatched;

use super::context::RunContext;
use super::network::{NetworkController, ReplicaObservation};
pub(crate) use ended::ServicesEnded;
use health::HealthProbeSchedule;
pub(in crate::live) use health::PROBE_FIRST;
use redirection_log::RedirectionLog;
pub(in crate::live) use registrar::ServiceRegistrar;
pub(crate) use state::{ReplicaHistory, ServiceState};
pub(in crate::live) use status::ServiceInspector;
use windtunnel_dataplane::RedirectionTotals;

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
    /// What routers do with flows to services.
    pub(super) redirections: RedirectionLog,
    /// How replicas were looked at, once that has ended.
    watched: Option<ReplicasWatched>,
    /// What redirectors had done when the run ended.
    redirected: RedirectionTotals,
}

/// What looks at nodes, and what it finds.
pub(crate) struct ReplicaWatcher {
    pub(crate) thread: ListenerThread,
    pub(crate) findings: Receiver<ListenerThreadEvent>,
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
            redirections: RedirectionLog::default(),
            watched: None,
            redirected: RedirectionTotals::default(),
        }
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

    /// The run is over: what redirectors have done until now is what they did in it.
    pub(super) fn conclude(&mut self, network: &NetworkController, now: Time) {
        if !self.plan.services.is_empty() {
            self.redirected = network.redirections(None).all;
        }
        self.end(now);
    }

    /// That programs end after the run is no change of a service.
    fn end(&mut self, now: Time) {
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
    fn saw(&mut self, sighting: &ListenerChange) -> Option<ServiceChange> {
        let ListenerChange { node, target, socket, losses, .. } = *sighting;
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
