//! What the caller settles once.

use std::net::SocketAddr;

use windtunnel_model::Span;

use crate::id::AgentId;

/// Everything that a [`crate::Mesh`] is built from, beside its seed.
#[derive(Debug, Clone)]
pub struct Config {
    /// Who this agent is.
    pub agent: AgentId,
    /// This start's number: greater than those of the agent's former starts ([`crate::Identity::epoch`]).
    pub epoch: u64,
    /// Where other agents reach this one.
    pub address: SocketAddr,
    /// Bytes of a datagram at the most, without the carrier's own. At least [`Config::MTU_MIN`].
    pub mtu: usize,
    /// How lost agents are noticed.
    pub detection: Detection,
    /// How often things are said.
    pub pace: Pace,
    /// How much is kept.
    pub limits: Limits,
}

/// How lost agents are noticed: SWIM's parameters. [`Detection::noticed_within`] is their sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Detection {
    /// Each agent asks one other whether it lives, once in this time. Default 25 ms.
    pub probe_period: Span,
    /// After this time without an answer, three others are asked to ask. Default 15 ms.
    pub probe_wait: Span,
    /// A suspected agent has this time to object. Default 500 ms.
    pub suspicion: Span,
    /// A suspected agent is told so, again and again, after this time. Default 50 ms.
    pub notice_period: Span,
    /// News spread to all within this time: for the sum only. Default 100 ms.
    pub spread: Span,
}

/// How often things are said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// Changes of flows are collected for this time; the first after a silence leaves at once. Default 2 ms.
    pub batch: Span,
    /// A missing announcement is asked for after this time, in which it may still come. Default 3 ms.
    pub patience: Span,
    /// After the last change a peer is told what it should have by now: first after this time, then after
    /// eight times that, and so on until `digest_steady`. Default 50 ms.
    pub digest_first: Span,
    /// In quiet, each peer is told that often what it should have, and what this agent holds of its
    /// membership. Default 1 s; with more than 100 peers, 100 of them in a second.
    pub digest_steady: Span,
    /// Time stamps are exchanged with each peer of a run that often, or up to twice as often along with
    /// something else. Default 250 ms; with more than 6 peers, 25 of them in a second, with more than 12
    /// each 500 ms, with more than 50, 100 of them in a second. With agents outside of any common run: 40
    /// times more rarely.
    pub clock: Span,
    /// Who is not known here, or was lost, is asked that often whether it is there. Default 1 s; with more
    /// than 50 agents, a 50th of a second for each.
    pub rejoin: Span,
}

/// How much is kept. What goes beyond is refused, counted and told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Agents of the cluster, at the most. Default 16 384.
    pub agents: usize,
    /// Runs at a time. Default 1024.
    pub runs: usize,
    /// Flows of one agent in one run. Default 65 536.
    pub flows: usize,
    /// Ended flows of this agent in one run that are remembered, so that who missed their end can be told
    /// it alone instead of all flows. Default 4096.
    pub ended: usize,
}

impl Config {
    /// The smallest MTU that works.
    pub const MTU_MIN: usize = 256;

    /// The default settings for an agent.
    #[must_use]
    pub fn new(agent: AgentId, epoch: u64, address: SocketAddr) -> Self {
        Config {
            agent,
            epoch,
            address,
            mtu: 1200,
            detection: Detection::default(),
            pace: Pace::default(),
            limits: Limits::default(),
        }
    }
}

impl Detection {
    /// Settings for machines whose round trips take up to `rtt`. The default is that of 10 ms.
    #[must_use]
    pub fn for_rtt(rtt: Span) -> Self {
        let longer = |base: u64, trips_tenths: u64| {
            let trips = rtt.as_nanos().saturating_mul(trips_tenths) / 10;
            Span::from_millis(base).max(Span::from_nanos(trips))
        };
        Detection {
            probe_period: longer(25, 25),
            probe_wait: longer(15, 15),
            suspicion: longer(500, 260),
            notice_period: longer(50, 50),
            spread: longer(100, 100),
        }
    }

    /// The time within which every one of `agents` agents knows that another is lost, except one time in
    /// a million:
    ///
    /// periods until somebody asks the lost one + the period in which it does not answer + the time to
    /// object + the time that the news takes.
    ///
    /// Each of the n − 1 others asks in an order of chance, so that n − 1 agents all pass over the lost
    /// one for k periods with a chance of (1 − 1/(n−1))^(k(n−1)) < e⁻ᵏ; k = 14 makes that one in a
    /// million. Nobody passes over anyone for more than 2(n−1) − 1 periods.
    #[must_use]
    pub fn noticed_within(&self, agents: usize) -> Span {
        let others = u64::try_from(agents.saturating_sub(1)).unwrap_or(u64::MAX).max(1);
        let periods = others.saturating_mul(2).saturating_sub(1).min(14);
        let asked = Span::from_nanos(self.probe_period.as_nanos().saturating_mul(periods));
        asked + self.probe_period + self.suspicion + self.spread
    }
}

impl Default for Detection {
    fn default() -> Self {
        Detection::for_rtt(Span::from_millis(10))
    }
}

impl Default for Pace {
    fn default() -> Self {
        Pace {
            batch: Span::from_millis(2),
            patience: Span::from_millis(3),
            digest_first: Span::from_millis(50),
            digest_steady: Span::from_secs(1),
            clock: Span::from_millis(250),
            rejoin: Span::from_secs(1),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Limits { agents: 16_384, runs: 1024, flows: 65_536, ended: 4096 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_settings_notice_a_lost_agent_within_a_second() {
        // One other: asked in the next period. More: 14 periods at the most, one time in a million.
        let default = Detection::default();
        assert_eq!(default.noticed_within(2), Span::from_millis(25 + 25 + 500 + 100));
        for agents in [16, 100, 1000, 10_000] {
            assert_eq!(default.noticed_within(agents), Span::from_millis(14 * 25 + 25 + 500 + 100));
        }
        assert!(default.noticed_within(10_000) <= Span::from_secs(1));
    }

    #[test]
    fn longer_round_trips_stretch_everything() {
        let far = Detection::for_rtt(Span::from_millis(100));
        assert_eq!(far.probe_wait, Span::from_millis(150));
        assert_eq!(far.noticed_within(100), Span::from_millis(15 * 250 + 2600 + 1000));
    }
}
