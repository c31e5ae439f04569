//! What the agent and the other members of a run have to say.

use std::io;

use windtunnel_control::frame;
use windtunnel_control::part::{StopWhy, ToPart};
use windtunnel_model::Time;
use windtunnel_model::placement::OnHostLoss;
use windtunnel_trace::event::EventLogEntryKind;

use super::membership::{AgentMembership, MembershipStage, RunMemberTable};
use super::state::RunLoop;
use crate::clock::now;
use crate::ending::RunEndReason;
use crate::part::news::MemberAnnouncement;
use windtunnel_dataplane::PacketLoopCommand;

impl RunLoop {
    /// Handles everything that the agent has said.
    pub(super) fn handle_agent(&mut self) {
        let Some(membership) = &mut self.membership else { return };
        match membership.link.receive() {
            Ok(messages) => messages.into_iter().for_each(|message| self.handle_message(message)),
            Err(error) => self.agent_gone(&error),
        }
    }

    /// Nothing of a run outlives its agent: no patience with programs.
    fn agent_gone(&mut self, error: &io::Error) {
        let why = format!("this machine's agent is lost: {error}");
        self.end.hurry();
        if let Some(membership) = &mut self.membership {
            membership.agent_gone = true;
        }
        self.end.ask(RunEndReason::Fatal(why));
    }

    fn handle_message(&mut self, message: ToPart) {
        let members = self.members().map_or(0, RunMemberTable::count);
        if let Some(member) = message.member().filter(|it| usize::from(*it) >= members) {
            let text = format!("news of member {member}, but there are only {members}");
            return self.cx.journal.warn(text);
        }
        match message {
            ToPart::Measure => self.set_stage(MembershipStage::Measuring),
            ToPart::Begin { origin_ns } => {
                self.set_stage(MembershipStage::Begun(Time::from_nanos(origin_ns)));
            }
            ToPart::Flows { member, changes } => {
                self.network.order(PacketLoopCommand::Flows { member, changes });
            }
            ToPart::Clocks { clocks } => {
                let ahead_ns: Vec<(u16, i64)> =
                    clocks.iter().map(|clock| (clock.member, clock.ahead_ns)).collect();
                if let Some(membership) = &mut self.membership {
                    membership
                        .clocks
                        .note(&clocks, matches!(membership.stage, MembershipStage::Begun(_)));
                }
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
            ToPart::Lost { member, why, apart: cut_off } => self.lose(member, why, cut_off),
            ToPart::Silent { member, since_ns } => {
                self.note_silence(member, Time::from_nanos(since_ns));
            }
            ToPart::Answers { member } => self.note_answer(member),
            ToPart::Left { member } => self.leave_with(member),
            ToPart::NotHeld { why } => self.limits.not_held_by_agent(why),
            ToPart::Stop(why) => self.stop(why),
            ToPart::Setup(_) | ToPart::Peers { .. } => {
                self.cx.journal.warn("the agent has said something twice".to_owned());
            }
        }
    }

    fn set_stage(&mut self, stage: MembershipStage) {
        if let Some(membership) = &mut self.membership {
            membership.stage = stage;
        }
    }

    /// Another member may have passed on the same order before: only a second one hurries.
    fn stop(&mut self, why: StopWhy) {
        let Some(membership) = &mut self.membership else { return };
        if std::mem::replace(&mut membership.ordered_to_stop, true) {
            self.end.hurry();
        }
        self.end.ask(match why {
            StopWhy::Asked => RunEndReason::Stopped,
            StopWhy::Signal(signal) => RunEndReason::Interrupted(signal),
            StopWhy::Failed(reason) => RunEndReason::Fatal(reason),
        });
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
            MemberAnnouncement::Order { at, action } => self.follow_order(at, *action),
            MemberAnnouncement::Service { change } => {
                if members.has_node(member, change.update.replica().index()) {
                    self.service_was_seen_by(change);
                }
            }
            MemberAnnouncement::End { ending } => {
                members.set_ended(member);
                self.end.ask(ending);
            }
            MemberAnnouncement::Sent { datagrams } => members.set_sent_by(member, &datagrams),
        }
    }

    fn lose(&mut self, member: u16, why: String, cut_off: bool) {
        let elapsed = self.elapsed();
        let Some(AgentMembership { members, .. }) = &mut self.membership else { return };
        let Some(nodes) = members.lose(member, elapsed, cut_off) else { return };
        let host = members.name(member);
        self.network.order(PacketLoopCommand::Forget { member });
        self.programs.supervisor.on_lost(&nodes, &host);
        self.lose_elsewhere(&nodes);
        let nodes = nodes.iter().map(|node| self.cx.nodes.name(*node).to_owned()).collect();
        self.cx.journal.log(None, EventLogEntryKind::HostLost { host: host.clone(), nodes, why });
        if self.cx.plan.on_host_loss == OnHostLoss::Fail {
            self.end.ask(RunEndReason::host_lost(&host));
        }
    }

    /// A member does not answer; it is not lost yet.
    fn note_silence(&mut self, member: u16, since: Time) {
        let Some(AgentMembership { members, stage: MembershipStage::Begun(origin), .. }) =
            &mut self.membership
        else {
            return;
        };
        if members.set_silent(member, since) {
            let (host, since_ns) = (members.name(member), since.since(*origin).as_nanos());
            self.cx.journal.log(None, EventLogEntryKind::HostSilent { host, since_ns });
        }
    }

    fn note_answer(&mut self, member: u16) {
        let Some(AgentMembership { members, .. }) = &mut self.membership else { return };
        if let Some(since) = members.set_answering(member) {
            let (host, lasted_ns) = (members.name(member), now().since(since).as_nanos());
            self.cx.journal.log(None, EventLogEntryKind::HostAnswers { host, lasted_ns });
        }
    }

    fn leave_with(&mut self, member: u16) {
        let Some(AgentMembership { members, .. }) = &mut self.membership else { return };
        if members.leave(member) {
            let host = members.name(member);
            let why = format!("host {host} has ended the run without this machine");
            self.end.ask(RunEndReason::Fatal(why));
        }
    }

    /// Announces to the other members what has changed.
    pub(super) fn send_to_members(&mut self) {
        let Some(membership) = &mut self.membership else { return };
        let AgentMembership { programs, members, .. } = membership;
        let news = programs.news(&self.programs.supervisor, members);
        news.iter().for_each(|news| membership.send_to_members(news));
    }
}
