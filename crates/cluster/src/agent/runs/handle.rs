//! Messages of the process of a part, of watchers and of other agents, and events of the mesh.

use std::fs;

use windtunnel_control::part::{FromPart, StopWhy, ToPart};
use windtunnel_mesh::{AgentId, LossCause, Mesh, RunId};

use super::super::losses::LossState;
use super::super::now;
use super::super::watch::WatcherId;
use super::flows::announce;
use super::{AgentRunTable, END_PATIENCE, LOST_ITSELF, said};
use crate::protocol::run::{PartCommand, RunMemberMessage};

impl AgentRunTable {
    /// A message of the part of a run, or why there are no more.
    pub(in crate::agent) fn handle_part(
        &mut self,
        run: u64,
        message: Result<FromPart, String>,
        mesh: &mut Mesh,
    ) {
        let Some(known) = self.all.get_mut(&run) else { return };
        match message {
            Ok(FromPart::Flows { changes }) => announce(known, &changes, mesh),
            Ok(FromPart::News { news }) => {
                for speaker in known.speakers.values() {
                    let _ = speaker.send(RunMemberMessage::News { news: news.clone() });
                }
            }
            Ok(FromPart::Prepared) => {
                known.prepared = true;
                known.report_prepared(mesh);
            }
            Ok(FromPart::Refused { datagrams }) => {
                self.refused_datagrams = self.refused_datagrams.saturating_add(datagrams);
            }
            Ok(FromPart::Ending) => {
                // The mesh knows the run as long as its part lives.
                let _ = mesh.set_patience(now(), RunId(run), END_PATIENCE);
                known.send_to_watchers(&said(FromPart::Ending));
            }
            Ok(message @ (FromPart::Ended | FromPart::Failed { .. })) => {
                let failed = match &message {
                    FromPart::Failed { message, .. } => Some(message.clone()),
                    _ => None,
                };
                known.send_to_watchers(&said(message));
                self.end(run, failed.as_deref(), mesh);
            }
            Ok(message) => known.send_to_watchers(&said(message)),
            Err(why) if known.part.is_some() => {
                let failed = FromPart::Failed { message: why.clone(), hint: None, code: 5 };
                known.send_to_watchers(&said(failed));
                self.end(run, Some(&why), mesh);
            }
            Err(_) => {}
        }
    }

    /// A part is over; of one that has failed nothing is kept, and the other agents are notified.
    fn end(&mut self, run: u64, failed: Option<&str>, mesh: &mut Mesh) {
        let Some(known) = self.all.get_mut(&run) else { return };
        known.part = None;
        for speaker in known.speakers.values() {
            if let Some(why) = failed {
                let _ = speaker.send(RunMemberMessage::Failed { why: why.to_owned() });
            }
        }
        known.speakers.clear();
        // It may be over for the mesh already.
        let _ = mesh.leave_run(now(), RunId(run));
        if failed.is_some() {
            let _ = fs::remove_dir_all(&known.folder);
            self.all.remove(&run);
        }
    }

    /// An order of a watcher; `None` if it has gone.
    pub(in crate::agent) fn handle_watcher(
        &mut self,
        watcher: WatcherId,
        order: Option<PartCommand>,
        mesh: &mut Mesh,
    ) {
        let Some(known) = self.all.get_mut(&watcher.run) else { return };
        let message = match order {
            None => return self.lose_watcher(watcher),
            Some(PartCommand::Peers { addresses }) => ToPart::Peers { addresses },
            Some(PartCommand::Measure) => ToPart::Measure,
            Some(PartCommand::Begin { agent, at_ns }) => {
                if !std::mem::replace(&mut known.begun, true) {
                    let _ = mesh.set_patience(now(), RunId(watcher.run), known.patience);
                }
                match local_time(&agent, at_ns, self.own, mesh) {
                    Ok(origin_ns) => ToPart::Begin { origin_ns },
                    Err(why) => ToPart::Stop(StopWhy::Failed(why)),
                }
            }
            Some(PartCommand::Stop { why }) => ToPart::Stop(why),
        };
        known.order(message);
    }

