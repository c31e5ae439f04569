//! Timestamps, there and back.

use windtunnel_model::{Span, Time};

use super::context::{self, MeshContext};
use super::{Mesh, MeshEvent, MeshMessage, MeshTimer, MessageSender};
use crate::clock::{TimestampExchange, TimestampExchangeOutcome, WallClockReading};
use crate::id::AgentId;
use crate::wire::message::NOT_KEPT;

/// Exchanges that are made quickly when a run has brought two agents together.
const HURRY: u32 = 8;
/// Likewise when an agent has come: clocks are known soon after, run or not.
pub(super) const HURRY_FIRST: u32 = 4;
/// How long after each other.
const HURRY_WAIT: Span = Span::from_millis(25);
/// Likewise when an agent has come: a machine that begins much at once answers late, but not
/// always.
const HURRY_WAIT_FIRST: Span = Span::from_millis(100);
/// Requests that may be pending.
const PINGS_MAX: usize = 8;
/// With many agents in common runs, each has its turn after this time for each of them…
const EACH: Span = Span::from_millis(40);
/// …up to this.
const SELDOM: Span = Span::from_millis(500);
/// How much more rarely agents without a common run compare clocks: each time may need a
/// connection.
const IDLE_FACTOR: u64 = 2400;
/// With many of them, each has its turn after this time for each of them.
const IDLE_EACH: Span = Span::from_secs(2);
/// The first exchanges with one of them come when both begin much at once, and a connection with
/// them: so others follow, the next after this time, and each after so many times as long as the
/// one before.
const IDLE_FIRST: Span = Span::from_secs(2);
const IDLE_GROWTH: u64 = 4;

impl MeshContext {
    /// How often clocks are compared with an agent.
    pub(super) fn clock_pace(&self, common_run: bool) -> Span {
        let base = self.config.pace.clock.max(Span::from_nanos(1));
        let fast = self.roster.in_runs();
        if common_run {
            let few = u64::try_from(fast).unwrap_or(u64::MAX).saturating_mul(EACH.as_nanos());
            return context::seldom(base.max(Span::from_nanos(few).min(SELDOM)), fast);
        }
        let idle = Span::from_nanos(base.as_nanos().saturating_mul(IDLE_FACTOR));
        context::spread(idle, self.roster.len() - fast, IDLE_EACH)
    }

    /// How soon after an agent has come its clock is first compared.
    pub(super) fn first_ping_within(&self) -> Span {
        context::paced(HURRY_WAIT, self.roster.len())
    }

    /// An agent has come into a common run.
    pub(super) fn clock_matters(&mut self, agent: AgentId) {
        if self.roster.enter_run(agent) {
            if let Some(known) = self.roster.get_mut(agent) {
                known.hurry = HURRY;
            }
            let spread = context::paced(HURRY_WAIT, self.roster.len());
            let first = self.rng.below(spread.as_nanos());
            let at = self.after(Span::from_nanos(first));
            self.timers.set_by(MeshTimer::Clock(agent), at);
        }
    }

    pub(super) fn ping(&mut self, agent: AgentId) {
        let (now, from) = (self.now, self.me());
        let Some(known) = self.roster.get(agent) else { return };
        let (common, hurry) = (known.runs > 0, known.hurry > 0);
        let mut pace = self.clock_pace(common);
        if !common {
            let longer = Span::from_nanos(known.pace.as_nanos().saturating_mul(IDLE_GROWTH));
            let first = if hurry { Span::ZERO } else { longer.max(IDLE_FIRST) };
            pace = pace.min(first.max(context::paced(Span::ZERO, self.roster.len())));
        }
        let quick = match common {
            true => HURRY_WAIT.max(Span::from_nanos(pace.as_nanos() / 10)),
            false => context::paced(HURRY_WAIT_FIRST, self.roster.len()),
        };
        let wait = self.rng.about(if hurry { quick } else { pace });
        let at = self.after(wait);
        self.timers.set(MeshTimer::Clock(agent), at);
        if let Some(known) = self.roster.get_mut(agent) {
            known.pace = pace;
            known.hurry = known.hurry.saturating_sub(1);
            known.pings.push_back(now);
            if known.pings.len() > PINGS_MAX {
                known.pings.pop_front();
            }
            let to = known.life.address;
            self.send(to, &MeshMessage::Ping { from, sent: now.as_nanos() });
        }
    }

    pub(super) fn on_pong(
        &mut self,
        from: MessageSender,
        [sent, came, left]: [Time; 3],
        theirs: WallClockReading,
    ) {
        if !self.knows(from) {
            return;
        }
        let Some(known) = self.roster.get_mut(from.agent) else { return };
        let Some(asked) = known.pings.iter().position(|ping| *ping == sent) else {
            self.out.counters.odd_clocks += 1;
            return;
        };
        known.pings.remove(asked);
        let (now, own, apart) = (self.now, self.wall, self.config.walls_apart);
        known.clock.claim(now, own, theirs, apart);
        match known.clock.take(&TimestampExchange { sent, came, left, back: self.now }) {
            TimestampExchangeOutcome::Taken => {}
            TimestampExchangeOutcome::Odd => self.out.counters.odd_clocks += 1,
            TimestampExchangeOutcome::Stepped(by) => {
                let agent = from.agent;
                self.out.events.push_back(MeshEvent::ClockStepped { agent, by });
            }
        }
    }
}

impl Mesh {
    pub(super) fn on_ping(&mut self, from: MessageSender, sent: u64) {
        if self.ctx.knows(from) {
            let now = self.ctx.now.as_nanos();
            let WallClockReading { ahead_ns, error } = self.ctx.wall;
            let error = error.map_or(NOT_KEPT, Span::as_nanos);
            let (from_me, ahead) = (self.ctx.me(), ahead_ns.cast_unsigned());
            let pong =
                MeshMessage::Pong { from: from_me, sent, came: now, left: now, ahead, error };
            self.ctx.send_to(from.agent, &pong);
            self.runs.piggyback(&mut self.ctx, from.agent);
        }
    }
}
