//! Running the commands that say whether programs are ready.

use std::os::fd::BorrowedFd;

use windtunnel_model::Span;
use windtunnel_node::{ExitStatus, NodeInitReply};
use windtunnel_sys::process::Signal;

use super::super::context::RunContext;
use super::checks::{Failed, ReadinessCheckAction};
use super::{ProgramExecution, ProgramExit, code_and_signal, reason};

impl ProgramExecution {
    /// Begins checks that are due, and ends those that take too long.
    pub(super) fn check(&mut self, cx: &RunContext, elapsed: Span) {
        let steps = self.checks.tick(elapsed);
        self.do_steps(cx, steps);
    }

    pub(super) fn do_steps(
        &mut self,
        cx: &RunContext,
        steps: impl IntoIterator<Item = ReadinessCheckAction>,
    ) {
        for step in steps {
            match step {
                ReadinessCheckAction::Begin { token, key, argv } => {
                    let Some(program) = self.supervisor.program(key) else { continue };
                    match self.launcher.check(cx, key, token, &program.spec, &argv) {
                        Ok(pipe) => self.checks.carry(token, pipe),
                        Err(why) => self.checked(cx, token, Some(format!("did not run: {why}"))),
                    }
                }
                ReadinessCheckAction::Kill { token, key } => {
                    // One that has just ended needs no signal.
                    let _ = cx.nodes.signal_one(key.node, token, Signal::KILL.as_raw());
                }
                ReadinessCheckAction::Ready { key } => self.ready(cx, key),
                ReadinessCheckAction::Failed(Failed { key, why, last }) => {
                    self.supervisor.on_check_failed(key, &why, last);
                }
            }
        }
    }

    /// What a node says of a check.
    pub(in crate::live) fn handle_check(&mut self, cx: &RunContext, reply: &NodeInitReply) {
        match reply {
            NodeInitReply::SpawnFailed { id, message, errno, .. } => {
                let why = format!("did not run: {}", reason(message, *errno));
                self.checked(cx, *id, Some(why));
            }
            NodeInitReply::Exited { id, status } => {
                let (code, signal) = code_and_signal(*status);
                let is_success = *status == ExitStatus::Code(0);
                let failure = (!is_success).then(|| ProgramExit { code, signal }.to_string());
                self.checked(cx, *id, failure);
            }
            _ => {}
        }
    }

    fn checked(&mut self, cx: &RunContext, token: u64, failure: Option<String>) {
        let step = self.checks.end(token, cx.journal.elapsed(), failure);
        self.do_steps(cx, step);
    }

    /// Whether a node runs a check of this number.
    pub(in crate::live) fn expects_check(&self, node: usize, token: u64) -> bool {
        self.checks.expects(node, token)
    }

    /// For polling: readable when checks have written something.
    pub(in crate::live) fn check_outputs(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.checks.outputs()
    }

    /// Reads what checks have written.
    pub(in crate::live) fn read_checks(&mut self) {
        self.checks.read();
    }
}
