//! What nodes report.

use windtunnel_model::Time;
use windtunnel_node::{ExitStatus, NodeInitReply};
use windtunnel_verdict::evidence::RunEndReason;

use super::connections::EXEC_FIRST;
use super::programs::{CHECK_FIRST, code_and_signal, key_of, reason};
use super::reactor::RunReactor;
use super::reply_filter::AwaitedReplies;
use super::services::PROBE_FIRST;

impl RunReactor {
    /// Handles everything that a node has reported.
    pub(super) fn handle_node(&mut self, node: usize) {
        let id = windtunnel_model::NodeId::from_index(node);
        while let Some(received) = self.cx.nodes.inits().receive(id) {
            match received {
                Ok(Some(reply)) if self.is_allowed(node, &reply) => self.handle_reply(node, reply),
                Ok(Some(_)) => {}
                Ok(None) => return,
                Err(error) => {
                    self.cx.nodes.set_dead(node);
                    self.programs.node_died(&self.cx, node);
                    let name = self.cx.nodes.name(node);
                    self.end.ask(RunEndReason::Fatal(format!("node {name} has failed: {error}")));
                    return;
                }
            }
        }
    }

    fn is_allowed(&self, node: usize, reply: &NodeInitReply) -> bool {
        let runs_command = |node: usize, id: u64| self.connections.is_commanded(node, id);
        let probes = |node: usize, token: u64| {
            self.services.expects_probe(node, token) || self.programs.checks.expects(node, token)
        };
        let signals = |node: usize, token: u64| self.cx.punctuality.borrow().expects(node, token);
        let asked = AwaitedReplies {
            probes: &probes,
            supervisor: &self.programs.supervisor,
            measurements: &self.measurements,
            runs_command: &runs_command,
            signals: &signals,
        };
        asked.allows(node, reply)
    }

    fn handle_reply(&mut self, node: usize, reply: NodeInitReply) {
        match reply {
            NodeInitReply::Spawned { id, .. } if id >= PROBE_FIRST => {}
            NodeInitReply::SpawnFailed { id, .. } | NodeInitReply::Exited { id, .. }
                if id >= CHECK_FIRST =>
            {
                self.programs.checker(&self.cx).handle(&reply);
            }
            NodeInitReply::SpawnFailed { id, .. } | NodeInitReply::Exited { id, .. }
                if id >= PROBE_FIRST =>
            {
                self.registrar().handle_probe(reply);
            }
            NodeInitReply::Probed { .. } => self.registrar().handle_probe(reply),
            NodeInitReply::Spawned { id, pid, .. } if id >= EXEC_FIRST => {
                self.connections.started(id, pid);
            }
            NodeInitReply::Spawned { id, pid, at_ns } => {
                self.programs.spawned(&self.cx, id, pid, Time::from_nanos(at_ns));
            }
            NodeInitReply::SpawnFailed { id, message, errno, by_program } if id >= EXEC_FIRST => {
                self.connections.failed(id, &message, errno, by_program);
            }
            NodeInitReply::SpawnFailed { id, message, errno, .. } => {
                self.programs.spawn_failed(&self.cx, id, reason(&message, errno));
            }
            NodeInitReply::Exited { id, status } if id >= EXEC_FIRST => {
                self.connections.exited(id, code_and_signal(status).0);
            }
            NodeInitReply::Exited { id, status } => self.program_exited(node, id, status),
            NodeInitReply::Listening { token } => {
                self.programs.checker(&self.cx).ready(key_of(token));
            }
            NodeInitReply::EchoDone { token, began_ns, echoes, error } => {
                self.measurements.note_begin(&self.cx, token, Time::from_nanos(began_ns));
                let origin = self.cx.journal.origin();
                self.measurements.finish(origin, token, began_ns, &echoes, error);
            }
            NodeInitReply::Signalled { token, at_ns } => {
                let at = self.cx.journal.happened_at(Time::from_nanos(at_ns));
                self.cx.punctuality.borrow_mut().signalled(token, at);
            }
            NodeInitReply::SignalFailed { message, .. } => {
                let name = self.cx.nodes.name(node);
                self.cx.journal.warn(format!("a signal did not reach node {name}: {message}"));
            }
            NodeInitReply::Limited(report) => self.limit_controller().reported(node, *report),
            NodeInitReply::ReceiveFailed { message } => {
                let name = self.cx.nodes.name(node);
                let why = format!("node {name} cannot receive packets: {message}");
                self.end.ask(RunEndReason::Fatal(why));
            }
            NodeInitReply::Interference(found) => {
                self.interference.take(node, self.cx.nodes.name(node), &found);
            }
            NodeInitReply::RoutesFailed { message } => {
                let name = self.cx.nodes.name(node);
                self.cx.journal.warn(format!("node {name} could not change its routes: {message}"));
            }
            _ => {}
        }
    }

    /// A program has exited; if it was killed, a limit may be why.
    fn program_exited(&mut self, node: usize, spawn: u64, status: ExitStatus) {
        let key = self.programs.supervisor.key_of(spawn);
        if let (ExitStatus::Signal(KILL), Some(key)) = (status, key) {
            self.limit_controller().killed(node, key.program);
        }
        self.programs.exited(&self.cx, spawn, status);
    }
}

/// SIGKILL, of signal(7).
const KILL: i32 = 9;
