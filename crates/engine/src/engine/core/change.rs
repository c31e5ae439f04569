//! Changes of the network.

use windtunnel_model::Time;
use windtunnel_model::plan::{EventAction, ROUTER_MAC, ServiceChange};
use windtunnel_wire::reset::TcpResetSegment;

use super::Core;
use crate::event::{NetworkEvent, NetworkEventKind};

impl Core {
    /// Changes lanes and routes.
    pub(crate) fn apply(&mut self, now: Time, action: &EventAction) {
        self.ways.forget();
        if self.net.change(now, action) {
            self.reroutes.lanes_changed(now);
        }
        match action {
            EventAction::Route(change) => {
                self.net.fix_routes(change);
                self.events.push(NetworkEvent { at: now, kind: NetworkEventKind::RoutesFixed });
            }
            EventAction::Reroute => self.reroute(now, false),
            _ => {}
        }
    }

    /// Takes a change of a service over.
    pub(crate) fn change_service(&mut self, now: Time, change: &ServiceChange) {
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
