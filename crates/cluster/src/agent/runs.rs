//! The parts of runs that an agent does: between the process of each part, the mesh, the other agents, and
//! those who watch.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use quinn::{RecvStream, SendStream};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use windtunnel_control::part::{
    FlowChange, FlowTerms, FromPart, PartSetup, StopWhy, ToPart, bytes_of,
};
use windtunnel_mesh::{AgentId, Flow, FlowKey, LossCause, Mesh, PlanHash, RunId};
use windtunnel_model::placement::OnHostLoss;
use windtunnel_model::{Bytes, NodeId, Span, Time};

use super::limits::Limits;
use super::losses::{Losses, Stand};
use super::watch;
use super::worker::Worker;
use crate::carrier::{Carrier, Heard};
use crate::protocol::run::{Order, RunCard, RunSetup, Word, text_of};
use crate::protocol::{Answer, Reserved};

/// All parts of runs on this machine.
#[derive(Debug)]
pub(super) struct Runs {
    own: AgentId,
    address: SocketAddr,
    worker: Option<Worker>,
    limits: Limits,
    /// Where parts have their folders.
    folder: PathBuf,
    carrier: Carrier,
    heard: UnboundedSender<Heard>,
    all: BTreeMap<u64, Run>,
    next_watcher: u64,
    clocks_told: Time,
}

#[derive(Debug)]
struct Run {
    setup: RunSetup,
    me: u16,
    agents: Vec<AgentId>,
    /// Absent when it is over.
    part: Option<UnboundedSender<ToPart>>,
    watchers: BTreeMap<u64, UnboundedSender<Answer>>,
    /// Who started it: without it the run does not begin.
    founder: u64,
    /// To the other agents, by member.
    speakers: BTreeMap<u16, UnboundedSender<Word>>,
    folder: PathBuf,
    begun: bool,
    prepared: bool,
    told_prepared: bool,
    losses: Losses,
    /// Whether it goes on only as long as somebody watches.
    on_sufferance: bool,
    /// How many of those who watch need its files no more.
    forgotten: usize,
}

impl Runs {
    pub(super) fn new(
        own: AgentId,
        address: SocketAddr,
        (worker, limits, folder): (Option<Worker>, Limits, PathBuf),
        carrier: Carrier,
        heard: UnboundedSender<Heard>,
    ) -> Self {
        Runs {
            own,
            address,
            worker,
            limits,
            folder,
            carrier,
            heard,
            all: BTreeMap::new(),
            next_watcher: 0,
            clocks_told: Time::ZERO,
        }
    }

    /// What the runs that are not over have of the machine.
    pub(super) fn reserved(&self) -> Reserved {
        let running = self.all.values().filter(|run| run.part.is_some());
        let have = running.filter_map(|run| run.setup.members.get(usize::from(run.me)));
        have.fold(Reserved::default(), |sum, member| Reserved {
            runs: sum.runs + 1,
            nodes: sum.nodes.saturating_add(member.has.nodes),
            cpu_millis: sum.cpu_millis.saturating_add(member.has.cpu_millis),
            memory: Bytes(sum.memory.0.saturating_add(member.has.memory.0)),
            up_bit_per_s: sum.up_bit_per_s.saturating_add(member.has.up_bit_per_s),
            down_bit_per_s: sum.down_bit_per_s.saturating_add(member.has.down_bit_per_s),
        })
    }

    /// The runs that are there.
    pub(super) fn cards(&self) -> Vec<RunCard> {
        let card = |run: &Run| RunCard {
            run: run.setup.run,
            name: run.setup.plan.name.clone(),
            nodes: run.setup.nodes_of(run.me),
            over: run.part.is_none(),
        };
        self.all.values().map(card).collect()
    }

    /// What runs may use.
    pub(super) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Whether somebody watches a run.
    pub(super) fn are_watched(&self) -> bool {
        self.all.values().any(|run| !run.watchers.is_empty())
    }

    /// The folder of a part.
    pub(super) fn folder_of(&self, run: u64) -> Result<PathBuf, String> {
        self.all.get(&run).map(|run| run.folder.clone()).ok_or_else(|| unknown(run))
    }

    /// The folder of a part that is over.
    pub(super) fn results_of(&self, run: u64) -> Result<PathBuf, String> {
        match self.all.get(&run) {
            Some(known) if known.part.is_none() => Ok(known.folder.clone()),
            Some(_) => Err(format!("run {} is not over", text_of(run))),
            None => Err(unknown(run)),
        }
    }

