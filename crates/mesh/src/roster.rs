//! The agents that are known to be alive, and those that were.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;
use core::net::SocketAddr;
use core::ops::Bound;

use windtunnel_model::{Span, Time};

use crate::clock::PeerClockEstimate;
use crate::flow::Fingerprint;
use crate::id::{AgentId, Identity, mix};
use crate::wire::message::MessageSender;

/// An agent that is down and sends is informed, again after this time.
const INFORM_WAIT: Span = Span::from_millis(100);
/// As many of them in that time.
const INFORMED_MAX: usize = 256;

/// All agents but the own one.
#[derive(Debug)]
pub(crate) struct Roster {
    alive: BTreeMap<AgentId, RosterEntry>,
    /// How many of them have confirmed in common runs.
    in_runs: usize,
    /// Of all lives, the own one too.
    fingerprint: Fingerprint,
    /// Agents that have ended, with their last life.
    former: BTreeMap<AgentId, FormerAgent>,
    /// Agents that have announced their end themselves.
    leaving: BTreeSet<AgentId>,
    /// Agents that were informed that they are down, and when.
    informed: BTreeMap<AgentId, Time>,
}

/// Another agent that is alive.
#[derive(Debug)]
pub(crate) struct RosterEntry {
    pub(crate) life: Identity,
    /// When it last sent something itself.
    pub(crate) last_received: Time,
    pub(crate) clock: PeerClockEstimate,
    /// When timestamps left that have not come back.
    pub(crate) pings: VecDeque<Time>,
    /// How often they leave, as of the last one.
    pub(crate) pace: Span,
    /// Exchanges that are to be made quickly.
    pub(crate) hurry: u32,
    /// Common runs in which it has confirmed.
    pub(crate) runs: u32,
}

/// An agent that has ended.
#[derive(Debug)]
struct FormerAgent {
    life: Identity,
    since: Time,
    /// When it is next asked whether it is back; `None`: never, it has left.
    ask: Option<Time>,
}

impl Roster {
    pub(crate) fn new(own: &Identity) -> Self {
        let mut fingerprint = Fingerprint::default();
        fingerprint.add(digest(own));
        Roster {
            alive: BTreeMap::new(),
            in_runs: 0,
            fingerprint,
            former: BTreeMap::new(),
            leaving: BTreeSet::new(),
            informed: BTreeMap::new(),
        }
    }

    /// How many agents are alive.
    pub(crate) fn len(&self) -> usize {
        self.alive.len()
    }

    /// How many of them are in common runs.
    pub(crate) fn in_runs(&self) -> usize {
        self.in_runs
    }

    pub(crate) fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    pub(crate) fn get(&self, agent: AgentId) -> Option<&RosterEntry> {
        self.alive.get(&agent)
    }

    pub(crate) fn get_mut(&mut self, agent: AgentId) -> Option<&mut RosterEntry> {
        self.alive.get_mut(&agent)
    }

    /// The present life of an agent.
    pub(crate) fn life(&self, agent: AgentId) -> Option<&Identity> {
        self.get(agent).map(|agent| &agent.life)
    }

