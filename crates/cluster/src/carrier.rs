//! Datagrams to addresses, over connections that are made when they are first needed, end when they
//! are needed no more, and are made again when they are, or have broken. A datagram that cannot
//! be sent is lost, as datagrams may be: the mesh repeats its messages.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use quinn::{Connection, Endpoint, Incoming};
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::oneshot;
use windtunnel_control::part::FromPart;

use crate::admission::{HandshakeAdmission, HandshakeDecision};
use crate::agent::watch::WatcherId;
use crate::answer_stream::AgentCallStreams;
use crate::hello::{self, AgentHello, HelloError};
use crate::key::NAME;
use crate::protocol::AgentRequest;
use crate::protocol::run::{PartCommand, RunMemberMessage};
use crate::refusal::HandshakeRefusal;
use crate::stream_limit::{CountedStream, StreamLimit};
use crate::tls::DATAGRAM_BUFFER;

/// All connections of an agent; cheap to clone. Lives in one thread's runtime.
#[derive(Debug, Clone)]
pub(crate) struct AgentConnectionPool {
    endpoint: Endpoint,
    ways: Arc<Mutex<BTreeMap<SocketAddr, PooledConnectionState>>>,
    /// The first message on each connection.
    own: Arc<AgentHello>,
    admission: Arc<Mutex<HandshakeAdmission>>,
    events: UnboundedSender<CarrierEvent>,
}

/// An event of a connection, a part or a task.
#[derive(Debug)]
pub(crate) enum CarrierEvent {
    /// A datagram of the mesh.
    Datagram { from: SocketAddr, bytes: Vec<u8> },
    /// A question, and where the answer goes.
    Asked { ask: AgentRequest, streams: AgentCallStreams },
    /// A message of the part of a run; or why there are no more.
    Part { run: u64, said: Result<FromPart, String> },
    /// An order of a watcher of a run, `None` if it has gone.
    Ordered { watcher: WatcherId, order: Option<PartCommand> },
    /// A message of another agent about its part of a run.
    Word { run: u64, member: u16, word: RunMemberMessage },
    /// Agents to look for.
    Seek(Vec<SocketAddr>),
    /// Only clients that watch a run still need the agent.
    Released,
    /// A connection was refused: of a stranger without the key, or of another version.
    Refused { from: SocketAddr, why: String },
    /// Another agent refuses this one.
    RefusedBy { by: SocketAddr, why: String },
    /// The files of a part were not fetched: they were removed, or why that was not possible.
    Expired { run: u64, name: String, removed: Result<(), String> },
}

#[derive(Debug)]
enum PooledConnectionState {
    /// It is being made.
    Coming(ConnectionWaitQueue),
    There(Connection),
}

/// What waits for a connection.
#[derive(Debug, Default)]
struct ConnectionWaitQueue {
    /// At most [`WAITING_MAX`].
    datagrams: VecDeque<Vec<u8>>,
    askers: Vec<oneshot::Sender<Result<Connection, String>>>,
}

impl AgentConnectionPool {
    pub(crate) fn new(
        endpoint: Endpoint,
        events: UnboundedSender<CarrierEvent>,
        own: AgentHello,
    ) -> Self {
        let (ways, admission) = (Arc::default(), Arc::default());
        AgentConnectionPool { endpoint, ways, own: Arc::new(own), admission, events }
    }

    /// Sends a datagram, over a new connection if need be.
    pub(crate) fn send(&self, to: SocketAddr, bytes: Vec<u8>) {
        let mut ways = self.ways();
        match ways.get_mut(&to) {
            // Too long, or the connection has just broken: lost.
            Some(PooledConnectionState::There(connection)) => {
                drop(connection.send_datagram(bytes.into()));
            }
            Some(PooledConnectionState::Coming(ConnectionWaitQueue { datagrams, .. })) => {
                if datagrams.len() == WAITING_MAX {
                    datagrams.pop_front();
                }
                datagrams.push_back(bytes);
            }
            None => {
                drop(ways);
                self.begin(
                    to,
                    ConnectionWaitQueue { datagrams: [bytes].into(), askers: Vec::new() },
                );
            }
        }
    }

