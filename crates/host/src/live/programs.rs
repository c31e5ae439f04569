//! Starting programs, and hearing of their lives.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use regex::Regex;
use windtunnel_model::expect::{Claim, ProgramFact, Stream};
use windtunnel_model::plan::Ready;
use windtunnel_node::{ExitStatus, Listener, Request, Spawn};
use windtunnel_trace::event::What;

use super::Live;
use super::connections::EXEC_FIRST;
use crate::output::{Carry, LogWatch, ProgramKey};
use crate::supervisor::{Command, Exit};

impl Live {
    /// Does what the supervisor wants.
    pub(super) fn do_commands(&mut self) {
        while let Some(command) = self.supervisor.poll_command() {
            match command {
                Command::Spawn { key, spawn } => {
                    if let Err(message) = self.spawn(key, spawn) {
                        self.spawn_failed(spawn, &message, 0, false);
                    }
                }
                Command::Watch { key, what } => self.watch(key, &what),
                Command::Awaited { key } => self.tell_awaited(key),
            }
        }
    }

    fn spawn(&mut self, key: ProgramKey, spawn: u64) -> Result<(), String> {
        let supervised = self.supervisor.program(key).ok_or("no such program")?;
        let spec = supervised.spec.clone();
        let base = self.base_dir.to_string_lossy().into_owned();
        let mut env = spec.env;
        env.insert("WINDTUNNEL_RUN".into(), self.folder.path().to_string_lossy().into_owned());
        let mut order = Spawn {
            id: spawn,
            argv: spec.argv,
            env,
            cwd: Some(spec.cwd.unwrap_or(base)),
            terminal: false,
        };
        if let Some((streams, has_terminal)) = self.streams_of_front(key, spawn) {
            order.terminal = has_terminal;
            let streams = streams.each_ref().map(AsFd::as_fd);
            return self.send(key.node, &Request::Spawn(order), &streams);
        }
        let pattern = match &spec.ready {
            Some(Ready::Log(pattern)) => {
                Some(Regex::new(pattern).map_err(|error| error.to_string())?)
            }
            _ => None,
        };
        let descriptors = "cannot make pipes for its output";
        let input = self.null().map_err(|error| format!("{descriptors}: {error}"))?;
        let output = self.carry(key, false, pattern.clone());
        let output = output.map_err(|error| format!("{descriptors}: {error}"))?;
        let error = self.carry(key, true, pattern);
        let error = error.map_err(|error| format!("{descriptors}: {error}"))?;
        let stdio = [input.as_fd(), output.as_fd(), error.as_fd()];
        self.send(key.node, &Request::Spawn(order), &stdio)
    }

    /// Makes a pipe whose reading end the output thread carries; returns the writing end.
    fn carry(&self, key: ProgramKey, error: bool, ready: Option<Regex>) -> io::Result<OwnedFd> {
        let (reader, writer) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        let node = &self.plan.nodes[key.node];
        let stream = if error { "stderr" } else { "stdout" };
        let several = node.programs.len() > 1;
        let (source, file) = if several {
            (format!("{}.{}", node.name, key.program), format!("{stream}.{}", key.program))
        } else {
            (node.name.clone(), stream.to_owned())
        };
        let file = self.folder.node(&node.name).join(file);
        let watches = self.log_watches(key, error);
        self.threads.output.carry(Carry { key, source, error, pipe: reader, file, ready, watches });
        Ok(writer)
    }

    /// What expectations want to know of a stream.
    fn log_watches(&self, key: ProgramKey, error: bool) -> Vec<LogWatch> {
        let expectations = self.plan.expectations.iter().enumerate();
        expectations
            .filter_map(|(index, expectation)| {
                let Claim::Program { nodes, fact } = &expectation.claim else { return None };
                let ProgramFact::Log { pattern, stream, .. } = fact else { return None };
                let own = if error { Stream::Stderr } else { Stream::Stdout };
                let named = nodes.iter().any(|node| node.index() == key.node);
                if !named || stream.is_some_and(|stream| stream != own) {
                    return None;
                }
                // The scenario has built it before.
                let pattern = Regex::new(pattern).ok()?;
                let window = expectation.window;
                let at = |span| (self.origin + span).as_nanos();
                let from_ns = window.map_or(0, |window| at(window.from));
                let to_ns = window.and_then(|window| window.to).map_or(u64::MAX, at);
                Some(LogWatch { expectation: index, pattern, from_ns, to_ns })
            })
            .collect()
    }

