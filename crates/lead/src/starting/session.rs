//! Programs that hold agents elsewhere, such as ssh: each gets the key through its standard input,
//! which then stays open, passes on what the agents say, and ends with them.

use std::collections::VecDeque;
use std::io::{self, BufReader, Write};
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use windtunnel_cluster::{ANNOUNCED, ClusterKey};
use windtunnel_sys::process::Signal;
use windtunnel_sys::signal;

use super::lines::{LaunchLineReader, LaunchOutputLine};
use crate::progress::ClusterRunObserver;

/// A program that holds agents.
#[derive(Debug)]
pub(super) struct AgentLaunchCommand {
    /// What it is to people: `the ssh session with b`.
    pub(super) what: String,
    /// The program and its arguments.
    pub(super) words: Vec<String>,
    /// How many agents it starts.
    pub(super) agents: usize,
}

/// Why there are no agents.
#[derive(Debug)]
pub(super) enum AgentLaunchFailure {
    /// The program does not start.
    NoProgram { program: String, error: io::Error },
    /// It is over.
    Ended {
        status: Option<ExitStatus>,
        /// The last lines of its standard error.
        said: Vec<String>,
    },
    /// Nothing has come for a long time.
    Silent { said: Vec<String> },
    /// A line has no end.
    Overlong { stream: &'static str },
}

/// Programs that hold agents until this is dropped.
#[derive(Default)]
pub(super) struct Sessions(Vec<AgentLaunchSession>);

struct AgentLaunchSession {
    what: String,
    child: Child,
    /// The agents live as long as it.
    input: Option<ChildStdin>,
    shared: Arc<LaunchSessionState>,
    /// Disconnected when standard error is over.
    talking: Receiver<()>,
}

/// Known to the threads that read.
struct LaunchSessionState {
    said: Mutex<VecDeque<String>>,
    /// Whether its end is to be reported.
    is_needed: AtomicBool,
    progress: Arc<dyn ClusterRunObserver>,
}

/// What comes from one of the sessions.
#[derive(Debug, Clone, Copy)]
enum AgentLaunchEvent {
    Agent(SocketAddr),
    /// Of standard output or standard error.
    Overlong(&'static str),
    Over,
}

/// Reads what one session writes.
#[derive(Clone)]
struct LaunchOutputListener {
    number: usize,
    what: String,
    events: Sender<(usize, AgentLaunchEvent)>,
    shared: Arc<LaunchSessionState>,
}

impl Sessions {
    /// Opens all at the same time. What became of each: its agents' addresses.
    pub(super) fn open(
        plans: &[AgentLaunchCommand],
        key: &ClusterKey,
        progress: &Arc<dyn ClusterRunObserver>,
    ) -> (Self, Vec<Result<Vec<SocketAddr>, AgentLaunchFailure>>) {
        let (sender, events) = channel();
        let mut all = PendingAgentLaunches::default();
        for (number, plan) in plans.iter().enumerate() {
            all.add(plan, AgentLaunchSession::open(plan, key, number, &sender, progress));
        }
        drop(sender);
        all.wait(plans, &events);
        let sessions: Vec<AgentLaunchSession> = all.sessions.into_iter().flatten().collect();
        sessions.iter().for_each(|session| session.shared.is_needed.store(true, Ordering::Relaxed));
        let opened = all.addresses.into_iter().zip(all.failed);
        let opened = opened.map(|(addresses, why)| why.map_or(Ok(addresses), Err)).collect();
        (Sessions(sessions), opened)
    }
}

/// Sessions that begin, each with what is known of it.
#[derive(Default)]
struct PendingAgentLaunches {
    sessions: Vec<Option<AgentLaunchSession>>,
    addresses: Vec<Vec<SocketAddr>>,
    failed: Vec<Option<AgentLaunchFailure>>,
}

impl PendingAgentLaunches {
    fn add(&mut self, plan: &AgentLaunchCommand, opened: io::Result<AgentLaunchSession>) {
        self.addresses.push(Vec::new());
        let program = plan.words.first().cloned().unwrap_or_default();
        let (session, why) = match opened {
            Ok(session) => (Some(session), None),
            Err(error) => (None, Some(AgentLaunchFailure::NoProgram { program, error })),
        };
        self.sessions.push(session);
        self.failed.push(why);
    }

    /// Waits until each has all its agents, or has failed.
    fn wait(&mut self, plans: &[AgentLaunchCommand], events: &Receiver<(usize, AgentLaunchEvent)>) {
        let until = Instant::now() + PATIENCE;
        while (0..plans.len()).any(|at| self.is_open(at, plans)) {
            match events.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok((at, AgentLaunchEvent::Agent(address))) if self.is_open(at, plans) => {
                    self.addresses[at].push(address);
                }
                Ok((at, AgentLaunchEvent::Overlong(stream))) if self.is_open(at, plans) => {
                    self.failed[at] = Some(AgentLaunchFailure::Overlong { stream });
                }
                Ok((at, AgentLaunchEvent::Over)) if self.is_open(at, plans) => self.over(at),
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    for at in 0..plans.len() {
                        if self.is_open(at, plans) {
                            let said = self.sessions[at].as_ref().map(AgentLaunchSession::said);
                            self.failed[at] =
                                Some(AgentLaunchFailure::Silent { said: said.unwrap_or_default() });
                        }
                    }
                }
            }
        }
    }

    fn is_open(&self, at: usize, plans: &[AgentLaunchCommand]) -> bool {
        self.failed[at].is_none() && self.addresses[at].len() < plans[at].agents
    }