    /// Removes what is left of a part that is over, once nobody who watches needs it.
    pub(super) fn forget(&mut self, run: u64) -> Result<(), String> {
        self.results_of(run)?;
        if let Some(known) = self.all.get_mut(&run) {
            known.forgotten += 1;
        }
        self.remove_forgotten(run)
    }

    fn remove_forgotten(&mut self, run: u64) -> Result<(), String> {
        let needless = |known: &Run| known.forgotten > 0 && known.forgotten >= known.watchers.len();
        if !self.all.get(&run).is_some_and(needless) {
            return Ok(());
        }
        let Some(known) = self.all.remove(&run) else { return Ok(()) };
        fs::remove_dir_all(&known.folder)
            .map_err(|error| format!("cannot remove {}: {error}", known.folder.display()))
    }

    /// Begins a part, with a first watcher.
    pub(super) fn begin(
        &mut self,
        setup: RunSetup,
        member: u16,
        mesh: &mut Mesh,
        (to, rest): (SendStream, RecvStream),
    ) {
        let run = setup.run;
        let watcher = self.watcher(run, to, rest);
        if let Err(message) = self.try_begin(setup, member, mesh, &watcher) {
            let _ = watcher.1.send(Answer::Error { message });
        }
    }

    /// Adds a watcher to a run.
    pub(super) fn watch(&mut self, run: u64, to: SendStream, rest: RecvStream) {
        let (number, tell) = self.watcher(run, to, rest);
        match self.all.get_mut(&run) {
            Some(known) => {
                let _ = tell.send(Answer::Run(Box::new(known.setup.clone())));
                if known.part.is_none() {
                    let _ = tell.send(said(FromPart::Ended));
                }
                known.watchers.insert(number, tell);
            }
            None => drop(tell.send(Answer::Error { message: unknown(run) })),
        }
    }

    fn watcher(
        &mut self,
        run: u64,
        to: SendStream,
        rest: RecvStream,
    ) -> (u64, UnboundedSender<Answer>) {
        let (tell, told) = unbounded_channel();
        let number = self.next_watcher;
        self.next_watcher += 1;
        tokio::task::spawn_local(watch::tell(to, told));
        tokio::task::spawn_local(watch::hear(rest, (run, number), self.heard.clone()));
        (number, tell)
    }

    fn try_begin(
        &mut self,
        setup: RunSetup,
        member: u16,
        mesh: &mut Mesh,
        (founder, tell): &(u64, UnboundedSender<Answer>),
    ) -> Result<(), String> {
        let run = setup.run;
        let worker = self.worker.clone().ok_or("this agent does no runs")?;
        if self.all.contains_key(&run) {
            return Err(format!("run {} is here already", text_of(run)));
        }
        let agents = agents_of(&setup)?;
        if agents.get(usize::from(member)) != Some(&self.own) {
            return Err(format!("member {member} is another agent: this one is {}", self.own));
        }
        let running = self.all.values().filter(|run| run.part.is_some());
        self.limits.check(&setup, member, running.map(|run| (&run.setup, run.me)))?;
        let hash = bytes_of(&setup.plan_hash).ok_or("the plan's hash is none")?;
        mesh.join_run(super::now(), RunId(run), PlanHash(hash), &agents)
            .map_err(|error| error.to_string())?;
        let folder = self.folder.join(text_of(run));
        let part = worker.start(run, self.heard.clone()).map_err(|error| {
            let _ = mesh.leave_run(super::now(), RunId(run));
            format!("cannot start {}: {error}", worker.program.display())
        })?;
        // If it has ended already, that is heard soon.
        let _ = part.send(ToPart::Setup(Box::new(self.part_setup(&setup, member, &folder))));
        let others = setup.members.iter().enumerate();
        let speakers = others.filter(|(other, _)| *other != usize::from(member)).filter_map(
            |(other, spec)| {
                let speaker = watch::speaker(self.carrier.clone(), spec.address, (run, member));
                Some((u16::try_from(other).ok()?, speaker))
            },
        );
        let known = Run {
            me: member,
            agents,
            part: Some(part),
            watchers: BTreeMap::from([(*founder, tell.clone())]),
            founder: *founder,
            speakers: speakers.collect(),
            folder,
            begun: false,
            prepared: false,
            told_prepared: false,
            losses: Losses::default(),
            on_sufferance: false,
            forgotten: 0,
            setup,
        };
        self.all.insert(run, known);
        Ok(())
    }

