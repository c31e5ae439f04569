//! What a run over several machines adds to the main loop: the agent is heard, other parts are told.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use windtunnel_control::part::{FlowChange, FlowTerms, FromPart, StopWhy, ToPart};
use windtunnel_engine::{FlowNews, FlowTerms as Terms, RemoteKey};
use windtunnel_model::placement::OnHostLoss;
use windtunnel_model::plan::Action;
use windtunnel_model::{NodeId, Span, Time};
use windtunnel_trace::event::What;

use super::Live;
use crate::dataplane::{Order, RemoteNews, now};
use crate::output::ProgramKey;
use crate::part::audience::Audiences;
use crate::part::link::Link;
use crate::part::news::News;
use crate::supervisor::Supervised;
use crate::verdict::Ending;

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
    /// What was last told of each program here.
    told: BTreeMap<ProgramKey, Supervised>,
    told_idle: bool,
    /// Who hears of flows; made when it is first needed, and anew for new routes.
    audiences: Option<Audiences>,
    /// Flows here that others know of, and since when there are.
    flows: BTreeMap<RemoteKey, (Terms, Time)>,
    reached: bool,
    agent_gone: bool,
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
            told: BTreeMap::new(),
            told_idle: false,
            audiences: None,
            flows: BTreeMap::new(),
            reached: false,
            agent_gone: false,
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

    fn news(&self, news: &News) {
        if let Ok(news) = serde_json::to_string(news) {
            self.tell(&FromPart::News { news });
        }
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

    /// Waits until every other machine has been heard, and then until the agent wants paths measured.
    /// False if the run is to end instead.
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
        while self.ending.is_none() && now() < origin {
            self.wait(Some(origin.since(now())));
        }
        self.ending.is_none().then_some(origin)
    }

    fn until(&mut self, wanted: impl Fn(&Side) -> bool) -> bool {
        while self.ending.is_none() && !self.side.as_ref().is_none_or(&wanted) {
            self.wait(Some(PATIENCE));
        }
        self.ending.is_none()
    }

    /// Why the run ends before it has begun.
    pub(crate) fn ending(&self) -> Option<&Ending> {
        self.ending.as_ref()
    }

    pub(crate) fn tell_agent(&self, message: &FromPart) {
        if let Some(side) = &self.side {
            side.tell(message);
        }
    }
}

/// Hearing.
impl Live {
    /// Handles everything that the agent has said.
    pub(super) fn hear_agent(&mut self) {
        let Some(side) = &mut self.side else { return };
        match side.link.receive() {
            Ok(messages) => messages.into_iter().for_each(|message| self.hear_message(message)),
            Err(error) => self.agent_gone(&error),
        }
    }

    /// Nothing of a run outlives its agent: no patience with programs.
    fn agent_gone(&mut self, error: &io::Error) {
        let why = format!("this machine's agent is lost: {error}");
        self.hurried = true;
        if let Some(side) = &mut self.side {
            side.agent_gone = true;
        }
        self.ending.get_or_insert(Ending::Fatal(why));
    }

    fn hear_message(&mut self, message: ToPart) {
        match message {
            ToPart::Measure => self.set_stage(Stage::Measuring),
            ToPart::Begin { origin_ns } => {
                self.set_stage(Stage::Begun(Time::from_nanos(origin_ns)));
            }
            ToPart::Flows { member, changes } => {
                let news = changes.iter().map(remote_news).collect();
                self.threads.dataplane.order(Order::Flows { member, news });
            }
            ToPart::Clock { member, ahead_ns } => {
                self.threads.dataplane.order(Order::Clock { member, ahead_ns });
            }
            ToPart::News { member, news } => match serde_json::from_str(&news) {
                Ok(news) => self.hear_news(member, news),
                Err(error) => {
                    self.warn(format!("news of another machine cannot be read: {error}"));
                }
            },
            ToPart::Lost { member, why } => self.lose(member, why),
            ToPart::Left { member } => self.leave_with(member),
            ToPart::Stop(why) => {
                self.hurried |= self.ending.is_some();
                self.ending.get_or_insert(match why {
                    StopWhy::Asked => Ending::Stopped,
                    StopWhy::Signal(signal) => Ending::Interrupted(signal),
                    StopWhy::Failed(reason) => Ending::Fatal(reason),
                });
            }
            ToPart::Setup(_) | ToPart::Peers { .. } => {
                self.warn("the agent has said something twice".to_owned());
            }
        }
    }

    fn set_stage(&mut self, stage: Stage) {
        if let Some(side) = &mut self.side {
            side.stage = stage;
        }
    }

    fn hear_news(&mut self, member: u16, news: News) {
        let Some(side) = &mut self.side else { return };
        if side.lost.contains_key(&member) {
            // It was reckoned without, and its end is not everybody's.
            return;
        }
        match news {
            News::Program { key, state } => {
                if side.placement.get(key.node) == Some(&member) {
                    self.supervisor.on_news(key, *state);
                }
            }
            News::Idle { idle } => {
                if let Some(known) = side.idle.get_mut(usize::from(member)) {
                    *known = idle;
                }
            }
            News::Order { at, action } => self.follow_order(at, *action),
            News::End { ending } => {
                side.ended.insert(member);
                self.ending.get_or_insert(ending);
            }
        }
    }

