//! What the agent and the other members of a run have to say.

use windtunnel_control::frame;
use windtunnel_control::part::ToPart;
use windtunnel_model::Time;
use windtunnel_model::placement::OnHostLoss;
use windtunnel_trace::event::EventLogEntryKind;
use windtunnel_verdict::evidence::RunEndReason;

use super::membership::{AgentMembership, MembershipStage};
use super::reactor::RunReactor;
use crate::part::news::MemberAnnouncement;
use windtunnel_dataplane::PacketLoopCommand;

impl RunReactor {
    /// Handles everything that the agent has said.
    pub(super) fn handle_agent(&mut self) {
        let Some(membership) = &mut self.membership else { return };
        match membership.link.receive() {
            Ok(messages) => messages.into_iter().for_each(|message| self.handle_message(message)),
            Err(error) => membership.lose_agent(&error, &mut self.end),
        }
    }

    fn handle_message(&mut self, message: ToPart) {
        let Some(membership) = &mut self.membership else { return };
        let members = membership.members.count();
        if let Some(member) = message.member().filter(|it| usize::from(*it) >= members) {
            let text = format!("news of member {member}, but there are only {members}");
            return self.cx.journal.warn(text);
        }
        match message {
            ToPart::Measure => membership.stage = MembershipStage::Measuring,
            ToPart::Begin { origin_ns } => {
                membership.stage = MembershipStage::Begun(Time::from_nanos(origin_ns));
            }
            ToPart::Flows { member, changes } => {
                self.network.order(PacketLoopCommand::Flows { member, changes });
            }
            ToPart::Clocks { clocks } => {
                let ahead_ns: Vec<(u16, i64)> =
                    clocks.iter().map(|clock| (clock.member, clock.ahead_ns)).collect();
                membership.note_clocks(&clocks);
                self.records.note_clocks(&ahead_ns);
                self.network.order(PacketLoopCommand::Clocks { ahead_ns });
            }
            ToPart::News { member, news } => match frame::decode(news.as_bytes()) {
                Ok(news) => self.handle_news(member, news),
                Err(error) => {
                    let text = format!("news of another machine cannot be read: {error}");
                    self.cx.journal.warn(text);
                }
            },
            ToPart::Lost { member, why, apart: cut_off } => self.lose_member(member, why, cut_off),
            ToPart::Silent { member, since_ns } => {
                membership.note_silence(member, Time::from_nanos(since_ns), &self.cx.journal);
            }
            ToPart::Answers { member } => membership.note_answer(member, &self.cx.journal),
            ToPart::Left { member } => membership.leave_with(member, &mut self.end),
            ToPart::NotHeld { why } => self.limits.not_held_by_agent(why),
            ToPart::Stop(why) => membership.stop(why, &mut self.end),
            ToPart::Setup(_) | ToPart::Peers { .. } => {
                self.cx.journal.warn("the agent has said something twice".to_owned());
            }
        }
    }

    fn handle_news(&mut self, member: u16, news: MemberAnnouncement) {
        let Some(AgentMembership { members, .. }) = &mut self.membership else { return };
        if members.is_lost(member) {
            // The run goes on without it, and does not end with it.
            return;
        }
        match news {
            MemberAnnouncement::Program { key, state } => {
                if members.has_node(member, key.node) {
                    self.programs.supervisor.on_news(key, *state);
                }
            }
            MemberAnnouncement::Idle { idle } => members.set_idle(member, idle),
            MemberAnnouncement::Order { at, action } => self.orders().follow(at, *action),
            MemberAnnouncement::Service { change } => {
                if members.has_node(member, change.update.replica().index()) {
                    self.registrar().was_seen_elsewhere(change);
                }
            }
            MemberAnnouncement::End { ending } => {
                members.set_ended(member);
                self.end.ask(ending);
            }
            MemberAnnouncement::Sent { datagrams } => members.set_sent_by(member, &datagrams),
        }
    }

    fn lose_member(&mut self, member: u16, why: String, cut_off: bool) {
        let elapsed = self.cx.journal.elapsed();
        let Some(AgentMembership { members, .. }) = &mut self.membership else { return };
        let Some(nodes) = members.lose(member, elapsed, cut_off) else { return };
        let host = members.name(member);
        self.network.order(PacketLoopCommand::Forget { member });
        self.programs.supervisor.on_lost(&nodes, &host);
        self.registrar().lose_elsewhere(&nodes);
        let nodes = nodes.iter().map(|node| self.cx.nodes.name(*node).to_owned()).collect();
        self.cx.journal.log(None, EventLogEntryKind::HostLost { host: host.clone(), nodes, why });
        if self.cx.plan.on_host_loss == OnHostLoss::Fail {
            self.end.ask(RunEndReason::host_lost(&host));
        }
    }
}
