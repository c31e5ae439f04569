//! Settings, fixed at the start.

use core::net::SocketAddr;

use windtunnel_model::Span;

use crate::id::AgentId;

/// Everything that a [`crate::Mesh`] is built from, beside its seed.
#[derive(Debug, Clone)]
pub struct MeshConfiguration {
    /// This agent's id.
    pub agent: AgentId,
    /// This start's number: greater than those of the agent's former starts
    /// ([`crate::Identity::epoch`]).
    pub epoch: u64,
    /// Where other agents reach this one.
    pub address: SocketAddr,
    /// Bytes of a datagram at the most, without the carrier's own. At least [`MeshConfiguration::MTU_MIN`].
    pub mtu: usize,
    /// How a lost member of a common run is noticed.
    pub detection: SwimParameters,
    /// How the loss of an agent without a common run is noticed.
    pub idle: SwimParameters,
    /// How often messages are sent.
    pub pace: MeshIntervals,
    /// How much is kept.
    pub limits: MeshLimits,
    /// How far the wall clocks of all machines are apart at the most, as the operator knows.
    pub walls_apart: Option<Span>,
}

/// How lost agents are noticed: SWIM's parameters, for round trips up to 10 ms. Each probe of an
/// agent further away takes them as [`SwimParameters::stretched`] to the round trip that was measured.
/// [`SwimParameters::noticed_within`] is their sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SwimParameters {
    /// Each agent asks one other whether it lives, once in this time. Default 25 ms.
    pub probe_period: Span,
    /// After this time without an answer, three others are asked to ask. Default 15 ms.
    pub probe_wait: Span,
    /// A suspected agent has this time to object. Default 500 ms.
    pub suspicion: Span,
    /// A suspected agent is sent its suspicion again after this time. Default 50 ms.
    pub notice_period: Span,
    /// News spread to all within this time: for the sum only. Default 100 ms.
    pub spread: Span,
}

/// How often things are said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MeshIntervals {
    /// Changes of flows are collected for this time; the first after a silence leaves at once.
    /// Default 2 ms.
    pub batch: Span,
    /// A member not known to share a link with a flow receives it within this time, together with
    /// other pending announcements, and never if the flow has ended meanwhile. Default 250 ms.
    pub later: Span,
    /// A missing announcement is asked for after this time, in which it may still come. Default 3
    /// ms.
    pub patience: Span,
    /// After the last change a peer is sent the digest of the flows it should hold: first after
    /// this time, then after eight times that, and so on until `digest_steady`. Default 50 ms.
    pub digest_first: Span,
    /// Without changes, each peer is sent that digest this often. Default 1 s; with more than 100
    /// peers, 100 of them in a second.
    pub digest_steady: Span,
    /// Timestamps are exchanged with each peer of a run that often, or up to twice as often along
    /// with something else. Default 250 ms; with more than 6 peers, 25 of them in a second,
    /// with more than 12 each 500 ms, with more than 50, 100 of them in a second. With agents
    /// outside of any common run: 2400 times more rarely, with more than 300 of them one each
    /// 2 s.
    pub clock: Span,
    /// How often an unknown or lost agent is asked whether it is there. Default 1 s; with more
    /// than 50 agents, a 50th of a second for each.
    pub rejoin: Span,
}

/// How much is kept. Anything beyond a limit is refused, counted and reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MeshLimits {
    /// Agents of the cluster, at the most. Default 16 384.
    pub agents: usize,
    /// Runs at a time. Default 1024.
    pub runs: usize,
    /// Flows of one agent in one run. Default 65 536.
    pub flows: usize,
    /// Ended flows of this agent in one run that are remembered, so that a member that missed
    /// their end is sent only that instead of all flows. Default 4096.
    pub ended: usize,
}

impl MeshConfiguration {
    /// The smallest MTU that works.
    pub const MTU_MIN: usize = 256;

    /// The default settings for an agent.
    #[must_use]
    pub fn new(agent: AgentId, epoch: u64, address: SocketAddr) -> Self {
        MeshConfiguration {
            agent,
            epoch,
            address,
            mtu: 1200,
            detection: SwimParameters::default(),
            idle: SwimParameters::idle(),
            pace: MeshIntervals::default(),
            limits: MeshLimits::default(),
            walls_apart: None,
        }
    }
}

impl SwimParameters {
    /// Settings for machines whose round trips take up to `rtt`. The default is that of 10 ms.
    #[must_use]
    pub fn for_rtt(rtt: Span) -> Self {
        SwimParameters::default().stretched(rtt)
    }

