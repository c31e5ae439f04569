//! Where the nodes' packets come in.

use windtunnel_model::{PortId, Time};

/// The ports, by the indices of their devices in the fabric: these are small and dense.
#[derive(Debug)]
pub(super) struct IngressPortTable {
    by_interface: Vec<Option<IngressPort>>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct IngressPort {
    pub(super) port: PortId,
    /// When the last of its packets was sent.
    last: Time,
}

impl IngressPortTable {
    /// Of the devices of all ports, in the ports' order.
    pub(super) fn new(interfaces: &[u32]) -> IngressPortTable {
        let highest = interfaces.iter().max().map_or(0, |&index| index as usize + 1);
        let mut by_interface = vec![None; highest];
        for (port, &interface) in interfaces.iter().enumerate() {
            let port = PortId::from_index(port);
            by_interface[interface as usize] = Some(IngressPort { port, last: Time::ZERO });
        }
        IngressPortTable { by_interface }
    }

    pub(super) fn of(&mut self, interface: u32) -> Option<&mut IngressPort> {
        self.by_interface.get_mut(interface as usize)?.as_mut()
    }
}

impl IngressPort {
    /// When a packet was sent that was stamped with `stamp`: a device hands its packets over in their
    /// order.
    pub(super) fn sent(&mut self, stamp: Time) -> Time {
        self.last = self.last.max(stamp);
        self.last
    }
}
