//! One run of which this machine has a part.

use std::collections::BTreeMap;
use std::path::PathBuf;

use tokio::sync::mpsc::UnboundedSender;
use windtunnel_control::part::{FromPart, StopWhy, ToPart};
use windtunnel_mesh::{AgentId, Mesh, RunId};
use windtunnel_model::Span;
use windtunnel_model::placement::OnHostLoss;

use super::super::leavers::DepartedMembers;
use super::super::losses::{LossState, MemberLossTimes};
use super::super::now;
use super::super::watch::RunWatcherSender;
use super::{LOST_ITSELF, said};
use crate::protocol::answers::WatchedRunMessage;
use crate::protocol::run::{RunMemberMessage, RunSetup};

#[derive(Debug)]
pub(super) struct AgentRunPart {
    pub(super) setup: RunSetup,
    pub(super) me: u16,
    pub(super) agents: Vec<AgentId>,
    /// Absent when it is over.
    pub(super) part: Option<UnboundedSender<ToPart>>,
    pub(super) watchers: BTreeMap<u64, RunWatcherSender>,
    /// The watcher that started it: without it the run does not begin.
    pub(super) founder: u64,
    /// To the other agents, by member.
    pub(super) speakers: BTreeMap<u16, UnboundedSender<RunMemberMessage>>,
    pub(super) folder: PathBuf,
    /// How long a member may be silent before it is lost.
    pub(super) patience: Span,
    pub(super) begun: bool,
    pub(super) prepared: bool,
    pub(super) reported_prepared: bool,
    pub(super) losses: MemberLossTimes,
    pub(super) leavers: DepartedMembers,
    /// Whether it goes on only as long as a client watches.
    pub(super) on_sufferance: bool,
    /// How many watchers need its files no more.
    pub(super) forgotten: usize,
}

impl AgentRunPart {
    pub(super) fn send_to_watchers(&self, message: &WatchedRunMessage) {
        for watcher in self.watchers.values() {
            watcher.send(Ok(message.clone()));
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

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

    use super::*;
    use crate::protocol::valid::tests::run as run_json;

    /// A run of four members, of which this is number 3, with its part's orders.
    fn run(on_host_loss: OnHostLoss, watchers: u64) -> (AgentRunPart, UnboundedReceiver<ToPart>) {
        let mut setup: RunSetup = serde_json::from_value(run_json()).unwrap();
        setup.plan.on_host_loss = on_host_loss;
        let (part, orders) = unbounded_channel();
        let run = AgentRunPart {
            setup,
            me: 3,
            agents: [40, 30, 20, 10].map(AgentId).into(),
            part: Some(part),
            watchers: (0..watchers)
                .map(|number| (number, RunWatcherSender(unbounded_channel().0)))
                .collect(),
            founder: 0,
            speakers: (0..3).map(|member| (member, unbounded_channel().0)).collect(),
            folder: PathBuf::new(),
            patience: Span::from_secs(5),
            begun: true,
            prepared: false,
            reported_prepared: false,
            losses: MemberLossTimes::default(),
            leavers: DepartedMembers::default(),
            on_sufferance: false,
            forgotten: 0,
        };
        (run, orders)
    }

    #[test]
    fn a_member_is_the_position_of_its_agent_whatever_its_number() {
        let (run, _) = run(OnHostLoss::Fail, 0);
        assert_eq!((run.member_of(AgentId(40)), run.member_of(AgentId(10))), (Some(0), Some(3)));
        assert_eq!(run.member_of(AgentId(11)), None);
    }

    #[test]
    fn a_lost_member_gets_no_more_words_and_half_of_the_members_are_judged_by_the_first() {
        let (mut run, _) = run(OnHostLoss::Continue, 0);
        assert_eq!(run.lose(2), LossState::Going);
        assert!(run.speakers.keys().eq(&[0, 1]));
        // Members 1 and 3 are left of four, without the first.
        assert_eq!(run.lose(0), LossState::Half);
        assert_eq!(run.lose(1), LossState::Lost);
        assert!(run.speakers.is_empty());
    }

    #[test]
    fn the_smaller_side_of_a_cut_stops_and_half_goes_on_while_it_is_watched() {
        let stop = ToPart::Stop(StopWhy::Failed(LOST_ITSELF.to_owned()));
        let cases = [
            (LossState::Going, 0, None, false),
            (LossState::Half, 1, None, true),
            (LossState::Half, 0, Some(&stop), false),
            (LossState::Lost, 1, Some(&stop), false),
        ];
        for (stand, watchers, order, on_sufferance) in cases {
            let (mut known, mut orders) = run(OnHostLoss::Continue, watchers);
            known.follow(stand);
            let seen = orders.try_recv().ok();
            assert_eq!((seen.as_ref(), known.on_sufferance), (order, on_sufferance), "{stand:?}");
        }
    }

    #[test]
    fn a_run_that_a_loss_fails_anyway_is_left_to_its_parts() {
        for stand in [LossState::Going, LossState::Half, LossState::Lost] {
            let (mut known, mut orders) = run(OnHostLoss::Fail, 1);
            known.follow(stand);
            assert!(orders.try_recv().is_err() && !known.on_sufferance, "{stand:?}");
        }
    }

    #[test]
    fn a_part_that_is_over_gets_no_orders() {
        let (mut known, mut orders) = run(OnHostLoss::Continue, 0);
        known.part = None;
        known.stop("late");
        assert!(orders.try_recv().is_err());
    }
}
