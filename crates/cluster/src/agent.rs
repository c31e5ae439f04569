//! An agent: one process for each machine of a cluster, of an ordinary user.
//!
//! One thread with one runtime. Everything that is heard goes through one channel to one loop, which owns
//! the mesh; answers that take longer are tasks of their own.

mod answer;
mod end;
pub(crate) mod exec;
mod limits;
mod losses;
mod runs;
mod seek;
mod watch;
mod worker;

use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use quinn::{Endpoint, EndpointConfig, TokioRuntime};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use windtunnel_mesh::{AgentId, Config, Ending, Event, Mesh};
use windtunnel_model::{Bytes, Rate, Time};
use windtunnel_sys::clock;

pub use limits::Limits;
use runs::Runs;
pub use worker::Worker;

use crate::carrier::{Carrier, Heard, canonical};
use crate::key::ClusterKey;
use crate::protocol::{Answer, Ask, Card, Peer, PeerClock, Reserved};
use crate::{machine, tls};

/// What an agent is made of.
#[derive(Debug, Clone)]
pub struct Agent {
    /// Where it hears.
    pub listen: SocketAddr,
    /// Where others reach it, with port 0 at that of `listen`; `None`: found out.
    pub advertise: Option<SocketAddr>,
    /// Agents to look for: names or addresses, with or without a port. Names that mean nothing are tried
    /// again.
    pub join: Vec<String>,
    /// The machine's name; `None`: its own.
    pub name: Option<String>,
    /// What its owner calls it.
    pub labels: BTreeSet<String>,
    /// Processors that runs may use; `None`: all.
    pub cpus: Option<u32>,
    /// Memory that runs may use; `None`: all.
    pub memory: Option<Bytes>,
    /// What the machine can send to others.
    pub uplink: Option<Rate>,
    /// The cluster's key.
    pub key: ClusterKey,
    /// How a part of a run is started; `None`: this agent does no runs.
    pub worker: Option<Worker>,
    /// What runs may use.
    pub limits: Limits,
    /// Where parts of runs have their folders until their results are fetched. What is there is removed.
    pub folder: PathBuf,
    /// Whether the agent ends when its standard input does, once nobody watches a run that has a part
    /// here; then its folder goes, too.
    pub until_stdin_closes: bool,
}

/// Why an agent could not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AgentError {
    /// It cannot hear.
    #[error("cannot listen on {address}")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// The key is no good.
    #[error("cannot use the key: {0}")]
    Key(String),
    /// Another step; it is named.
    #[error("cannot {step}")]
    Step {
        /// What was tried.
        step: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

impl AgentError {
    /// What the user can do about it.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            AgentError::Listen { source, .. } if source.kind() == io::ErrorKind::AddrInUse => Some(
                "an agent runs already, or name another port with --listen ADDRESS:PORT".into(),
            ),
            AgentError::Key(_) => Some("make one with `windtunnel keygen`".to_owned()),
            _ => None,
        }
    }
}

/// What an agent has to say to its owner.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Told {
    /// It hears, and others reach it there.
    Listening {
        /// Where it hears.
        listen: SocketAddr,
        /// Where others reach it.
        advertise: SocketAddr,
    },
    /// The name of an agent to look for means nothing so far.
    NotFound {
        /// The name.
        name: String,
        /// What the system said.
        why: String,
    },
    /// Another agent is there.
    Joined(SocketAddr),
    /// Another agent said that it ends.
    Left(SocketAddr),
    /// Another agent is lost.
    Lost(SocketAddr),
    /// Somebody was refused.
    Refused {
        /// Who.
        from: SocketAddr,
        /// Why.
        why: String,
    },
    /// It ends.
    Ends,
}

impl Agent {
    /// Runs until SIGINT, SIGTERM or SIGHUP, or as [`Agent::until_stdin_closes`] says; then the others are
    /// told.
    ///
    /// # Errors
    /// [`AgentError`] if it cannot start.
    pub fn run(self, tell: impl FnMut(Told)) -> Result<(), AgentError> {
        self.run_until(end::signalled, tell)
    }

