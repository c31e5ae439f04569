//! One turn of the main loop: do what is due, wait for something to happen, and hand it to the
//! module that handles it.

use std::io::ErrorKind;
use std::time::Duration;

use windtunnel_model::Span;
use windtunnel_sys::poll::{self, PollFd, PollFlags};
use windtunnel_verdict::evidence::RunEndReason;

use super::reactor::RunReactor;

/// What has something to read.
#[derive(Default)]
struct RunLoopReadiness {
    nodes: bool,
    signals: bool,
    threads: bool,
    control: bool,
    agent: bool,
    checks: bool,
}

impl RunReactor {
    /// Does what is due, in all parts.
    pub(super) fn do_due(&mut self, elapsed: Span) {
        for action in self.programs.due(elapsed) {
            self.registrar().lose_what_dies(&action);
        }
        self.programs.tick(&self.cx, elapsed);
        let new_limits = self.programs.take_new_limits();
        self.limit_controller().set_scheduled(new_limits);
        self.registrar().probe();
        self.measurements.start_due(elapsed, &self.cx);
        if let Some(membership) = &mut self.membership {
            membership.announce_programs(&self.programs.supervisor);
        }
        self.limit_controller().sample();
    }

    /// Waits for something to happen, at most `timeout`, and handles it.
    pub(super) fn wait(&mut self, timeout: Option<Span>) {
        let readable = self.poll(timeout.map(Duration::from));
        if readable.nodes {
            for node in self.cx.nodes.readiness().nodes() {
                self.handle_node(node.index());
            }
        }
        if readable.checks {
            self.programs.checks.read();
        }
        if readable.signals {
            self.take_signals();
        }
        if readable.threads {
            self.handle_threads();
        }
        if readable.control || self.connections.has_more() {
            self.serve();
        }
        if readable.agent {
            self.handle_agent();
        }
    }

    fn poll(&self, timeout: Option<Duration>) -> RunLoopReadiness {
        // What has been read and not answered makes nothing readable.
        let timeout = if self.connections.has_more() { Some(Duration::ZERO) } else { timeout };
        let agent = self.membership.iter().map(|it| PollFd::new(it, PollFlags::IN));
        let mut watched = vec![
            PollFd::new(self.cx.nodes.readiness(), PollFlags::IN),
            PollFd::new(&self.inputs.signals, PollFlags::IN),
            PollFd::new(&*self.inputs.wake, PollFlags::IN),
        ];
        let agents = watched.len();
        watched.extend(agent);
        let checks = watched.len();
        let outputs = self.programs.checks.outputs();
        watched.extend(outputs.map(|output| PollFd::from_borrowed_fd(output, PollFlags::IN)));
        let clients = watched.len();
        for (descriptor, interest) in self.connections.interests() {
            watched.push(PollFd::from_borrowed_fd(descriptor, interest));
        }
        match poll::wait(&mut watched, timeout) {
            Ok(0) => return RunLoopReadiness::default(),
            Err(error) if error.kind() != ErrorKind::Interrupted => {
                // Nothing sensible is left to do but not to spin.
                std::thread::sleep(Duration::from_millis(10));
            }
            _ => {}
        }
        let happened: Vec<bool> = watched.iter().map(|it| !it.revents().is_empty()).collect();
        RunLoopReadiness {
            nodes: happened[0],
            signals: happened[1],
            threads: happened[2],
            agent: happened[agents..checks].contains(&true),
            checks: happened[checks..clients].contains(&true),
            control: happened[clients..].contains(&true),
        }
    }

    fn take_signals(&mut self) {
        while let Ok(Some(received)) = self.inputs.signals.read() {
            if !self.programs.pass_on(&self.cx, received.signal) {
                self.end.insist(RunEndReason::Interrupted(received.signal));
            }
        }
    }
}