    fn lose_watcher(&mut self, watcher: WatcherId) {
        let WatcherId { run, number } = watcher;
        let Some(known) = self.all.get_mut(&run) else { return };
        known.watchers.remove(&number);
        if !known.begun && number == known.founder {
            known.stop("the process that started the run has gone");
        } else if known.on_sufferance && known.watchers.is_empty() {
            known.stop(LOST_ITSELF);
        }
        // If its folder cannot be removed now, the agent's next start does it.
        let _ = self.remove_forgotten(run);
    }

    /// A message of another agent about its part.
    pub(in crate::agent) fn handle_word(&mut self, run: u64, member: u16, word: RunMemberMessage) {
        let Some(known) = self.all.get(&run).filter(|known| known.me != member) else { return };
        known.order(match word {
            RunMemberMessage::News { news } => ToPart::News { member, news },
            RunMemberMessage::Failed { why } => ToPart::Lost { member, why, apart: false },
        });
    }

    /// An event of the mesh about a run.
    pub(in crate::agent) fn handle_mesh(
        &mut self,
        event: &windtunnel_mesh::MeshEvent,
        mesh: &Mesh,
    ) {
        use windtunnel_mesh::MeshEvent;
        match event {
            MeshEvent::RunReady { run } => {
                if let Some(known) = self.all.get_mut(&run.0) {
                    known.report_prepared(mesh);
                }
            }
            MeshEvent::RunRefused { run, agent, why, .. } => {
                if let Some(known) = self.all.get(&run.0) {
                    let why = format!("agent {agent} takes the run for another: {why:?}");
                    known.order(ToPart::Stop(StopWhy::Failed(why)));
                }
            }
            MeshEvent::RunLost { run, agent, cause } => {
                let Some(known) = self.all.get_mut(&run.0) else { return };
                let Some(member) = known.member_of(*agent) else { return };
                let stand = known.lose(member);
                let (why, apart) = (text_of_cause(*cause), stand != LossState::Going);
                known.order(ToPart::Lost { member, why, apart });
                known.follow(stand);
            }
            MeshEvent::RunSilent { run, agent, since } => {
                let Some(known) = self.all.get(&run.0) else { return };
                let Some(member) = known.member_of(*agent) else { return };
                known.order(ToPart::Silent { member, since_ns: since.as_nanos() });
            }
            MeshEvent::RunAnswers { run, agent } => {
                let Some(known) = self.all.get(&run.0) else { return };
                let Some(member) = known.member_of(*agent) else { return };
                known.order(ToPart::Answers { member });
            }
            MeshEvent::RunLeft { run, agent } => {
                let Some(known) = self.all.get_mut(&run.0) else { return };
                let Some(member) = known.member_of(*agent) else { return };
                known.leavers.add(member, now());
            }
            MeshEvent::Flows { run, agent, changes } => {
                let Some(known) = self.all.get(&run.0) else { return };
                let Some(member) = known.member_of(*agent) else { return };
                known.order(ToPart::Flows { member, changes: changes.clone() });
            }
            _ => {}
        }
    }
}

/// A time on another agent's clock, on this machine's.
fn local_time(agent: &str, at_ns: u64, own: AgentId, mesh: &Mesh) -> Result<u64, String> {
    let other = u64::from_str_radix(agent, 16).map(AgentId).map_err(|error| error.to_string())?;
    if other == own {
        return Ok(at_ns);
    }
    let clock = mesh.clock(other, now());
    let clock = clock.ok_or_else(|| format!("the clock of agent {agent} is not known here"))?;
    Ok(at_ns.saturating_add_signed(clock.offset.saturating_neg()))
}

fn text_of_cause(cause: LossCause) -> String {
    match cause {
        LossCause::AgentDown => "its agent does not answer".to_owned(),
        LossCause::ReportedBy(agent) => format!("agent {agent} says so"),
        LossCause::CutUsOff => "it takes this machine for lost".to_owned(),
    }
}