    /// A connection is needed.
    fn begin(&self, to: SocketAddr, waiting: ConnectionWaitQueue) {
        self.ways().insert(to, PooledConnectionState::Coming(waiting));
        let carrier = self.clone();
        tokio::task::spawn_local(async move { carrier.make(to).await });
    }

    /// The agent there is lost: the next message needs a new connection.
    pub(crate) fn forget(&self, address: SocketAddr) {
        if let Some(PooledConnectionState::There(connection)) = self.ways().remove(&address) {
            connection.close(0_u32.into(), b"lost");
        }
    }

    /// Waits until what was sent has left this machine, for a little while at the most: closing the
    /// endpoint would throw away what waits.
    pub(crate) async fn drain(&self) {
        let full = |way: &PooledConnectionState| match way {
            PooledConnectionState::There(connection) => {
                connection.datagram_send_buffer_space() < DATAGRAM_BUFFER
            }
            PooledConnectionState::Coming(_) => false,
        };
        for _ in 0..DRAIN_STEPS {
            if !self.ways().values().any(full) {
                return;
            }
            tokio::time::sleep(DRAIN_STEP).await;
        }
    }

    /// A connection on which something can be asked.
    ///
    /// # Errors
    /// Why there is none.
    pub(crate) async fn connection(&self, to: SocketAddr) -> Result<Connection, String> {
        let (ask, answer) = oneshot::channel();
        {
            let mut ways = self.ways();
            match ways.get_mut(&to) {
                Some(PooledConnectionState::There(connection)) => return Ok(connection.clone()),
                Some(PooledConnectionState::Coming(waiting)) => waiting.askers.push(ask),
                None => {
                    drop(ways);
                    self.begin(
                        to,
                        ConnectionWaitQueue { askers: vec![ask], ..ConnectionWaitQueue::default() },
                    );
                }
            }
        }
        answer.await.unwrap_or_else(|_| Err("the connection was given up".to_owned()))
    }

    /// Takes connections for as long as the endpoint lives.
    pub(crate) async fn accept(self) {
        while let Some(incoming) = self.endpoint.accept().await {
            let from = canonical(incoming.remote_address());
            let is_proven = incoming.remote_address_validated() || !incoming.may_retry();
            let is_crowded = self.endpoint.open_connections() > UNPROVEN_MAX;
            let decision = self.admission().decide(from.ip(), is_proven, is_crowded);
            match decision {
                HandshakeDecision::Admit => {
                    let carrier = self.clone();
                    tokio::task::spawn_local(async move { carrier.admit(incoming, from).await });
                }
                HandshakeDecision::Prove => drop(incoming.retry()),
                HandshakeDecision::Refuse => {
                    incoming.refuse();
                    let why = "too many of its handshakes are not finished".to_owned();
                    self.emit(CarrierEvent::Refused { from, why });
                }
            }
        }
    }

    /// Takes a connection if it is made in time, by a peer with the key and of this version.
    async fn admit(self, incoming: Incoming, from: SocketAddr) {
        let making = async {
            let connection = incoming.await.map_err(|error| error.to_string())?;
            let hello = hello::exchange(&connection, &self.own).await;
            hello.map(|_| connection).map_err(|error| error.to_string())
        };
        let made = tokio::time::timeout(HANDSHAKE, making).await;
        self.admission().leave(from.ip());
        match made {
            Ok(Ok(connection)) => self.serve(connection).await,
            Ok(Err(why)) => self.emit(CarrierEvent::Refused { from, why }),
            Err(_) => {
                let why =
                    format!("its handshake was not finished within {} s", HANDSHAKE.as_secs());
                self.emit(CarrierEvent::Refused { from, why });
            }
        }
    }

    pub(crate) fn admission(&self) -> MutexGuard<'_, HandshakeAdmission> {
        self.admission.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn make(self, to: SocketAddr) {
        match self.connect(to).await {
            Ok(connection) => self.serve(connection).await,
            // The mesh tries again in its own time.
            Err(why) => {
                let mut ways = self.ways();
                let Some(PooledConnectionState::Coming(waiting)) = ways.get_mut(&to) else {
                    return;
                };
                for asker in waiting.askers.drain(..) {
                    let _ = asker.send(Err(why.clone()));
                }
                ways.remove(&to);
            }
        }
    }

