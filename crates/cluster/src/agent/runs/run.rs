//! One run of which this machine has a part.

use std::collections::BTreeMap;
use std::path::PathBuf;

use tokio::sync::mpsc::UnboundedSender;
use windtunnel_control::part::{FromPart, StopWhy, ToPart};
use windtunnel_mesh::{AgentId, Mesh, RunId};
use windtunnel_model::placement::OnHostLoss;

use super::super::leavers::Leavers;
use super::super::losses::{LossState, Losses};
use super::super::now;
use super::{LOST_ITSELF, said};
use crate::protocol::Answer;
use crate::protocol::run::{RunSetup, Word};

#[derive(Debug)]
pub(super) struct Run {
    pub(super) setup: RunSetup,
    pub(super) me: u16,
    pub(super) agents: Vec<AgentId>,
    /// Absent when it is over.
    pub(super) part: Option<UnboundedSender<ToPart>>,
    pub(super) watchers: BTreeMap<u64, UnboundedSender<Answer>>,
    /// The watcher that started it: without it the run does not begin.
    pub(super) founder: u64,
    /// To the other agents, by member.
    pub(super) speakers: BTreeMap<u16, UnboundedSender<Word>>,
    pub(super) folder: PathBuf,
    pub(super) begun: bool,
    pub(super) prepared: bool,
    pub(super) reported_prepared: bool,
    pub(super) losses: Losses,
    pub(super) leavers: Leavers,
    /// Whether it goes on only as long as a client watches.
    pub(super) on_sufferance: bool,
    /// How many watchers need its files no more.
    pub(super) forgotten: usize,
}

impl Run {
    pub(super) fn send_to_watchers(&self, answer: &Answer) {
        for watcher in self.watchers.values() {
            let _ = watcher.send(answer.clone());
        }
    }

    pub(super) fn order(&self, message: ToPart) {
        if let Some(part) = &self.part {
            let _ = part.send(message);
        }
    }

    pub(super) fn stop(&self, why: &str) {
        self.order(ToPart::Stop(StopWhy::Failed(why.to_owned())));
    }

    /// A member is lost. Returns how this one stands to those that are left.
    pub(super) fn lose(&mut self, lost: u16) -> LossState {
        let now = now();
        self.losses.add(lost, now);
        // The end of the part here is not to end the part there, if it lives.
        self.speakers.remove(&lost);
        let members = u16::try_from(self.agents.len()).unwrap_or(u16::MAX);
        self.losses.stand(members, now)
    }

    /// If the file says that the others go on, this machine may not be one of them.
    pub(super) fn follow(&mut self, stand: LossState) {
        if self.setup.plan.on_host_loss == OnHostLoss::Fail {
            return;
        }
        match stand {
            LossState::Going => {}
            LossState::Half if !self.watchers.is_empty() => self.on_sufferance = true,
            LossState::Half | LossState::Lost => self.stop(LOST_ITSELF),
        }
    }

    pub(super) fn member_of(&self, agent: AgentId) -> Option<u16> {
        let member = self.agents.iter().position(|known| *known == agent)?;
        u16::try_from(member).ok()
    }

    /// A part counts as prepared when the agents agree on the plan, too.
    pub(super) fn report_prepared(&mut self, mesh: &Mesh) {
        if self.prepared && mesh.is_ready(RunId(self.setup.run)) && !self.reported_prepared {
            self.reported_prepared = true;
            self.send_to_watchers(&said(FromPart::Prepared));
        }
    }
}
