//! The one loop of an agent: all events come here, one after the other.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use windtunnel_mesh::{
    AgentDepartureReason, AgentId, Mesh, MeshConfiguration, MeshEvent, WallClockReading,
};
use windtunnel_model::{Bytes, Span, Time};
use windtunnel_sys::clock::{self, WallClock};

use super::refusals::{Refusals, SuppressedRefusals};
use super::responder::AgentResponder;
use super::runs::{AgentRunTable, source_of};
use super::{AgentConfiguration, AgentNotice, now};
use crate::carrier::{AgentConnectionPool, CarrierEvent};
use crate::machine;
use crate::protocol::run::RunSetup;
use crate::protocol::{AgentClockOffset, AgentDescription, AllocatedResources, PeerAgent};

/// An agent that lives.
pub(super) struct AgentRuntime {
    pub(super) mesh: Mesh,
    pub(super) carrier: AgentConnectionPool,
    /// What does not change of its card.
    card: AgentDescription,
    shares_all_memory: bool,
    pub(super) runs: AgentRunTable,
    /// When the wall clock was last looked at.
    wall_seen: Time,
    pub(super) events: UnboundedSender<CarrierEvent>,
    /// Only clients that watch a run still need it.
    is_released: bool,
    refusals: Refusals,
    /// Agents that refuse this one, and the reason that was reported last.
    refused_by: BTreeMap<SocketAddr, String>,
    /// See [`AgentConfiguration::linger`].
    linger: Option<Span>,
    /// See [`AgentConfiguration::look`].
    pub(super) look: Option<fn(&RunSetup, u16) -> Vec<String>>,
}

impl AgentRuntime {
    pub(super) fn new(
        agent: &AgentConfiguration,
        listen: SocketAddr,
        advertise: SocketAddr,
        carrier: AgentConnectionPool,
        events: UnboundedSender<CarrierEvent>,
    ) -> Self {
        let id = AgentId(random());
        let mut config = MeshConfiguration::new(id, epoch(), advertise);
        config.mtu = MESH_MTU;
        config.walls_apart = agent.clock_offsets;
        let mesh = Mesh::new(config, random(), now());
        let (memory, memory_free) = machine::memory();
        let card = AgentDescription {
            agent: id.to_string(),
            host: agent.name.clone().unwrap_or_else(machine::name),
            address: advertise,
            labels: agent.labels.clone(),
            windtunnel: env!("CARGO_PKG_VERSION").to_owned(),
            kernel: machine::kernel(),
            cpus: agent.cpus.unwrap_or_else(machine::cpus),
            load_hundredths: 0,
            memory: Bytes(agent.limits.resources.memory.unwrap_or(u64::MAX))
                .min(agent.memory.unwrap_or(memory)),
            memory_free,
            uplink: agent.uplink,
            nodes_max: agent.limits.nodes.map(|most| u32::try_from(most).unwrap_or(u32::MAX)),
            cpu_millis_max: agent.limits.resources.cpu_millis,
            reserved: AllocatedResources::default(),
            refused_datagrams: 0,
            unfit: None,
            peers: Vec::new(),
        };
        let runs =
            AgentRunTable::new(id, listen, advertise, agent, carrier.clone(), events.clone());
        let shares_all_memory = agent.memory.is_none();
        AgentRuntime {
            mesh,
            carrier,
            card,
            shares_all_memory,
            wall_seen: Time::ZERO,
            runs,
            events,
            is_released: false,
            refusals: Refusals::default(),
            refused_by: BTreeMap::new(),
            linger: agent.linger,
            look: agent.look,
        }
    }

    /// Finds out whether this machine can do a part of `trial`, a run of it alone.
    pub(super) async fn try_out(
        &mut self,
        trial: Option<&RunSetup>,
        notify: &mut impl FnMut(AgentNotice),
    ) {
        let Some(trial) = trial else { return };
        self.card.unfit = self.runs.attempt(trial).await;
        if let Some(unfit) = self.card.unfit.clone() {
            notify(AgentNotice::Unfit(unfit));
        }
    }

