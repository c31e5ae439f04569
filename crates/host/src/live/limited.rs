//! Limits of nodes while they live: what they report, and changes.

use std::os::fd::BorrowedFd;

use windtunnel_model::plan::EventAction;
use windtunnel_model::quantity::Bytes;
use windtunnel_model::{NodeId, Span, plan};
use windtunnel_node::{NodeInitRequest, ProcessorWindow, ProgramUse};
use windtunnel_trace::event::EventLogEntryKind;
use windtunnel_verdict::evidence::{ResourceLimitHit, ResourceLimitKind, ResourceLimitOwner};

use super::context::RunContext;
use super::network::NetworkController;
use super::programs::ScheduledLimitChange;
use super::punctuality::ScheduledOccurrence;
use super::refusal::{RequestRefusal, find_node};
use crate::node_limits::{MachineResourceLimits, NodeLimitChange};
use windtunnel_dataplane::receive_queue::ReceiveQueue;

/// Limits of nodes in a live run: what is said of them is logged, and changes take effect.
pub(super) struct LimitController<'a> {
    pub(super) cx: &'a RunContext,
    pub(super) limits: &'a mut MachineResourceLimits,
    /// Has a node pay for receiving that is limited for the first time.
    pub(super) network: &'a mut NetworkController,
}

/// What became of a request for another limit.
#[derive(Debug)]
pub(super) enum LimitRequestOutcome {
    Set,
    /// It is a reservation of another machine.
    Elsewhere,
    /// Not all of the nodes are here: each machine is to set the limit of its own.
    ForAll(EventAction),
}

