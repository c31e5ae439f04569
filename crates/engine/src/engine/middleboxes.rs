//! What an engine knows of NATs and firewalls.

use windtunnel_model::RouterId;
use windtunnel_nat::{EndedMapping, NetworkAddressTranslator};

use super::Engine;

impl Engine {
    /// The NAT of a router; `None`: it has none.
    #[must_use]
    pub fn nat(&self, router: RouterId) -> Option<&NetworkAddressTranslator> {
        self.network.core.middleboxes.at(router)?.nat.as_ref()
    }

    /// A mapping whose time is over, with its router; each is given once, those of one router in the
    /// order of their ends.
    pub fn poll_ended_mapping(&mut self) -> Option<(RouterId, EndedMapping)> {
        let mut all = self.network.core.middleboxes.iter_mut();
        all.find_map(|(id, middlebox)| Some((id, middlebox.nat.as_mut()?.poll_ended()?)))
    }
}
