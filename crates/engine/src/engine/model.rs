//! The network models behind one contract.

use alloc::boxed::Box;

use windtunnel_model::plan::NetworkModel;
use windtunnel_model::{Lane, Plan, PortId, Time};

use super::{Core, Express};
use crate::chain::Role;
use crate::packet::{MeasuredFrame, Packet};
use crate::part::Part;
use crate::paths::PathModel;
use crate::paths::virtual_clock::VirtualClocks;
use crate::timer::{Alarms, Due};
use crate::tunnel::Tunnel;

/// How packets are carried over the lanes of a [`Core`].
///
/// The engine asks its model
///
/// 1. at the start: which [`Role`] each lane has ([`role`](Model::role)), and what the lanes'
///    clocks are ([`clocks`](Model::clocks));
/// 2. for each packet of a node: how it enters ([`enter`](Model::enter)), and what becomes of it
///    where a chain ends ([`arrive`](Model::arrive));
/// 3. about time: when the model has something of its own to do ([`next`](Model::next)), to do it
///    ([`handle_timeout`](Model::handle_timeout)), and to wake chains that are not lanes
///    ([`wake`](Model::wake));
/// 4. after each change of lanes or routes: to follow it ([`follow`](Model::follow)).
///
/// Chains that are not lanes have the numbers behind those of the lanes.
#[derive(Debug)]
pub(crate) enum Model {
    /// Each packet waits in the queue of each lane on its way.
    Hops,
    /// Each packet waits at its source for the share that its flow has of its path.
    Paths(Box<PathModel>),
}

impl Model {
    pub(crate) fn new(plan: &Plan, part: &Part) -> Model {
        match plan.model {
            NetworkModel::Hops => Model::Hops,
            NetworkModel::Paths(sharing) => {
                Model::Paths(Box::new(PathModel::new(plan, part, sharing)))
            }
        }
    }

    /// What a lane is, which ends at a node of another machine or does not.
    pub(crate) fn role(&self, is_remote: bool) -> Role {
        match self {
            Model::Hops => Role::Lane,
            Model::Paths(_) => Role::ahead(is_remote),
        }
    }

    /// The clocks of the lanes.
    pub(crate) fn clocks(&self, plan: &Plan) -> VirtualClocks {
        match self {
            Model::Hops => VirtualClocks::default(),
            Model::Paths(_) => VirtualClocks::new(plan),
        }
    }

    /// Takes a frame that a node sent, perhaps into a tunnel (with the model of paths, none begins at
    /// a node); `Some` if every element lets it pass at once.
    #[inline]
    pub(crate) fn enter(
        &mut self,
        core: &mut Core,
        port: PortId,
        frame: MeasuredFrame<'_>,
        tunnel: Option<Tunnel>,
    ) -> Option<Express> {
        match self {
            Model::Hops => core.enter(core.now, port, frame, tunnel),
            Model::Paths(paths) => paths.enter(core, port, frame),
        }
    }

    /// Handles a packet that has come out of a chain, at `now`.
    #[inline]
    pub(crate) fn arrive(&mut self, core: &mut Core, now: Time, chain: Lane, packet: Packet) {
        match self {
            Model::Hops => core.arrive(now, chain, packet),
            Model::Paths(paths) => paths.arrive(core, now, chain, packet),
        }
    }

    /// When the model has something of its own to do.
    pub(crate) fn next(&self) -> Option<Time> {
        match self {
            Model::Hops => None,
            Model::Paths(paths) => paths.traffic.next(),
        }
    }

    /// Does it.
    pub(crate) fn handle_timeout(&mut self, core: &mut Core, now: Time) {
        match self {
            Model::Hops => {}
            Model::Paths(paths) => paths.take_measure(core, now),
        }
    }

    /// Wakes a chain that is not a lane; `false` if the wake-up is not valid any more.
    pub(crate) fn wake(&mut self, core: &mut Core, due: Due) -> bool {
        match self {
            Model::Hops => false,
            Model::Paths(paths) => paths.wake(core, due),
        }
    }

    /// The alarms of a chain that is not a lane.
    pub(crate) fn alarms(&self, index: usize) -> &Alarms {
        match self {
            Model::Hops => unreachable!("all chains are lanes"),
            Model::Paths(paths) => paths.alarms(index),
        }
    }

    /// Follows a change of lanes or routes.
    pub(crate) fn follow(&mut self, core: &mut Core, now: Time) {
        match self {
            Model::Hops => {}
            Model::Paths(paths) => paths.follow(core, now),
        }
    }

    pub(crate) fn paths(&self) -> Option<&PathModel> {
        match self {
            Model::Hops => None,
            Model::Paths(paths) => Some(paths),
        }
    }

    pub(crate) fn paths_mut(&mut self) -> Option<&mut PathModel> {
        match self {
            Model::Hops => None,
            Model::Paths(paths) => Some(paths),
        }
    }
}