    fn watch(&mut self, key: ProgramKey, what: &Ready) {
        let what = match what {
            Ready::Tcp(port) => Listener::Tcp(*port),
            Ready::Listen => Listener::Any,
            Ready::Unix(path) => Listener::Unix(path.clone()),
            Ready::Log(_) | Ready::Exit => return,
        };
        let request = Request::Watch { token: token_of(key), what };
        if let Err(error) = self.send(key.node, &request, &[]) {
            self.warn(format!("cannot watch {}: {error}", self.supervisor.describe(key)));
        }
    }

    pub(super) fn spawned(&mut self, id: u64, pid: u32) {
        if id >= EXEC_FIRST {
            self.connections.started(id, pid);
            return;
        }
        let now = self.elapsed();
        let ready = self.supervisor.on_spawned(id, i32::try_from(pid).unwrap_or(0), now);
        let started = self.supervisor.key_of(id);
        self.freeze_newcomer(started);
        if let Some(key) = started.and_then(|key| self.supervisor.program(key).map(|p| (key, p))) {
            let (key, program) = key;
            let argv = program.spec.argv.clone();
            self.tell(
                None,
                What::ProgramStarted { node: self.name(key), program: key.program, argv },
            );
        }
        if let Some(key) = ready.filter(|key| self.names_a_condition(*key)) {
            self.tell_ready(key);
        }
        self.do_commands();
    }

    pub(super) fn spawn_failed(&mut self, id: u64, message: &str, errno: i32, by_program: bool) {
        let reason = match errno {
            0 => message.to_owned(),
            errno => format!("{message}: {}", io::Error::from_raw_os_error(errno)),
        };
        if id >= EXEC_FIRST {
            let not_found = io::Error::from_raw_os_error(errno).kind() == io::ErrorKind::NotFound;
            // The codes of shells.
            let exit = by_program.then_some(if not_found { 127 } else { 126 });
            self.connections.failed(id, &reason, exit);
        } else if let Some(key) = self.supervisor.on_spawn_failed(id, &reason) {
            let (node, program) = (self.name(key), key.program);
            self.tell(None, What::ProgramFailed { node, program, message: reason });
        }
    }

    pub(super) fn exited(&mut self, id: u64, status: ExitStatus) {
        let code = u8::try_from(status.shell_code() & 0xff).unwrap_or(u8::MAX);
        if id >= EXEC_FIRST {
            self.connections.exited(id, code);
            return;
        }
        let signal = match status {
            ExitStatus::Signal(signal) => Some(signal),
            ExitStatus::Code(_) => None,
        };
        let now = self.elapsed();
        let Some((key, ready)) = self.supervisor.on_exited(id, Exit { code, signal }, now) else {
            return;
        };
        let (node, program) = (self.name(key), key.program);
        self.tell(None, What::ProgramExited { node, program, code, signal });
        if ready {
            self.tell_ready(key);
        }
    }

    pub(super) fn listening(&mut self, token: u64) {
        self.program_ready(key_of(token));
    }

    pub(super) fn program_ready(&mut self, key: ProgramKey) {
        if self.supervisor.on_ready(key, self.elapsed()).is_some() {
            self.tell_ready(key);
        }
    }

    pub(super) fn warn(&self, message: String) {
        self.tell(None, What::Warning { message });
    }

    fn tell_awaited(&self, key: ProgramKey) {
        let Some(program) = self.supervisor.program(key) else { return };
        let condition = program.spec.ready.as_ref().map(ToString::to_string).unwrap_or_default();
        let (node, program) = (self.name(key), key.program);
        self.tell(None, What::ProgramAwaited { node, program, condition });
    }

    fn tell_ready(&self, key: ProgramKey) {
        self.tell(None, What::ProgramReady { node: self.name(key), program: key.program });
    }

    /// Readiness is news only where the file asks for it.
    fn names_a_condition(&self, key: ProgramKey) -> bool {
        self.supervisor.program(key).is_some_and(|program| program.spec.ready.is_some())
    }

    fn name(&self, key: ProgramKey) -> String {
        self.plan.nodes[key.node].name.clone()
    }
}

fn token_of(key: ProgramKey) -> u64 {
    (key.node as u64) << 32 | key.program as u64
}

pub(super) fn key_of(token: u64) -> ProgramKey {
    let part = |value: u64| usize::try_from(value).unwrap_or(usize::MAX);
    ProgramKey { node: part(token >> 32), program: part(token & 0xffff_ffff) }
}
