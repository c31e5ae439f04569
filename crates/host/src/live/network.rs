//! The network of a live run as the main loop sees it: orders to the packet loop, what links are
//! like now, and the routes that nodes' kernels have.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use windtunnel_engine::RecordSettings;
use windtunnel_model::plan::{EventAction, ServiceChange};
use windtunnel_model::{NodeId, Plan, ServiceId, Span, Time};
use windtunnel_routing::Routes;
use windtunnel_trace::event::{EventLogEntry, EventLogEntryKind, WhyRerouted};

use super::context::RunContext;
use super::links::LinkStates;
use super::punctuality::ScheduledOccurrence;
use super::services::service_events;
use windtunnel_dataplane::receive_queue::ReceiveQueue;
use windtunnel_dataplane::tap::CaptureTap;
use windtunnel_dataplane::{ChangeOrigin, Dataplane, PacketLoopCommand, RedirectionsNow, Tally};

/// A packet loop that takes longer for a turn is stuck.
const PATIENCE: Duration = Duration::from_secs(2);

/// Changes of the network that have been ordered, and those that have taken effect.
pub(super) struct NetworkController {
    dataplane: Dataplane,
    pub(super) links: LinkStates,
    /// What the nodes' kernels have.
    routes: Arc<Routes>,
    /// Changes that the packet loop has not confirmed, by number.
    ordered: BTreeMap<u64, PendingEventAction>,
    next_order: u64,
    is_recorded: bool,
    /// Nodes that pay for receiving since the run lives.
    receiving: BTreeSet<NodeId>,
}

#[derive(Debug)]
struct PendingEventAction {
    action: EventAction,
    /// When it was to happen, where that was asked for.
    intended: Option<Span>,
    /// Whether that is a time that was still to come.
    is_planned: bool,
    /// The client that waits for it to take effect.
    client: Option<u64>,
    /// When it was seen that a service is to change so, and why.
    seen: Option<ReplicaObservation>,
}

/// Something that was seen of a service's replica.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ReplicaObservation {
    pub(super) at: Time,
    /// What a probe found.
    pub(super) why: Option<String>,
}

/// A change that has taken effect.
#[derive(Debug)]
pub(super) struct AppliedNetworkChange {
    pub(super) action: EventAction,
    /// The client that waits for it.
    pub(super) client: Option<u64>,
    /// What was logged of it.
    pub(super) events: Vec<EventLogEntry>,
    pub(super) seen: Option<ReplicaObservation>,
}

impl NetworkController {
    pub(super) fn new(plan: &Plan, dataplane: Dataplane, routes: Arc<Routes>) -> Self {
        let links = LinkStates::new(plan);
        let ordered = BTreeMap::new();
        NetworkController {
            dataplane,
            links,
            routes,
            ordered,
            next_order: 0,
            is_recorded: false,
            receiving: BTreeSet::new(),
        }
    }

    pub(super) fn routes(&self) -> &Routes {
        &self.routes
    }

    /// Gives the packet loop an order that it does not confirm.
    pub(super) fn order(&self, order: PacketLoopCommand) {
        self.dataplane.order(order);
    }

    /// Whether a node has got a queue for what comes to it while the run lives.
    pub(super) fn is_receiving(&self, node: NodeId) -> bool {
        self.receiving.contains(&node)
    }

    /// Has a node pay for receiving from now on.
    pub(super) fn receive(&mut self, node: NodeId, queue: ReceiveQueue) {
        self.receiving.insert(node);
        self.order(PacketLoopCommand::Receive(Box::new(queue)));
    }

    /// Records other packets from now on, and waits until no others are left any more.
    pub(super) fn record(&mut self, settings: Option<RecordSettings>) {
        if settings.is_none() && !self.is_recorded {
            return;
        }
        self.is_recorded = settings.is_some();
        let (done, wait) = channel();
        self.order(PacketLoopCommand::Record { settings: settings.map(Box::new), done });
        // A packet loop that has ended records nothing.
        let _ = wait.recv_timeout(PATIENCE);
    }

