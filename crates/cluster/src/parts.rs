//! All parts of one run, for the process that starts or watches it: a thread for each agent, and
//! one channel.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use windtunnel_control::ControlRequest;
use windtunnel_control::part::FromPart;
use windtunnel_sys::process::Signal;
use windtunnel_sys::signal;

use crate::client::{AgentClient, AgentClientError};
use crate::key::{ClusterKey, KeyError};
use crate::protocol::answers::WatchedRunMessage;
use crate::protocol::exec::{FromCommand, ToCommand};
use crate::protocol::questions::AgentQuestion;
use crate::protocol::run::{PartCommand, RunSetup};
use crate::protocol::{AgentReply, AgentRequest};
use crate::run_agents::{AGAIN, PATIENCE, RunAgents};

/// All parts of a run.
#[derive(Debug)]
pub struct PartSessions {
    agents: RunAgents,
    /// By member.
    orders: Vec<UnboundedSender<PartCommand>>,
    events: Receiver<(u16, PartEvent)>,
}

/// An event of a part.
#[derive(Debug)]
pub enum PartEvent {
    /// It said something.
    Said {
        /// When its agent passed that on, on the agent's monotonic clock, in nanoseconds.
        now_ns: u64,
        /// When it was received here.
        at: Instant,
        /// The round trip to its agent.
        rtt: Duration,
        /// What it said.
        said: FromPart,
    },
    /// Its agent does not do it.
    Refused(String),
    /// Its agent has gone.
    Gone(String),
}

impl PartSessions {
    /// Begins the parts of a run.
    #[must_use]
    pub fn begin(setup: &RunSetup, key: &ClusterKey) -> Self {
        let ask = |member| AgentRequest::part(Box::new(setup.clone()), member);
        Self::attend(setup, key, ask, false)
    }

    /// Watches a run from now on.
    #[must_use]
    pub fn watch(setup: &RunSetup, key: &ClusterKey) -> Self {
        let ask = |_| AgentRequest::watch(setup.run);
        Self::attend(setup, key, ask, true)
    }

    fn attend(
        setup: &RunSetup,
        key: &ClusterKey,
        ask: impl Fn(u16) -> AgentQuestion<WatchedRunMessage>,
        has_begun: bool,
    ) -> Self {
        let (sender, events) = channel();
        let mut orders = Vec::new();
        for (number, member) in (0..).zip(&setup.members) {
            let (order, ordered) = unbounded_channel();
            orders.push(order);
            let link = PartSessionThread {
                run: setup.run,
                number,
                host: member.address.to_string(),
                key: key.clone(),
                events: sender.clone(),
            };
            let ask = ask(number);
            thread::spawn(move || {
                // The thread that watches the run reads the signals that end it: no other may take
                // them.
                let _ = signal::block(&[Signal::INT, Signal::TERM, Signal::HUP]);
                link.live(ask, ordered, has_begun);
            });
        }
        PartSessions { agents: RunAgents::new(setup.run, &setup.members, key), orders, events }
    }

    /// Sends an order to one part's agent; it is lost if the agent has gone.
    pub fn order(&self, member: u16, order: PartCommand) {
        if let Some(orders) = self.orders.get(usize::from(member)) {
            let _ = orders.send(order);
        }
    }

    /// Sends an order to all agents.
    pub fn order_all(&self, order: &PartCommand) {
        for orders in &self.orders {
            let _ = orders.send(order.clone());
        }
    }

    /// The next event, with its member; `None` if there is none for so long.
    #[must_use]
    pub fn next_event(&self, patience: Duration) -> Option<(u16, PartEvent)> {
        match self.events.recv_timeout(patience) {
            Ok(event) => Some(event),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => {
                // All have gone, and an event of each has said so.
                thread::sleep(patience);
                None
            }
        }
    }

    /// The agents, for single questions.
    #[must_use]
    pub fn agents(&self) -> &RunAgents {
        &self.agents
    }
}

/// Runs a command in a node of a part.
#[derive(Debug)]
pub struct RemoteCommandRunner {
    run: u64,
    address: String,
    key: ClusterKey,
}

/// The way to a command that runs.
#[derive(Debug, Clone)]
pub struct CommandSender(tokio::sync::mpsc::Sender<ToCommand>);

