//! Lanes whose rate classes share: whose flows are, and what each class did.

use alloc::vec::Vec;

use windtunnel_model::profile::QueueDiscipline;
use windtunnel_model::{Lane, Plan, Time};
use windtunnel_wire::flow::FiveTuple;

use super::Engine;
use crate::counters::LaneClassCounters;

impl Engine {
    /// A flow on a lane with classes whose class is to be said: that of a socket, with the receiver
    /// where it is TCP. It is asked for when it begins, and again after each second in which it
    /// goes on. Until [`answer_flow`](Engine::answer_flow) it stays where it was: at first with what
    /// belongs to no class.
    #[inline]
    pub fn poll_flow_question(&mut self) -> Option<(Lane, FiveTuple)> {
        let chains = &mut self.network.core.net.lanes.chains;
        self.shared.iter().find_map(|lane| {
            let key = chains[lane.index()].queue().question()?;
            Some((*lane, key))
        })
    }

    /// Says which class a flow is of, by its number; `None`: it has no owner (any more), and it stays
    /// where it was. Its packets that wait go to their class. It may be said before the flow begins.
    ///
    /// # Panics
    /// If `now` is before an earlier one, or the plan has no such lane.
    pub fn answer_flow(&mut self, now: Time, lane: Lane, key: &FiveTuple, class: Option<u32>) {
        self.network.advance(now);
        self.network.core.net.lanes.chains[lane.index()].queue().answer(now, key, class);
        self.network.finish();
    }

    /// What the classes of a lane did, where its discipline has such.
    #[must_use]
    pub fn classes(&self, lane: Lane) -> Option<LaneClassCounters> {
        self.network.core.net.lanes.chains[lane.index()].classes()
    }

    /// The lanes whose rate classes share.
    pub fn shared_lanes(&self) -> impl Iterator<Item = Lane> {
        self.shared.iter().copied()
    }
}

/// Lanes with classes.
pub(super) fn shared(plan: &Plan) -> Vec<Lane> {
    let lanes = (0..plan.links.len() * 2).map(Lane::from_index);
    let has_classes = |lane: &Lane| {
        let profile = &plan.links[lane.link.index()].profiles[lane.direction.index()];
        matches!(&profile.discipline, QueueDiscipline::Wf2q(wf2q) if !wf2q.classes.is_empty())
    };
    lanes.filter(has_classes).collect()
}
