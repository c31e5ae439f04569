//! Failure detection: which agent is probed when.
//!
//! As in SWIM, an agent asks one other in each period, and asks three to ask it if no answer comes.
//! There are two *scopes* with a pace each: members of common runs are probed in turn and
//! quickly; of the cluster only few neighbours, once in a second, so that an agent without a run
//! needs few connections and says next to nothing, however many agents there are. The neighbours
//! are the successors on rings, in each of which the agents stand in another random order: so
//! each agent is probed by some, and news and lists of agents get around.

use alloc::collections::{BTreeSet, VecDeque};
use alloc::vec::Vec;

use foca::State;
use windtunnel_model::Span;

use super::{AgentId, Mesh, Message, Sender, Wake};
use crate::config::{Detection, FAR_PROBE, NEIGHBOURS};
use crate::id::Identity;
use crate::run::Part;
use crate::swim::{Check, FAN_OUT, Scope};

/// Agents that another agent does not know and that are to be probed out of turn, at the most.
const DOUBTFUL_MAX: usize = 64;

/// The probes of both scopes.
#[derive(Debug, Default)]
pub(super) struct Probes {
    cluster: Round,
    run: Round,
    /// Number of the last probe.
    number: u32,
    /// Known here, but not to an agent whose list was compared with ours.
    doubtful: BTreeSet<AgentId>,
}

/// The probes of a scope.
#[derive(Debug, Default)]
struct Round {
    /// Agents still to be probed in this round.
    due: VecDeque<AgentId>,
    pending: Option<PendingProbe>,
    is_running: bool,
}

/// A probe without an answer yet.
#[derive(Debug)]
struct PendingProbe {
    life: Identity,
    incarnation: u16,
    number: u32,
    acked: bool,
}

impl Probes {
    fn round(&mut self, scope: Scope) -> &mut Round {
        match scope {
            Scope::Cluster => &mut self.cluster,
            Scope::Run => &mut self.run,
        }
    }

    fn acked(&mut self, agent: AgentId, number: u32) {
        for round in [&mut self.cluster, &mut self.run] {
            let pending = round.pending.as_mut();
            if let Some(pending) =
                pending.filter(|it| it.number == number && it.life.agent == agent)
            {
                pending.acked = true;
            }
        }
    }
}

impl Mesh {
    /// Handles a timer of failure detection.
    pub(super) fn check(&mut self, check: Check) {
        match check {
            Check::Next(scope) => self.probe_next(scope),
            Check::Unanswered(scope, number) => self.ask_others(scope, number),
            Check::Down(life, incarnation) => self.condemn(life, incarnation),
        }
    }

    /// There may be an agent to probe now.
    pub(super) fn begin_probes(&mut self, scope: Scope) {
        let period = self.base_detection(scope).probe_period;
        if !core::mem::replace(&mut self.probes.round(scope).is_running, true) {
            let first = Span::from_nanos(self.rng.below(period.as_nanos()));
            self.swim.check_after(self.now, Check::Next(scope), first);
        }
    }

    /// A member of a common run is to be probed, too.
    pub(super) fn probe_member(&mut self, agent: AgentId) {
        let due = &mut self.probes.run.due;
        if !due.contains(&agent) {
            due.push_back(agent);
        }
        self.begin_probes(Scope::Run);
    }

    fn base_detection(&self, scope: Scope) -> Detection {
        match scope {
            Scope::Cluster => self.config.idle,
            Scope::Run => self.config.detection,
        }
    }

    /// An agent is probed; an ack takes a round trip.
    fn detection_of(&self, scope: Scope, agent: AgentId) -> Detection {
        let clock = self.roster.get(agent).and_then(|known| known.clock.read(self.now));
        self.base_detection(scope).stretched(clock.map_or(Span::ZERO, |clock| clock.rtt_min))
    }

