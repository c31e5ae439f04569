//! The clients that are connected to the control socket, and the commands that run for them.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use windtunnel_control::{
    CommandProgress, ConnectionInput, ControlConnection, ControlListener, ControlReply,
    RequestAnswer,
};
use windtunnel_model::{Span, Time};
use windtunnel_node::{NodeInitRequest, ProgramSpawnRequest};
use windtunnel_sys::poll::PollFlags;
use windtunnel_sys::process::Signal;
use windtunnel_trace::event::EventLogEntryKind;

use super::context::RunContext;
use super::nodes::RunNodeTable;
use super::outcome::AnswerPromise;
use super::programs::reason;
use super::refusal::{RequestRefusal, find_node};
use windtunnel_dataplane::now;

/// Commands from outside have numbers from here on; the plan's programs stay below.
pub(super) const EXEC_FIRST: u64 = 1 << 48;

/// The open connections.
#[derive(Debug)]
pub(crate) struct ControlConnectionTable {
    listener: ControlListener,
    open: BTreeMap<u64, ControlClientConnection>,
    next: u64,
    /// The client that was served last: the next turn begins with the one after it.
    served: u64,
    /// Commands whose client has gone: SIGKILL at that time.
    abandoned: Vec<(Time, usize, u64)>,
    /// When it was last reported that clients are refused.
    shortage_reported: Option<Time>,
    /// Until then connections can not even be refused.
    closed_until: Option<Time>,
}

#[derive(Debug)]
struct ControlClientConnection {
    connection: ControlConnection,
    /// The node and number of the command that runs for it.
    command: Option<(usize, u64)>,
}

impl ControlConnectionTable {
    pub(super) fn new(listener: ControlListener) -> Self {
        ControlConnectionTable {
            listener,
            open: BTreeMap::new(),
            next: EXEC_FIRST,
            served: EXEC_FIRST,
            abandoned: Vec::new(),
            shortage_reported: None,
            closed_until: None,
        }
    }

    /// To be polled for reading, and for writing where a reply waits for room.
    pub(super) fn interests(&self) -> impl Iterator<Item = (BorrowedFd<'_>, PollFlags)> {
        let open = self.open.values().map(|open| {
            let mut interest = PollFlags::empty();
            interest.set(PollFlags::IN, !open.connection.is_behind());
            interest.set(PollFlags::OUT, open.connection.is_unsent());
            (open.connection.as_fd(), interest)
        });
        let closed = self.closed_until.is_some_and(|until| now() < until);
        let listener = (!closed).then(|| (self.listener.as_fd(), PollFlags::IN));
        listener.into_iter().chain(open)
    }

    /// Accepts waiting clients, a few a turn. Returns what is to be reported of a shortage, but not
    /// again and again.
    pub(super) fn accept(&mut self, name: &str) -> Option<String> {
        let mut report = None;
        for _ in 0..ACCEPTED_PER_TURN {
            let error = match self.accept_one(name) {
                Ok(true) => continue,
                Ok(false) => break,
                Err(error) => error,
            };
            match self.listener.refuse(name, &error.to_string()) {
                Ok(true) => report = report.or_else(|| self.report_shortage(&error)),
                // Without descriptors, the system does not say that no client waits.
                Ok(false) => break,
                Err(_) => {
                    // The listener stays readable, and only time helps.
                    self.closed_until = Some(now() + PAUSE);
                    return report.or_else(|| self.report_shortage(&error));
                }
            }
        }
        report
    }

    /// False if no client waits.
    fn accept_one(&mut self, name: &str) -> io::Result<bool> {
        if self.open.len() >= CONNECTIONS_MAX {
            return Err(io::Error::other(format!("{CONNECTIONS_MAX} are open")));
        }
        match self.listener.accept(name) {
            Ok(None) => Ok(false),
            Ok(Some(connection)) => {
                self.open.insert(self.next, ControlClientConnection { connection, command: None });
                self.next += 1;
                Ok(true)
            }
            // The client that waited has gone.
            Err(error) if GONE.contains(&error.kind()) => Ok(true),
            Err(error) => Err(error),
        }
    }

    fn report_shortage(&mut self, error: &io::Error) -> Option<String> {
        let time = now();
        if self.shortage_reported.is_some_and(|at| time < at + REPORTED_AGAIN) {
            return None;
        }
        self.shortage_reported = Some(time);
        Some(format!("commands on this run (`ps`, `exec` …) are refused: {error}"))
    }

    /// Sends what waits, and says in which order clients are served: those behind the one that was
    /// served last come first.
    pub(super) fn turn(&mut self) -> Vec<u64> {
        for open in self.open.values_mut() {
            // A client that has gone is found by the next read.
            let _ = open.connection.flush();
        }
        let served = self.served;
        let (before, behind): (Vec<u64>, Vec<u64>) =
            self.open.keys().copied().partition(|id| *id <= served);
        behind.into_iter().chain(before).collect()
    }

    /// The next request of a client, if there is one.
    pub(super) fn receive(&mut self, id: u64) -> Option<ConnectionInput> {
        let open = self.open.get_mut(&id).filter(|open| !open.connection.is_behind())?;
        let incoming = open.connection.receive()?;
        self.served = id;
        Some(incoming)
    }

    /// Whether there is a request that nothing makes readable, because it has been read.
    pub(super) fn has_more(&self) -> bool {
        let ready = |open: &ControlClientConnection| {
            open.connection.has_more() && !open.connection.is_behind()
        };
        self.open.values().any(ready)
    }