    /// Runs until what `end` makes is over; then the others are told.
    ///
    /// # Errors
    /// [`AgentError`] if it cannot start.
    pub fn run_until<F: Future<Output = io::Result<()>>>(
        self,
        end: impl FnOnce() -> F,
        tell: impl FnMut(Told),
    ) -> Result<(), AgentError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(step("start a runtime"))?;
        tokio::task::LocalSet::new().block_on(&runtime, self.live(end, tell))
    }

    async fn live<F: Future<Output = io::Result<()>>>(
        self,
        end: impl FnOnce() -> F,
        mut tell: impl FnMut(Told),
    ) -> Result<(), AgentError> {
        let listening = |source| AgentError::Listen { address: self.listen, source };
        let socket = UdpSocket::bind(self.listen).map_err(listening)?;
        let listen = socket.local_addr().map_err(listening)?;
        let found = seek::resolve_all(&self.join, listen).await;
        let advertise = self.advertised(listen, &found.known);
        let (server, client) = tls::settings(&self.key).map_err(AgentError::Key)?;
        let runtime = Arc::new(TokioRuntime);
        let mut endpoint = Endpoint::new(EndpointConfig::default(), Some(server), socket, runtime)
            .map_err(listening)?;
        endpoint.set_default_client_config(client);
        let (heard, hearing) = unbounded_channel();
        let carrier = Carrier::new(endpoint.clone(), heard.clone());
        if self.worker.is_some() {
            runs::clear(&self.folder).map_err(step("clear the folder of runs"))?;
        }
        tokio::task::spawn_local(carrier.clone().accept());
        tell(Told::Listening { listen, advertise });
        for (name, why) in found.unknown.iter().cloned() {
            tell(Told::NotFound { name, why });
        }
        tokio::task::spawn_local(seek::seek(self.join.clone(), listen, found, heard.clone()));
        if self.until_stdin_closes {
            end::watch_stdin(heard.clone());
        }
        let mut life = Life::new(&self, advertise, carrier, heard);
        let ended = life.hear(hearing, end(), &mut tell).await;
        tell(Told::Ends);
        endpoint.close(0_u32.into(), b"the agent ends");
        // Who does not hear it will notice.
        let _ = tokio::time::timeout(FAREWELL, endpoint.wait_idle()).await;
        if self.until_stdin_closes {
            // Somebody else may have put something there.
            let _ = std::fs::remove_dir(&self.folder);
        }
        ended.map_err(step("wait for signals"))
    }

    /// Where others reach this machine: the address from which it would speak to the first agent that it
    /// looks for, or to anybody.
    fn advertised(&self, listen: SocketAddr, known: &[SocketAddr]) -> SocketAddr {
        if let Some(mut address) = self.advertise {
            if address.port() == 0 {
                address.set_port(listen.port());
            }
            return address;
        }
        if !listen.ip().is_unspecified() {
            return canonical(listen);
        }
        let own = known.first().and_then(|to| speaking_to(*to));
        let own = own.or_else(|| speaking_to(SOMEBODY)).unwrap_or(Ipv4Addr::LOCALHOST.into());
        SocketAddr::new(own, listen.port())
    }
}

/// An agent that lives.
struct Life {
    mesh: Mesh,
    carrier: Carrier,
    /// What does not change of its card.
    card: Card,
    shares_all_memory: bool,
    runs: Runs,
    heard: UnboundedSender<Heard>,
    /// Nobody needs it but who watches a run.
    is_released: bool,
}