    pub(super) async fn run(
        &mut self,
        mut events: UnboundedReceiver<CarrierEvent>,
        end: impl Future<Output = io::Result<()>>,
        notify: &mut impl FnMut(AgentNotice),
    ) -> io::Result<()> {
        let mut end = std::pin::pin!(end);
        let mut leaving: Option<Time> = None;
        let ended = loop {
            self.settle(notify);
            if leaving.is_some_and(|until| now() >= until || self.runs.are_fetched()) {
                break Ok(());
            }
            if self.is_released && !self.runs.are_watched() {
                break Ok(());
            }
            self.look_at_wall();
            self.runs.send_clocks(now(), &self.mesh);
            self.runs.send_leavers(now());
            self.runs.report_unconfirmed(now(), &self.mesh);
            self.runs.expire(now());
            self.report_refusals(notify);
            self.report_lapses(notify);
            let due = [self.mesh.poll_timeout(), self.refusals.due()].into_iter().flatten().min();
            let due = due.map(|at| at.since(now()));
            let due = [due, self.runs.pace(), leaving.map(|at| at.since(now()))]
                .into_iter()
                .flatten()
                .min()
                .map(Duration::from);
            tokio::select! {
                ended = &mut end, if leaving.is_none() => {
                    let lingers = ended.is_ok() && !self.runs.are_fetched();
                    let Some(linger) = self.linger.filter(|_| lingers) else { break ended };
                    self.runs.stop();
                    leaving = Some(now() + linger);
                    notify(AgentNotice::Lingers(linger));
                }
                Some(event) = events.recv() => self.handle(event, notify),
                () = tokio::time::sleep(due.unwrap_or(IDLE)) => {}
            }
        };
        self.runs.close().await;
        self.mesh.leave(now());
        self.settle(notify);
        self.carrier.drain().await;
        ended
    }

    fn handle(&mut self, event: CarrierEvent, notify: &mut impl FnMut(AgentNotice)) {
        match event {
            CarrierEvent::Datagram { from, bytes } => {
                self.mesh.handle_datagram(now(), from, &bytes);
            }
            CarrierEvent::Seek(addresses) => {
                addresses.into_iter().for_each(|address| self.mesh.join(now(), address));
            }
            CarrierEvent::Released => self.is_released = true,
            CarrierEvent::Asked { ask, streams } => {
                ask.dispatch(streams, &mut AgentResponder { agent: self, notify });
            }
            CarrierEvent::Part { run, said } => self.runs.handle_part(run, said, &mut self.mesh),
            CarrierEvent::Ordered { watcher, order } => {
                self.runs.handle_watcher(watcher, order, &mut self.mesh);
            }
            CarrierEvent::Word { run, member, word } => self.runs.handle_word(run, member, word),
            CarrierEvent::Refused { from, why } => {
                if self.refusals.add(from, &why, now()) {
                    notify(AgentNotice::Refused { from, why });
                }
            }
            CarrierEvent::RefusedBy { by, why } => {
                if self.is_refused_otherwise(by, &why) {
                    notify(AgentNotice::RefusedBy { by, why });
                }
            }
            CarrierEvent::Expired { run, name, removed } => {
                notify(AgentNotice::Expired { run, name, removed });
            }
        }
    }

    /// Whether another agent refuses this one for another reason than before.
    fn is_refused_otherwise(&mut self, by: SocketAddr, why: &str) -> bool {
        if self.refused_by.len() >= REFUSED_BY_MAX {
            self.refused_by.clear();
        }
        self.refused_by.insert(by, why.to_owned()).as_deref() != Some(why)
    }

    fn report_refusals(&mut self, notify: &mut impl FnMut(AgentNotice)) {
        if let Some(SuppressedRefusals { refusals, addresses, within }) = self.refusals.take(now())
        {
            notify(AgentNotice::MoreRefused { refusals, addresses, within });
        }
    }