    fn lose(&mut self, member: u16, why: String) {
        let elapsed = self.elapsed();
        let Some(side) = &mut self.side else { return };
        let is_known = side.lost.contains_key(&member) || side.ended.contains(&member);
        if is_known || member == side.member {
            return;
        }
        side.lost.insert(member, elapsed);
        let host = side.members.get(usize::from(member)).cloned().unwrap_or_default();
        let places = side.placement.iter().enumerate().filter(|(_, place)| **place == member);
        let nodes: Vec<usize> = places.map(|(node, _)| node).collect();
        self.threads.dataplane.order(Order::Forget { member });
        self.supervisor.on_lost(&nodes, &host);
        let names = nodes.iter().map(|node| self.plan.nodes[*node].name.clone()).collect();
        self.tell(None, What::HostLost { host: host.clone(), nodes: names, why });
        if self.plan.on_host_loss == OnHostLoss::Fail {
            self.ending.get_or_insert(Ending::host_lost(&host));
        }
    }

    /// Parts end when the run does, and tell the others before; but who takes this machine for lost tells it nothing.
    fn leave_with(&mut self, member: u16) {
        let Some(side) = &self.side else { return };
        if side.lost.contains_key(&member) || side.ended.contains(&member) {
            return;
        }
        let host = side.members.get(usize::from(member)).cloned().unwrap_or_default();
        let why = format!("host {host} has ended the run without this machine");
        self.ending.get_or_insert(Ending::Fatal(why));
    }

    pub(super) fn reached(&mut self) {
        if let Some(side) = &mut self.side {
            side.reached = true;
        }
    }
}

/// Telling.
impl Live {
    /// Tells the other parts what is not as it was told.
    pub(super) fn tell_others(&mut self) {
        let Some(side) = &mut self.side else { return };
        let mut all = Vec::new();
        for (key, program) in self.supervisor.programs() {
            if side.placement.get(key.node) == Some(&side.member)
                && side.told.get(&key) != Some(program)
            {
                side.told.insert(key, program.clone());
                all.push(News::Program { key, state: Box::new(program.clone()) });
            }
        }
        let idle = self.supervisor.idle();
        if std::mem::replace(&mut side.told_idle, idle) != idle {
            all.push(News::Idle { idle });
        }
        all.iter().for_each(|news| side.news(news));
    }

    /// Whether nothing is left to do anywhere.
    pub(super) fn all_finished(&self) -> bool {
        let others = self.side.as_ref().is_none_or(Side::others_are_idle);
        others && self.supervisor.finished()
    }

    /// Tells the others that the run is over.
    pub(crate) fn tell_end(&self, ending: &Ending) {
        if let Some(side) = &self.side {
            side.news(&News::End { ending: ending.clone() });
        }
    }

    /// When what is ordered now can be done by all parts; `None` on one machine: at once.
    pub(super) fn soonest(&self) -> Option<Span> {
        self.side.as_ref().map(|_| self.elapsed() + TOGETHER)
    }

    /// Lets the other parts do what was ordered here, at the same time.
    pub(super) fn share_order(&self, at: Span, action: &Action) {
        if let Some(side) = &self.side {
            side.news(&News::Order { at, action: Box::new(action.clone()) });
        }
    }

    /// Tells the others of the flows here, of which there is news since `at`.
    pub(super) fn announce(&mut self, at: Time, news: &[FlowNews]) {
        let Some(side) = &mut self.side else { return };
        let audiences = side.audiences.get_or_insert_with(|| {
            let members = side.members.len();
            Audiences::of(&self.plan, &self.routes, &side.placement, members)
        });
        let mut changes = Vec::new();
        for one in news {
            let former = side.flows.remove(&one.key());
            let since = former.map_or(at, |(_, since)| since);
            if let Some(terms) = one.flow {
                side.flows.insert(one.key(), (terms, since));
            }
            let ends = (one.source, one.destination);
            let audience = audiences.hear_of(&self.plan, &self.routes, ends);
            changes.push(change_of(one, since, audience));
        }
        self.tell_agent(&FromPart::Flows { changes });
    }

    /// Under new routes, others have to hear of the flows here.
    pub(super) fn announce_anew(&mut self) {
        let Some(side) = &mut self.side else { return };
        side.audiences = None;
        let flows = std::mem::take(&mut side.flows).into_iter();
        let flows: Vec<FlowNews> =
            flows.map(|(key, (terms, _))| FlowNews::new(key, Some(terms))).collect();
        if !flows.is_empty() {
            // For those who hear of them for the first time, they begin now.
            self.announce(now(), &flows);
        }
    }
}

fn change_of(news: &FlowNews, since: Time, audience: Option<Vec<u16>>) -> FlowChange {
    let terms = |flow: Terms| FlowTerms {
        rtt_ns: flow.rtt.as_nanos(),
        demand: flow.demand,
        window: flow.window,
        since_ns: since.as_nanos(),
    };
    let (source, destination) = (news.source.0, news.destination.0);
    let terms = news.flow.map(terms);
    FlowChange { source, destination, number: news.number, terms, audience }
}

fn remote_news(change: &FlowChange) -> RemoteNews {
    let flow = |terms: FlowTerms| Terms {
        rtt: Span::from_nanos(terms.rtt_ns),
        demand: terms.demand,
        window: terms.window,
    };
    let news = FlowNews {
        source: NodeId(change.source),
        destination: NodeId(change.destination),
        number: change.number,
        flow: change.terms.map(flow),
    };
    RemoteNews { news, since: change.terms.map(|terms| Time::from_nanos(terms.since_ns)) }
}

/// Only so that an end is noticed that nothing tells.
const PATIENCE: Span = Span::from_millis(100);
/// The time that an order has to reach every part before it is done.
const TOGETHER: Span = Span::from_millis(50);