impl Life {
    fn new(
        agent: &Agent,
        advertise: SocketAddr,
        carrier: Carrier,
        heard: UnboundedSender<Heard>,
    ) -> Self {
        let id = AgentId(random());
        let mut config = Config::new(id, epoch(), advertise);
        config.mtu = MESH_MTU;
        let mesh = Mesh::new(config, random(), now());
        let (memory, memory_free) = machine::memory();
        let card = Card {
            agent: id.to_string(),
            host: agent.name.clone().unwrap_or_else(machine::name),
            address: advertise,
            labels: agent.labels.clone(),
            windtunnel: env!("CARGO_PKG_VERSION").to_owned(),
            kernel: machine::kernel(),
            cpus: agent.cpus.unwrap_or_else(machine::cpus),
            load_hundredths: 0,
            memory: agent
                .limits
                .memory
                .unwrap_or(Bytes(u64::MAX))
                .min(agent.memory.unwrap_or(memory)),
            memory_free,
            uplink: agent.uplink,
            nodes_max: agent.limits.nodes.map(|most| u32::try_from(most).unwrap_or(u32::MAX)),
            cpu_millis_max: agent.limits.cpu_millis,
            reserved: Reserved::default(),
            peers: Vec::new(),
        };
        let parts = (agent.worker.clone(), agent.limits.clone(), agent.folder.clone());
        let runs = Runs::new(id, advertise, parts, carrier.clone(), heard.clone());
        let shares_all_memory = agent.memory.is_none();
        Life { mesh, carrier, card, shares_all_memory, runs, heard, is_released: false }
    }

    async fn hear(
        &mut self,
        mut hearing: UnboundedReceiver<Heard>,
        end: impl Future<Output = io::Result<()>>,
        tell: &mut impl FnMut(Told),
    ) -> io::Result<()> {
        let mut end = std::pin::pin!(end);
        let ended = loop {
            self.settle(tell);
            if self.is_released && !self.runs.are_watched() {
                break Ok(());
            }
            self.runs.tell_clocks(now(), &self.mesh);
            let due = self.mesh.poll_timeout().map(|at| at.since(now()));
            let due = [due, self.runs.pace()].into_iter().flatten().min().map(Duration::from);
            tokio::select! {
                ended = &mut end => break ended,
                Some(heard) = hearing.recv() => self.take(heard, tell),
                () = tokio::time::sleep(due.unwrap_or(IDLE)) => {}
            }
        };
        self.runs.close().await;
        self.mesh.leave(now());
        self.settle(tell);
        self.carrier.drain().await;
        ended
    }

    fn take(&mut self, heard: Heard, tell: &mut impl FnMut(Told)) {
        match heard {
            Heard::Datagram { from, bytes } => self.mesh.handle_datagram(now(), from, &bytes),
            Heard::Seek(addresses) => {
                addresses.into_iter().for_each(|address| self.mesh.join(now(), address));
            }
            Heard::Released => self.is_released = true,
            Heard::Asked { ask: Ask::Part { run, member }, to, rest } => {
                self.runs.begin(*run, member, &mut self.mesh, (to, rest));
            }
            Heard::Asked { ask: Ask::Watch { run }, to, rest } => self.runs.watch(run, to, rest),
            Heard::Asked { ask: Ask::Hear { run, member }, rest, .. } => {
                let hearing = watch::hear_words(rest, (run, member), self.heard.clone());
                tokio::task::spawn_local(hearing);
            }
            Heard::Asked { ask: Ask::Control { run }, to, rest } => {
                tokio::task::spawn_local(watch::control(self.runs.folder_of(run), to, rest));
            }
            Heard::Asked { ask: Ask::Exec { run, request, size }, to, rest } => {
                let (folder, limits) = (self.runs.folder_of(run), self.runs.limits().clone());
                let command = (*request, size);
                tokio::task::spawn_local(exec::exec(folder, limits, command, to, rest));
            }
            Heard::Asked { ask: Ask::Fetch { run }, to, .. } => {
                tokio::task::spawn_local(watch::fetch(self.runs.results_of(run), to));
            }
            Heard::Part { run, said } => self.runs.hear_part(run, said, &mut self.mesh),
            Heard::Ordered { watcher, order } => {
                self.runs.hear_watcher(watcher, order, &self.mesh);
            }
            Heard::Word { run, member, word } => self.runs.hear_word(run, member, word),
            Heard::Asked { ask, to, rest } => {
                let ready = match &ask {
                    Ask::Join { address } => {
                        self.mesh.join(now(), *address);
                        Some(Answer::Done)
                    }
                    Ask::Runs => Some(Answer::Runs { runs: self.runs.cards() }),
                    Ask::Forget { run } => Some(match self.runs.forget(*run) {
                        Ok(()) => Answer::Done,
                        Err(message) => Answer::Error { message },
                    }),
                    _ => None,
                };
                if let Some(ready) = ready {
                    tokio::task::spawn_local(answer::send(to, ready));
                    return;
                }
                let (card, others) = (self.card(), self.others());
                let answering = answer::answer(ask, card, others, self.carrier.clone(), to, rest);
                tokio::task::spawn_local(answering);
            }
            Heard::Refused { from, why } => tell(Told::Refused { from, why }),
        }
    }