    fn report_lapses(&mut self, notify: &mut impl FnMut(AgentNotice)) {
        for why in self.runs.limits().lapses.take() {
            self.runs.report_lapse(&why);
            notify(AgentNotice::NotHeld { why });
        }
    }

    /// Lets the mesh catch up, sends its datagrams, and reports its events.
    fn settle(&mut self, notify: &mut impl FnMut(AgentNotice)) {
        self.mesh.handle_timeout(now());
        while let Some(event) = self.mesh.poll_event() {
            match event {
                MeshEvent::AgentUp(life) => {
                    self.refused_by.remove(&life.address);
                    notify(AgentNotice::Joined(life.address));
                }
                MeshEvent::AgentDown { life, how } => {
                    // What is sent to a later life must not go into a connection of this one.
                    if how != AgentDepartureReason::Left {
                        self.carrier.forget(life.address);
                    }
                    match how {
                        AgentDepartureReason::Left => notify(AgentNotice::Left(life.address)),
                        AgentDepartureReason::Lost => notify(AgentNotice::Lost(life.address)),
                        AgentDepartureReason::Replaced => {}
                    }
                }
                other => self.runs.handle_mesh(&other, &self.mesh),
            }
        }
        while let Some(transmit) = self.mesh.poll_transmit() {
            self.carrier.send(transmit.to, transmit.payload);
        }
    }

    pub(super) fn others(&self) -> Vec<SocketAddr> {
        self.mesh.agents().map(|life| life.address).collect()
    }

    /// Looks at the wall clock, which another program may set.
    fn look_at_wall(&mut self) {
        let time = now();
        if time.since(self.wall_seen) >= WALL_EVERY {
            self.wall_seen = time;
            self.mesh.set_wall(wall());
        }
    }

    /// The agent and its machine as they are now.
    pub(super) fn card(&self) -> AgentDescription {
        let (_, free) = machine::memory();
        let time = now();
        let peer = |life: &windtunnel_mesh::Identity| PeerAgent {
            agent: life.agent.to_string(),
            address: life.address,
            clock: self.mesh.clock(life.agent, time).map(|clock| AgentClockOffset {
                by: source_of(clock.by),
                offset_ns: clock.offset,
                error_ns: clock.error.as_nanos(),
                rtt_ns: clock.rtt_min.as_nanos(),
            }),
        };
        AgentDescription {
            load_hundredths: machine::load_hundredths(),
            reserved: self.runs.reserved(),
            refused_datagrams: self.runs.refused_datagrams(),
            memory_free: if self.shares_all_memory { free } else { free.min(self.card.memory) },
            peers: self.mesh.agents().map(peer).collect(),
            ..self.card.clone()
        }
    }
}

/// A wall clock that is stepped is known to be so this soon.
const WALL_EVERY: Span = Span::from_millis(200);

/// What the machine's kernel says of its wall clock.
fn wall() -> WallClockReading {
    let WallClock { ahead_ns, error_ns } = clock::wall_clock();
    WallClockReading { ahead_ns, error: error_ns.map(Span::from_nanos) }
}

/// Greater with each start of an agent on a machine.
fn epoch() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

fn random() -> u64 {
    let mut bytes = [0; 8];
    let source = rustls::crypto::ring::default_provider().secure_random;
    match source.fill(&mut bytes) {
        Ok(()) => u64::from_be_bytes(bytes),
        // Without randomness no handshake works either; this only has to differ between agents.
        Err(_) => epoch() ^ u64::from(std::process::id()) << 32,
    }
}

/// What fits a QUIC datagram on every path (RFC 9000, 14.1: 1200 bytes, less headers and seal).
const MESH_MTU: usize = 1100;
/// Agents that refuse this one and are remembered as reported.
const REFUSED_BY_MAX: usize = 1000;
const IDLE: Duration = Duration::from_secs(1);