    /// Captures frames from now on: no packet is later and not seen.
    pub(super) fn capture(&self, tap: CaptureTap) {
        let (done, wait) = channel();
        self.order(PacketLoopCommand::Capture { tap: Box::new(tap), done });
        // A packet loop that has ended ends its captures, too.
        let _ = wait.recv_timeout(PATIENCE);
    }

    /// Has the packet loop change the network `at` a time, or now. It confirms that.
    pub(super) fn change(
        &mut self,
        action: EventAction,
        at: Option<Time>,
        intended: Option<Span>,
        client: Option<u64>,
    ) {
        let is_planned = at.is_some();
        self.change_for(
            PendingEventAction { action, intended, is_planned, client, seen: None },
            at,
        );
    }

    /// Has the packet loop know at once what was seen of a service, and confirm that; without
    /// `seen`, it was seen on another machine.
    pub(super) fn change_service(
        &mut self,
        change: ServiceChange,
        seen: Option<ReplicaObservation>,
    ) {
        let action = EventAction::Service(vec![change]);
        let ordered =
            PendingEventAction { action, intended: None, is_planned: false, client: None, seen };
        self.change_for(ordered, None);
    }

    fn change_for(&mut self, ordered: PendingEventAction, at: Option<Time>) {
        let id = self.next_order;
        self.next_order += 1;
        let action = Box::new(ordered.action.clone());
        self.ordered.insert(id, ordered);
        self.dataplane.order(PacketLoopCommand::Change { id, at, action });
    }

    /// What redirectors have done, and what `one` service is doing.
    pub(super) fn redirections(&self, one: Option<ServiceId>) -> RedirectionsNow {
        let (done, wait) = channel();
        self.order(PacketLoopCommand::Services { one, done });
        // A packet loop that has ended redirects nothing.
        wait.recv_timeout(PATIENCE).unwrap_or_default()
    }

    /// Waits until the packet loop has done what was ordered for now. `false`: it has not, though it
    /// had some time.
    #[must_use]
    pub(super) fn await_orders(&self) -> bool {
        let (done, wait) = channel();
        self.order(PacketLoopCommand::Confirm { done });
        // A packet loop that has ended carries nothing.
        wait.recv_timeout(PATIENCE) != Err(RecvTimeoutError::Timeout)
    }

    /// A change took effect `at` a time: it is logged. `None`: nothing is known of it.
    pub(super) fn applied(
        &mut self,
        cx: &RunContext,
        cause: ChangeOrigin,
        intended: Time,
        at: Time,
    ) -> Option<AppliedNetworkChange> {
        let origin = cx.journal.origin();
        let PendingEventAction { action, intended, is_planned, client, seen } = match cause {
            ChangeOrigin::Plan(index) => PendingEventAction {
                action: cx.plan.events.get(index)?.action.clone(),
                intended: Some(intended.since(origin)),
                is_planned: true,
                client: None,
                seen: None,
            },
            ChangeOrigin::Order(id) => self.ordered.remove(&id)?,
        };
        let events = match &action {
            EventAction::Service(changes) => service_events(cx, changes, seen.as_ref()),
            other => self.links.apply(&cx.plan, other),
        };
        let log = |what| {
            let event = cx.journal.log_at(at.since(origin), intended, what);
            if let (true, Some(intended)) = (is_planned, intended) {
                let what = ScheduledOccurrence::change(&event.what);
                cx.happened(what, intended, at.since(origin));
            }
            event
        };
        Some(AppliedNetworkChange {
            client,
            events: events.into_iter().map(log).collect(),
            action,
            seen,
        })
    }

