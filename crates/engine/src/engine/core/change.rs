//! Changes of the network.

use windtunnel_model::Time;
use windtunnel_model::plan::{PartitionMode, PartitionSides, ROUTER_MAC, ServiceChange};
use windtunnel_wire::reset::TcpResetSegment;

use super::Core;
use crate::engine::NetworkChange;
use crate::event::{NetworkEvent, NetworkEventKind};

impl Core {
    pub(crate) fn apply(&mut self, now: Time, change: &NetworkChange<'_>) {
        if let NetworkChange::Service(change) = change {
            return self.change_service(now, change);
        }
        self.ways.forget();
        match change {
            NetworkChange::Links(change) => self.net.lanes.change(now, change),
            NetworkChange::Flap { lanes, up } => self.net.lanes.flap(lanes, *up),
            NetworkChange::Partition(groups) => {
                self.net.part(&PartitionSides::new(groups, PartitionMode::Between));
            }
            NetworkChange::PartitionOneWay(groups) => {
                self.net
                    .part(&PartitionSides::new(&groups.map(<[_]>::to_vec), PartitionMode::OneWay));
            }
            NetworkChange::PartitionPairs(groups) => {
                self.net.part(&PartitionSides::new(groups, PartitionMode::Pairs));
            }
            NetworkChange::Heal => self.net.part(&PartitionSides::new(&[], PartitionMode::Between)),
            NetworkChange::Route(change) => {
                self.net.fix_routes(change);
                self.events.push(NetworkEvent { at: now, kind: NetworkEventKind::RoutesFixed });
            }
            NetworkChange::Reroute => self.reroute(now, false),
            NetworkChange::Service(_) => {}
        }
        if cuts_or_mends(change) {
            self.reroutes.lanes_changed(now);
        }
    }

    /// Takes a change of a service over.
    fn change_service(&mut self, now: Time, change: &ServiceChange) {
        let broken = self.services.update(now, change);
        self.send_kept(now);
        for broken in broken {
            let reset = TcpResetSegment {
                source: broken.service,
                destination: broken.client,
                sequence: broken.acknowledged,
                acknowledgement: None,
                mac: ROUTER_MAC,
            };
            self.services.count_lost(change.service, 0, true);
            self.send_reset(now, broken.router, &reset);
        }
    }

    /// Computes shortest routes for the lanes as they are.
    pub(crate) fn reroute(&mut self, now: Time, by_itself: bool) {
        self.ways.forget();
        self.net.reroute();
        self.events.push(NetworkEvent { at: now, kind: NetworkEventKind::Rerouted { by_itself } });
    }
}

/// Whether lanes may go down or up with a change.
fn cuts_or_mends(change: &NetworkChange<'_>) -> bool {
    match change {
        NetworkChange::Links(change) => !change.state.is_empty(),
        NetworkChange::Flap { .. }
        | NetworkChange::Partition(_)
        | NetworkChange::PartitionOneWay(_)
        | NetworkChange::PartitionPairs(_)
        | NetworkChange::Heal => true,
        NetworkChange::Route(_) | NetworkChange::Reroute | NetworkChange::Service(_) => false,
    }
}
