//! Changes of the network.

use windtunnel_model::plan::{LinkChange, PartitionMode, Sides};
use windtunnel_model::{Lane, Time};

use super::Core;
use crate::engine::NetworkChange;

impl Core {
    pub(crate) fn apply(&mut self, now: Time, change: &NetworkChange<'_>) {
        if let NetworkChange::Service(change) = change {
            return self.change_service(now, change);
        }
        self.ways.forget();
        match change {
            NetworkChange::Links(change) => self.change_links(now, change),
            NetworkChange::Flap { lanes, up } => self.flap(now, lanes, *up),
            NetworkChange::Partition(groups) => {
                self.part(now, &Sides::new(groups, PartitionMode::Between));
            }
            NetworkChange::PartitionOneWay(groups) => {
                self.part(now, &Sides::new(&groups.map(<[_]>::to_vec), PartitionMode::OneWay));
            }
            NetworkChange::PartitionPairs(groups) => {
                self.part(now, &Sides::new(groups, PartitionMode::Pairs));
            }
            NetworkChange::Heal => self.part(now, &Sides::new(&[], PartitionMode::Between)),
            NetworkChange::Route(change) => self.fix_routes(now, change),
            NetworkChange::Reroute => self.reroute(now, false),
            NetworkChange::Service(_) => {}
        }
    }

    fn change_links(&mut self, now: Time, change: &LinkChange) {
        for (lane, patch) in &change.patches {
            self.chains[lane.index()].patch(now, patch, &mut self.work);
        }
        for (lane, up) in &change.state {
            self.chains[lane.index()].cut.down = !up;
        }
        if !change.state.is_empty() {
            self.reroutes.lanes_changed(now);
        }
    }

    fn flap(&mut self, now: Time, lanes: &[Lane], up: bool) {
        for lane in lanes {
            let flaps = &mut self.chains[lane.index()].cut.flaps;
            *flaps = if up { flaps.saturating_sub(1) } else { *flaps + 1 };
        }
        self.reroutes.lanes_changed(now);
    }

    /// Parts the lanes and the attachments of LANs that a partition parts, and no others.
    fn part(&mut self, now: Time, sides: &Sides) {
        for segment in &mut self.segments {
            segment.part(sides, &self.vertices);
        }
        for (ends, pair) in self.vertices.iter().zip(self.chains.chunks_mut(2)) {
            for (chain, [from, to]) in pair.iter_mut().zip([[0, 1], [1, 0]]) {
                chain.cut.parted = sides.part(ends[from], ends[to]);
            }
        }
        self.reroutes.lanes_changed(now);
    }
}