    fn part_setup(&self, setup: &RunSetup, member: u16, folder: &Path) -> PartSetup {
        PartSetup {
            run: setup.run,
            plan: setup.plan.clone(),
            plan_hash: setup.plan_hash.clone(),
            member,
            members: setup.members.iter().map(|member| member.host.clone()).collect(),
            placement: setup.placement.clone(),
            key: setup.key.clone(),
            folder: folder.to_owned(),
            base_dir: setup.base_dir.clone(),
            bind: bindable(self.address.ip()),
            manner: setup.manner,
        }
    }
}

/// Hearing.
impl Runs {
    /// What the part of a run says, or why it says nothing more.
    pub(super) fn hear_part(&mut self, run: u64, heard: Result<FromPart, String>, mesh: &mut Mesh) {
        let Some(known) = self.all.get_mut(&run) else { return };
        match heard {
            Ok(FromPart::Flows { changes }) => announce(known, &changes, mesh),
            Ok(FromPart::News { news }) => {
                for speaker in known.speakers.values() {
                    let _ = speaker.send(Word::News { news: news.clone() });
                }
            }
            Ok(FromPart::Prepared) => {
                known.prepared = true;
                known.tell_prepared(mesh);
            }
            Ok(message @ (FromPart::Ended | FromPart::Failed { .. })) => {
                let failed = match &message {
                    FromPart::Failed { message, .. } => Some(message.clone()),
                    _ => None,
                };
                known.tell(&said(message));
                self.end(run, failed.as_deref(), mesh);
            }
            Ok(message) => known.tell(&said(message)),
            Err(why) if known.part.is_some() => {
                let failed = FromPart::Failed { message: why.clone(), hint: None, code: 5 };
                known.tell(&said(failed));
                self.end(run, Some(&why), mesh);
            }
            Err(_) => {}
        }
    }

    /// A part is over; of one that has failed nothing is kept, and the others are told.
    fn end(&mut self, run: u64, failed: Option<&str>, mesh: &mut Mesh) {
        let Some(known) = self.all.get_mut(&run) else { return };
        known.part = None;
        for speaker in known.speakers.values() {
            if let Some(why) = failed {
                let _ = speaker.send(Word::Failed { why: why.to_owned() });
            }
        }
        known.speakers.clear();
        // It may be over for the mesh already.
        let _ = mesh.leave_run(super::now(), RunId(run));
        if failed.is_some() {
            let _ = fs::remove_dir_all(&known.folder);
            self.all.remove(&run);
        }
    }

    /// What a watcher wants; `None` if it has gone.
    pub(super) fn hear_watcher(
        &mut self,
        (run, watcher): (u64, u64),
        order: Option<Order>,
        mesh: &Mesh,
    ) {
        let Some(known) = self.all.get_mut(&run) else { return };
        let message = match order {
            None => return self.lose_watcher((run, watcher)),
            Some(Order::Peers { addresses }) => ToPart::Peers { addresses },
            Some(Order::Measure) => ToPart::Measure,
            Some(Order::Begin { agent, at_ns }) => {
                known.begun = true;
                match local_time(&agent, at_ns, self.own, mesh) {
                    Ok(origin_ns) => ToPart::Begin { origin_ns },
                    Err(why) => ToPart::Stop(StopWhy::Failed(why)),
                }
            }
            Some(Order::Stop { why }) => ToPart::Stop(why),
        };
        known.order(message);
    }

    fn lose_watcher(&mut self, (run, watcher): (u64, u64)) {
        let Some(known) = self.all.get_mut(&run) else { return };
        known.watchers.remove(&watcher);
        if !known.begun && watcher == known.founder {
            known.stop("who started the run has gone");
        } else if known.on_sufferance && known.watchers.is_empty() {
            known.stop(LOST_ITSELF);
        }
        // If its folder cannot be removed now, the agent's next start does it.
        let _ = self.remove_forgotten(run);
    }

