//! Running the commands that say whether programs are ready.

use windtunnel_model::Span;
use windtunnel_node::{ExitStatus, NodeInitReply};
use windtunnel_sys::process::Signal;
use windtunnel_verdict::evidence::{ProgramExit, ProgramKey};

use super::super::context::RunContext;
use super::super::launcher::Launcher;
use super::checks::{FailedReadinessCheck, ReadinessCheckAction, ReadinessCheckTable};
use super::{code_and_signal, log_ready, reason};
use crate::supervisor::Supervisor;

/// Has nodes run the checks that are due, and the supervisor know what they say.
pub(in crate::live) struct ReadinessChecker<'a> {
    pub(super) cx: &'a RunContext,
    pub(super) supervisor: &'a mut Supervisor,
    pub(super) launcher: &'a mut Launcher,
    pub(super) checks: &'a mut ReadinessCheckTable,
}

impl ReadinessChecker<'_> {
    /// Begins checks that are due, and ends those that take too long.
    pub(super) fn tick(&mut self, elapsed: Span) {
        let steps = self.checks.tick(elapsed);
        self.do_steps(steps);
    }

    pub(super) fn do_steps(&mut self, steps: impl IntoIterator<Item = ReadinessCheckAction>) {
        let cx = self.cx;
        for step in steps {
            match step {
                ReadinessCheckAction::Begin { token, key, argv } => {
                    let Some(program) = self.supervisor.program(key) else { continue };
                    match self.launcher.check(cx, key, token, &program.spec, &argv) {
                        Ok(pipe) => self.checks.carry(token, pipe),
                        Err(why) => self.ended(token, Some(format!("did not run: {why}"))),
                    }
                }
                ReadinessCheckAction::Kill { token, key } => {
                    // One that has just ended needs no signal.
                    let _ = cx.nodes.signal_one(key.node, token, Signal::KILL.as_raw());
                }
                ReadinessCheckAction::Ready { key } => self.ready(key),
                ReadinessCheckAction::Failed(FailedReadinessCheck { key, why, last }) => {
                    self.supervisor.on_check_failed(key, &why, last);
                }
            }
        }
    }

    /// What a node says of a check.
    pub(in crate::live) fn handle(&mut self, reply: &NodeInitReply) {
        match reply {
            NodeInitReply::SpawnFailed { id, message, errno, .. } => {
                let why = format!("did not run: {}", reason(message, *errno));
                self.ended(*id, Some(why));
            }
            NodeInitReply::Exited { id, status } => {
                let (code, signal) = code_and_signal(*status);
                let is_success = *status == ExitStatus::Code(0);
                let failure = (!is_success).then(|| ProgramExit { code, signal }.to_string());
                self.ended(*id, failure);
            }
            _ => {}
        }
    }

    /// What a program is watched for holds.
    pub(in crate::live) fn ready(&mut self, key: ProgramKey) {
        if self.supervisor.on_ready(key, self.cx.journal.elapsed()).is_some() {
            log_ready(self.cx, key);
        }
    }

    fn ended(&mut self, token: u64, failure: Option<String>) {
        let step = self.checks.end(token, self.cx.journal.elapsed(), failure);
        self.do_steps(step);
    }
}