    /// The packet loop uses new routes since `at`: they are brought to the kernels of nodes with
    /// several interfaces, which are as in `plan`.
    pub(super) fn follow_routes(
        &mut self,
        cx: &RunContext,
        plan: &Plan,
        routes: Arc<Routes>,
        at: Time,
        by_itself: bool,
    ) {
        let intended = Some(at.since(cx.journal.origin()));
        if by_itself {
            cx.journal.log(intended, EventLogEntryKind::Rerouted { why: WhyRerouted::Lanes });
        }
        let places = routes.differences(&self.routes, &cx.plan);
        let changed = cx.nodes.inits().change_routes(plan, &self.routes, &routes);
        self.routes = routes;
        for (node, outcome) in &changed {
            if let Err(error) = outcome {
                let name = cx.nodes.name(node.index());
                cx.journal.warn(format!("new routes did not reach node {name}: {error}"));
            }
        }
        let name = |node: &NodeId| cx.nodes.name(node.index()).to_owned();
        let nodes = changed.iter().map(|(node, _)| name(node)).collect();
        cx.journal.log(intended, EventLogEntryKind::RoutesChanged { places, nodes });
    }

    /// Stops the packet loop. It first waits for so many datagrams of other machines.
    pub(super) fn finish(self, await_datagrams: Vec<(u16, u64)>) -> Tally {
        self.dataplane.finish(await_datagrams)
    }
}

#[cfg(test)]
mod tests {
    use windtunnel_model::Lane;
    use windtunnel_model::plan::LinkChange;

    use super::*;
    use crate::live::testing::{context, plan, set_clock};

    const FILE: &str = "
nodes: {a: {}, b: {}}
links: [{between: [a, b]}]
events: [{at: 2s, link: a--b, set: {latency: 9ms}}]
";

    fn down() -> EventAction {
        EventAction::Link(LinkChange {
            patches: Vec::new(),
            state: vec![(Lane::from_index(0), false)],
        })
    }

    #[test]
    fn a_change_is_logged_when_the_packet_loop_has_done_it_and_not_before() {
        let (mut context, _, log) = context(plan(FILE), None);
        let (dataplane, orders) = Dataplane::to_channel();
        let routes = Arc::new(Routes::compute(&context.plan));
        let mut network = NetworkController::new(&context.plan, dataplane, routes);
        let origin = Time::from_nanos(1_000);
        set_clock(origin);
        context.journal.begin(origin);
        network.change(down(), None, None, Some(7));
        let order = orders.try_recv().unwrap();
        let PacketLoopCommand::Change { id, at: None, .. } = order else { panic!("{order:?}") };
        assert!(log.whats().is_empty());
        let at = Time::from_nanos(1_500);
        let AppliedNetworkChange { client, events, action, .. } =
            network.applied(&context, ChangeOrigin::Order(id), at, at).unwrap();
        assert_eq!((client, events[0].at_ns, events[0].intended_ns), (Some(7), 500, None));
        assert_eq!(action, down());
        let (link, direction) = ("a--b".to_owned(), "a-b".to_owned());
        assert_eq!(log.whats(), [EventLogEntryKind::LinkState { link, direction, up: false }]);
        // A number that was never given means nothing.
        assert!(network.applied(&context, ChangeOrigin::Order(id), at, at).is_none());
    }

    #[test]
    fn an_event_of_the_file_is_logged_with_the_time_that_the_file_gives() {
        let (context, _, _) = context(plan(FILE), None);
        let (dataplane, _orders) = Dataplane::to_channel();
        let routes = Arc::new(Routes::compute(&context.plan));
        let mut network = NetworkController::new(&context.plan, dataplane, routes);
        let due = context.journal.origin() + Span::from_secs(2);
        let late = due + Span::from_micros(30);
        let AppliedNetworkChange { client, events, .. } =
            network.applied(&context, ChangeOrigin::Plan(0), due, late).unwrap();
        assert_eq!(client, None);
        // Both directions are set.
        let times: Vec<_> = events.iter().map(|event| (event.at_ns, event.intended_ns)).collect();
        assert_eq!(times, [(2_000_030_000, Some(2_000_000_000)); 2]);
    }
}
