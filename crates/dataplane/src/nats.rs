//! What NATs have done, as the packet loop knows it.

use windtunnel_engine::{
    EndedMapping, Engine, MappingState, NatCounters, NetworkAddressTranslator,
};
use windtunnel_model::{Plan, RouterId, Time};

/// What the NAT of a router did.
#[derive(Debug, Clone)]
pub struct NatTally {
    pub router: RouterId,
    pub counters: NatCounters,
    /// Mappings and sessions that there are.
    pub held: (usize, usize),
    /// Mappings that are over, in the order of their ends.
    pub ended: Vec<EndedMapping>,
    /// Those that live, by protocol and external endpoint.
    pub live: Vec<MappingState>,
    /// When the run began, in the time of the engine.
    origin: Time,
}

impl NatTally {
    /// Those of all NATs at this moment, with at most so many live mappings of each.
    pub(super) fn now(engine: &Engine, plan: &Plan, origin: Time, most: usize) -> Vec<NatTally> {
        let held = |nat: &NetworkAddressTranslator| (nat.mappings_held(), nat.sessions_held());
        let nats = plan.middleboxes.iter().filter(|it| it.nat.is_some());
        nats.map(|middlebox| {
            let router = middlebox.router;
            let nat = engine.nat(router);
            NatTally {
                router,
                counters: nat.map(NetworkAddressTranslator::counters).unwrap_or_default(),
                held: nat.map(held).unwrap_or_default(),
                ended: Vec::new(),
                live: nat.map(|nat| nat.mappings(most)).unwrap_or_default(),
                origin,
            }
        })
        .collect()
    }

    /// Those of all NATs, with all mappings; what has ended is given once.
    pub(super) fn take(engine: &mut Engine, plan: &Plan, origin: Time) -> Vec<NatTally> {
        let mut tallies = NatTally::now(engine, plan, origin, usize::MAX);
        while let Some((router, ended)) = engine.poll_ended_mapping() {
            let of = tallies.iter_mut().find(|it| it.router == router);
            of.into_iter().for_each(|it| it.ended.push(ended));
        }
        tallies
    }

    /// A time of the engine as nanoseconds of the run.
    pub fn in_run(&self, at: Time) -> u64 {
        at.since(self.origin).as_nanos()
    }
}

/// Mappings of each NAT that a client of the control socket is shown.
pub(super) const SHOWN_MAX: usize = 1000;
