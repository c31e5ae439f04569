//! What is due in the network, one thing after the other.

use windtunnel_model::Time;
use windtunnel_model::plan::EventAction;
use windtunnel_wire::vnet::VirtioNetHeader;

use super::core::Core;
use super::model::QueueingModel;
use crate::departure::ImmediateDeparture;
use crate::housekeeping;
use crate::network::LaneEndpoint;
use crate::packet::{EnteringFrame, FrameOrigin};

/// A network that does what is due in it, in the intended order.
#[derive(Debug)]
pub(super) struct NetworkScheduler {
    pub(super) core: Core,
    pub(super) model: QueueingModel,
}

impl NetworkScheduler {
    /// When something is due next.
    #[inline]
    pub(super) fn next(&self) -> Option<Time> {
        let (core, timers) = (&self.core, &self.core.net.lanes.work.timers);
        [timers.next(), core.reroutes.next(), core.next_upkeep(), self.model.next()]
            .into_iter()
            .flatten()
            .min()
    }

    /// Everything that is due, one wake-up after the other.
    #[inline]
    pub(super) fn advance(&mut self, now: Time) {
        assert!(now >= self.core.now, "time went back from {} to {now}", self.core.now);
        self.core.now = now;
        let due = |at: Option<Time>| at.filter(|at| *at <= now);
        loop {
            let model = due(self.model.next());
            let reroute = due(self.core.reroutes.next());
            let upkeep = due(self.core.next_upkeep());
            let Some(at) = [model, reroute, upkeep].into_iter().flatten().min() else { break };
            self.wake(at);
            if model == Some(at) {
                self.model.handle_timeout(&mut self.core, at);
            } else if reroute == Some(at) {
                self.core.reroutes.take(now);
                self.core.reroute(at, true);
                self.model.follow(&mut self.core, at);
            } else {
                self.core.keep_up(at);
            }
            self.settle(at);
        }
        self.wake(now);
    }

    /// Takes a frame that a node has sent; `Some`: it passes at once.
    #[inline]
    pub(super) fn enter(
        &mut self,
        origin: FrameOrigin,
        vnet: VirtioNetHeader,
        frame: &mut [u8],
    ) -> Option<ImmediateDeparture> {
        let core = &mut self.core;
        let now = core.now;
        let end = core.net.network.end(core.net.network.lane_of(origin.port));
        let on_lan = matches!(end, LaneEndpoint::Lan(_));
        if !on_lan && housekeeping::stays_out(frame, matches!(end, LaneEndpoint::Router(_))) {
            if let LaneEndpoint::Router(router) = end {
                core.net.routers[router.index()].not_forwarded += 1;
            }
            return None;
        }
        let mut frame = EnteringFrame::new(origin, vnet, frame);
        let mut back = None;
        if core.services.ends_at(origin.port) {
            back = core.redirection().take_reply(&mut frame).ok()?;
        }
        frame.tag = core.net.lanes.work.recorder.meet(now, frame.bytes, &frame.shape);
        if let Some(tunnel) = back {
            frame.enter(tunnel);
        }
        let departure = self.model.enter(core, frame);
        self.settle(now);
        departure
    }

    /// Changes the network.
    pub(super) fn apply(&mut self, action: &EventAction) {
        let now = self.core.now;
        match action {
            EventAction::Service(changes) => {
                for change in changes {
                    self.advance(now);
                    self.core.change_service(now, change);
                    self.settle(now);
                }
                return;
            }
            EventAction::Link(_) | EventAction::Route(_) | EventAction::Reroute => {
                self.core.apply(now, action);
                self.model.follow(&mut self.core, now);
            }
            _ => self.core.apply(now, action),
        }
        self.settle(now);
    }

    /// Handles everything that has come out of chains, and what comes of that at the same time.
    #[inline]
    pub(super) fn settle(&mut self, now: Time) {
        while let Some((chain, packet)) = self.core.net.lanes.work.exits.pop_front() {
            self.model.arrive(&mut self.core, now, chain, packet);
        }
    }

    /// Ends a call of the engine: no wake-up that is left is in vain.
    #[inline]
    pub(super) fn finish(&mut self) {
        let (lanes, model) = (&mut self.core.net.lanes, &self.model);
        let chains = &lanes.chains;
        lanes.work.timers.prune(|index| {
            let index = index as usize;
            chains.get(index).map_or_else(|| model.alarms(index), |chain| &chain.alarms)
        });
    }

    /// Wakes the chains that are due until `now`, in their order.
    fn wake(&mut self, now: Time) {
        while let Some(due) = self.core.net.lanes.work.timers.pop(now) {
            let is_lane = (due.lane as usize) < self.core.net.lanes.chains.len();
            let valid =
                if is_lane { self.core.wake(due) } else { self.model.wake(&mut self.core, due) };
            if valid {
                self.settle(due.at);
            }
        }
        self.core.net.lanes.work.now = now;
    }
}
