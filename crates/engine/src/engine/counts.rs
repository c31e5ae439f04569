//! What an engine has counted, and how its lanes are now.

use alloc::sync::Arc;

use windtunnel_model::{Lane, LinkProfile, RouterId};
use windtunnel_routing::Routes;

use super::Engine;
use crate::counters::{LaneCounters, RouterCounters};
use crate::event::LostReports;

impl Engine {
    /// What a lane did.
    #[must_use]
    pub fn lane(&self, lane: Lane) -> &LaneCounters {
        &self.network.core.net.lanes.chains[lane.index()].meter.counters
    }

    /// The most packets and bytes (with overhead) that waited in a lane's queue at any time since
    /// the last call.
    pub fn take_queue_peak(&mut self, lane: Lane) -> (u64, u64) {
        self.network.core.net.lanes.chains[lane.index()].take_queue_peak()
    }

    /// What a router did.
    #[must_use]
    pub fn router(&self, router: RouterId) -> &RouterCounters {
        &self.network.core.net.routers[router.index()]
    }

    /// The routes of this moment.
    #[must_use]
    pub fn routes(&self) -> &Arc<Routes> {
        self.network.core.net.network.routes()
    }

    /// The properties of a lane as they are now.
    #[must_use]
    pub fn profile(&self, lane: Lane) -> &LinkProfile {
        self.network.core.net.lanes.chains[lane.index()].profile()
    }

    /// Whether a lane takes packets: it is not down and no partition cuts it.
    #[must_use]
    pub fn is_up(&self, lane: Lane) -> bool {
        self.network.core.net.lanes.chains[lane.index()].state.is_up()
    }

    /// Segments inside a lane: queued, in transmission, in flight.
    #[must_use]
    pub fn in_lane_packets(&self, lane: Lane) -> u64 {
        self.network.core.net.lanes.chains[lane.index()].in_lane()
    }

    /// Bytes of packet buffers in use, those that were polled and not recycled among them.
    #[must_use]
    pub fn in_flight_bytes(&self) -> u64 {
        self.network.core.net.lanes.work.pool.held()
    }

    /// Frames that were too short or too long to be taken.
    #[must_use]
    pub fn refused_frames(&self) -> u64 {
        self.refused
    }

    /// What was not polled in time and is lost.
    #[must_use]
    pub fn lost_reports(&self) -> LostReports {
        let core = &self.network.core;
        LostReports { events: core.events.lost(), handoffs: core.handoffs.lost() }
    }
}
