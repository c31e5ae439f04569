//! What a run over several machines adds to the main loop: its stages; the agent is heard, other
//! parts are told.

mod begin;
mod hear;
mod settle;
mod tell;

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::{AsFd, BorrowedFd};

use windtunnel_control::part::FromPart;
use windtunnel_engine::Audiences;
use windtunnel_model::flow::{Flow, FlowKey};
use windtunnel_model::{NodeId, Span, Time};

use super::Live;
use crate::clock::now;
use crate::ending::Ending;
use crate::output::ProgramKey;
use crate::part::link::Link;
use crate::part::news::News;
use crate::supervisor::Supervised;

/// This machine's side of a run over several.
#[derive(Debug)]
pub(crate) struct Side {
    link: Link,
    member: u16,
    /// Names of the machines, by member.
    members: Vec<String>,
    /// By node: on which member it is.
    placement: Vec<u16>,
    /// By member: whether its programs have had their lives.
    idle: Vec<bool>,
    /// By member: when it was lost.
    lost: BTreeMap<u16, Span>,
    /// Members for which the run is over.
    ended: BTreeSet<u16>,
    /// Whether the machines on the other side of a cut network are the run.
    apart: bool,
    /// Members of which nothing more is heard.
    gone: BTreeSet<u16>,
    /// Datagrams with packets that went to each other machine, when none goes any more.
    sent: Option<Vec<(u16, u64)>>,
    /// By member: datagrams with packets that it has sent here, once it sends no more.
    sent_here: BTreeMap<u16, u64>,
    /// What was last told of each program here.
    told: BTreeMap<ProgramKey, Supervised>,
    told_idle: bool,
    /// Who hears of flows; made when it is first needed, and anew for new routes.
    audiences: Option<Audiences>,
    /// Flows here that others know of, and since when there are.
    flows: BTreeMap<FlowKey, Flow>,
    reached: bool,
    agent_gone: bool,
    /// Whether the agent has said that the run is to stop.
    ordered_to_stop: bool,
    stage: Stage,
}

/// How far the agent has brought the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Waiting,
    Measuring,
    Begun(Time),
}

impl Side {
    pub(crate) fn new(link: Link, member: u16, members: Vec<String>, placement: Vec<u16>) -> Self {
        Side {
            link,
            member,
            idle: vec![false; members.len()],
            members,
            placement,
            lost: BTreeMap::new(),
            ended: BTreeSet::new(),
            apart: false,
            gone: BTreeSet::new(),
            sent: None,
            sent_here: BTreeMap::new(),
            told: BTreeMap::new(),
            told_idle: false,
            audiences: None,
            flows: BTreeMap::new(),
            reached: false,
            agent_gone: false,
            ordered_to_stop: false,
            stage: Stage::Waiting,
        }
    }

    /// By node: whether it is on this machine.
    pub(crate) fn here(&self) -> Vec<bool> {
        self.placement.iter().map(|place| *place == self.member).collect()
    }

    pub(crate) fn tell(&self, message: &FromPart) {
        self.link.teller().tell(message);
    }

    /// Whether nobody can fetch any results.
    pub(crate) fn agent_is_gone(&self) -> bool {
        self.agent_gone
    }

    /// Who was lost when, by member.
    pub(crate) fn lost(&self) -> &BTreeMap<u16, Span> {
        &self.lost
    }

    /// Whether the network was cut, and the run is what the other side does.
    pub(crate) fn is_apart(&self) -> bool {
        self.apart
    }

    fn news(&self, news: &News) {
        if let Ok(news) = serde_json::to_string(news) {
            self.tell(&FromPart::News { news });
        }
    }

    fn host(&self, member: u16) -> String {
        self.members.get(usize::from(member)).cloned().unwrap_or_default()
    }

    /// Whether a member is lost, or has said that the run is over.
    fn is_through_with(&self, member: u16) -> bool {
        self.lost.contains_key(&member) || self.ended.contains(&member)
    }

    /// Whether all other machines that are left have nothing more to do.
    fn others_are_idle(&self) -> bool {
        let mut others = (0..).zip(&self.idle).filter(|(member, _)| *member != self.member);
        others.all(|(member, idle)| *idle || self.lost.contains_key(&member))
    }
}

impl AsFd for Side {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.link.as_fd()
    }
}

/// Stages of a part.
impl Live {
    /// Whether a node is on this machine.
    pub(super) fn is_here(&self, node: NodeId) -> bool {
        let Some(side) = &self.side else { return true };
        side.placement.get(node.index()) == Some(&side.member)
    }

    /// Those that are on this machine.
    pub(super) fn only_here(&self, nodes: &[NodeId]) -> Vec<NodeId> {
        nodes.iter().copied().filter(|node| self.is_here(*node)).collect()
    }

    /// Waits until every other machine has been heard, and then until the agent wants paths
    /// measured. False if the run is to end instead.
    pub(crate) fn until_measure(&mut self) -> bool {
        self.until(|side| side.reached);
        self.tell_agent(&FromPart::Reached);
        self.until(|side| side.stage != Stage::Waiting)
    }

    /// Waits for the beginning of the run; `None` if it is to end instead.
    pub(crate) fn until_begin(&mut self) -> Option<Time> {
        self.tell_agent(&FromPart::Measured);
        self.until(|side| matches!(side.stage, Stage::Begun(_)));
        let Stage::Begun(origin) = self.side.as_ref()?.stage else { return None };
        self.tell_agent(&FromPart::Begun);
        while self.end.reason().is_none() && now() < origin {
            self.wait(Some(origin.since(now())));
        }
        self.end.reason().is_none().then_some(origin)
    }

    fn until(&mut self, wanted: impl Fn(&Side) -> bool) -> bool {
        while self.end.reason().is_none() && !self.side.as_ref().is_none_or(&wanted) {
            self.wait(Some(PATIENCE));
        }
        self.end.reason().is_none()
    }

    /// Why the run ends before it has begun.
    pub(crate) fn ending(&self) -> Option<&Ending> {
        self.end.reason()
    }

    pub(crate) fn tell_agent(&self, message: &FromPart) {
        if let Some(side) = &self.side {
            side.tell(message);
        }
    }
}

/// Only so that an end is noticed that nothing tells.
const PATIENCE: Span = Span::from_millis(100);
