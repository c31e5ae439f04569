//! Changes of the network.

use windtunnel_model::plan::LinkChange;
use windtunnel_model::{Lane, Time, Vertex};

use super::Core;
use crate::engine::NetworkChange;
use crate::lan::Sides;

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
                let group = |vertex| groups.iter().position(|group| group.contains(&vertex));
                self.part_lans(|vertex| Sides { sends: group(vertex), receives: group(vertex) });
                self.part(
                    now,
                    |from, to| matches!((group(from), group(to)), (Some(a), Some(b)) if a != b),
                );
            }
            NetworkChange::PartitionOneWay([from_group, to_group]) => {
                self.part_lans(|vertex| Sides {
                    sends: from_group.contains(&vertex).then_some(0),
                    receives: to_group.contains(&vertex).then_some(1),
                });
                self.part(now, |from, to| from_group.contains(&from) && to_group.contains(&to));
            }
            NetworkChange::Heal => {
                self.chains.iter_mut().for_each(|chain| chain.cut.parted = false);
                self.part_lans(|_| Sides::default());
                self.reroutes.lanes_changed(now);
            }
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

    /// Puts the attachments of all LANs on the sides of a partition.
    fn part_lans(&mut self, sides: impl Fn(Vertex) -> Sides) {
        for segment in &mut self.segments {
            segment.part(&sides, &self.vertices);
        }
    }

    /// Parts the lanes for which `parts(start, end)` says so, and no others.
    fn part(&mut self, now: Time, parts: impl Fn(Vertex, Vertex) -> bool) {
        for (ends, pair) in self.vertices.iter().zip(self.chains.chunks_mut(2)) {
            for (chain, [from, to]) in pair.iter_mut().zip([[0, 1], [1, 0]]) {
                chain.cut.parted = parts(ends[from], ends[to]);
            }
        }
        self.reroutes.lanes_changed(now);
    }
}
