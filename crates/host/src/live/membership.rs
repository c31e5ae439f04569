//! This machine as a member of a run over several: its agent, the other members, and what they are
//! to know.

mod announcements;
mod members;

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use windtunnel_control::part::{FromPart, MemberClock, StopWhy};
use windtunnel_model::flow::FlowChange;
use windtunnel_model::plan::EventAction;
use windtunnel_model::{Plan, Span, Time};
use windtunnel_routing::Routes;
use windtunnel_trace::event::EventLogEntryKind;
use windtunnel_verdict::evidence::{MemberClockBounds, RunEndReason};

use super::end_request::EndRequest;
use super::journal::Journal;
use crate::part::link::AgentConnection;
use crate::part::news::MemberAnnouncement;
use crate::supervisor::Supervisor;
use announcements::{FlowAnnouncements, ProgramAnnouncements};
pub(crate) use members::RunMemberTable;
use windtunnel_dataplane::PeerSilencePeriod;
use windtunnel_dataplane::now;

/// The connection to the agent, and how far it has brought the run.
#[derive(Debug)]
pub(crate) struct AgentMembership {
    pub(super) link: AgentConnection,
    pub(crate) members: RunMemberTable,
    pub(crate) clocks: MemberClockBounds,
    programs: ProgramAnnouncements,
    flows: FlowAnnouncements,
    /// Whether something has been received from every other machine.
    pub(super) reached: bool,
    agent_gone: bool,
    /// Whether the agent has said that the run is to stop.
    ordered_to_stop: bool,
    pub(super) stage: MembershipStage,
}

/// How far the agent has brought the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MembershipStage {
    Waiting,
    Measuring,
    Begun(Time),
}

impl AgentMembership {
    pub(crate) fn new(link: AgentConnection, members: RunMemberTable) -> Self {
        AgentMembership {
            link,
            members,
            clocks: MemberClockBounds::default(),
            programs: ProgramAnnouncements::default(),
            flows: FlowAnnouncements::default(),
            reached: false,
            agent_gone: false,
            ordered_to_stop: false,
            stage: MembershipStage::Waiting,
        }
    }

    /// Whether results cannot be fetched.
    pub(crate) fn agent_is_gone(&self) -> bool {
        self.agent_gone
    }

    /// Nothing of a run outlives its agent: no patience with programs.
    pub(super) fn lose_agent(&mut self, error: &io::Error, end: &mut EndRequest) {
        self.agent_gone = true;
        end.hurry();
        end.ask(RunEndReason::Fatal(format!("this machine's agent is lost: {error}")));
    }

    /// The agent stops the run. Another member may have passed on the same order before: only a
    /// second one hurries.
    pub(super) fn stop(&mut self, why: StopWhy, end: &mut EndRequest) {
        if std::mem::replace(&mut self.ordered_to_stop, true) {
            end.hurry();
        }
        end.ask(match why {
            StopWhy::Asked => RunEndReason::Stopped,
            StopWhy::Signal(signal) => RunEndReason::Interrupted(signal),
            StopWhy::Failed(reason) => RunEndReason::Fatal(reason),
        });
    }

    /// What the agent knows of the members' clocks now.
    pub(super) fn note_clocks(&mut self, clocks: &[MemberClock]) {
        self.clocks.note(clocks, matches!(self.stage, MembershipStage::Begun(_)));
    }

    /// A member does not answer; it is not lost yet.
    pub(super) fn note_silence(&mut self, member: u16, since: Time, journal: &Journal) {
        let MembershipStage::Begun(origin) = self.stage else { return };
        if self.members.set_silent(member, since) {
            let (host, since_ns) = (self.members.name(member), since.since(origin).as_nanos());
            journal.log(None, EventLogEntryKind::HostSilent { host, since_ns });
        }
    }

    pub(super) fn note_answer(&mut self, member: u16, journal: &Journal) {
        if let Some(since) = self.members.set_answering(member) {
            let (host, lasted_ns) = (self.members.name(member), now().since(since).as_nanos());
            journal.log(None, EventLogEntryKind::HostAnswers { host, lasted_ns });
        }
    }

    /// A member's part is over: this one ends with it.
    pub(super) fn leave_with(&mut self, member: u16, end: &mut EndRequest) {
        if self.members.leave(member) {
            let host = self.members.name(member);
            let why = format!("host {host} has ended the run without this machine");
            end.ask(RunEndReason::Fatal(why));
        }
    }

    /// The packets of a machine have become silent, or come again.
    pub(super) fn log_silence(&self, silence: PeerSilencePeriod, journal: &Journal) {
        let PeerSilencePeriod { member, since, until } = silence;
        let (host, peer) = (self.members.own_name(), self.members.name(member));
        let MembershipStage::Begun(origin) = self.stage else { return };
        let after = |time: Time| time.since(origin).as_nanos();
        let what = match until {
            None => EventLogEntryKind::PeerSilent { host, peer, since_ns: after(since) },
            Some(until) => EventLogEntryKind::PeerAnswers {
                host,
                peer,
                lasted_ns: until.since(since).as_nanos(),
            },
        };
        journal.log(None, what);
    }

    pub(super) fn send_to_agent(&self, message: &FromPart) {
        self.link.writer().send(message);
    }

    /// Sends news to all other members.
    pub(super) fn send_to_members(&self, news: &MemberAnnouncement) {
        if let Ok(news) = serde_json::to_string(news) {
            self.send_to_agent(&FromPart::News { news });
        }
    }

    /// Announces what has changed of the programs here.
    pub(super) fn announce_programs(&mut self, supervisor: &Supervisor) {
        let news = self.programs.news(supervisor, &self.members);
        news.iter().for_each(|news| self.send_to_members(news));
    }

    /// Announces what has changed of the flows here.
    pub(super) fn announce_flows(&mut self, plan: &Plan, routes: &Routes, changes: &[FlowChange]) {
        let changes = self.flows.announce(plan, routes, &self.members, changes);
        self.send_to_agent(&FromPart::Flows { changes });
    }

    /// Under new routes, other members are notified of the flows here.
    pub(super) fn announce_flows_again(&mut self, plan: &Plan, routes: &Routes, now: Time) {
        let changes = self.flows.announce_again(plan, routes, &self.members, now);
        if !changes.is_empty() {
            self.send_to_agent(&FromPart::Flows { changes });
        }
    }

    /// Lets the other members do what was ordered here, at the same time.
    pub(super) fn share_order(&self, at: Span, action: &EventAction) {
        let action = Box::new(action.clone());
        self.send_to_members(&MemberAnnouncement::Order { at, action });
    }

    /// Nothing goes to other machines any more.
    pub(super) fn sends_no_more(&mut self, sent: Vec<(u16, u64)>) {
        self.send_to_members(&MemberAnnouncement::Sent { datagrams: sent });
        self.members.set_sent();
    }
}

impl AsFd for AgentMembership {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.link.as_fd()
    }
}