    /// The present lives of all, by id.
    pub(crate) fn lives(&self) -> impl Iterator<Item = &Identity> + '_ {
        self.alive.values().map(|agent| &agent.life)
    }

    /// The agent at a position in the order of ids.
    pub(crate) fn at(&self, index: usize) -> Option<AgentId> {
        self.alive.keys().nth(index).copied()
    }

    /// A life that is not known yet has begun.
    pub(crate) fn add(&mut self, life: Identity, now: Time, hurry: u32) {
        self.former.remove(&life.agent);
        self.fingerprint.add(digest(&life));
        let fresh = RosterEntry {
            life,
            last_received: now,
            clock: PeerClockEstimate::default(),
            pings: VecDeque::new(),
            pace: Span::ZERO,
            hurry,
            runs: 0,
        };
        self.alive.insert(life.agent, fresh);
    }

    /// A life is over.
    pub(crate) fn remove(&mut self, life: &Identity) {
        let known = self.alive.remove(&life.agent);
        self.in_runs -= usize::from(known.is_some_and(|known| known.runs > 0));
        self.fingerprint.remove(digest(life));
    }

    /// An agent goes on as a later life.
    pub(crate) fn rename(&mut self, was: &Identity, now: Identity) {
        self.replace_digest(was, &now);
        if let Some(agent) = self.alive.get_mut(&was.agent) {
            agent.life = now;
        }
    }

    /// The life of a former agent was a later one.
    pub(crate) fn rename_former(&mut self, now: Identity) {
        if let Some(former) = self.former.get_mut(&now.agent) {
            former.life = now;
        }
    }

    /// The fingerprint has another life of an agent, or of this one.
    pub(crate) fn replace_digest(&mut self, was: &Identity, now: &Identity) {
        self.fingerprint.remove(digest(was));
        self.fingerprint.add(digest(now));
    }

    /// An agent has announced its end.
    pub(crate) fn note_leaving(&mut self, agent: AgentId) {
        self.leaving.insert(agent);
    }

    /// Whether an agent that is down now has announced that.
    pub(crate) fn take_leaving(&mut self, agent: AgentId) -> bool {
        self.leaving.remove(&agent)
    }

    /// Remembers the last life of an agent, of at most `limit` of them and for as long as `memory`.
    pub(crate) fn remember(
        &mut self,
        life: Identity,
        ask: Option<Time>,
        now: Time,
        limit: usize,
        memory: Span,
    ) {
        if self.former.len() >= limit {
            let oldest = self.former.iter().min_by_key(|(_, it)| it.since).map(|(id, _)| *id);
            oldest.map(|agent| self.former.remove(&agent));
        }
        self.former.insert(life.agent, FormerAgent { life, since: now, ask });
        self.former.retain(|_, it| now.since(it.since) < memory);
    }

    /// The addresses of former agents that are to be asked at `now` whether they are back; `next`
    /// says how long after that again, given how long they have been away.
    pub(crate) fn rejoins(
        &mut self,
        now: Time,
        mut next: impl FnMut(Span) -> Span,
    ) -> Vec<SocketAddr> {
        let mut due = Vec::new();
        for former in self.former.values_mut() {
            if former.ask.is_some_and(|at| at <= now) {
                former.ask = Some(now + next(now.since(former.since)));
                due.push(former.life.address);
            }
        }
        due
    }

    /// When a former agent is next to be asked.
    pub(crate) fn next_rejoin(&self) -> Option<Time> {
        self.former.values().filter_map(|former| former.ask).min()
    }

    /// The greatest epoch of an agent that is known.
    pub(crate) fn latest_epoch(&self, agent: AgentId) -> Option<u64> {
        let here = self.life(agent).map(|life| life.epoch);
        here.max(self.former.get(&agent).map(|former| former.life.epoch))
    }

    /// Whether an agent that is down and sends is to be informed now; it counts as informed then.
    pub(crate) fn inform(&mut self, agent: AgentId, now: Time) -> bool {
        self.informed.retain(|_, at| now.since(*at) < INFORM_WAIT);
        let informs = self.informed.len() < INFORMED_MAX && !self.informed.contains_key(&agent);
        if informs {
            self.informed.insert(agent, now);
        }
        informs
    }

    /// Notes that the sender of a message is alive; `false` if it is not the present life of an
    /// agent that is.
    pub(crate) fn note_received(&mut self, from: MessageSender, now: Time) -> bool {
        let known = self.alive.get_mut(&from.agent).filter(|it| it.life.epoch == from.epoch);
        known.map(|agent| agent.last_received = now).is_some()
    }

    /// Whether a life sent something within a time.
    pub(crate) fn received_within(&self, life: &Identity, now: Time, time: Span) -> bool {
        let known = self.get(life.agent).filter(|agent| agent.life == *life);
        known.is_some_and(|agent| now.since(agent.last_received) < time)
    }

    /// The lives behind `after`, with the own one, as many as there is room for; and whether there
    /// are more.
    pub(crate) fn page(
        &self,
        own: Identity,
        after: Option<AgentId>,
        room: usize,
    ) -> (Vec<Identity>, bool) {
        let start = after.map_or(Bound::Unbounded, Bound::Excluded);
        let behind = self.alive.range((start, Bound::Unbounded));
        let mut lives: Vec<Identity> = behind.map(|(_, it)| it.life).take(room + 1).collect();
        if after.is_none_or(|after| after < own.agent) {
            let place = lives.partition_point(|life| life.agent < own.agent);
            lives.insert(place, own);
        }
        let more = lives.len() > room;
        lives.truncate(room);
        (lives, more)
    }

    /// The agents behind `after` and up to `last` that a sorted list does not name.
    pub(crate) fn unnamed(
        &self,
        after: Option<AgentId>,
        last: Option<AgentId>,
        named: &[Identity],
    ) -> Vec<AgentId> {
        if after.is_some() && after >= last && last.is_some() {
            return Vec::new();
        }
        let start = after.map_or(Bound::Unbounded, Bound::Excluded);
        let end = last.map_or(Bound::Unbounded, Bound::Included);
        let here = self.alive.range((start, end)).map(|(agent, _)| *agent);
        let is_named =
            |agent: &AgentId| named.binary_search_by_key(agent, |life| life.agent).is_ok();
        here.filter(|agent| !is_named(agent)).collect()
    }

    /// The successors of `own` on so many rings, in each of which the agents stand in another
    /// random order.
    pub(crate) fn successors(&self, own: AgentId, rings: usize) -> VecDeque<AgentId> {
        let mut found = VecDeque::new();
        for ring in 0..rings as u64 {
            let place = |agent: &AgentId| mix(agent.0 ^ mix(ring));
            let own = place(&own);
            let others = self.alive.keys().filter(|agent| !found.contains(*agent));
            let next = others.min_by_key(|agent| (place(agent).wrapping_sub(own), **agent));
            found.extend(next.copied());
        }
        found
    }

    /// An agent has confirmed in a common run. Whether it is the first.
    pub(crate) fn enter_run(&mut self, agent: AgentId) -> bool {
        let Some(known) = self.alive.get_mut(&agent) else { return false };
        known.runs += 1;
        let first = known.runs == 1;
        self.in_runs += usize::from(first);
        first
    }

    /// It is not in one of them any more.
    pub(crate) fn leave_run(&mut self, agent: AgentId) {
        if let Some(known) = self.alive.get_mut(&agent).filter(|known| known.runs > 0) {
            known.runs -= 1;
            self.in_runs -= usize::from(known.runs == 0);
        }
    }
}

/// The digest of a life, for fingerprints of lists.
fn digest(life: &Identity) -> u64 {
    mix(mix(mix(life.agent.0) ^ life.epoch) ^ u64::from(life.renewal))
}

#[cfg(test)]
mod tests;
