//! What both network models share: the lanes, routers and LANs of a plan, and the packets in them.

mod change;
mod deliver;
mod forward;
mod judge;
mod middle;
mod redirect;
mod replicate;
mod report;
mod reroute;
mod ways;

use alloc::vec::Vec;

use windtunnel_model::{Lane, Plan, RouterId, Span, Time};

use crate::event::{BoundedQueue, EVENTS_MAX, HANDOFFS_MAX, NetworkEvent};
use crate::limits::EngineLimits;
use crate::middlebox::Middleboxes;
use crate::network::{LaneEndpoint, NetworkDirectory};
use crate::packet::EmulatedPacket;
use crate::part::NetworkPart;
use crate::services::ServiceRedirector;
use crate::time_queue::TimeQueue;
use crate::timer::{LaneActivity, LaneWakeUp};
use crate::tunnel::headers::OuterHeaders;
use crate::underlay::{LaneSet, Underlay};
use deliver::DeliveryPoint;
use middle::MiddleboxPassage;
pub(crate) use redirect::RedirectionPoint;
use reroute::RerouteSchedule;
use ways::KnownWays;

/// The network without what is particular to a model of queues.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) net: Underlay,
    pub(crate) events: BoundedQueue<NetworkEvent>,
    pub(crate) handoffs: BoundedQueue<(Lane, Span)>,
    pub(crate) reroutes: RerouteSchedule,
    pub(crate) services: ServiceRedirector,
    pub(crate) middleboxes: Middleboxes,
    ways: KnownWays,
    headers: OuterHeaders,
    /// Trains whose last segment is not here yet, with the router where that is.
    trains: TimeQueue<(RouterId, EmulatedPacket)>,
    /// The latest `now`.
    pub(crate) now: Time,
}

impl Core {
    /// The lanes of `plan`, each in the role that the plan's model gives it.
    pub(crate) fn new(plan: &Plan, limits: EngineLimits, part: &NetworkPart) -> Core {
        let network = NetworkDirectory::new(plan);
        let here: Vec<bool> = plan.ports().map(|(node, _)| part.here[node.index()]).collect();
        let lanes = LaneSet::new(plan, &network, &here, part.number, limits.packet_memory);
        Core {
            net: Underlay::new(plan, network, lanes, here),
            events: BoundedQueue::new(EVENTS_MAX),
            handoffs: BoundedQueue::new(HANDOFFS_MAX),
            reroutes: RerouteSchedule::new(plan.routing.reroute),
            services: ServiceRedirector::new(plan),
            middleboxes: Middleboxes::new(plan),
            ways: KnownWays::default(),
            headers: OuterHeaders::default(),
            trains: TimeQueue::new(),
            now: Time::ZERO,
        }
    }

    /// Wakes a lane; `false` if the wake-up is not valid any more.
    #[inline]
    pub(crate) fn wake(&mut self, due: LaneWakeUp) -> bool {
        let (chains, work) = (&mut self.net.lanes.chains, &mut self.net.lanes.work);
        let chain = &mut chains[due.lane as usize];
        if !chain.alarms.take(&due) {
            return false;
        }
        work.now = due.at;
        match due.activity {
            LaneActivity::Ask => self.ask_again(due.at, Lane::from_index(due.lane as usize)),
            LaneActivity::Delay => {
                chain.wake(due, work);
                self.note_handoffs(due.at);
            }
            LaneActivity::Ingress | LaneActivity::Server => chain.wake(due, work),
        }
        true
    }

    /// When flows or fragments are to be forgotten, or connections that are kept want something.
    #[inline]
    pub(crate) fn next_upkeep(&self) -> Option<Time> {
        let sooner = |a: Option<Time>, b: Option<Time>| match (a, b) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        let fragments = sooner(self.headers.next(), self.middleboxes.next());
        let kept = sooner(self.trains.next(), self.services.next_of_held());
        sooner(sooner(self.services.next(), kept), fragments)
    }

    /// Forgets flows and fragments whose time is over, and does what connections that are kept want.
    pub(crate) fn keep_up(&mut self, now: Time) {
        while let Some((id, packet)) = self.trains.pop(now) {
            self.keep_whole(now, id, packet);
        }
        if self.services.next_of_held().is_some_and(|at| at <= now) {
            self.services.wake_held(now);
            self.send_kept(now);
        }
        if self.services.next().is_some_and(|at| at <= now) {
            self.services.sweep(now);
        }
        let lost = self.headers.lost();
        self.headers.expire(now, &mut self.net.lanes.work.pool);
        self.services.count_not_reassembled(self.headers.lost() - lost);
        self.passage().expire(now);
    }

    /// Where routers find out what becomes of packets.
    #[inline]
    pub(crate) fn redirection(&mut self) -> RedirectionPoint<'_> {
        let Core { services, ways, net, events, .. } = self;
        RedirectionPoint { services, ways, net, events }
    }

    /// Where routers translate packets, or do not let them pass.
    #[inline]
    fn passage(&mut self) -> MiddleboxPassage<'_> {
        MiddleboxPassage { middleboxes: &mut self.middleboxes, net: &mut self.net }
    }

    /// Where packets are given to nodes.
    #[inline]
    fn delivery(&mut self) -> DeliveryPoint<'_> {
        let Core { net, services, headers, .. } = self;
        DeliveryPoint { net, services, headers }
    }

    #[inline]
    fn note_handoffs(&mut self, intended: Time) {
        let late = self.now.since(intended);
        for (lane, _) in &self.net.lanes.work.exits {
            if !matches!(self.net.network.end(*lane), LaneEndpoint::Node { .. }) {
                self.handoffs.push((*lane, late));
            }
        }
    }
}
