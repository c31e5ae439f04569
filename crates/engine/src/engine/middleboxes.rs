//! What an engine knows of NATs and firewalls.

use alloc::vec::Vec;

use windtunnel_model::RouterId;
use windtunnel_nat::{EndedMapping, MappingState, NatCounters, NetworkAddressTranslator};

use super::Engine;

impl Engine {
    /// What the NAT of a router did; `None`: it has none.
    #[must_use]
    pub fn nat(&self, router: RouterId) -> Option<NatCounters> {
        self.nat_at(router).map(NetworkAddressTranslator::counters)
    }

    /// How many mappings the NAT of a router has now, and how many sessions.
    #[must_use]
    pub fn nat_held(&self, router: RouterId) -> (usize, usize) {
        let held = |nat: &NetworkAddressTranslator| (nat.mappings_held(), nat.sessions_held());
        self.nat_at(router).map(held).unwrap_or_default()
    }

    /// The mappings of a router at this moment, by protocol and external endpoint, at most so many.
    /// All of its sessions are looked at: about a millisecond for 10⁵.
    #[must_use]
    pub fn nat_mappings(&self, router: RouterId, most: usize) -> Vec<MappingState> {
        self.nat_at(router).map(|nat| nat.mappings(most)).unwrap_or_default()
    }

    /// A mapping whose time is over, with its router; each is given once, those of one router in the
    /// order of their ends.
    pub fn poll_ended_mapping(&mut self) -> Option<(RouterId, EndedMapping)> {
        let mut all = self.core.middleboxes.iter_mut();
        all.find_map(|(id, middlebox)| Some((id, middlebox.nat.as_mut()?.poll_ended()?)))
    }

    fn nat_at(&self, router: RouterId) -> Option<&NetworkAddressTranslator> {
        self.core.middleboxes.at(router)?.nat.as_ref()
    }
}