    fn probe_next(&mut self, scope: Scope) {
        let failed = self.probes.round(scope).pending.take().filter(|pending| !pending.acked);
        if let Some(PendingProbe { life, incarnation, .. }) = failed {
            self.suspect(scope, life, incarnation);
            self.settle();
        }
        let Some(life) = self.next_target(scope) else {
            self.probes.round(scope).is_running = false;
            return;
        };
        self.probes.number = self.probes.number.wrapping_add(1);
        let (number, agent) = (self.probes.number, life.agent);
        let incarnation = self.swim.incarnation_of(&life);
        let pending = PendingProbe { life, incarnation, number, acked: false };
        self.probes.round(scope).pending = Some(pending);
        self.send_probe(agent, number, None);
        if scope == Scope::Cluster {
            self.compare_rosters(agent);
        }
        self.piggyback(agent);
        let detection = self.detection_of(scope, agent);
        let unanswered = Check::Unanswered(scope, number);
        self.swim.check_after(self.now, unanswered, detection.probe_wait);
        self.swim.check_after(self.now, Check::Next(scope), detection.probe_period);
    }

    /// The agent that is probed next; agents that are gone are skipped.
    fn next_target(&mut self, scope: Scope) -> Option<Identity> {
        for _ in 0..2 {
            while let Some(agent) = self.probes.round(scope).due.pop_front() {
                let wanted = scope == Scope::Cluster || self.shares_run(agent);
                if let Some(life) = self.agent(agent).filter(|_| wanted) {
                    return Some(*life);
                }
            }
            let due = match scope {
                Scope::Cluster => self.next_in_cluster(),
                Scope::Run => self.members_in_turn(),
            };
            self.probes.round(scope).due = due;
        }
        None
    }

    fn next_in_cluster(&mut self) -> VecDeque<AgentId> {
        let mut due = self.neighbours();
        let often = u64::from(FAR_PROBE) / u64::try_from(NEIGHBOURS).unwrap_or(1);
        if self.rng.below(often.max(1)) == 0 {
            due.extend(self.random_agent());
        }
        due.extend(self.probes.doubtful.pop_first());
        due
    }

    fn neighbours(&self) -> VecDeque<AgentId> {
        self.roster.successors(self.config.agent, NEIGHBOURS)
    }

    fn random_agent(&mut self) -> Option<AgentId> {
        let count = u64::try_from(self.roster.len()).unwrap_or(0);
        self.roster.at(usize::try_from(self.rng.below(count)).unwrap_or(0))
    }

    /// All members of common runs in random order.
    fn members_in_turn(&mut self) -> VecDeque<AgentId> {
        let members: BTreeSet<AgentId> =
            self.runs.values().flat_map(super::Run::confirmed).collect();
        let mut order: Vec<AgentId> = members.into_iter().collect();
        for last in (1..order.len()).rev() {
            let bound = u64::try_from(last).unwrap_or(0) + 1;
            order.swap(last, usize::try_from(self.rng.below(bound)).unwrap_or(0));
        }
        order.into()
    }

    fn shares_run(&self, agent: AgentId) -> bool {
        let in_it = |run: &super::Run| {
            run.position(agent).is_some_and(|at| run.peers[at as usize].part == Part::Confirmed)
        };
        self.runs.values().any(in_it)
    }

    fn send_probe(&mut self, to: AgentId, number: u32, origin: Option<AgentId>) {
        let (from, incarnation) = (self.identity(), self.swim.incarnation());
        self.send_to(to, &Message::Probe { from, incarnation, to, number, origin });
    }

    /// No answer came in time: others ask.
    fn ask_others(&mut self, scope: Scope, number: u32) {
        let pending = self.probes.round(scope).pending.as_ref();
        let Some(pending) = pending.filter(|it| it.number == number && !it.acked) else { return };
        let target = pending.life.agent;
        let near = match scope {
            Scope::Cluster => self.neighbours(),
            Scope::Run => self.members_in_turn(),
        };
        let mut helpers: Vec<AgentId> = near.into_iter().filter(|it| *it != target).collect();
        for _ in helpers.len()..FAN_OUT {
            helpers.extend(self.random_agent().filter(|it| *it != target));
        }
        helpers.dedup();
        let from = self.me();
        for helper in helpers.into_iter().take(FAN_OUT) {
            self.send_to(helper, &Message::ProbeFor { from, target, number });
        }
    }