    fn over(&mut self, at: usize) {
        let Some(session) = &mut self.sessions[at] else { return };
        let status = ended(&mut session.child, FAREWELL);
        let _ = session.talking.recv_timeout(LAST_WORDS);
        self.failed[at] = Some(AgentLaunchFailure::Ended { status, said: session.said() });
    }
}

impl AgentLaunchSession {
    fn open(
        plan: &AgentLaunchCommand,
        key: &ClusterKey,
        number: usize,
        events: &Sender<(usize, AgentLaunchEvent)>,
        progress: &Arc<dyn ClusterRunObserver>,
    ) -> io::Result<Self> {
        let (program, arguments) = plan.words.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let mut command = Command::new(program);
        command.args(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Ctrl-C in the terminal is for us: the agents have to be there while the run ends.
        command.process_group(0);
        let mut child = command.spawn()?;
        let mut input = child.stdin.take();
        if let Some(input) = &mut input {
            // If that fails the program is over, and says why. A pipe holds more than a key.
            let _ = input.write_all(key.text().as_bytes()).and_then(|()| input.flush());
        }
        let shared = Arc::new(LaunchSessionState::new(progress));
        let (talks, talking) = channel();
        if let (Some(out), Some(talk)) = (child.stdout.take(), child.stderr.take()) {
            let (events, shared) = (events.clone(), Arc::clone(&shared));
            let listener = LaunchOutputListener { number, what: plan.what.clone(), events, shared };
            let other = listener.clone();
            thread::spawn(move || {
                leave_signals();
                other.read_talk(talk, &talks);
            });
            thread::spawn(move || {
                leave_signals();
                listener.read_addresses(out);
            });
        }
        Ok(AgentLaunchSession { what: plan.what.clone(), child, input, shared, talking })
    }

    fn said(&self) -> Vec<String> {
        let said = self.shared.said.lock().unwrap_or_else(PoisonError::into_inner);
        said.iter().cloned().collect()
    }
}

impl LaunchSessionState {
    fn new(progress: &Arc<dyn ClusterRunObserver>) -> Self {
        LaunchSessionState {
            said: Mutex::default(),
            is_needed: AtomicBool::new(false),
            progress: Arc::clone(progress),
        }
    }
}

impl Drop for Sessions {
    /// All agents are notified that they may end; a session that does not end in time is ended
    /// without its agents, which others may still need.
    fn drop(&mut self) {
        for session in &mut self.0 {
            session.shared.is_needed.store(false, Ordering::Relaxed);
            session.input = None;
        }
        let until = Instant::now() + FAREWELL;
        for session in &mut self.0 {
            let left = until.saturating_duration_since(Instant::now());
            if ended(&mut session.child, left).is_none() {
                session.shared.progress.warn(&format!(
                    "{} is not over: its agent ends when no client watches a run there",
                    session.what
                ));
                let _ = session.child.kill();
                let _ = session.child.wait();
            }
        }
    }
}

impl LaunchOutputListener {
    fn read_addresses(&self, out: ChildStdout) {
        for line in LaunchLineReader::of(BufReader::new(out)) {
            let LaunchOutputLine::Text(line) = line else {
                self.send(AgentLaunchEvent::Overlong("standard output"));
                continue;
            };
            // Other lines are the login messages of a shell.
            let line = String::from_utf8_lossy(&line);
            let address = line.trim().strip_prefix(ANNOUNCED).and_then(|text| text.parse().ok());
            if let Some(address) = address {
                self.send(AgentLaunchEvent::Agent(address));
            }
        }
        self.send(AgentLaunchEvent::Over);
        if self.shared.is_needed.load(Ordering::Relaxed) {
            self.shared.progress.warn(&format!("{} is over before the run is", self.what));
        }
    }

    fn read_talk(&self, talk: ChildStderr, _talks: &Sender<()>) {
        for line in LaunchLineReader::of(BufReader::new(talk)) {
            let LaunchOutputLine::Text(line) = line else {
                self.send(AgentLaunchEvent::Overlong("standard error"));
                continue;
            };
            let line = String::from_utf8_lossy(&line).trim_end().to_owned();
            let mut said = self.shared.said.lock().unwrap_or_else(PoisonError::into_inner);
            if said.len() == LINES_KEPT {
                said.pop_front();
            }
            said.push_back(line);
        }
    }

    fn send(&self, event: AgentLaunchEvent) {
        // Once all sessions have begun, there is no receiver.
        let _ = self.events.send((self.number, event));
    }
}

/// The thread that leads the run reads the signals that end it: no other may take them.
fn leave_signals() {
    let _ = signal::block(&[Signal::INT, Signal::TERM, Signal::HUP]);
}

/// How a program has ended; `None` if it does not in time.
fn ended(child: &mut Child, patience: Duration) -> Option<ExitStatus> {
    let until = Instant::now() + patience;
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if Instant::now() < until => thread::sleep(PAUSE),
            Ok(None) | Err(_) => return None,
        }
    }
}

/// How long a machine may take to log in and to start an agent.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long a session may take to end.
const FAREWELL: Duration = Duration::from_secs(5);
/// How long standard error may be open after the program has ended: a shared connection of ssh
/// keeps it.
const LAST_WORDS: Duration = Duration::from_millis(300);
const PAUSE: Duration = Duration::from_millis(5);
const LINES_KEPT: usize = 20;

#[cfg(test)]
mod tests;