    /// Lets the mesh catch up, sends what it wants sent, and tells what it has to tell.
    fn settle(&mut self, tell: &mut impl FnMut(Told)) {
        self.mesh.handle_timeout(now());
        while let Some(event) = self.mesh.poll_event() {
            match event {
                Event::AgentUp(life) => tell(Told::Joined(life.address)),
                Event::AgentDown { life, how } => {
                    // What is sent to a later life must not go into a connection of this one.
                    if how != Ending::Left {
                        self.carrier.forget(life.address);
                    }
                    match how {
                        Ending::Left => tell(Told::Left(life.address)),
                        Ending::Lost => tell(Told::Lost(life.address)),
                        Ending::Replaced => {}
                    }
                }
                other => self.runs.hear_mesh(&other, &self.mesh),
            }
        }
        while let Some(transmit) = self.mesh.poll_transmit() {
            self.carrier.send(transmit.to, transmit.payload);
        }
    }

    fn others(&self) -> Vec<SocketAddr> {
        self.mesh.agents().map(|life| life.address).collect()
    }

    /// The agent and its machine as they are now.
    fn card(&self) -> Card {
        let (_, free) = machine::memory();
        let time = now();
        let peer = |life: &windtunnel_mesh::Identity| Peer {
            agent: life.agent.to_string(),
            address: life.address,
            clock: self.mesh.clock(life.agent, time).map(|clock| PeerClock {
                offset_ns: clock.offset,
                error_ns: clock.error.as_nanos(),
                rtt_ns: clock.rtt_min.as_nanos(),
            }),
        };
        Card {
            load_hundredths: machine::load_hundredths(),
            reserved: self.runs.reserved(),
            memory_free: if self.shares_all_memory { free } else { free.min(self.card.memory) },
            peers: self.mesh.agents().map(peer).collect(),
            ..self.card.clone()
        }
    }
}

/// The address from which this machine speaks to another: nothing is sent for it.
#[must_use]
pub fn speaking_to(other: SocketAddr) -> Option<IpAddr> {
    let any: IpAddr = match other {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => std::net::Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0)).ok()?;
    socket.connect(other).ok()?;
    Some(socket.local_addr().ok()?.ip().to_canonical())
}

fn now() -> Time {
    Time::from_nanos(clock::monotonic_ns())
}

/// Greater with each start of an agent on a machine.
fn epoch() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

/// By chance.
fn random() -> u64 {
    let mut bytes = [0; 8];
    let source = rustls::crypto::ring::default_provider().secure_random;
    match source.fill(&mut bytes) {
        Ok(()) => u64::from_be_bytes(bytes),
        // Without randomness no handshake works either; this only has to differ between agents.
        Err(_) => epoch() ^ u64::from(std::process::id()) << 32,
    }
}

fn step(step: &'static str) -> impl FnOnce(io::Error) -> AgentError {
    move |source| AgentError::Step { step, source }
}

/// What fits a QUIC datagram on every path (RFC 9000, 14.1: 1200 bytes, less headers and seal).
const MESH_MTU: usize = 1100;
/// Any address outside: documentation's own (RFC 5737).
const SOMEBODY: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 9);
const FAREWELL: Duration = Duration::from_millis(500);
const IDLE: Duration = Duration::from_secs(1);