    /// Settings without a common run: each agent asks one of its neighbours a second, and no
    /// connection has to be kept open for more than these.
    #[must_use]
    pub const fn idle() -> Self {
        SwimParameters {
            probe_period: Span::from_secs(1),
            probe_wait: Span::from_millis(400),
            suspicion: Span::from_secs(3),
            notice_period: Span::from_millis(300),
            spread: Span::from_millis(500),
        }
    }

    /// The same for an agent to which a round trip takes `rtt`: nothing that waits for an answer is
    /// shorter than it takes.
    #[must_use]
    pub fn stretched(&self, rtt: Span) -> Self {
        let longer = |base: Span, trips_tenths: u64| {
            base.max(Span::from_nanos(rtt.as_nanos().saturating_mul(trips_tenths) / 10))
        };
        SwimParameters {
            probe_period: longer(self.probe_period, 25),
            probe_wait: longer(self.probe_wait, 15),
            suspicion: longer(self.suspicion, 260),
            notice_period: longer(self.notice_period, 50),
            spread: longer(self.spread, 100),
        }
    }

    /// The time within which every one of `agents` agents knows that another is lost, except one
    /// time in a million:
    ///
    /// periods until an agent probes the lost one + the period in which it does not answer + the
    /// time to object + the time that the news takes.
    ///
    /// Each of the n − 1 others asks in an order of chance, so that n − 1 agents all pass over the
    /// lost one for k periods with a chance of (1 − 1/(n−1))^(k(n−1)) < e⁻ᵏ; k = 14 makes that
    /// one in a million. No agent passes over another for more than 2(n−1) − 1 periods.
    #[must_use]
    pub fn noticed_within(&self, agents: usize) -> Span {
        let others = u64::try_from(agents.saturating_sub(1)).unwrap_or(u64::MAX).max(1);
        let periods = others.saturating_mul(2).saturating_sub(1).min(14);
        let asked = Span::from_nanos(self.probe_period.as_nanos().saturating_mul(periods));
        asked + self.probe_period + self.suspicion + self.spread
    }

    /// The same without a common run, where each agent asks [`NEIGHBOURS`] others in turn and, once
    /// in [`FAR_PROBE`] times, a random agent: the lost one's turn comes within `NEIGHBOURS + 1`
    /// periods. If all its probers are lost as well, their own neighbours notice that first.
    #[must_use]
    pub fn noticed_by_neighbours_within(&self) -> Span {
        let turns = u64::try_from(NEIGHBOURS).unwrap_or(u64::MAX).saturating_add(2);
        let asked = Span::from_nanos(self.probe_period.as_nanos().saturating_mul(turns));
        asked + self.suspicion + self.spread
    }
}

/// How many others an agent without a common run asks whether they live; as many ask it, more or
/// less.
pub const NEIGHBOURS: usize = 3;
/// Once in so many times it asks a random agent instead: lists of agents are compared with the
/// probed agent, and neighbours alone may all be wrong.
pub const FAR_PROBE: u32 = 16;

impl Default for SwimParameters {
    fn default() -> Self {
        SwimParameters {
            probe_period: Span::from_millis(25),
            probe_wait: Span::from_millis(15),
            suspicion: Span::from_millis(500),
            notice_period: Span::from_millis(50),
            spread: Span::from_millis(100),
        }
    }
}

impl Default for MeshIntervals {
    fn default() -> Self {
        MeshIntervals {
            batch: Span::from_millis(2),
            later: Span::from_millis(250),
            patience: Span::from_millis(3),
            digest_first: Span::from_millis(50),
            digest_steady: Span::from_secs(1),
            clock: Span::from_millis(250),
            rejoin: Span::from_secs(1),
        }
    }
}

impl Default for MeshLimits {
    fn default() -> Self {
        MeshLimits { agents: 16_384, runs: 1024, flows: 65_536, ended: 4096 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_settings_notice_a_lost_agent_within_a_second() {
        // One other: asked in the next period. More: 14 periods at the most, one time in a million.
        let default = SwimParameters::default();
        assert_eq!(default.noticed_within(2), Span::from_millis(25 + 25 + 500 + 100));
        for agents in [16, 100, 1000, 10_000] {
            assert_eq!(default.noticed_within(agents), Span::from_millis(14 * 25 + 25 + 500 + 100));
        }
        assert!(default.noticed_within(10_000) <= Span::from_secs(1));
    }

    #[test]
    fn longer_round_trips_stretch_everything() {
        let far = SwimParameters::for_rtt(Span::from_millis(100));
        assert_eq!(far.probe_wait, Span::from_millis(150));
        assert_eq!(far.noticed_within(100), Span::from_millis(15 * 250 + 2600 + 1000));
    }
}
