//! How a part begins, and how a client comes to watch it.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::Path;

use tokio::sync::mpsc::unbounded_channel;
use windtunnel_control::part::{FromPart, PartSetup, ToPart, bytes_of};
use windtunnel_mesh::{AgentId, Mesh, PlanHash, RunId};
use windtunnel_model::NodeId;

use super::super::leavers::DepartedMembers;
use super::super::losses::MemberLossTimes;
use super::super::watch::{RunWatcherSender, WatcherId};
use super::super::{now, trial, watch};
use super::run::AgentRunPart;
use super::{AgentRunTable, SETUP_PATIENCE, said};
use crate::answer_stream::AgentCall;
use crate::protocol::MachineIneligibility;
use crate::protocol::answers::WatchedRunMessage;
use crate::protocol::run::{RunSetup, text_of};

impl AgentRunTable {
    /// Begins a part, with a first watcher; or says why not.
    pub(in crate::agent) fn begin(
        &mut self,
        setup: RunSetup,
        member: u16,
        mesh: &mut Mesh,
        call: AgentCall<WatchedRunMessage>,
    ) -> Result<(), String> {
        let run = setup.run;
        let (founder, answers) = self.watcher(run, call);
        let begun = self.try_begin(setup, member, mesh, founder, &answers);
        if let Err(message) = &begun {
            answers.send(Err(message.clone()));
        }
        begun
    }

    /// Adds a watcher to a run.
    pub(in crate::agent) fn watch(&mut self, run: u64, call: AgentCall<WatchedRunMessage>) {
        let (number, answers) = self.watcher(run, call);
        match self.all.get_mut(&run) {
            Some(known) => {
                let setup = Box::new(known.setup.clone());
                answers.send(Ok(WatchedRunMessage::Run(setup)));
                if known.part.is_none() {
                    answers.send(Ok(said(FromPart::Ended)));
                }
                known.watchers.insert(number, answers);
            }
            None => {
                answers.send(Err(self.expiry.why_unknown(run)));
            }
        }
    }

    fn watcher(&mut self, run: u64, call: AgentCall<WatchedRunMessage>) -> (u64, RunWatcherSender) {
        let AgentCall { to, rest, .. } = call;
        let (answers, queue) = unbounded_channel();
        let number = self.next_watcher;
        self.next_watcher += 1;
        tokio::task::spawn_local(watch::send_answers(to, queue));
        let watcher = WatcherId { run, number };
        tokio::task::spawn_local(watch::receive_orders(rest, watcher, self.events.clone()));
        (number, RunWatcherSender(answers))
    }

    fn try_begin(
        &mut self,
        setup: RunSetup,
        member: u16,
        mesh: &mut Mesh,
        founder: u64,
        answers: &RunWatcherSender,
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
        mesh.join_run(now(), RunId(run), PlanHash(hash), &agents)
            .map_err(|error| error.to_string())?;
        mesh.set_patience(now(), RunId(run), SETUP_PATIENCE).map_err(|error| error.to_string())?;
        let here = setup.placement.iter().enumerate().filter(|(_, place)| **place == member);
        let here = here.map(|(node, _)| NodeId::from_index(node));
        mesh.set_nodes(RunId(run), here).map_err(|error| error.to_string())?;
        let folder = self.folder.join(text_of(run));
        let part = worker.start(run, self.events.clone()).map_err(|error| {
            let _ = mesh.leave_run(now(), RunId(run));
            format!("cannot start {}: {error}", worker.program.display())
        })?;
        let (bind, ports) = self.place();
        let own = part_setup(&setup, member, &folder, bind, ports);
        // If it has ended already, an event says so soon.
        let _ = part.send(ToPart::Setup(Box::new(own)));
        let others = setup.members.iter().enumerate();
        let speakers = others.filter(|(other, _)| *other != usize::from(member)).filter_map(
            |(other, spec)| {
                let speaker = watch::speaker(self.carrier.clone(), spec.address, run, member);
                Some((u16::try_from(other).ok()?, speaker))
            },
        );
        let known = AgentRunPart {
            me: member,
            agents,
            part: Some(part),
            watchers: BTreeMap::from([(founder, answers.clone())]),
            founder,
            speakers: speakers.collect(),
            folder,
            patience: setup.plan.host_timeout.unwrap_or(self.host_timeout),
            begun: false,
            prepared: false,
            reported_prepared: false,
            losses: MemberLossTimes::default(),
            leavers: DepartedMembers::default(),
            on_sufferance: false,
            forgotten: 0,
            setup,
        };
        self.all.insert(run, known);
        Ok(())
    }

    /// Where packets of other machines come to: an address, and the first and the last port.
    fn place(&self) -> (IpAddr, (u16, u16)) {
        (bindable(self.address.ip()), self.ports)
    }

    /// Whether this machine can do a part of `setup`, a run of it alone; otherwise why not.
    pub(in crate::agent) async fn attempt(&self, setup: &RunSetup) -> Option<MachineIneligibility> {
        let worker = self.worker.as_ref()?;
        let folder = self.folder.join(text_of(setup.run));
        let (bind, ports) = self.place();
        trial::attempt(worker, part_setup(setup, 0, &folder, bind, ports)).await
    }
}

/// All that a member's part is made of.
pub(in crate::agent) fn part_setup(
    setup: &RunSetup,
    member: u16,
    folder: &Path,
    bind: IpAddr,
    ports: (u16, u16),
) -> PartSetup {
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
        bind,
        ports,
        shared: setup.shared,
    }
}

fn agents_of(setup: &RunSetup) -> Result<Vec<AgentId>, String> {
    let agent = |text: &String| u64::from_str_radix(text, 16).map(AgentId);
    let agents = setup.members.iter().map(|member| agent(&member.agent));
    let agents: Result<Vec<AgentId>, _> = agents.collect();
    agents.map_err(|error| format!("an agent's number is none: {error}"))
}

/// An address of this machine, to be bound; behind an address translation none is known.
fn bindable(address: IpAddr) -> IpAddr {
    match std::net::UdpSocket::bind((address, 0)) {
        Ok(_) => address,
        Err(_) if address.is_ipv6() => std::net::Ipv6Addr::UNSPECIFIED.into(),
        Err(_) => std::net::Ipv4Addr::UNSPECIFIED.into(),
    }
}