    /// A client has gone.
    pub(super) fn close(&mut self, id: u64, nodes: &RunNodeTable) {
        let Some(open) = self.open.remove(&id) else { return };
        if let Some((node, command)) = open.command {
            // What a terminal does to its programs when it goes away.
            signal(nodes, node, command, Signal::HUP);
            self.abandoned.push((now() + ABANDONED_GRACE, node, command));
        }
    }

    /// Has a node run a command for a client, which has the client's number.
    pub(super) fn execute(
        &mut self,
        cx: &RunContext,
        node: &str,
        mut spawn: ProgramSpawnRequest,
        descriptors: &[OwnedFd],
    ) -> Result<AnswerPromise<CommandProgress>, RequestRefusal> {
        let [input, output, error] = descriptors else {
            return Err("exec needs three descriptors".to_owned().into());
        };
        let (id, node) = (spawn.id, find_node(&cx.plan, node)?.index());
        if self.command_of(id).is_some() {
            return Err("this connection already runs a command".to_owned().into());
        }
        if cx.plan.nodes[node].root.is_none() {
            let run = cx.folder.path().to_string_lossy().into_owned();
            spawn.env.entry("WINDTUNNEL_RUN".to_owned()).or_insert(run);
        }
        let argv = spawn.argv.clone();
        let descriptors = [input.as_fd(), output.as_fd(), error.as_fd()];
        cx.nodes.send(node, &NodeInitRequest::Spawn(spawn), &descriptors)?;
        if let Some(open) = self.open.get_mut(&id) {
            open.command = Some((node, id));
        }
        let node = cx.nodes.name(node).to_owned();
        cx.journal.log(None, EventLogEntryKind::Executed { node, argv });
        Ok(AnswerPromise::new())
    }

    /// Sends a signal to the command that runs for a client.
    pub(super) fn signal_command(&self, nodes: &RunNodeTable, id: u64, number: i32) {
        if let Some((node, command)) = self.command_of(id) {
            // A command that has just ended needs no signal.
            let _ = nodes.signal_one(node, command, number);
        }
    }

    /// The node and number of the command that runs for a client.
    fn command_of(&self, id: u64) -> Option<(usize, u64)> {
        self.open.get(&id)?.command
    }

    /// Whether a client's command of that number is a node's.
    pub(super) fn is_commanded(&self, node: usize, command: u64) -> bool {
        let own = |open: &ControlClientConnection| open.command == Some((node, command));
        self.open.get(&command).is_some_and(own)
            || self.abandoned.iter().any(|(_, at, id)| (*at, *id) == (node, command))
    }

    pub(super) fn started(&mut self, command: u64, pid: u32) {
        let pid = i32::try_from(pid).unwrap_or(0);
        self.answer(command, CommandProgress::Started { pid });
    }

    /// A command did not run: its node could not start it, or it is nothing that can be run.
    pub(super) fn failed(&mut self, command: u64, message: &str, errno: i32, by_program: bool) {
        let not_found = io::Error::from_raw_os_error(errno).kind() == ErrorKind::NotFound;
        // The codes of shells.
        let exit = by_program.then_some(if not_found { 127 } else { 126 });
        let message = reason(message, errno);
        self.answer(command, CommandProgress::NotRun { message, exit });
        self.forget_command(command);
    }

    pub(super) fn exited(&mut self, command: u64, code: u8) {
        self.abandoned.retain(|(_, _, id)| *id != command);
        self.answer(command, CommandProgress::Exited { code });
        self.forget_command(command);
    }

    /// Kills commands whose client has been gone for long enough.
    pub(super) fn end_abandoned(&mut self, nodes: &RunNodeTable) {
        let time = now();
        let due = self.abandoned.iter().filter(|(at, ..)| *at <= time);
        for (_, node, id) in due {
            signal(nodes, *node, *id, Signal::KILL);
        }
        self.abandoned.retain(|(at, ..)| *at > time);
    }

    /// Answers what a client has asked.
    pub(super) fn answer<A: RequestAnswer>(&mut self, id: u64, answer: A) {
        self.reply(id, &answer.into_reply());
    }

    pub(super) fn refuse(&mut self, id: u64, refusal: RequestRefusal) {
        self.reply(id, &refusal.into_reply());
    }

    /// Says that what a client has named is on another machine of the run.
    pub(super) fn refer_elsewhere(&mut self, id: u64) {
        self.reply(id, &ControlReply::Elsewhere);
    }

    fn reply(&mut self, id: u64, reply: &ControlReply) {
        // A client that does not read replies is treated as gone when its connection closes.
        if let Some(open) = self.open.get_mut(&id) {
            let _ = open.connection.reply(reply);
        }
    }

    fn forget_command(&mut self, id: u64) {
        if let Some(open) = self.open.get_mut(&id) {
            open.command = None;
        }
    }
}

fn signal(nodes: &RunNodeTable, node: usize, id: u64, signal: Signal) {
    // A node that takes no messages will be ended with the run.
    let _ = nodes.signal_one(node, id, signal.as_raw());
}

/// What one turn of the main loop accepts.
const ACCEPTED_PER_TURN: usize = 16;
/// What a run has room for beside its own work: each may have a command with three descriptors.
const CONNECTIONS_MAX: usize = 256;
/// How long no client is accepted after one could not be refused.
const PAUSE: Span = Span::from_millis(250);
const REPORTED_AGAIN: Span = Span::from_secs(60);
/// Between SIGHUP and SIGKILL for a command whose client has gone.
const ABANDONED_GRACE: Span = Span::from_millis(500);
/// Errors that mean that a client did not wait.
const GONE: [ErrorKind; 4] = [
    ErrorKind::ConnectionAborted,
    ErrorKind::ConnectionReset,
    ErrorKind::BrokenPipe,
    ErrorKind::Interrupted,
];