    /// What another agent has to say of its part.
    pub(super) fn hear_word(&mut self, run: u64, member: u16, word: Word) {
        let Some(known) = self.all.get(&run).filter(|known| known.me != member) else { return };
        known.order(match word {
            Word::News { news } => ToPart::News { member, news },
            Word::Failed { why } => ToPart::Lost { member, why },
        });
    }

    /// What the mesh has found out about runs.
    pub(super) fn hear_mesh(&mut self, event: &windtunnel_mesh::Event, mesh: &Mesh) {
        use windtunnel_mesh::Event;
        match event {
            Event::RunReady { run } => {
                if let Some(known) = self.all.get_mut(&run.0) {
                    known.tell_prepared(mesh);
                }
            }
            Event::RunRefused { run, agent, why, .. } => {
                if let Some(known) = self.all.get(&run.0) {
                    let why = format!("agent {agent} takes the run for another: {why:?}");
                    known.order(ToPart::Stop(StopWhy::Failed(why)));
                }
            }
            Event::RunLost { run, agent, cause } => {
                let Some(known) = self.all.get_mut(&run.0) else { return };
                let Some(member) = known.member_of(*agent) else { return };
                known.order(ToPart::Lost { member, why: text_of_cause(*cause) });
                known.reckon(member);
            }
            Event::Flows { run, agent, changes } => {
                let Some(known) = self.all.get(&run.0) else { return };
                let Some(member) = known.member_of(*agent) else { return };
                let changes = changes.iter().map(change_of).collect();
                known.order(ToPart::Flows { member, changes });
            }
            _ => {}
        }
    }

    /// Tells the parts how the clocks stand, now and then.
    pub(super) fn tell_clocks(&mut self, time: Time, mesh: &Mesh) {
        if time.since(self.clocks_told) < CLOCKS {
            return;
        }
        self.clocks_told = time;
        for run in self.all.values().filter(|run| run.part.is_some()) {
            for (member, agent) in (0..).zip(&run.agents) {
                if let Some(clock) = mesh.clock(*agent, time) {
                    run.order(ToPart::Clock { member, ahead_ns: clock.offset });
                }
            }
        }
    }

    /// When [`Runs::tell_clocks`] has something to do, from now on.
    pub(super) fn pace(&self) -> Option<Span> {
        self.all.values().any(|run| run.part.is_some()).then_some(CLOCKS)
    }

    /// The agent ends: so do all parts, and nothing of them is left.
    pub(super) async fn close(&mut self) {
        let folders: Vec<PathBuf> = self.all.values().map(|run| run.folder.clone()).collect();
        for speaker in self.all.values().flat_map(|run| run.speakers.values()) {
            let _ = speaker.send(Word::Failed { why: "its agent ends".to_owned() });
        }
        self.all.clear();
        tokio::time::sleep(PARTS_END).await;
        folders.iter().for_each(|folder| drop(fs::remove_dir_all(folder)));
    }
}

impl Run {
    fn tell(&self, answer: &Answer) {
        for watcher in self.watchers.values() {
            let _ = watcher.send(answer.clone());
        }
    }

    fn order(&self, message: ToPart) {
        if let Some(part) = &self.part {
            let _ = part.send(message);
        }
    }

    fn stop(&self, why: &str) {
        self.order(ToPart::Stop(StopWhy::Failed(why.to_owned())));
    }

    /// A member is lost. If the file says that the others go on, this machine may be no other.
    fn reckon(&mut self, lost: u16) {
        let now = super::now();
        self.losses.add(lost, now);
        // What ends here is not to end there, if it lives.
        self.speakers.remove(&lost);
        if self.setup.plan.on_host_loss == OnHostLoss::Fail {
            return;
        }
        let members = u16::try_from(self.agents.len()).unwrap_or(u16::MAX);
        match self.losses.stand(members, now) {
            Stand::Going => {}
            Stand::Half if !self.watchers.is_empty() => self.on_sufferance = true,
            Stand::Half | Stand::Lost => self.stop(LOST_ITSELF),
        }
    }

    fn member_of(&self, agent: AgentId) -> Option<u16> {
        let member = self.agents.iter().position(|known| *known == agent)?;
        u16::try_from(member).ok()
    }

    /// A part counts as prepared when the agents agree on the plan, too.
    fn tell_prepared(&mut self, mesh: &Mesh) {
        if self.prepared && mesh.is_ready(RunId(self.setup.run)) && !self.told_prepared {
            self.told_prepared = true;
            self.tell(&said(FromPart::Prepared));
        }
    }
}

