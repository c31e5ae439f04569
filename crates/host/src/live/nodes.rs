//! The nodes of this machine, as the main loop talks to them.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use windtunnel_model::{NodeId, Plan};
use windtunnel_node::{ChannelError, NodeInitReply, NodeInitRequest, NodeSet};
use windtunnel_routing::Routes;
use windtunnel_sys::process::{Pid, Signal};

use super::aim::SignalTargetSet;
use super::journal::Journal;
use super::readiness::Readiness;

/// The inits of nodes: each is sent requests and sends replies.
pub(crate) trait NodeInitMessenger {
    /// # Errors
    /// Why the request did not reach the node.
    fn send(
        &self,
        node: NodeId,
        request: &NodeInitRequest,
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<(), String>;

    /// The next reply, if one has come. `None` for a node on another machine.
    fn receive(&self, node: NodeId) -> Option<Result<Option<NodeInitReply>, ChannelError>>;

    /// Process id of a node's init. `None` for a node on another machine.
    fn pid(&self, node: NodeId) -> Option<u32>;

    /// The processes of a node, to be signalled without its init. `None` where that cannot be.
    fn aim(&self, node: NodeId) -> Option<SignalTargetSet>;

    /// By node: what is readable when a reply has come or the init has ended.
    fn descriptors(&self) -> Vec<(NodeId, BorrowedFd<'_>)>;

    /// Brings the nodes from one set of routes to another. Returns the nodes with changes, and
    /// whether each took the request.
    fn change_routes(
        &self,
        plan: &Plan,
        before: &Routes,
        after: &Routes,
    ) -> Vec<(NodeId, Result<(), ChannelError>)>;

    /// Brings a node from the services of one plan to those of another.
    ///
    /// # Errors
    /// Why the request did not reach the node.
    fn change_services(
        &self,
        before: &Plan,
        after: &Plan,
        routes: &Routes,
        node: NodeId,
    ) -> Result<(), String>;
}

impl NodeInitMessenger for NodeSet {
    fn send(
        &self,
        node: NodeId,
        request: &NodeInitRequest,
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<(), String> {
        let node = self.node(node).ok_or("the node is on another machine")?;
        node.send(request, descriptors).map_err(|error| error.to_string())
    }

    fn receive(&self, node: NodeId) -> Option<Result<Option<NodeInitReply>, ChannelError>> {
        self.node(node).map(windtunnel_node::RunningNode::recv)
    }

    fn pid(&self, node: NodeId) -> Option<u32> {
        self.node(node).map(windtunnel_node::RunningNode::pid)
    }

    fn aim(&self, node: NodeId) -> Option<SignalTargetSet> {
        let init = Pid::from_raw(i32::try_from(self.node(node)?.pid()).ok()?)?;
        SignalTargetSet::below(init).ok()
    }

    fn descriptors(&self) -> Vec<(NodeId, BorrowedFd<'_>)> {
        self.nodes().iter().map(|node| (node.id(), node.as_fd())).collect()
    }

    fn change_routes(
        &self,
        plan: &Plan,
        before: &Routes,
        after: &Routes,
    ) -> Vec<(NodeId, Result<(), ChannelError>)> {
        NodeSet::change_routes(self, plan, before, after)
    }

    fn change_services(
        &self,
        before: &Plan,
        after: &Plan,
        routes: &Routes,
        node: NodeId,
    ) -> Result<(), String> {
        let sent = NodeSet::change_services(self, before, after, routes, node);
        sent.map_err(|error| error.to_string())
    }
}

/// The nodes of a run: which are on this machine, and which of them have failed.
pub(super) struct RunNodeTable {
    plan: Arc<Plan>,
    inits: Box<dyn NodeInitMessenger>,
    readiness: Readiness,
    /// By node: whether it is on this machine; `None`: all are.
    here: Option<Vec<bool>>,
    /// Nodes on this machine whose init has ended: nothing more comes from them.
    dead: BTreeSet<usize>,
}

impl RunNodeTable {
    pub(super) fn new(
        plan: Arc<Plan>,
        inits: Box<dyn NodeInitMessenger>,
        readiness: Readiness,
        here: Option<Vec<bool>>,
    ) -> Self {
        RunNodeTable { plan, inits, readiness, here, dead: BTreeSet::new() }
    }

    pub(super) fn inits(&self) -> &dyn NodeInitMessenger {
        &*self.inits
    }

    pub(super) fn name(&self, node: usize) -> &str {
        &self.plan.nodes[node].name
    }

    pub(super) fn is_here(&self, node: NodeId) -> bool {
        let here = |here: &Vec<bool>| here.get(node.index()).copied().unwrap_or(false);
        self.here.as_ref().is_none_or(here)
    }

    /// By position: the names of those that are on this machine.
    pub(super) fn named_here(&self, nodes: &[NodeId]) -> BTreeMap<usize, String> {
        let here = nodes.iter().filter(|node| self.is_here(**node));
        here.map(|node| (node.index(), self.name(node.index()).to_owned())).collect()
    }

    /// A node's init has ended.
    pub(super) fn set_dead(&mut self, node: usize) {
        self.dead.insert(node);
        let all = self.inits.descriptors().into_iter();
        for (_, descriptor) in all.filter(|(id, _)| id.index() == node) {
            self.readiness.remove(descriptor);
        }
    }

    pub(super) fn is_dead(&self, node: usize) -> bool {
        self.dead.contains(&node)
    }

    /// Which living nodes have something to read.
    pub(super) fn readiness(&self) -> &Readiness {
        &self.readiness
    }

    pub(super) fn send(
        &self,
        node: usize,
        request: &NodeInitRequest,
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<(), String> {
        self.inits.send(NodeId::from_index(node), request, descriptors)
    }

    /// Sends signals to every process of a node.
    pub(super) fn signal(&self, node: usize, signals: &[Signal], journal: &Journal) {
        self.signal_with(node, signals, None, journal);
    }

    /// The same; the node confirms the last one by the token.
    pub(super) fn signal_with(
        &self,
        node: usize,
        signals: &[Signal],
        token: Option<u64>,
        journal: &Journal,
    ) {
        for (index, signal) in signals.iter().enumerate() {
            let token = token.filter(|_| index + 1 == signals.len());
            let request = NodeInitRequest::Signal { id: None, signal: signal.as_raw(), token };
            if let Err(error) = self.send(node, &request, &[]) {
                let name = self.name(node);
                journal.warn(format!("a signal did not reach node {name}: {error}"));
            }
        }
    }

    /// Sends a signal to one program or command of a node and its process group.
    pub(super) fn signal_one(&self, node: usize, id: u64, signal: i32) -> Result<(), String> {
        self.send(node, &NodeInitRequest::Signal { id: Some(id), signal, token: None }, &[])
    }

    /// SIGTERM to every process of every node that has programs.
    pub(super) fn terminate_all(&self, journal: &Journal) {
        for (node, spec) in self.plan.nodes.iter().enumerate() {
            let is_there = self.is_here(NodeId::from_index(node)) && !self.is_dead(node);
            if !spec.programs.is_empty() && is_there {
                self.signal(node, &[Signal::TERM, Signal::CONT], journal);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::testing::{NodeRequestLog, context, plan};

    const TWO: &str = "nodes: {a: {run: x}, b: {run: x}, c: {}}\n\
                       links: [{between: [a, b]}, {between: [b, c]}]";

    fn signals(sent: &NodeRequestLog) -> Vec<(usize, i32)> {
        let signal = |(node, request): (usize, NodeInitRequest)| match request {
            NodeInitRequest::Signal { id: None, signal, .. } => Some((node, signal)),
            _ => None,
        };
        sent.requests().into_iter().filter_map(signal).collect()
    }

    #[test]
    fn the_end_reaches_living_nodes_with_programs_also_if_they_are_paused() {
        let (mut context, sent, _) = context(plan(TWO), None);
        context.nodes.set_dead(1);
        context.nodes.terminate_all(&context.journal);
        // SIGTERM, then SIGCONT: a stopped process handles no SIGTERM.
        assert_eq!(signals(&sent), [(0, 15), (0, 18)]);
    }

    #[test]
    fn of_several_machines_each_signals_its_own_nodes() {
        let (context, sent, _) = context(plan(TWO), Some(vec![false, true, true]));
        context.nodes.terminate_all(&context.journal);
        assert_eq!(signals(&sent), [(1, 15), (1, 18)]);
        let names = context.nodes.named_here(&[NodeId(0), NodeId(2)]);
        assert_eq!(names.into_iter().collect::<Vec<_>>(), [(2, "c".to_owned())]);
    }

    #[test]
    fn a_signal_that_does_not_arrive_is_a_warning_that_names_the_node() {
        let (context, sent, log) = context(plan(TWO), None);
        sent.refuse("the node's init has ended");
        context.nodes.signal(1, &[Signal::STOP], &context.journal);
        assert_eq!(log.warnings(), ["a signal did not reach node b: the node's init has ended"]);
    }
}