    /// A new connection.
    ///
    /// # Errors
    /// Why there is none.
    pub(crate) async fn connect(&self, to: SocketAddr) -> Result<Connection, String> {
        let connecting = self.endpoint.connect(to, NAME).map_err(|error| error.to_string())?;
        let making = async {
            let connection =
                connecting.await.map_err(|error| match HandshakeRefusal::of(&error) {
                    Some(refusal) => self.refused_by(to, refusal.text()),
                    None => error.to_string(),
                })?;
            match hello::exchange(&connection, &self.own).await {
                Ok(_) => Ok(connection),
                Err(HelloError::Version(why)) => Err(self.refused_by(to, why)),
                Err(HelloError::Broken(error)) => Err(match connection.close_reason() {
                    Some(error) if HandshakeRefusal::of(&error).is_some() => self.refused_by(
                        to,
                        HandshakeRefusal::of(&error)
                            .map_or_else(String::new, HandshakeRefusal::text),
                    ),
                    _ => error.to_string(),
                }),
            }
        };
        let made = tokio::time::timeout(HANDSHAKE, making).await;
        made.unwrap_or_else(|_| Err(format!("no handshake within {} s", HANDSHAKE.as_secs())))
    }

    fn refused_by(&self, by: SocketAddr, why: String) -> String {
        self.emit(CarrierEvent::RefusedBy { by, why: why.clone() });
        why
    }

    /// Receives from a connection until its end.
    async fn serve(&self, connection: Connection) {
        let from = canonical(connection.remote_address());
        self.adopt(from, &connection);
        let mut limit = StreamLimit::new();
        loop {
            tokio::select! {
                datagram = connection.read_datagram() => match datagram {
                    Ok(bytes) => self.emit(CarrierEvent::Datagram { from, bytes: bytes.into() }),
                    Err(_) => break,
                },
                streams = connection.accept_bi() => match streams {
                    Ok((to, rest)) => {
                        self.receive_question(from, to, limit.count(&connection, rest));
                    }
                    Err(_) => break,
                },
            }
        }
        let mut ways = self.ways();
        if matches!(ways.get(&from), Some(PooledConnectionState::There(known)) if known.stable_id() == connection.stable_id())
        {
            ways.remove(&from);
        }
    }

    /// What waits goes out over it. A connection that works already stays in use: this one may be
    /// for one question only.
    fn adopt(&self, from: SocketAddr, connection: &Connection) {
        let mut ways = self.ways();
        let works = |way: &PooledConnectionState| matches!(way, PooledConnectionState::There(known) if known.close_reason().is_none());
        if ways.get(&from).is_some_and(works) {
            return;
        }
        if let Some(PooledConnectionState::Coming(waiting)) =
            ways.insert(from, PooledConnectionState::There(connection.clone()))
        {
            for bytes in waiting.datagrams {
                // Lost if it does not fit: the mesh repeats what matters.
                let _ = connection.send_datagram(bytes.into());
            }
            for asker in waiting.askers {
                let _ = asker.send(Ok(connection.clone()));
            }
        }
    }

    fn receive_question(&self, from: SocketAddr, to: quinn::SendStream, mut rest: CountedStream) {
        let carrier = self.clone();
        tokio::task::spawn_local(async move {
            let ask = crate::stream::receive(&mut rest, crate::protocol::ASK_BYTES_MAX).await;
            // A message that cannot be read gets no answer.
            if let Ok(ask) = ask {
                carrier.emit(CarrierEvent::Asked {
                    ask,
                    streams: AgentCallStreams { from, to, rest },
                });
            }
        });
    }

    fn emit(&self, event: CarrierEvent) {
        // Without a receiver the agent ends.
        let _ = self.events.send(event);
    }

    fn ways(&self) -> MutexGuard<'_, BTreeMap<SocketAddr, PooledConnectionState>> {
        self.ways.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
pub(crate) mod tests;

/// IPv4 addresses as themselves, also on a socket for both families.
pub(crate) fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

const DRAIN_STEP: Duration = Duration::from_millis(1);
const DRAIN_STEPS: u32 = 100;
/// Datagrams that wait for a connection.
const WAITING_MAX: usize = 64;
/// The time that the beginning of a connection has, on any network that a cluster can use.
const HANDSHAKE: Duration = Duration::from_secs(5);
/// With more connections, addresses have to be proven before anything is computed for them.
const UNPROVEN_MAX: usize = 256;