impl LimitController<'_> {
    /// A node's init has something to say of the processor limit that it holds.
    pub(super) fn reported(
        &mut self,
        node: usize,
        windows: &[ProcessorWindow],
        failure: Option<String>,
    ) {
        let is_over = self.limits.is_over();
        let Some(account) = self.limits.account_of(node) else { return };
        windows.iter().for_each(|window| account.add((*window).into()));
        if let Some(why) = failure.filter(|_| !is_over) {
            let name = self.cx.nodes.name(node);
            self.cx.journal.warn(format!("the processor limit of node {name} is not held: {why}"));
            account.fail(why);
        }
    }

    /// A node's init has something to say of what its programs use.
    pub(super) fn used(&mut self, node: usize, used: &ProgramUse, failure: Option<&str>) {
        let failure = failure.filter(|_| !self.limits.is_over());
        let Some(limited) = self.limits.of(node) else { return };
        let is_new = limited.bounds.iter().all(|bound| bound.failure.is_none());
        let reached = limited.used(used, failure);
        if let Some(why) = failure.filter(|_| is_new) {
            let name = self.cx.nodes.name(node);
            self.cx.journal.warn(format!("a limit of node {name} is not held: {why}"));
        }
        log(self.cx, &reached);
    }

    /// A program was killed; a limit may be why.
    pub(super) fn killed(&mut self, node: usize, program: usize) {
        let reached = self.limits.killed(node, program);
        log(self.cx, &reached);
    }

    /// Gives a reservation, a node, or each node of a group, another limit.
    pub(super) fn set(
        &mut self,
        name: &str,
        change: NodeLimitChange,
    ) -> Result<LimitRequestOutcome, RequestRefusal> {
        let plan = &self.cx.plan;
        if let Some(reservation) = plan.reservation_named(name) {
            if !self.limits.is_here(reservation.index()) {
                return Ok(LimitRequestOutcome::Elsewhere);
            }
            self.set_of(ResourceLimitOwner::Reservation(reservation.index()), change, None)?;
            return Ok(LimitRequestOutcome::Set);
        }
        let members = plan.nodes_named(name);
        // One that is no group has to be a node.
        let nodes = if members.is_empty() { vec![find_node(plan, name)?] } else { members };
        if nodes.iter().any(|node| !self.cx.nodes.is_here(*node)) {
            let limits = change.demand();
            return Ok(LimitRequestOutcome::ForAll(EventAction::Limit { nodes, limits }));
        }
        for node in nodes {
            self.set_of(ResourceLimitOwner::Node(node.index()), change, None)?;
        }
        Ok(LimitRequestOutcome::Set)
    }

    /// Gives a reservation, a node, or each node of a group, another minimum or weight.
    /// False: not all of them are here.
    pub(super) fn set_share(
        &mut self,
        name: &str,
        min: Option<u32>,
        weight: Option<u32>,
    ) -> Result<bool, RequestRefusal> {
        let plan = &self.cx.plan;
        let owners: Vec<ResourceLimitOwner> = match plan.reservation_named(name) {
            Some(reservation) => vec![ResourceLimitOwner::Reservation(reservation.index())],
            None => {
                let members = plan.nodes_named(name);
                let nodes = if members.is_empty() { vec![find_node(plan, name)?] } else { members };
                nodes.into_iter().map(|node| ResourceLimitOwner::Node(node.index())).collect()
            }
        };
        let is_here = |owner: &ResourceLimitOwner| match *owner {
            ResourceLimitOwner::Reservation(reservation) => self.limits.is_here(reservation),
            ResourceLimitOwner::Node(node) | ResourceLimitOwner::Program(node, _) => {
                self.cx.nodes.is_here(NodeId::from_index(node))
            }
        };
        if !owners.iter().all(is_here) {
            return Ok(false);
        }
        for owner in owners {
            let set = self.limits.set_share(owner, min, weight);
            let of = owner.describe(&self.cx.plan);
            set.map_err(|why| format!("{of} keeps its share: {why}"))?;
            let node = owner.name(&self.cx.plan).to_owned();
            let cpus = min.map(|min| f64::from(min) / 1000.0);
            self.cx.journal.log(None, EventLogEntryKind::ShareSet { node, cpus, weight });
        }
        Ok(true)
    }

    /// Sets the limits of events that are due, of nodes that are here.
    pub(super) fn set_scheduled(&mut self, due: Vec<ScheduledLimitChange>) {
        for ScheduledLimitChange { intended, nodes, limits } in due {
            let (cx, changes) = (self.cx, NodeLimitChange::all_of(&limits));
            for node in nodes.into_iter().filter(|node| cx.nodes.is_here(*node)) {
                let owner = ResourceLimitOwner::Node(node.index());
                for change in &changes {
                    if let Err(refusal) = self.set_of(owner, *change, Some(intended)) {
                        self.cx.journal.warn(refusal.message().to_owned());
                    }
                }
            }
        }
    }

    /// `intended`: when an event was to do it.
    fn set_of(
        &mut self,
        owner: ResourceLimitOwner,
        change: NodeLimitChange,
        intended: Option<Span>,
    ) -> Result<(), RequestRefusal> {
        let order = |request: &_| match owner.node() {
            Some(node) => self.cx.nodes.send(node, request, &[]),
            None => Err("no control group limits it".to_owned()),
        };
        let name = owner.name(&self.cx.plan).to_owned();
        let set = match intended {
            Some(_) => self.limits.set_by_event(owner, change, order),
            None => self.limits.set(owner, change, order),
        };
        let of = owner.describe(&self.cx.plan);
        set.map_err(|why| format!("{of} keeps its limit: {why}"))?;
        if let (NodeLimitChange::Processor(_), ResourceLimitOwner::Node(node)) = (change, owner) {
            self.begin_receiving(NodeId::from_index(node))?;
        }
        let event = self.cx.journal.log(intended, event_of(name, change));
        if let Some(intended) = intended {
            let what = ScheduledOccurrence::change(&event.what);
            self.cx.happened(what, intended, Span::from_nanos(event.at_ns));
        }
        Ok(())
    }

    /// Has a node that is limited for the first time pay for receiving.
    fn begin_receiving(&mut self, node: NodeId) -> Result<(), RequestRefusal> {
        let spec = &self.cx.plan.nodes[node.index()];
        if spec.effective_receive_queue().is_some() || self.network.is_receiving(node) {
            return Ok(());
        }
        let send = |request: &NodeInitRequest, fds: &[BorrowedFd<'_>]| {
            self.cx.nodes.send(node.index(), request, fds)
        };
        let queue = ReceiveQueue::begin(spec, node, plan::Node::RECEIVE_QUEUE, send)?;
        self.network.receive(node, queue);
        Ok(())
    }

    /// Reads what limited nodes had, where that is due.
    pub(super) fn sample(&mut self) {
        let inits = self.cx.nodes.inits();
        let pid = |node: usize| inits.pid(NodeId::from_index(node));
        let reached = self.limits.sample(self.cx.journal.now(), pid);
        log(self.cx, &reached);
    }
}

fn event_of(node: String, change: NodeLimitChange) -> EventLogEntryKind {
    match change {
        NodeLimitChange::Processor(millis) => {
            EventLogEntryKind::CpuSet { node, cpus: f64::from(millis) / 1000.0 }
        }
        NodeLimitChange::Memory(bytes) => limit_set(node, ResourceLimitKind::Memory, bytes),
        NodeLimitChange::Pids(count) => limit_set(node, ResourceLimitKind::Pids, u64::from(count)),
        NodeLimitChange::Disk(bytes) => limit_set(node, ResourceLimitKind::Disk, bytes),
    }
}

fn limit_set(node: String, kind: ResourceLimitKind, value: u64) -> EventLogEntryKind {
    EventLogEntryKind::LimitSet { node, limit: kind.to_string(), value }
}

/// What happened at limits, for the log.
fn log(cx: &RunContext, reached: &[ResourceLimitHit]) {
    for it in reached {
        let node = it.owner.name(&cx.plan).to_owned();
        let asked = match it.kind {
            ResourceLimitKind::Memory => Bytes(it.asked).to_string(),
            _ => it.asked.to_string(),
        };
        let (program, limit, ended) = (it.owner.program(), it.kind.to_string(), it.ended);
        let names = it.names.clone();
        cx.journal.log(
            None,
            EventLogEntryKind::LimitReached { node, program, limit, asked, ended, names },
        );
    }
}
