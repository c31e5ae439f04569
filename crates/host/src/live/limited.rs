//! Limits of nodes while they live: what they report, and changes.

use std::os::fd::BorrowedFd;

use windtunnel_dataplane::receive_queue::ReceiveQueue;
use windtunnel_limit::{LimitHit, LimiterReport, ResourceLimitOwner};
use windtunnel_model::demand::Demand;
use windtunnel_model::plan::EventAction;
use windtunnel_model::quantity::Bytes;
use windtunnel_model::{NodeId, Resource, ResourceAmounts, Span, plan};
use windtunnel_node::NodeInitRequest;
use windtunnel_resource::MachineResourceLimits;
use windtunnel_trace::event::EventLogEntryKind;

use super::context::RunContext;
use super::network::NetworkController;
use super::programs::ScheduledLimitChange;
use super::punctuality::ScheduledOccurrence;
use super::refusal::{RequestRefusal, find_node};

/// Limits of nodes in a live run: what is said of them is logged, and changes take effect.
pub(super) struct LimitController<'a> {
    pub(super) cx: &'a RunContext,
    pub(super) limits: &'a mut MachineResourceLimits,
    /// Has a node pay for receiving that is limited for the first time.
    pub(super) network: &'a mut NetworkController,
}

/// What became of a request for other limits.
#[derive(Debug)]
pub(super) enum LimitRequestOutcome {
    Set,
    /// What it names is on another machine.
    Elsewhere,
    /// Not all of the nodes are here: each machine is to set the limits of its own.
    ForAll(EventAction),
}

impl LimitController<'_> {
    /// A node's init has something to say of limits that it holds.
    pub(super) fn reported(&mut self, node: usize, report: LimiterReport) {
        let news = self.limits.take_report(node, report);
        let name = self.cx.nodes.name(node);
        if let Some(why) = news.cpu_failure {
            self.cx.journal.warn(format!("the processor limit of node {name} is not held: {why}"));
        }
        if let Some(why) = news.failure {
            self.cx.journal.warn(format!("a limit of node {name} is not held: {why}"));
        }
        log(self.cx, &news.hits);
    }

    /// A program was killed; a limit may be why.
    pub(super) fn killed(&mut self, node: usize, program: usize) {
        let reached = self.limits.killed(node, program);
        log(self.cx, &reached);
    }

    /// Gives a reservation, a node, or each node of a group, other limits: one after the other, until
    /// one is refused.
    pub(super) fn set(
        &mut self,
        who: &str,
        demand: &Demand,
    ) -> Result<LimitRequestOutcome, RequestRefusal> {
        let owners = self.owners(who)?;
        if !owners.iter().all(|owner| self.is_here(*owner)) {
            let nodes = owners.iter().map(|it| it.node().map(NodeId::from_index));
            let nodes: Option<Vec<NodeId>> = nodes.collect();
            // What is divided by weight is so on one machine.
            let nodes = nodes.filter(|_| !demand.is_weighted());
            let all = nodes.map(|nodes| EventAction::Limit { nodes, limits: *demand });
            return Ok(all.map_or(LimitRequestOutcome::Elsewhere, LimitRequestOutcome::ForAll));
        }
        for owner in owners {
            if demand.is_weighted() {
                self.set_share(owner, demand)?;
            }
            for (resource, asked) in demand.live().limits().iter() {
                self.set_of(owner, resource, asked, None)?;
            }
        }
        Ok(LimitRequestOutcome::Set)
    }

    /// What has this name: a reservation, a group of nodes or a node.
    fn owners(&self, who: &str) -> Result<Vec<ResourceLimitOwner>, RequestRefusal> {
        let plan = &self.cx.plan;
        if let Some(reservation) = plan.reservation_named(who) {
            return Ok(vec![ResourceLimitOwner::Reservation(reservation.index())]);
        }
        let members = plan.nodes_named(who);
        // One that is no group has to be a node.
        let nodes = if members.is_empty() { vec![find_node(plan, who)?] } else { members };
        Ok(nodes.into_iter().map(|node| ResourceLimitOwner::Node(node.index())).collect())
    }

    fn is_here(&self, owner: ResourceLimitOwner) -> bool {
        match owner {
            ResourceLimitOwner::Reservation(reservation) => self.limits.is_here(reservation),
            ResourceLimitOwner::Node(node) | ResourceLimitOwner::Program(node, _) => {
                self.cx.nodes.is_here(NodeId::from_index(node))
            }
        }
    }

    /// Another minimum or weight.
    fn set_share(
        &mut self,
        owner: ResourceLimitOwner,
        demand: &Demand,
    ) -> Result<(), RequestRefusal> {
        let (min, weight) = (demand.cpu_min_millis, demand.cpu_weight);
        let set = self.limits.set_share(owner, min, weight);
        let of = owner.describe(&self.cx.plan);
        set.map_err(|why| format!("{of} keeps its share: {why}"))?;
        let node = owner.name(&self.cx.plan).to_owned();
        let cpus = min.map(|min| f64::from(min) / 1000.0);
        self.cx.journal.log(None, EventLogEntryKind::ShareSet { node, cpus, weight });
        Ok(())
    }

    /// Sets the limits of events that are due, of nodes that are here.
    pub(super) fn set_scheduled(&mut self, due: Vec<ScheduledLimitChange>) {
        for ScheduledLimitChange { intended, nodes, limits } in due {
            let cx = self.cx;
            for node in nodes.into_iter().filter(|node| cx.nodes.is_here(*node)) {
                let owner = ResourceLimitOwner::Node(node.index());
                for (resource, asked) in limits.live().limits().iter() {
                    if let Err(refusal) = self.set_of(owner, resource, asked, Some(intended)) {
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
        resource: Resource,
        asked: u64,
        intended: Option<Span>,
    ) -> Result<(), RequestRefusal> {
        let hold = |amounts: &ResourceAmounts| match owner.node() {
            Some(node) => self.cx.nodes.send(node, &NodeInitRequest::Limit(*amounts), &[]),
            None => Err("no control group limits it".to_owned()),
        };
        let name = owner.name(&self.cx.plan).to_owned();
        let set = match intended {
            Some(_) => self.limits.set_by_event(owner, resource, asked, hold),
            None => self.limits.set(owner, resource, asked, hold),
        };
        let of = owner.describe(&self.cx.plan);
        set.map_err(|why| format!("{of} keeps its limit: {why}"))?;
        if let (Resource::Cpu, ResourceLimitOwner::Node(node)) = (resource, owner) {
            self.begin_receiving(NodeId::from_index(node))?;
        }
        let event = self.cx.journal.log(intended, event_of(name, resource, asked));
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

fn event_of(node: String, resource: Resource, asked: u64) -> EventLogEntryKind {
    match resource {
        Resource::Cpu => EventLogEntryKind::CpuSet { node, cpus: asked as f64 / 1000.0 },
        other => EventLogEntryKind::LimitSet { node, limit: other.into(), value: asked },
    }
}

/// What happened at limits, for the log.
fn log(cx: &RunContext, reached: &[(ResourceLimitOwner, LimitHit)]) {
    for (owner, hit) in reached {
        let node = owner.name(&cx.plan).to_owned();
        let asked = match hit.resource {
            Resource::Memory => Bytes(hit.asked).to_string(),
            _ => hit.asked.to_string(),
        };
        let (program, limit, ended) = (hit.program, hit.resource.into(), hit.ended);
        let names = hit.names.clone();
        cx.journal.log(
            None,
            EventLogEntryKind::LimitReached { node, program, limit, asked, ended, names },
        );
    }
}