impl CommandSender {
    /// Sends a message, when there is room; false if the command has ended.
    pub fn send(&self, message: ToCommand) -> bool {
        self.0.blocking_send(message).is_ok()
    }

    /// Whether the command has ended.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.0.is_closed()
    }
}

impl RemoteCommandRunner {
    pub(crate) fn new(run: u64, address: String, key: ClusterKey) -> Self {
        RemoteCommandRunner { run, address, key }
    }

    /// The way to the command, and what [`RemoteCommandRunner::run`] reads from it. Bounded: input that comes
    /// faster than the network carries it has to wait.
    #[must_use]
    pub fn channel() -> (CommandSender, tokio::sync::mpsc::Receiver<ToCommand>) {
        let (sender, receiver) = tokio::sync::mpsc::channel(16);
        (CommandSender(sender), receiver)
    }

    /// Runs the command of `request`, with a terminal of `size` (lines, characters in a line) if
    /// there is one, until it ends.
    ///
    /// # Errors
    /// If it cannot be run, or the agent has gone.
    pub fn run(
        &self,
        request: ControlRequest,
        size: Option<(u16, u16)>,
        messages: tokio::sync::mpsc::Receiver<ToCommand>,
        handle: impl FnMut(FromCommand),
    ) -> Result<(), AgentClientError> {
        let ask = AgentRequest::exec(self.run, Box::new(request), size);
        AgentClient::connect(&self.address, &self.key)?.exec(&ask, messages, handle)
    }
}

/// One agent's thread.
struct PartSessionThread {
    run: u64,
    number: u16,
    host: String,
    key: ClusterKey,
    events: Sender<(u16, PartEvent)>,
}

impl PartSessionThread {
    fn live(
        &self,
        mut ask: AgentQuestion<WatchedRunMessage>,
        mut orders: UnboundedReceiver<PartCommand>,
        mut has_begun: bool,
    ) {
        let mut silent_since: Option<Instant> = None;
        loop {
            let error = match AgentClient::connect(&self.host, &self.key) {
                Ok(client) => {
                    let attended = client.attend(&ask, &mut orders, |answer| {
                        silent_since = None;
                        has_begun |= matches!(
                            answer,
                            Ok(WatchedRunMessage::Said { said: FromPart::Begun, .. })
                        );
                        self.take(&client, answer);
                    });
                    let Err(error) = attended else { return };
                    if !client.has_timed_out() {
                        return self.emit(PartEvent::Gone(with_cause(&error)));
                    }
                    error
                }
                Err(error) => error,
            };
            let since = *silent_since.get_or_insert_with(Instant::now);
            let may_return =
                matches!(error, AgentClientError::Broken { .. } | AgentClientError::NoAgent { .. });
            // A run that has begun goes on without this command, and can be watched again.
            if !has_begun || !may_return || since.elapsed() > PATIENCE {
                return self.emit(PartEvent::Gone(with_cause(&error)));
            }
            ask = AgentRequest::watch(self.run);
            thread::sleep(AGAIN);
        }
    }

    fn take(&self, client: &AgentClient, answer: Result<WatchedRunMessage, AgentReply>) {
        match answer {
            Ok(WatchedRunMessage::Said { now_ns, said }) => {
                self.emit(PartEvent::Said { now_ns, at: Instant::now(), rtt: client.rtt(), said });
            }
            Err(AgentReply::Error { message }) => self.emit(PartEvent::Refused(message)),
            _ => {}
        }
    }

    fn emit(&self, event: PartEvent) {
        // The receiver may be gone.
        let _ = self.events.send((self.number, event));
    }
}

/// A random number for a run.
///
/// # Errors
/// If the system has no entropy to give.
pub fn run_number() -> Result<u64, KeyError> {
    let [a, b, c, d, e, f, g, h, ..] = crate::key::random()?;
    Ok(u64::from_be_bytes([a, b, c, d, e, f, g, h]))
}

/// A key for the packets of a run, as 64 hexadecimal digits.
///
/// # Errors
/// If the system has no entropy to give.
pub fn packet_key() -> Result<String, KeyError> {
    Ok(crate::key::random()?.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn with_cause(error: &AgentClientError) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}
