//! The network models behind one contract.

use alloc::boxed::Box;

use windtunnel_model::plan::NetworkModel;
use windtunnel_model::{Lane, Plan, Time};

use super::core::Core;
use crate::departure::ImmediateDeparture;
use crate::packet::{EmulatedPacket, EnteringFrame};
use crate::part::NetworkPart;
use crate::paths::PathModel;
use crate::paths::exchange::AnnouncementExchange;
use crate::timer::{LaneWakeUp, LaneWakeUpTimes};

/// How packets are carried over the lanes of a [`Core`].
///
/// The engine asks its model
///
/// 1. for each packet of a node: how it enters ([`enter`](QueueingModel::enter)), and what becomes of it
///    where a chain ends ([`arrive`](QueueingModel::arrive));
/// 2. about time: when the model has something of its own to do ([`next`](QueueingModel::next)), to do it
///    ([`handle_timeout`](QueueingModel::handle_timeout)), and to wake chains that are not lanes
///    ([`wake`](QueueingModel::wake));
/// 3. after each change of lanes or routes: to follow it ([`follow`](QueueingModel::follow)).
///
/// Which role each lane has by it is [`ElementChainRole::of`](crate::chain::ElementChainRole::of), and what
/// the clocks of lanes are [`VirtualClocks::of`](crate::paths::virtual_clock::VirtualClocks::of).
///
/// Chains that are not lanes have the numbers behind those of the lanes.
#[derive(Debug)]
pub(crate) enum QueueingModel {
    /// Each packet waits in the queue of each lane on its way.
    Hops,
    /// Each packet waits at its source for the share that its flow has of its path.
    Paths(Box<PathModel>),
}

impl QueueingModel {
    pub(crate) fn new(plan: &Plan, part: &NetworkPart) -> QueueingModel {
        match plan.model {
            NetworkModel::Hops => QueueingModel::Hops,
            NetworkModel::Paths(sharing) => {
                QueueingModel::Paths(Box::new(PathModel::new(plan, part, sharing)))
            }
        }
    }

    /// Takes a frame that a node sent, which may be in a tunnel (with the model of paths, none begins
    /// at a node); `Some` if every element lets it pass at once.
    #[inline]
    pub(crate) fn enter(
        &mut self,
        core: &mut Core,
        frame: EnteringFrame<'_>,
    ) -> Option<ImmediateDeparture> {
        match self {
            QueueingModel::Hops => core.enter(core.now, frame),
            QueueingModel::Paths(paths) => paths.enter(core, frame),
        }
    }

    /// Handles a packet that has come out of a chain, at `now`.
    #[inline]
    pub(crate) fn arrive(
        &mut self,
        core: &mut Core,
        now: Time,
        chain: Lane,
        packet: EmulatedPacket,
    ) {
        match self {
            QueueingModel::Hops => core.arrive(now, chain, packet),
            QueueingModel::Paths(paths) => paths.arrive(core, now, chain, packet),
        }
    }

    /// When the model has something of its own to do.
    pub(crate) fn next(&self) -> Option<Time> {
        match self {
            QueueingModel::Hops => None,
            QueueingModel::Paths(paths) => paths.traffic.next(),
        }
    }

    /// Does it.
    pub(crate) fn handle_timeout(&mut self, core: &mut Core, now: Time) {
        match self {
            QueueingModel::Hops => {}
            QueueingModel::Paths(paths) => paths.take_measure(core, now),
        }
    }

    /// Wakes a chain that is not a lane; `false` if the wake-up is not valid any more.
    pub(crate) fn wake(&mut self, core: &mut Core, due: LaneWakeUp) -> bool {
        match self {
            QueueingModel::Hops => false,
            QueueingModel::Paths(paths) => paths.wake(core, due),
        }
    }

    /// The alarms of a chain that is not a lane.
    pub(crate) fn alarms(&self, index: usize) -> &LaneWakeUpTimes {
        match self {
            QueueingModel::Hops => unreachable!("all chains are lanes"),
            QueueingModel::Paths(paths) => paths.alarms(index),
        }
    }

    /// Follows a change of lanes or routes.
    pub(crate) fn follow(&mut self, core: &mut Core, now: Time) {
        match self {
            QueueingModel::Hops => {}
            QueueingModel::Paths(paths) => paths.follow(core, now),
        }
    }

    fn paths(&self) -> Option<&PathModel> {
        match self {
            QueueingModel::Hops => None,
            QueueingModel::Paths(paths) => Some(paths),
        }
    }

    pub(crate) fn paths_mut(&mut self) -> Option<&mut PathModel> {
        match self {
            QueueingModel::Hops => None,
            QueueingModel::Paths(paths) => Some(paths),
        }
    }

    /// The announcements to and from other machines, where there are such.
    pub(crate) fn exchange(&self) -> Option<&AnnouncementExchange> {
        self.paths()?.exchange.as_ref()
    }
}
