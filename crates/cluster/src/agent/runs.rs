//! The parts of runs that an agent does: between the process of each part, the mesh, the other
//! agents, and watchers.

mod begin;
mod expiry;
mod flows;
mod handle;
mod run;

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use tokio::sync::mpsc::UnboundedSender;
use windtunnel_control::part::{FromPart, MemberClock, StopWhy, ToPart};
use windtunnel_mesh::{AgentId, ClockOffsetConstraint, Mesh, RunId, RunPeerState};
use windtunnel_model::word::ClockSource;
use windtunnel_model::{Bytes, Span, Time};

use super::AgentConfiguration;
use super::limits::AgentResourceLimits;
use super::worker::PartWorkerCommand;
use crate::carrier::{AgentConnectionPool, CarrierEvent};
use crate::ports::part_ports;
use crate::protocol::answers::WatchedRunMessage;
use crate::protocol::run::{RunCard, RunMemberMessage, text_of};
use crate::protocol::{AMOUNT_MAX, AllocatedResources};
#[cfg(test)]
pub(super) use begin::part_setup;
use expiry::RunFileRetention;
use run::AgentRunPart;

/// All parts of runs on this machine.
#[derive(Debug)]
pub(super) struct AgentRunTable {
    own: AgentId,
    address: SocketAddr,
    /// The first and the last of the UDP ports of parts.
    ports: (u16, u16),
    worker: Option<PartWorkerCommand>,
    limits: AgentResourceLimits,
    host_timeout: Span,
    /// Where parts have their folders.
    folder: PathBuf,
    carrier: AgentConnectionPool,
    events: UnboundedSender<CarrierEvent>,
    all: BTreeMap<u64, AgentRunPart>,
    expiry: RunFileRetention,
    next_watcher: u64,
    /// Datagrams that the ports of parts have refused, of all runs.
    refused_datagrams: u64,
    clocks_sent: Time,
    unconfirmed_sent: Time,
}

impl AgentRunTable {
    pub(super) fn new(
        own: AgentId,
        listen: SocketAddr,
        address: SocketAddr,
        agent: &AgentConfiguration,
        carrier: AgentConnectionPool,
        events: UnboundedSender<CarrierEvent>,
    ) -> Self {
        AgentRunTable {
            own,
            address,
            ports: part_ports(listen.port()),
            worker: agent.worker.clone(),
            limits: agent.limits.clone(),
            host_timeout: agent.host_timeout,
            folder: agent.folder.clone(),
            carrier,
            events,
            all: BTreeMap::new(),
            expiry: RunFileRetention::new(agent.keep_results),
            next_watcher: 0,
            refused_datagrams: 0,
            clocks_sent: Time::ZERO,
            unconfirmed_sent: Time::ZERO,
        }
    }

    /// Resources of the machine that runs which are not over have.
    pub(super) fn reserved(&self) -> AllocatedResources {
        let running = self.all.values().filter(|run| run.part.is_some());
        let have = running.filter_map(|run| run.setup.members.get(usize::from(run.me)));
        // Of each amount there is at most [`AMOUNT_MAX`], so the sum of two fits.
        let add = |sum: u64, more: u64| (sum + more).min(AMOUNT_MAX);
        have.fold(AllocatedResources::default(), |sum, member| AllocatedResources {
            runs: sum.runs.saturating_add(1),
            nodes: sum.nodes.saturating_add(member.has.nodes),
            cpu_millis: add(sum.cpu_millis, member.has.cpu_millis),
            memory: Bytes(add(sum.memory.0, member.has.memory.0)),
            up_bit_per_s: add(sum.up_bit_per_s, member.has.up_bit_per_s),
            down_bit_per_s: add(sum.down_bit_per_s, member.has.down_bit_per_s),
        })
    }

    /// The runs that are there.
    pub(super) fn cards(&self) -> Vec<RunCard> {
        let card = |run: &AgentRunPart| RunCard {
            run: run.setup.run,
            name: run.setup.plan.name.clone(),
            nodes: run.setup.nodes_of(run.me),
            over: run.part.is_none(),
        };
        self.all.values().map(card).collect()
    }

    /// Datagrams that the ports of parts have refused since the agent began.
    pub(super) fn refused_datagrams(&self) -> u64 {
        self.refused_datagrams
    }

    /// What runs may use.
    pub(super) fn limits(&self) -> &AgentResourceLimits {
        &self.limits
    }

    /// Whether a client watches a run.
    pub(super) fn are_watched(&self) -> bool {
        self.all.values().any(|run| !run.watchers.is_empty())
    }

    /// Ends all parts that are not over, as `stop` does.
    pub(super) fn stop(&self) {
        self.all.values().for_each(|run| run.order(ToPart::Stop(StopWhy::Asked)));
    }

    /// Says to all parts that are not over that a limit of this machine did not hold.
    pub(super) fn report_lapse(&self, why: &str) {
        self.all.values().for_each(|run| run.order(ToPart::NotHeld { why: why.to_owned() }));
    }

    /// Whether nothing of any run is left here that could be fetched.
    pub(super) fn are_fetched(&self) -> bool {
        self.all.is_empty()
    }

    /// The folder of a part.
    pub(super) fn folder_of(&self, run: u64) -> Result<PathBuf, String> {
        self.all.get(&run).map(|run| run.folder.clone()).ok_or_else(|| self.expiry.why_unknown(run))
    }

    /// The folder of a part that is over.
    pub(super) fn results_of(&self, run: u64) -> Result<PathBuf, String> {
        match self.all.get(&run) {
            Some(known) if known.part.is_none() => Ok(known.folder.clone()),
            Some(_) => Err(format!("run {} is not over", text_of(run))),
            None => Err(self.expiry.why_unknown(run)),
        }
    }