    pub(super) fn on_probe(
        &mut self,
        (from, incarnation): (Identity, u16),
        to: AgentId,
        number: u32,
        origin: Option<AgentId>,
    ) {
        if to == self.config.agent && self.note_alive(from, incarnation) {
            let (own, incarnation) = (self.identity(), self.swim.incarnation());
            let ack = Message::ProbeAck { from: own, incarnation, number, origin };
            self.send_to(from.agent, &ack);
            self.piggyback(from.agent);
        }
    }

    pub(super) fn on_probe_ack(
        &mut self,
        (from, incarnation): (Identity, u16),
        number: u32,
        origin: Option<AgentId>,
    ) {
        if !self.note_alive(from, incarnation) {
            return;
        }
        match origin {
            Some(origin) => {
                let (me, target) = (self.me(), from.agent);
                self.send_to(origin, &Message::AckFor { from: me, target, number });
            }
            None => self.probes.acked(from.agent, number),
        }
    }

    pub(super) fn on_probe_for(&mut self, from: Sender, target: AgentId, number: u32) {
        if self.knows(from) {
            self.send_probe(target, number, Some(from.agent));
        }
    }

    pub(super) fn on_ack_for(&mut self, from: Sender, target: AgentId, number: u32) {
        if self.knows(from) {
            self.probes.acked(target, number);
        }
    }

    /// An agent says that it is alive. False if it is down here; it is sent that then.
    fn note_alive(&mut self, life: Identity, incarnation: u16) -> bool {
        if life.agent == self.config.agent {
            self.out.counters.strangers += 1;
            return false;
        }
        self.learn_alive(life, incarnation);
        self.settle();
        let (now, known) = (self.now, self.roster.get_mut(life.agent));
        match known.filter(|known| known.life == life) {
            Some(known) => known.last_received = now,
            None => {
                self.send_lost(life);
                return false;
            }
        }
        true
    }

    /// An agent does not answer: it is suspected, all are sent that, and it has time to refute it.
    fn suspect(&mut self, scope: Scope, life: Identity, incarnation: u16) {
        self.swim.learn(self.now, life, incarnation, State::Suspect);
        let news = Some((life, incarnation));
        if self.swim.suspects(&life, incarnation) && self.notices.get(&life.agent).copied() != news
        {
            self.notices.insert(life.agent, (life, incarnation));
            let wait = self.detection_of(scope, life.agent).suspicion;
            self.swim.check_after(self.now, Check::Down(life, incarnation), wait);
            self.notice(life, incarnation);
        }
    }

    fn condemn(&mut self, life: Identity, incarnation: u16) {
        if self.swim.suspects(&life, incarnation) {
            self.swim.learn(self.now, life, incarnation, State::Down);
        }
    }

    fn notice(&mut self, life: Identity, incarnation: u16) {
        let from = self.identity();
        self.send(life.address, &Message::Suspected { from, life, incarnation });
        let scope = if self.shares_run(life.agent) { Scope::Run } else { Scope::Cluster };
        let wait = self.detection_of(scope, life.agent).notice_period;
        self.timers.set(Wake::Notice(life.agent), self.after(wait));
    }

    /// A suspected agent may not have received that it is.
    pub(super) fn notice_again(&mut self, agent: AgentId) {
        let Some((life, incarnation)) = self.notices.get(&agent).copied() else { return };
        if self.swim.suspects(&life, incarnation) {
            self.notice(life, incarnation);
        } else {
            self.notices.remove(&agent);
        }
    }

    /// Another agent does not know an agent that is known here.
    pub(super) fn doubt(&mut self, agent: AgentId) {
        if self.probes.doubtful.len() < DOUBTFUL_MAX {
            self.probes.doubtful.insert(agent);
        }
    }
}
