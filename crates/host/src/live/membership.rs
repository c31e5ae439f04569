//! This machine as a member of a run over several: its agent, the other members, and what they are
//! to know.

mod announcements;
mod clocks;
mod members;

use std::os::fd::{AsFd, BorrowedFd};

use windtunnel_control::part::FromPart;
use windtunnel_model::Time;

use crate::part::link::AgentConnection;
use crate::part::news::MemberAnnouncement;
pub(super) use announcements::{FlowAnnouncements, ProgramAnnouncements};
pub(crate) use clocks::{ClockBound, Clocks};
pub(crate) use members::RunMemberTable;

/// The connection to the agent, and how far it has brought the run.
#[derive(Debug)]
pub(crate) struct AgentMembership {
    pub(super) link: AgentConnection,
    pub(crate) members: RunMemberTable,
    pub(crate) clocks: Clocks,
    pub(super) programs: ProgramAnnouncements,
    pub(super) flows: FlowAnnouncements,
    /// Whether something has been received from every other machine.
    pub(super) reached: bool,
    pub(super) agent_gone: bool,
    /// Whether the agent has said that the run is to stop.
    pub(super) ordered_to_stop: bool,
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
            clocks: Clocks::default(),
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

    pub(super) fn send_to_agent(&self, message: &FromPart) {
        self.link.writer().send(message);
    }

    /// Sends news to all other members.
    pub(super) fn send_to_members(&self, news: &MemberAnnouncement) {
        if let Ok(news) = serde_json::to_string(news) {
            self.send_to_agent(&FromPart::News { news });
        }
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