    /// Removes the files of a part that is over, once no watcher needs them.
    pub(super) fn forget(&mut self, run: u64) -> Result<(), String> {
        self.results_of(run)?;
        if let Some(known) = self.all.get_mut(&run) {
            known.forgotten += 1;
        }
        self.remove_forgotten(run)
    }

    fn remove_forgotten(&mut self, run: u64) -> Result<(), String> {
        let needless =
            |known: &AgentRunPart| known.forgotten > 0 && known.forgotten >= known.watchers.len();
        if !self.all.get(&run).is_some_and(needless) {
            return Ok(());
        }
        let Some(known) = self.all.remove(&run) else { return Ok(()) };
        remove(&known.folder)
    }

    /// Removes the files of parts that are over and had no watcher for long. The result comes as
    /// an event: it may take a while.
    pub(super) fn expire(&mut self, time: Time) {
        let is_idle = |run: &&AgentRunPart| run.part.is_none() && run.watchers.is_empty();
        let idle = self.all.values().filter(is_idle).map(|run| run.setup.run);
        for run in self.expiry.take(idle, time) {
            let Some(known) = self.all.remove(&run) else { continue };
            let events = self.events.clone();
            tokio::task::spawn_blocking(move || {
                let name = known.setup.plan.name;
                // The agent may have ended.
                let _ = events.send(CarrierEvent::Expired {
                    run,
                    name,
                    removed: remove(&known.folder),
                });
            });
        }
    }

    /// Sends the parts the offsets of the clocks, every [`CLOCKS`].
    pub(super) fn send_clocks(&mut self, time: Time, mesh: &Mesh) {
        if time.since(self.clocks_sent) < CLOCKS {
            return;
        }
        self.clocks_sent = time;
        for run in self.all.values().filter(|run| run.part.is_some()) {
            let clock = |(member, agent): (u16, &AgentId)| {
                let clock = mesh.clock(*agent, time)?;
                let (ahead_ns, error_ns) = (clock.offset, clock.error.as_nanos());
                Some(MemberClock { member, ahead_ns, error_ns, by: source_of(clock.by) })
            };
            let clocks: Vec<_> = (0..).zip(&run.agents).filter_map(clock).collect();
            if !clocks.is_empty() {
                run.order(ToPart::Clocks { clocks });
            }
        }
    }

    /// Sends those that wait for a run to begin, once a second, which agents have not confirmed it.
    pub(super) fn report_unconfirmed(&mut self, time: Time, mesh: &Mesh) {
        if time.since(self.unconfirmed_sent) < UNCONFIRMED {
            return;
        }
        self.unconfirmed_sent = time;
        for run in self.all.values().filter(|run| run.prepared && !run.reported_prepared) {
            let members = mesh.members(RunId(run.setup.run));
            let missing = members.filter(|member| member.part != RunPeerState::Confirmed);
            let members = missing.filter_map(|member| run.member_of(member.agent)).collect();
            run.send_to_watchers(&said(FromPart::Unreached { members }));
        }
    }

    /// Notifies the parts of members that have left their runs.
    pub(super) fn send_leavers(&mut self, time: Time) {
        for run in self.all.values_mut().filter(|run| run.part.is_some()) {
            for member in run.leavers.take(time) {
                run.order(ToPart::Left { member });
            }
        }
    }

    /// When [`AgentRunTable::send_clocks`] or [`AgentRunTable::send_leavers`] may have something to do, from now on.
    pub(super) fn pace(&self) -> Option<Span> {
        self.all.values().any(|run| run.part.is_some()).then_some(CLOCKS)
    }

    /// The agent ends: so do all parts, and nothing of them is left.
    pub(super) async fn close(&mut self) {
        let folders: Vec<PathBuf> = self.all.values().map(|run| run.folder.clone()).collect();
        for speaker in self.all.values().flat_map(|run| run.speakers.values()) {
            let _ = speaker.send(RunMemberMessage::Failed { why: "its agent ends".to_owned() });
        }
        self.all.clear();
        tokio::time::sleep(PARTS_END).await;
        folders.iter().for_each(|folder| drop(fs::remove_dir_all(folder)));
    }
}

fn said(message: FromPart) -> WatchedRunMessage {
    WatchedRunMessage::Said { now_ns: super::now().as_nanos(), said: message }
}

fn remove(folder: &Path) -> Result<(), String> {
    fs::remove_dir_all(folder)
        .map_err(|error| format!("cannot remove {}: {error}", folder.display()))
}

/// Why a part ends on the smaller side of a cut network.
const LOST_ITSELF: &str = "this machine is cut off from most of the run";
/// How long a member may be silent before a run begins: it makes nodes, as many others may on the
/// same processors, and what leads the run has a bound for that of its own.
const SETUP_PATIENCE: Span = Span::from_secs(30);
/// How long a member may be silent when a run is over: its results are there, and are fetched.
const END_PATIENCE: Span = Span::from_secs(60);
const UNCONFIRMED: Span = Span::from_secs(1);
/// By what another agent's clock is known.
pub(super) fn source_of(by: ClockOffsetConstraint) -> ClockSource {
    match by {
        ClockOffsetConstraint::ByNothing => ClockSource::Exchanges,
        ClockOffsetConstraint::ByWallClocks => ClockSource::Synchronised,
        ClockOffsetConstraint::ByStatement => ClockSource::Stated,
    }
}

/// How often parts receive clocks: with 100 ppm of drift, 25 µs go unnoticed.
const CLOCKS: Span = Span::from_millis(250);
/// The time that parts have to end with the agent before their folders go.
const PARTS_END: std::time::Duration = std::time::Duration::from_millis(300);