fn announce(run: &Run, changes: &[FlowChange], mesh: &mut Mesh) {
    let id = RunId(run.setup.run);
    for change in changes {
        let agent = |member: &u16| run.agents.get(usize::from(*member)).copied();
        let audience = match &change.audience {
            Some(members) => mesh.audience(id, members.iter().filter_map(agent)),
            None => mesh.audience(id, run.agents.iter().copied()),
        };
        // The part may be over for the mesh already.
        let Ok(audience) = audience else { return };
        let key = FlowKey {
            source: NodeId(change.source),
            destination: NodeId(change.destination),
            number: change.number,
        };
        let done = match change.terms {
            Some(FlowTerms { rtt_ns, demand, window }) => {
                let flow = Flow { rtt: Span::from_nanos(rtt_ns), demand, window };
                mesh.set_flow(super::now(), id, key, flow, &audience)
            }
            None => mesh.end_flow(super::now(), id, key).map(|_| ()),
        };
        if let Err(error) = done {
            run.order(ToPart::Stop(StopWhy::Failed(error.to_string())));
        }
    }
}

fn change_of(change: &windtunnel_mesh::FlowChange) -> FlowChange {
    let terms = |flow: Flow| FlowTerms {
        rtt_ns: flow.rtt.as_nanos(),
        demand: flow.demand,
        window: flow.window,
    };
    FlowChange {
        source: change.key.source.0,
        destination: change.key.destination.0,
        number: change.key.number,
        terms: change.flow.map(terms),
        audience: None,
    }
}

fn agents_of(setup: &RunSetup) -> Result<Vec<AgentId>, String> {
    let agent = |text: &String| u64::from_str_radix(text, 16).map(AgentId);
    let agents = setup.members.iter().map(|member| agent(&member.agent));
    let agents: Result<Vec<AgentId>, _> = agents.collect();
    let fits = setup.placement.len() == setup.plan.nodes.len()
        && setup.placement.iter().all(|place| usize::from(*place) < setup.members.len());
    if !fits {
        return Err("the placement is not one of this plan on these machines".to_owned());
    }
    agents.map_err(|error| format!("an agent's number is none: {error}"))
}

/// A time on another agent's clock, on this machine's.
fn local_time(agent: &str, at_ns: u64, own: AgentId, mesh: &Mesh) -> Result<u64, String> {
    let other = u64::from_str_radix(agent, 16).map(AgentId).map_err(|error| error.to_string())?;
    if other == own {
        return Ok(at_ns);
    }
    let clock = mesh.clock(other, super::now());
    let clock = clock.ok_or_else(|| format!("the clock of agent {agent} is not known here"))?;
    Ok(at_ns.saturating_add_signed(clock.offset.saturating_neg()))
}

/// An address of this machine, to be bound; behind an address translation none is known.
fn bindable(address: IpAddr) -> IpAddr {
    match std::net::UdpSocket::bind((address, 0)) {
        Ok(_) => address,
        Err(_) if address.is_ipv6() => std::net::Ipv6Addr::UNSPECIFIED.into(),
        Err(_) => std::net::Ipv4Addr::UNSPECIFIED.into(),
    }
}

fn text_of_cause(cause: LossCause) -> String {
    match cause {
        LossCause::AgentDown => "its agent does not answer".to_owned(),
        LossCause::ToldBy(agent) => format!("agent {agent} says so"),
        LossCause::CutUsOff => "it takes this machine for lost".to_owned(),
    }
}

fn said(message: FromPart) -> Answer {
    Answer::Part { now_ns: super::now().as_nanos(), said: message }
}

fn unknown(run: u64) -> String {
    format!("no run {} is here", text_of(run))
}

/// Makes the folder of all parts anew: a restarted agent has none.
pub(super) fn clear(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    fs::create_dir_all(folder)
}

/// Why a part ends on the smaller side of a cut network.
const LOST_ITSELF: &str = "this machine is cut off from most of the run";
/// How often parts hear of clocks: with 100 ppm of drift, 25 µs go unnoticed.
const CLOCKS: Span = Span::from_millis(250);
/// The time that parts have to end with the agent before their folders go.
const PARTS_END: std::time::Duration = std::time::Duration::from_millis(300);
